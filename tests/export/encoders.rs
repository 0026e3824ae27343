//! The hand-written encoders of the language's reference equal the definitions beside them.

use fsbench::chess::{Board, Perspective, Role};
use fsbench::features::{FeatureSet, LANGUAGE_REFERENCE};
use shakmaty::{Bitboard, Color, Square, attacks};

use super::positions;

/// A board as a perspective sees it, not turned: pieces as square, role and colour (own 0), and the own king.
struct Seen {
    pieces: Vec<[u32; 3]>,
    king: u32,
    black: bool,
}

impl Seen {
    fn of(board: &Board, pov: Perspective) -> Seen {
        let piece = |(square, piece): (Square, shakmaty::Piece)| {
            [u32::from(square), piece.role as u32 - 1, u32::from(piece.color != pov.own())]
        };
        Seen {
            pieces: board.clone().into_iter().map(piece).collect(),
            king: u32::from(board.king_of(pov.own()).unwrap()),
            black: pov == Perspective::Black,
        }
    }

    /// Every piece's index by its square, role and colour, and the own king's square, on a board turned by `mask`.
    fn each(&self, mask: u32, index: impl Fn(u32, u32, u32, u32) -> Option<u32>) -> Vec<u32> {
        let mask = if self.black { mask } else { 0 };
        let of = |[square, role, color]: &[u32; 3]| index(square ^ mask, *role, *color, self.king ^ mask);
        self.pieces.iter().filter_map(of).collect()
    }
}

type Encoder = fn(&Seen) -> Vec<u32>;

/// In the order of the reference.
const ENCODERS: [Encoder; 10] = [
    |seen| seen.each(56, |square, role, color, _| Some(color * 384 + role * 64 + square)),
    |seen| seen.each(56, |square, role, color, _| Some(role * 128 + color * 64 + square)),
    |seen| seen.each(56, |square, role, color, king| Some(color * 384 + role * 64 + (square ^ left(king)))),
    |seen| {
        let bucket = |king: u32| match (king / 8, king % 8) {
            (0, 2..=5) => 1,
            (0, _) => 0,
            (1 | 2, _) => 2,
            _ => 3,
        };
        seen.each(56, |square, role, color, king| Some(bucket(king) * 768 + color * 384 + role * 64 + square))
    },
    |seen| {
        const BUCKET: [u32; 8] = [0, 4, 6, 7, 8, 8, 9, 9];
        bucketed(seen, |rank, file| match rank {
            0 => file,
            1 => 4 + file / 2,
            _ => BUCKET[rank as usize],
        })
    },
    |seen| {
        bucketed(seen, |rank, file| match rank {
            0..=1 => rank * 4 + file,
            2..=3 => 8 + file,
            4..=5 => 12 + file / 2,
            _ => 14 + file / 2,
        })
    },
    |seen| {
        seen.each(63, |square, role, color, king| (role < 5).then(|| king * 641 + 1 + (role * 2 + color) * 64 + square))
    },
    |seen| seen.each(56, |square, role, color, king| Some(king * 768 + (role * 2 + color) * 64 + square)),
    |seen| {
        seen.each(56, |square, role, color, king| {
            let flip = if king % 8 < 4 { 7 } else { 0 };
            let k = king ^ flip;
            let bucket = 4 * (7 - k / 8) + 7 - k % 8;
            let plane = if role == 5 { 10 } else { role * 2 + color };
            Some(bucket * 704 + plane * 64 + (square ^ flip))
        })
    },
    threats,
];

/// The mask of a board whose king stays on the files a to d.
fn left(king: u32) -> u32 {
    if king % 8 > 3 { 7 } else { 0 }
}

fn bucketed(seen: &Seen, bucket: impl Fn(u32, u32) -> u32) -> Vec<u32> {
    seen.each(56, |square, role, color, king| {
        let flip = left(king);
        let k = king ^ left(king);
        Some(bucket(k / 8, k % 8) * 768 + color * 384 + role * 64 + (square ^ flip))
    })
}

fn attacked(role: u32, color: u32, square: u32, occupied: u64) -> u64 {
    let from = Square::new(square);
    match Role::ALL[role as usize] {
        Role::Pawn if [0, 7].contains(&(square / 8)) => 0,
        Role::Pawn => attacks::pawn_attacks(Color::from_white(color == 0), from).0,
        role => attacks::attacks(from, role.of(Color::White), Bitboard(occupied)).0,
    }
}

fn threats(seen: &Seen) -> Vec<u32> {
    const VICTIMS: [&[u32]; 5] = [&[1, 3], &[0, 1, 2, 3, 4], &[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3, 4]];
    let mask = if seen.black { 56 } else { 0 };
    let mask = mask ^ left(seen.king ^ mask);
    let pieces: Vec<[u32; 3]> =
        seen.pieces.iter().map(|[square, role, color]| [square ^ mask, *role, *color]).collect();
    let occupied = pieces.iter().fold(0u64, |all, piece| all | 1 << piece[0]);
    let mut active = Vec::new();
    let mut start = 0;
    for color in 0..2 {
        for role in 0..5 {
            let victims = VICTIMS[role as usize];
            let reached = |square: u32| attacked(role, color, square, 0);
            let pairs: u32 = (0..64).map(|square| reached(square).count_ones()).sum();
            for [from, ..] in pieces.iter().filter(|piece| piece[1..] == [role, color]) {
                for [to, target, target_color] in &pieces {
                    let is_attacked = attacked(role, color, *from, occupied) >> to & 1 != 0;
                    let Some(victim) = victims.iter().position(|victim| victim == target) else { continue };
                    if is_attacked && !(*target == role && from < to) {
                        let before: u32 = (0..*from).map(|square| reached(square).count_ones()).sum();
                        let pair = before + (reached(*from) & ((1 << to) - 1)).count_ones();
                        active.push(start + (target_color * victims.len() as u32 + victim as u32) * pairs + pair);
                    }
                }
            }
            start += 2 * victims.len() as u32 * pairs;
        }
    }
    active
}

#[test]
fn the_reference_lists_equal_encoders() {
    let (_, section) = LANGUAGE_REFERENCE.split_once("## Hand-written encoders\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let fences: Vec<&str> =
        section.split("```toml\n").skip(1).map(|fence| fence.split_once("```").unwrap().0).collect();
    assert_eq!(fences.len(), ENCODERS.len());
    let mut steps = positions::random("encoders", 0, 1000);
    steps.extend(positions::real(1000));
    for (text, encoder) in fences.into_iter().zip(ENCODERS) {
        let set = FeatureSet::from_definition(text).unwrap();
        for [_, board] in &steps {
            for pov in Perspective::ALL {
                let mut expected = encoder(&Seen::of(board, pov));
                let mut active = Vec::new();
                expected.sort_unstable();
                set.encoder().encode(board, pov, &mut active);
                active.sort_unstable();
                assert_eq!(active, expected, "{pov:?} {board:?}\n{text}");
            }
        }
    }
}
