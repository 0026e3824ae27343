//! The identity of a feature set: a hash of its meaning, whatever it is called.

use std::fmt::{self, Display, Formatter};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{BlockSpec, DROPPED, Multiplicity};
use crate::chess::{BlackOrientation, Mirror, Orientation};

/// Hash (BLAKE3) of a set's canonical expansion: expression, orientation, multiplicity, buckets and selection; not its
/// name, description or factor. Sets of equal identity number the same features the same way. 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// The text that a block contributes to the hash.
fn canonical_line(block: &BlockSpec) -> String {
    let tables: String =
        block.buckets().iter().map(|bucket| format!(" {}={}", bucket.name, list(bucket.table.iter()))).collect();
    let selected = block.renumbering.as_ref().map_or_else(String::new, |renumbering| {
        let selected = renumbering.iter().enumerate().filter(|(_, index)| **index != DROPPED);
        format!(" selected {} {}", block.offset, list(selected.map(|(element, index)| format!("({element}, {index})"))))
    });
    let orientation = orientation_text(block.orientation);
    let multiplicity = multiplicity_text(block.multiplicity);
    format!("{orientation} {multiplicity} {}{tables}{selected}\n", block.canonical)
}

fn list(items: impl Iterator<Item = impl ToString>) -> String {
    format!("[{}]", items.map(|item| item.to_string()).collect::<Vec<_>>().join(", "))
}

fn orientation_text(orientation: Orientation) -> String {
    let black = match orientation.black {
        BlackOrientation::Flip => "Flip",
        BlackOrientation::Rotate => "Rotate",
    };
    let mirror = match orientation.mirror {
        Mirror::None => "None",
        Mirror::KingLeft => "KingLeft",
        Mirror::KingRight => "KingRight",
    };
    format!("Orientation {{ black: {black}, mirror: {mirror} }}")
}

const fn multiplicity_text(multiplicity: Multiplicity) -> &'static str {
    match multiplicity {
        Multiplicity::Set => "Set",
        Multiplicity::Bag => "Bag",
    }
}

impl Display for Identity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::FeatureSet;

    /// Identities stand in networks and checkpoints, so these texts must never change.
    #[test]
    fn hashed_texts_stay_as_they_are() {
        let check = |definition: &str, expected: &str| {
            let set = FeatureSet::from_definition(definition).expect("a definition");
            let found: String = set.blocks().iter().map(|block| canonical_line(block.spec())).collect();
            assert_eq!(found, expected);
        };
        let plain = "features = \"file(P) for P in pieces\"\n";
        check(plain, "Orientation { black: Flip, mirror: None } Set file(P) for P in pieces\n");
        check(
            &format!("{plain}black = \"rotate\"\nmirror = \"king-left\"\nmultiplicity = \"bag\""),
            "Orientation { black: Rotate, mirror: KingLeft } Bag file(P) for P in pieces\n",
        );
        check(
            &format!("{plain}mirror = \"king-right\"\nselected = \"2 5\""),
            "Orientation { black: Flip, mirror: KingRight } Set file(P) for P in pieces selected 0 [(2, 0), (5, 1)]\n",
        );
        let table = (0..64).map(|square| (square / 32).to_string()).collect::<Vec<_>>().join(", ");
        check(
            &format!("features = \"bucket(K, half)\"\n[buckets]\nhalf = [{table}]"),
            &format!("Orientation {{ black: Flip, mirror: None }} Set bucket(K, half) half=[{table}]\n"),
        );
    }
}
