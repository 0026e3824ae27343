//! Threats and pairs of pawns against an encoder of this file's own, which knows Stockfish's numbering and nothing of
//! the language.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::without;
use fsbench::chess::{Board, BoardChange, Chess, Perspective};
use fsbench::features::{Delta, FeatureSet};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::{Bitboard, Color, Position, Square, attacks};

/// By attacker from pawn to king: the number of each victim from pawn to king, or −1.
type Victims = [[i32; 6]; 6];

const NONE: [i32; 6] = [-1; 6];
const ALL: [i32; 6] = [0, 1, 2, 3, 4, 5];
const WITHOUT_KING: [i32; 6] = [0, 1, 2, 3, 4, -1];
const WITHOUT_QUEEN: [i32; 6] = [0, 1, 2, 3, -1, 4];
const MINOR: [i32; 6] = [0, 1, 2, 3, -1, -1];
const BY_PAWN: [i32; 6] = [0, 1, -1, 2, -1, -1];

const V10: Victims = [BY_PAWN, ALL, WITHOUT_QUEEN, WITHOUT_QUEEN, ALL, MINOR];
const V11: Victims = [BY_PAWN, WITHOUT_KING, MINOR, MINOR, WITHOUT_KING, MINOR];
const V12: Victims = [BY_PAWN, WITHOUT_KING, MINOR, MINOR, WITHOUT_KING, NONE];
const V16: Victims = [[-1, 0, -1, 1, -1, -1], WITHOUT_KING, MINOR, MINOR, WITHOUT_KING, NONE];

/// A piece as a perspective sees it: square, role from 0, colour (own 0).
#[derive(Copy, Clone)]
struct Seen {
    square: u32,
    role: usize,
    color: usize,
}

fn seen(board: &Board, pov: Perspective) -> Vec<Seen> {
    let king = u32::from(board.king_of(pov.own()).unwrap());
    let turned = if pov == Perspective::Black { 56 } else { 0 };
    let mask = turned ^ if king % 8 > 3 { 7 } else { 0 };
    let piece = |(square, piece): (Square, shakmaty::Piece)| Seen {
        square: u32::from(square) ^ mask,
        role: piece.role as usize - 1,
        color: usize::from(piece.color != pov.own()),
    };
    board.clone().into_iter().map(piece).collect()
}

fn attacked(role: usize, color: usize, square: u32, occupied: u64) -> u64 {
    let from = Square::new(square);
    let occupied = Bitboard(occupied);
    let squares = match role {
        0 if square / 8 == 0 || square / 8 == 7 => Bitboard::EMPTY,
        0 => attacks::pawn_attacks(Color::from_white(color == 0), from),
        1 => attacks::knight_attacks(from),
        2 => attacks::bishop_attacks(from, occupied),
        3 => attacks::rook_attacks(from, occupied),
        4 => attacks::queen_attacks(from, occupied),
        _ => attacks::king_attacks(from),
    };
    squares.0
}

/// Every pair of squares that a piece attacks on an empty board, in order.
fn reach(role: usize, color: usize) -> Vec<(u32, u32)> {
    let from =
        |from: u32| (0..64).filter(move |to| attacked(role, color, from, 0) >> to & 1 != 0).map(move |to| (from, to));
    (0..64).flat_map(from).collect()
}

struct Numbering {
    victims: Victims,
    /// By colour and role of the attacker.
    reaches: [[Vec<(u32, u32)>; 6]; 2],
}

impl Numbering {
    fn of(victims: Victims) -> Numbering {
        Numbering { victims, reaches: [0, 1].map(|color| std::array::from_fn(|role| reach(role, color))) }
    }

    fn victims_of(&self, role: usize) -> usize {
        2 * self.victims[role].iter().filter(|number| **number >= 0).count()
    }

    fn size(&self) -> u32 {
        let of = |role: usize| 2 * self.victims_of(role) * self.reaches[0][role].len();
        (0..6).map(of).sum::<usize>() as u32
    }

    fn active(&self, board: &Board, pov: Perspective) -> Vec<u32> {
        let pieces = seen(board, pov);
        let occupied = pieces.iter().fold(0u64, |all, piece| all | 1 << piece.square);
        let mut active = Vec::new();
        let mut first = 0;
        for color in 0..2 {
            for role in 0..6 {
                let reach = &self.reaches[color][role];
                for from in pieces.iter().filter(|piece| (piece.color, piece.role) == (color, role)) {
                    let attacked = attacked(role, color, from.square, occupied);
                    for to in pieces.iter().filter(|piece| attacked >> piece.square & 1 != 0) {
                        let Ok(victim) = usize::try_from(self.victims[role][to.role]) else { continue };
                        let both_ways = role == to.role && (color != to.color || role != 0);
                        if both_ways && from.square < to.square {
                            continue;
                        }
                        let pair = reach.iter().position(|pair| *pair == (from.square, to.square)).unwrap();
                        let number = to.color * self.victims_of(role) / 2 + victim;
                        active.push((first + number * reach.len() + pair) as u32);
                    }
                }
                first += self.victims_of(role) * reach.len();
            }
        }
        active.sort_unstable();
        active
    }
}

/// Two pawns on the same or neighbouring files.
fn pawn_pairs(board: &Board, pov: Perspective) -> Vec<u32> {
    let pawns: Vec<Seen> = seen(board, pov).into_iter().filter(|piece| piece.role == 0).collect();
    let number = |pawn: &Seen| 48 * pawn.color as u32 + pawn.square - 8;
    let mut active = Vec::new();
    for (at, one) in pawns.iter().enumerate() {
        for other in &pawns[..at] {
            if (one.square % 8).abs_diff(other.square % 8) <= 1 {
                let high = number(one).max(number(other));
                let low = number(one).min(number(other));
                active.push(high * (high - 1) / 2 + low);
            }
        }
    }
    active.sort_unstable();
    active
}

