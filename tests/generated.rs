//! Properties of all feature sets, tested on generated definitions over random play and (where `FSBENCH_DATA` is set)
//! real games: encodings equal the reference, deltas, refreshes, perspectives, the algebra, the printer.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod common;
mod generator;

use std::collections::BTreeMap;

use common::castlings::every_castling;
use common::{start_of_each_kind, without};
use fsbench::chess::{
    BlackOrientation, Board, BoardChange, ByPerspective, Chess, Move, PackedBoard, Perspective, PieceBoard,
};
use fsbench::data::games;
use fsbench::features::{Delta, DeltaState, EncodeScratch, FeatureSet, RowBuffer, RowList};
use fsbench::units::Seed;
use generator::{Generated, Limits};
use rand::RngExt;
use rayon::prelude::*;
use shakmaty::Position;

/// Number of generated definitions; see [`generator::wanted`].
const DEFINITIONS: u64 = 400;
/// Positions over all definitions.
const POSITIONS: u64 = 100_000;

fn generated(name: &str, number: u64, limits: Limits) -> Generated {
    generator::definition(&mut Seed(17).stream(name, number), limits)
}

fn parse(text: &str) -> FeatureSet {
    FeatureSet::from_definition(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Numbers of tested positions, and of moves by kind.
#[derive(Default, Debug)]
struct Tally {
    positions: u64,
    refreshes: u64,
    changes: u64,
    kinds: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn plus(mut self, other: Tally) -> Tally {
        self.positions += other.positions;
        self.refreshes += other.refreshes;
        self.changes += other.changes;
        other.kinds.into_iter().for_each(|(kind, count)| *self.kinds.entry(kind).or_default() += count);
        self
    }
}

/// Checks every position and move along lines of play.
struct LineChecker<'a> {
    set: &'a FeatureSet,
    /// The reference encodings of the last position.
    last: Option<ByPerspective<Vec<u32>>>,
    delta: Delta,
    deltas: ByPerspective<Delta>,
    updates: ByPerspective<Delta>,
    /// What the encoder keeps of the last position.
    state: DeltaState,
    active: Vec<u32>,
    packed: ByPerspective<RowList>,
    tally: Tally,
}

impl<'a> LineChecker<'a> {
    fn new(set: &'a FeatureSet) -> Self {
        LineChecker {
            set,
            last: None,
            delta: Delta::default(),
            deltas: ByPerspective::default(),
            updates: ByPerspective::default(),
            state: DeltaState::default(),
            active: Vec::new(),
            packed: ByPerspective::default(),
            tally: Tally::default(),
        }
    }

    fn start(&mut self, board: &Board) {
        self.last = Some(self.encodings(board));
        self.state.clear();
    }

    /// The reference encodings, after a check that the encoder gives the same.
    fn encodings(&mut self, board: &Board) -> ByPerspective<Vec<u32>> {
        let set = self.set;
        self.tally.positions += 1;
        let packed = PackedBoard::pack(board).unwrap();
        let mut sides = [RowBuffer::default(), RowBuffer::default()];
        let batch = std::iter::once((&packed, Perspective::White));
        set.encoder().append_batch(batch, &mut sides, &mut EncodeScratch::default());
        set.encoder().encode_packed(&packed, &mut self.packed);
        ByPerspective::new_with(|pov| {
            let expected = set.reference(board, pov);
            let context = || format!("{pov:?} {board:?}\n{}", set.definition());
            assert!(expected.last().is_none_or(|index| *index < set.num_features()), "{}", context());
            assert!(expected.len() <= set.max_active(), "{} > {} {}", expected.len(), set.max_active(), context());
            set.encoder().encode(board, pov, &mut self.active);
            self.active.sort_unstable();
            assert_eq!(self.active, expected, "{}", context());
            self.packed[pov].sort_unstable();
            assert_eq!(self.packed[pov], expected, "packed {}", context());
            let mut appended = sides[pov.index()].rows().to_vec();
            appended.sort_unstable();
            assert_eq!(appended, expected, "appended {}", context());
            expected
        })
    }

    fn play(&mut self, before: &Board, mv: Move, change: &BoardChange, after: &Board) {
        let set = self.set;
        let kind = match mv {
            Move::Castle { .. } => "castling",
            Move::EnPassant { .. } => "en passant",
            _ if mv.is_promotion() => "promotion",
            _ => "other",
        };
        *self.tally.kinds.entry(kind).or_default() += 1;
        let old = self.last.take().unwrap();
        let new = self.encodings(after);
        let placed = [before, after].map(PieceBoard::of);
        let [mut next, mut unused] = <[DeltaState; 2]>::default();
        set.encoder().diff_both(placed.each_ref(), change, [&mut self.state, &mut next], &mut self.deltas);
        let states = [&mut self.state, &mut unused];
        set.encoder().diff_or_refresh(placed.each_ref(), change, states, &mut self.updates);
        self.state = next;
        for pov in Perspective::ALL {
            for delta in [&mut self.deltas[pov], &mut self.updates[pov]] {
                delta.added.sort_unstable();
                delta.removed.sort_unstable();
            }
        }
        let numbers = 0..set.blocks().len();
        let (second, first): (Vec<usize>, Vec<usize>) = numbers.partition(|block| block % 2 == 1);
        let parts = [first, second].map(|blocks| {
            let mut listed = ByPerspective::default();
            let [mut old, mut new] = <[DeltaState; 2]>::default();
            set.encoder().part(&blocks).diff_both(placed.each_ref(), change, [&mut old, &mut new], &mut listed);
            (blocks, listed)
        });
        for pov in Perspective::ALL {
            let context = || format!("{pov:?} {mv:?} {before:?}\n{}", set.definition());
            set.encoder().diff(before, change, after, pov, &mut self.delta);
            assert_eq!(self.delta.added, without(&new[pov], &old[pov]), "{}", context());
            assert_eq!(self.delta.removed, without(&old[pov], &new[pov]), "{}", context());
            let changed = |block| set.encoder().context(block, before, pov) != set.encoder().context(block, after, pov);
            assert_eq!(self.delta.refresh, (0..set.blocks().len()).any(changed), "{}", context());
            let expected = if (0..set.blocks().len()).all(changed) {
                &Delta { refresh: true, ..Delta::default() }
            } else {
                &self.delta
            };
            assert_eq!(self.updates[pov], *expected, "updates {}", context());
            for (blocks, listed) in &parts {
                assert_eq!(listed[pov].refresh, blocks.iter().copied().any(changed), "{}", context());
            }
            let both = |of: fn(&Delta) -> &RowList| {
                let mut all: Vec<u32> = parts.iter().flat_map(|(_, listed)| of(&listed[pov]).iter()).copied().collect();
                all.sort_unstable();
                all
            };
            assert_eq!(self.delta.added, both(|part| &part.added), "{}", context());
            assert_eq!(self.delta.removed, both(|part| &part.removed), "{}", context());
            assert_eq!(self.delta, self.deltas[pov]);
            assert_eq!(self.delta.refresh, set.encoder().refreshes(&placed[0], &placed[1], pov));
            self.tally.refreshes += u64::from(self.delta.refresh);
            self.tally.changes += u64::from(!self.delta.added.is_empty());
        }
        self.last = Some(new);
    }

    /// White sees a position as Black sees it with colours exchanged and the board turned.
    fn check_perspectives(&self, board: &Board) {
        let set = self.set;
        let turned = exchanged(board, set);
        for pov in Perspective::ALL {
            let context = || format!("{pov:?} {board:?}\n{}", set.definition());
            assert_eq!(set.reference(board, pov), set.reference(&turned, pov.other()), "{}", context());
            let contexts =
                |board, pov| (0..set.blocks().len()).map(|b| set.encoder().context(b, board, pov)).collect::<Vec<_>>();
            assert_eq!(contexts(board, pov), contexts(&turned, pov.other()), "{}", context());
        }
    }
}

fn exchanged(board: &Board, set: &FeatureSet) -> Board {
    let mut turned = board.clone();
    match set.blocks()[0].spec().orientation.black {
        BlackOrientation::Flip => turned.flip_vertical(),
        BlackOrientation::Rotate => turned.rotate_180(),
    }
    turned.swap_colors();
    turned
}

/// Random games of `positions` moves in all, also of Chess960, which prefer captures, promotions and castling now and
/// then. Before them come some castlings of Chess960.
fn random_play(name: &str, number: u64, positions: u64, mut visit: impl FnMut(&Chess, Option<(Move, &Chess)>)) {
    let mut rng = Seed(23).stream(name, number);
    let mut left = positions;
    for (position, mv) in every_castling().iter().skip(number as usize % 11).step_by(11) {
        visit(position, None);
        let after = position.clone().play(*mv).unwrap();
        visit(position, Some((*mv, &after)));
    }
    while left > 0 {
        let mut position = start_of_each_kind(rng.random());
        visit(&position, None);
        for _ in 0..rng.random_range(20..200) {
            let moves = position.legal_moves();
            if moves.is_empty() || left == 0 {
                break;
            }
            let sharp: Vec<Move> = moves
                .iter()
                .copied()
                .filter(|mv| mv.is_capture() || mv.is_promotion() || mv.is_castle() || mv.is_en_passant())
                .collect();
            let passing = sharp.iter().copied().find(|mv| mv.is_en_passant());
            let pool = if !sharp.is_empty() && rng.random_bool(0.3) { &sharp[..] } else { &moves[..] };
            let mv = passing.unwrap_or(pool[rng.random_range(0..pool.len())]);
            let after = position.clone().play(mv).unwrap();
            visit(&position, Some((mv, &after)));
            left -= 1;
            position = after;
        }
    }
}

/// The number of positions for each definition: the more expensive, the fewer.
fn shares() -> Vec<(Generated, u64)> {
    let all: Vec<Generated> =
        generator::wanted(0..DEFINITIONS).map(|number| generated("definition", number, Limits::FULL)).collect();
    let weight = |generated: &Generated| 1.0 / (100 + generated.cost()) as f64;
    let total: f64 = all.iter().map(weight).sum();
    let share = |generated: &Generated| 12 + (POSITIONS as f64 * weight(generated) / total) as u64;
    all.into_iter()
        .map(|generated| (share(&generated), generated))
        .map(|(share, generated)| (generated, share))
        .collect()
}

#[test]
fn encodings_deltas_and_refreshes_over_random_play() {
    let follow = |(number, (generated, positions)): (usize, (Generated, u64))| {
        let set = parse(&generated.text());
        let mut checker = LineChecker::new(&set);
        random_play("play", number as u64, positions, |before, step| match step {
            None => checker.start(before.board()),
            Some((mv, after)) => {
                let change = BoardChange::of(mv, before.turn());
                checker.play(before.board(), mv, &change, after.board());
                if checker.tally.positions.is_multiple_of(8) {
                    checker.check_perspectives(after.board());
                }
            }
        });
        checker.tally
    };
    let tally = shares().into_par_iter().enumerate().map(follow).reduce(Tally::default, Tally::plus);
    println!("{tally:?}");
    assert!(tally.positions >= POSITIONS, "{tally:?}");
    for kind in ["castling", "en passant", "promotion", "other"] {
        assert!(tally.kinds.get(kind).is_some_and(|count| *count >= 100), "{tally:?}");
    }
    // Some moves refresh and some do not, and many change the active features.
    assert!(tally.refreshes * 50 > tally.positions && tally.refreshes < tally.positions, "{tally:?}");
    assert!(tally.changes > tally.positions / 3, "{tally:?}");
}

#[test]
fn encodings_deltas_and_refreshes_over_real_games() {
    let Some(data) = common::skip::shared_data("lichess-plain.pgn.zst") else { return };
    let games: Vec<_> = games(&data).unwrap().take(200).map(Result::unwrap).collect();
    let follow = |(number, game): (usize, &fsbench::data::PgnGame)| {
        let generated = generated("real games", number as u64, Limits { binders: 2, ..Limits::FULL });
        let set = parse(&generated.text());
        let mut checker = LineChecker::new(&set);
        let mut position = game.start.clone();
        checker.start(position.board());
        for played in &game.moves {
            let after = position.clone().play(played.mv).unwrap();
            checker.play(position.board(), played.mv, &BoardChange::of(played.mv, position.turn()), after.board());
            position = after;
        }
        checker.tally
    };
    let tally = games.par_iter().enumerate().map(follow).reduce(Tally::default, Tally::plus);
    println!("{tally:?}");
    assert!(tally.kinds.len() >= 3 && tally.positions > 5_000, "{tally:?}");
}

/// A product's elements map one to one to a block's indices.
#[test]
fn strides_are_bijective() {
    for number in 0..DEFINITIONS {
        let text = generated("definition", number, Limits::FULL).text();
        let set = parse(&text);
        let mut offset = 0;
        for block in set.blocks() {
            let sizes: u64 = block.spec().product.factors.iter().map(|factor| u64::from(factor.size)).product();
            assert_eq!((block.offset, u64::from(block.size)), (offset, sizes), "{text}");
            offset += block.size;
        }
        assert_eq!(offset, set.num_features(), "{text}");
    }
}

#[test]
fn printing_and_parsing_again_gives_the_same_set() {
    for number in 0..2 * DEFINITIONS {
        let generated = generated("printed", number, Limits::FULL);
        let set = parse(&generated.text());
        let carried = parse(set.definition());
        assert_eq!(set.identity(), carried.identity(), "{}", set.definition());
        let printed: Vec<&str> = set.blocks().iter().map(|block| block.spec().canonical.as_str()).collect();
        let again = parse(&generated.with(&printed.join(" + ")));
        assert_eq!(set.identity(), again.identity(), "{}\n{}", generated.text(), printed.join(" + "));
        assert_eq!(set.num_features(), again.num_features());
        let other = if generated.keys.contains("\"set\"") { ("\"set\"", "\"bag\"") } else { ("\"bag\"", "\"set\"") };
        let keys = generated.keys.replace(other.0, other.1);
        assert_ne!(set.identity(), parse(&Generated { keys, ..generated }.text()).identity());
    }
}

/// Asserts that two definitions number their features the same way, by both encoders.
fn same_features(left: &FeatureSet, right: &FeatureSet, number: u64) {
    assert_eq!(left.num_features(), right.num_features(), "{}\n{}", left.definition(), right.definition());
    random_play("laws", number, 12, |position, _| {
        for pov in Perspective::ALL {
            let features = [left, right].map(|set| {
                let mut active = Vec::new();
                set.encoder().encode(position.board(), pov, &mut active);
                active.sort_unstable();
                assert_eq!(active, set.reference(position.board(), pov), "{}", set.definition());
                active
            });
            assert_eq!(features[0], features[1], "{}\n{}", left.definition(), right.definition());
        }
    });
}

#[test]
fn laws_of_the_algebra() {
    (0..300u64).into_par_iter().for_each(|number| {
        let (generated, [a, b, c], tail) = generator::three_products(&mut Seed(17).stream("laws", number));
        let check = |left: &str, right: &str| {
            same_features(&parse(&generated.with(left)), &parse(&generated.with(right)), number);
        };
        // Distribution from the right keeps the numbering, in brackets and over blocks.
        check(&format!("({a} + {b}) * {c}{tail}"), &format!("{a} * {c}{tail} + {b} * {c}{tail}"));
        check(&format!("({a} + {b}) * {c}{tail}"), &format!("({a} * {c} + {b} * {c}){tail}"));
        // Sums and products are associative, and a sum in brackets equals a sum of blocks.
        check(&format!("({a} * {b}) * {c}{tail}"), &format!("{a} * ({b} * {c}){tail}"));
        check(&format!("(({a} + {b}) + {c}){tail}"), &format!("({a} + ({b} + {c})){tail}"));
        check(&format!("({a} + {b} + {c}){tail}"), &format!("{a}{tail} + {b}{tail} + {c}{tail}"));
    });
}
