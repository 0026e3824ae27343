//! Conditions of rows, one for each perspective.

use crate::features::code::{Binary, Builder, Register};

/// What must hold for a row of White's and a row of Black's: a register that is 1 or 0, or nothing.
///
/// Where both are one register, both rows are emitted together, which costs little more than one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions(pub [Option<Register>; 2]);

impl Conditions {
    pub const ALWAYS: Conditions = Conditions([None; 2]);

    pub const fn both(condition: Register) -> Conditions {
        Conditions([Some(condition); 2])
    }

    /// Whether both perspectives have the same condition.
    pub fn are_equal(self) -> bool {
        self.0[0] == self.0[1]
    }

    /// White's for Black and Black's for White.
    #[must_use]
    pub const fn exchanged(self) -> Conditions {
        Conditions([self.0[1], self.0[0]])
    }

    /// Conditions that hold where both do.
    #[must_use]
    pub fn and(self, builder: &mut Builder, other: Conditions) -> Conditions {
        let [white, black] = [0, 1].map(|pov| [self.0[pov], other.0[pov]]);
        let white_both = all(builder, white);
        Conditions([white_both, if white == black { white_both } else { all(builder, black) }])
    }

    /// Conditions that hold where these do and the others fail. The others must be there where these are.
    #[must_use]
    pub fn and_not(self, builder: &mut Builder, other: Conditions) -> Conditions {
        let is_joint = self.are_equal() && other.are_equal();
        let mut each = [None; 2];
        for pov in 0..2 {
            each[pov] = match (self.0[pov], other.0[pov]) {
                (_, Some(_)) if pov == 1 && is_joint => each[0],
                (Some(own), Some(other)) => Some(builder.and_not(own, other)),
                (None, Some(other)) => Some(builder.equal(other, 0)),
                (own, None) => own,
            };
        }
        Conditions(each)
    }
}

/// The conjunction of two conditions, if there is any.
fn all(builder: &mut Builder, conditions: [Option<Register>; 2]) -> Option<Register> {
    match conditions {
        [Some(left), Some(right)] if left == right => Some(left),
        [Some(left), Some(right)] => Some(builder.binary(Binary::And, left, right)),
        [left, right] => left.or(right),
    }
}
