//! Axes of two variables: the squares that a piece attacks on an empty board, and unordered pairs.

use std::sync::OnceLock;

use shakmaty::{Bitboard, Color, Square, attacks};

use super::{Entity, FactorKind, ProductSpec};

/// The pairs of squares that a piece of a role attacks on an empty board, numbered by its square, then by the attacked
/// one. Pawns stand on ranks 2 to 7 and attack in their own direction.
#[derive(Clone, Debug)]
pub struct ReachSpec {
    /// Slots.
    pub attacker: usize,
    pub target: usize,
    /// 0–5 from pawn to king.
    pub role: u32,
}

/// The unordered pairs of different elements of two products of equal size: hi · (hi − 1) / 2 + lo for the larger and
/// the smaller of both elements.
#[derive(Clone, Debug)]
pub struct PairSpec {
    /// Each a product of axes of one variable.
    pub sides: [ProductSpec; 2],
}

/// The numbering of a role's reach; pawns have one for each colour.
struct ReachTable {
    /// By square and attacked square; `u16::MAX` where it is not attacked.
    elements: Box<[u16; 4096]>,
    /// Square and attacked square of each element.
    ends: Vec<[u8; 2]>,
}

const NOT_ATTACKED: u16 = u16::MAX;

impl ReachTable {
    fn of(role: u32, color: u32) -> ReachTable {
        let mut table = ReachTable { elements: Box::new([NOT_ATTACKED; 4096]), ends: Vec::new() };
        for from in Square::ALL {
            for to in attacked(role, color, from) {
                table.elements[usize::from(from) << 6 | usize::from(to)] = table.ends.len() as u16;
                table.ends.push([u8::from(from), u8::from(to)]);
            }
        }
        table
    }

    /// Of own pawns, the roles from knight to king, and their pawns.
    fn all() -> &'static [ReachTable; 7] {
        static ALL: OnceLock<[ReachTable; 7]> = OnceLock::new();
        ALL.get_or_init(|| {
            std::array::from_fn(|number| ReachTable::of(number as u32 % 6, u32::from(number == THEIR_PAWN)))
        })
    }
}

const THEIR_PAWN: usize = 6;

fn attacked(role: u32, color: u32, from: Square) -> Bitboard {
    let empty = Bitboard::EMPTY;
    match role {
        0 if !(8..56).contains(&u32::from(from)) => empty,
        0 => attacks::pawn_attacks(Color::from_white(color == 0), from),
        1 => attacks::knight_attacks(from),
        2 => attacks::bishop_attacks(from, empty),
        3 => attacks::rook_attacks(from, empty),
        4 => attacks::queen_attacks(from, empty),
        _ => attacks::king_attacks(from),
    }
}

impl ReachSpec {
    /// Number of elements of a role.
    pub fn size(role: u32) -> u32 {
        ReachTable::all()[role as usize].ends.len() as u32
    }

    pub const fn slots(&self) -> [usize; 2] {
        [self.attacker, self.target]
    }

    fn table(&self, color: u32) -> &'static ReachTable {
        &ReachTable::all()[if self.role == 0 && color == 1 { THEIR_PAWN } else { self.role as usize }]
    }

    /// The element of a piece of the role and the other variable's square; `None` for other roles and for squares that
    /// it does not attack.
    pub fn element(&self, attacker: Entity, target: Entity) -> Option<u32> {
        let known = self.table(attacker.color).elements[(attacker.square << 6 | target.square) as usize];
        (attacker.role == self.role && known != NOT_ATTACKED).then_some(u32::from(known))
    }

    /// The square of a piece of this colour and the square that it attacks, for an element.
    pub fn ends(&self, element: u32, color: u32) -> Option<[u32; 2]> {
        self.table(color).ends.get(element as usize).map(|ends| ends.map(u32::from))
    }
}

impl PairSpec {
    /// Number of pairs of n elements.
    pub const fn size(n: u32) -> u64 {
        n as u64 * (n as u64).saturating_sub(1) / 2
    }

    /// The number of a pair; `None` for equal elements.
    pub const fn number(a: u32, b: u32) -> Option<u32> {
        let (high, low) = if a > b { (a, b) } else { (b, a) };
        if high == low { None } else { Some((high as u64 * (high as u64 - 1) / 2) as u32 + low) }
    }

    /// The larger and the smaller element of a pair.
    pub fn elements(number: u32) -> [u32; 2] {
        let root = (8.0 * f64::from(number) + 1.0).sqrt();
        let mut high = ((1.0 + root) / 2.0) as u64;
        let first = |high: u64| high * (high - 1) / 2;
        // The root is rounded.
        while first(high) > u64::from(number) {
            high -= 1;
        }
        while first(high + 1) <= u64::from(number) {
            high += 1;
        }
        [high as u32, (u64::from(number) - first(high)) as u32]
    }

    pub fn slots(&self) -> [usize; 2] {
        self.sides.each_ref().map(PairSpec::slot)
    }

    /// The variable that a side reads.
    fn slot(side: &ProductSpec) -> usize {
        side.factors
            .iter()
            .find_map(|factor| if let FactorKind::Axis(axis) = &factor.kind { Some(axis.slot) } else { None })
            .unwrap_or_default()
    }

    /// A side's element for its variable; `None` outside a domain.
    pub fn side_element(side: &ProductSpec, entity: Entity) -> Option<u32> {
        side.factors.iter().try_fold(0, |sum, factor| match &factor.kind {
            FactorKind::Axis(axis) => Some(sum + axis.index(entity)? * factor.stride),
            _ => None,
        })
    }

    /// The pair's number for both variables.
    pub fn element(&self, entities: [Entity; 2]) -> Option<u32> {
        let [a, b] = [0, 1].map(|side| PairSpec::side_element(&self.sides[side], entities[side]));
        PairSpec::number(a?, b?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaches_have_the_sizes_of_the_board() {
        assert_eq!((0..6).map(ReachSpec::size).collect::<Vec<_>>(), [84, 336, 560, 896, 1456, 420]);
        let reach = ReachSpec { attacker: 2, target: 3, role: 0 };
        let pawn = |square, color| Entity { square, role: 0, color };
        // a2 attacks b3, their a7 attacks b6.
        assert_eq!(reach.element(pawn(8, 0), Entity::bare(17)), Some(0));
        assert_eq!(reach.element(pawn(8, 0), Entity::bare(16)), None);
        assert_eq!(reach.element(pawn(8, 1), Entity::bare(1)), Some(0));
        assert_eq!(reach.element(Entity { role: 1, ..pawn(8, 0) }, Entity::bare(17)), None);
        assert_eq!(reach.ends(83, 0), Some([55, 62]));
        assert_eq!(reach.ends(84, 0), None);
    }

    #[test]
    fn pairs_are_numbered_without_gaps() {
        let mut next = 0;
        for high in 1..200 {
            for low in 0..high {
                assert_eq!((PairSpec::number(low, high), PairSpec::number(high, low)), (Some(next), Some(next)));
                assert_eq!(PairSpec::elements(next), [high, low]);
                next += 1;
            }
        }
        assert_eq!(u64::from(next), PairSpec::size(200));
        assert_eq!(PairSpec::number(3, 3), None);
        let last = PairSpec::size(92_682) - 1;
        assert_eq!(PairSpec::elements(last as u32), [92_681, 92_680]);
    }
}