const PAWN_PAIRS: u32 = 96 * 95 / 2;

type Encoding<'a> = Box<dyn Fn(&Board, Perspective) -> Vec<u32> + 'a>;

/// Calls `visit` with positions and moves of random games, `count` of each.
fn random_moves(count: usize, mut visit: impl FnMut(&Chess, &BoardChange, &Board)) {
    let mut visited = 0;
    for game in 0.. {
        let mut rng = Seed(18).stream("threats", game);
        let mut position = Chess::default();
        for _ in 0..200 {
            let moves = position.legal_moves();
            if moves.is_empty() || visited == count {
                break;
            }
            let mv = moves[rng.random_range(0..moves.len())];
            let after = position.clone().play(mv).unwrap();
            visit(&position, &BoardChange::of(mv, position.turn()), after.board());
            position = after;
            visited += 1;
        }
        if visited == count {
            return;
        }
    }
}

#[test]
fn threats_are_numbered_as_in_stockfish() {
    let [v10, v11, v12, v16] = [V10, V11, V12, V16].map(Numbering::of);
    let half_ka = FeatureSet::resolve("half-ka-v2-hm").unwrap();
    let sum = |parts: Vec<(u32, Vec<u32>)>| -> Vec<u32> {
        parts.into_iter().flat_map(|(first, active)| active.into_iter().map(move |index| first + index)).collect()
    };
    let composite = |threats: &Numbering, has_pairs: bool, board: &Board, pov: Perspective| {
        let after_threats = threats.size();
        let pairs = if has_pairs { pawn_pairs(board, pov) } else { Vec::new() };
        let after_pairs = after_threats + if has_pairs { PAWN_PAIRS } else { 0 };
        sum(vec![(0, threats.active(board, pov)), (after_threats, pairs), (after_pairs, half_ka.reference(board, pov))])
    };
    let sets: [(&str, u32, Encoding<'_>); 7] = [
        ("threats-v10", 79_856, Box::new(|board, pov| v10.active(board, pov))),
        ("threats-v11", 66_864, Box::new(|board, pov| v11.active(board, pov))),
        ("threats-v12", 60_144, Box::new(|board, pov| v12.active(board, pov))),
        ("threats-v16", 59_808, Box::new(|board, pov| v16.active(board, pov))),
        ("pp-3wide", 4_560, Box::new(pawn_pairs)),
        ("sfnnv10", 79_856 + 22_528, Box::new(|board, pov| composite(&v10, false, board, pov))),
        ("sfnnv16", 86_896, Box::new(|board, pov| composite(&v16, true, board, pov))),
    ];
    for (name, size, expected) in sets {
        let set = FeatureSet::resolve(name).unwrap();
        assert_eq!(set.num_features(), size, "{name}");
        let mut active = Vec::new();
        let mut delta = Delta::default();
        random_moves(10_000, |position, change, after| {
            for pov in Perspective::ALL {
                let before = expected(position.board(), pov);
                set.encoder().encode(position.board(), pov, &mut active);
                active.sort_unstable();
                assert_eq!(active, before, "{name} {pov:?} {}", position.board());
                let now = expected(after, pov);
                set.encoder().diff(position.board(), change, after, pov, &mut delta);
                assert_eq!(delta.added, without(&now, &before), "{name} {pov:?} {} {after}", position.board());
                assert_eq!(delta.removed, without(&before, &now), "{name} {pov:?} {} {after}", position.board());
            }
        });
    }
}

/// Axes with one value and conditions are two spellings of one set; so are the numbers of a pair in either order.
#[test]
fn spellings_of_threats_agree() {
    let set = |text: &str| FeatureSet::resolve(text).unwrap();
    let spellings = [
        [
            "color(T) * reach(P, T, rook) for P in pieces, T in targets(P) if color(P) == own",
            "color(P, own) * role(P, rook) * color(T) * reach(P, T, rook) for P in pieces, T in targets(P)",
        ],
        // Every pair is bound in both orders, and its feature counts once.
        [
            "pair(square(P), square(Q)) for P in pieces, Q in pieces if square(P) < square(Q)",
            "pair(square(P), square(Q)) for P in pieces, Q in pieces",
        ],
        // The pieces that a piece attacks, found from either end.
        ["reach(P, T, knight) for P in pieces, T in targets(P)", "reach(P, T, knight) for T in pieces, P in pieces"],
    ];
    for spelling in spellings {
        let [one, other] = spelling.map(set);
        let mut active = [Vec::new(), Vec::new()];
        let mut delta = [Delta::default(), Delta::default()];
        random_moves(1_000, |position, change, after| {
            for pov in Perspective::ALL {
                for (set, (active, delta)) in [&one, &other].into_iter().zip(active.iter_mut().zip(&mut delta)) {
                    set.encoder().encode(position.board(), pov, active);
                    active.sort_unstable();
                    assert_eq!(*active, set.reference(position.board(), pov), "{}", set.definition());
                    set.encoder().diff(position.board(), change, after, pov, delta);
                }
                assert_eq!(active[0], active[1], "{spelling:?} {}", position.board());
                assert_eq!(delta[0], delta[1], "{spelling:?} {}", position.board());
            }
        });
    }
}
