//! What a feature set is, whatever it is called.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

/// Hash (BLAKE3) of a set's canonical expansion: expression, orientation, multiplicity, buckets and selection; not its
/// name, description or factor. Equal identities number the same features the same way. 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Identity(String);

impl Identity {
    pub(super) fn of(canonical: &str) -> Identity {
        Identity(blake3::hash(canonical.as_bytes()).to_hex().to_string())
    }

    /// The first twelve digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl Display for Identity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
