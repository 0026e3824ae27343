//! The encoders written by hand, against which `benches/encoders` times fsbench's own, give the features of the
//! reference: on every board and for every move of random games.
#![allow(clippy::needless_range_loop, clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../benches/encoders/hand/mod.rs"]
mod hand;

use std::collections::BTreeMap;

use fsbench::chess::{Board, BoardChange, Chess, Move, Perspective, PieceBoard};
use fsbench::features::FeatureSet;
use fsbench::units::Seed;
use hand::{Changes, HandEncoder, Lists, Played, Visitor};
use rand::RngExt;
use rayon::prelude::*;
use shakmaty::Position;

const MOVES: usize = 20_000;
const LONGEST_GAME: usize = 160;

/// The boards of a random game, and the moves between them. Castlings, captures en passant, promotions and other
/// captures are preferred to what is more frequent.
fn random_game(number: u64) -> Vec<(Board, Option<(Move, BoardChange)>)> {
    let mut rng = Seed(19).stream("hand-written encoders", number);
    let mut position = Chess::default();
    let mut game = Vec::new();
    loop {
        let moves = position.legal_moves();
        let is_rare = |mv: &Move| mv.is_en_passant() || mv.is_promotion() || mv.is_castle();
        let rare: Vec<Move> = moves.iter().copied().filter(is_rare).collect();
        let captures: Vec<Move> = moves.iter().copied().filter(|mv| mv.is_capture()).collect();
        let among = if !rare.is_empty() && rng.random_bool(0.9) {
            &rare[..]
        } else if !captures.is_empty() && rng.random_bool(0.3) {
            &captures[..]
        } else {
            &moves[..]
        };
        if among.is_empty() || game.len() == LONGEST_GAME {
            game.push((position.board().clone(), None));
            return game;
        }
        let mv = among[rng.random_range(0..among.len())];
        game.push((position.board().clone(), Some((mv, BoardChange::of(mv, position.turn())))));
        position.play_unchecked(mv);
    }
}

type Game = Vec<(Board, Option<(Move, BoardChange)>)>;

/// What is in `one` more often than in `other`; both ascend.
fn without(one: &[u32], other: &[u32]) -> Vec<u32> {
    let mut rest = other.iter().peekable();
    let mut out = Vec::new();
    for row in one {
        while rest.next_if(|other| *other < row).is_some() {}
        if rest.next_if(|other| *other == row).is_none() {
            out.push(*row);
        }
    }
    out
}

fn sorted(lists: &Lists, pov: usize) -> Vec<u32> {
    let mut rows = lists.rows(pov).to_vec();
    rows.sort_unstable();
    rows
}

/// Sets whose reference takes milliseconds, because it counts all pairs of squares that are attacked on an empty board.
const SLOW: [&str; 2] = ["threats-v16", "sfnnv16"];

/// The reference's features, ascending; of a slow set fsbench's own on most boards, which `tests/threats.rs` and others
/// hold against the reference.
fn expected(name: &str, set: &FeatureSet, board: &Board, pov: Perspective, ply: usize) -> Vec<u32> {
    if !SLOW.contains(&name) || ply % 64 == 63 {
        return set.reference(board, pov);
    }
    let mut active = Vec::new();
    set.encoder().encode(board, pov, &mut active);
    active.sort_unstable();
    active
}

fn check_game<E: HandEncoder>(name: &str, set: &FeatureSet, encoder: &E, game: &Game) {
    let mut changes = Changes::new();
    let mut active = Box::new(Lists::new());
    let mut state = encoder.state(&PieceBoard::of(&game[0].0));
    let mut last: Option<[Vec<u32>; 2]> = None;
    for ply in 0..game.len() {
        let (board, _) = &game[ply];
        let after = PieceBoard::of(board);
        let expected = Perspective::ALL.map(|pov| expected(name, set, board, pov, ply));
        encoder.encode(&after, &mut active);
        for pov in 0..2 {
            assert_eq!(sorted(&active, pov), expected[pov], "{name} {pov} {board:?}");
        }
        if let Some(last) = last {
            let (board, Some((mv, change))) = &game[ply - 1] else { panic!("a move leads to every other board") };
            let before = PieceBoard::of(board);
            let mut new = E::State::default();
            encoder.delta(Played { before: &before, change, after: &after }, &state, &mut new, &mut changes);
            state = new;
            for pov in 0..2 {
                let removed = without(&last[pov], &expected[pov]);
                let added = without(&expected[pov], &last[pov]);
                assert_eq!(sorted(&changes.removed, pov), removed, "removed {name} {pov} {mv:?} {board:?}");
                assert_eq!(sorted(&changes.added, pov), added, "added {name} {pov} {mv:?} {board:?}");
            }
        }
        last = Some(expected);
    }
}

struct Check(Vec<Game>);

impl Visitor for Check {
    fn visit<E: HandEncoder + Sync>(&mut self, name: &str, encoder: &E) {
        let set = FeatureSet::resolve(name).unwrap_or_else(|error| panic!("{error}"));
        self.0.par_iter().for_each(|game| check_game(name, &set, encoder, game));
    }
}

#[test]
fn hand_written_encoders_equal_the_reference() {
    let mut games = Vec::new();
    let mut kinds = BTreeMap::<&str, usize>::new();
    while kinds.values().sum::<usize>() < MOVES {
        let game = random_game(games.len() as u64);
        for (mv, _) in game.iter().filter_map(|(_, played)| played.as_ref()) {
            let kind = match mv {
                Move::Castle { .. } => "castling",
                Move::EnPassant { .. } => "en passant",
                _ if mv.is_promotion() => "promotion",
                _ if mv.is_capture() => "capture",
                _ => "quiet",
            };
            *kinds.entry(kind).or_default() += 1;
        }
        games.push(game);
    }
    assert!(kinds.len() == 5 && kinds.values().all(|count| *count >= 10), "{kinds:?}");
    hand::each(&mut Check(games));
}
