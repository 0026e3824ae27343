//! The identity of a feature set: a hash of its meaning, whatever it is called.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::spec::{BlockSpec, DROPPED};

/// Hash (BLAKE3) of a set's canonical expansion: expression, orientation, multiplicity, buckets and selection; not its
/// name, description or factor. Sets of equal identity number the same features the same way. 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Identity(String);

impl Identity {
    pub(super) fn of(blocks: &[BlockSpec]) -> Identity {
        let canonical: String = blocks.iter().map(canonical_line).collect();
        Identity(blake3::hash(canonical.as_bytes()).to_hex().to_string())
    }

    /// The first twelve digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

/// The text that a block contributes to the hash. It contains the `Debug` forms of [`crate::chess::Orientation`] and
/// [`super::Multiplicity`], so names of their fields and variants must not change.
fn canonical_line(block: &BlockSpec) -> String {
    let tables: String = block.buckets().iter().map(|bucket| format!(" {}={:?}", bucket.name, bucket.table)).collect();
    let selected = block.renumbering.as_ref().map_or_else(String::new, |renumbering| {
        let selected = renumbering.iter().enumerate().filter(|(_, index)| **index != DROPPED);
        format!(" selected {} {:?}", block.offset, selected.collect::<Vec<_>>())
    });
    format!("{:?} {:?} {}{tables}{selected}\n", block.orientation, block.multiplicity, block.canonical)
}

impl Display for Identity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
