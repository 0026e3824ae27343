//! Random definitions: encodings, deltas, witnesses and dead features agree with the reference encoder, and `define`
//! stays within its time. `FSBENCH_DRAWN` sets the number of definitions.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod common;
#[allow(dead_code, reason = "shared with tests/generated.rs")]
mod generator;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use common::{random_game, without};
use fsbench::chess::{Board, BoardChange, Chess, Perspective};
use fsbench::features::analysis::{ActiveCounts, Analysis, Budget, Lossless, Status};
use fsbench::features::{Delta, Factors, FeatureSet};
use fsbench::units::Seed;
use generator::{Generated, Limits};

use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Position};

const DRAWN: u64 = 12;
/// Plies of the game over which a definition is compared.
const PLIES: usize = 24;
/// Time limit of `define`.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The number of bindings is a square: it is never 2, 3 or 5, and the analysis cannot prove that.
const SQUARES: &str = "count(12 for A in pieces, N in pieces) * square(C) * role(C) for C in pieces";

fn drawn(number: u64) -> Generated {
    generator::definition(&mut Seed(2026).stream("drawn", number), Limits::FULL)
}

fn parse(text: &str) -> FeatureSet {
    FeatureSet::from_definition(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[derive(Default, Debug)]
struct Compared {
    encodings: usize,
    deltas: usize,
    witnesses: usize,
    dead: usize,
    unresolved: usize,
}

/// Compares every encoding and delta of a random game with the reference; no dead feature may be active.
fn compare_over_game(set: &FeatureSet, number: u64, analysis: &Analysis, compared: &mut Compared) {
    let dead = analysis.dead();
    let mut position = Chess::default();
    let mut known: Option<[Vec<u32>; 2]> = None;
    for mv in random_game(number, PLIES) {
        let before = position.board().clone();
        let change = BoardChange::of(mv, position.turn());
        position.play_unchecked(mv);
        let seen = Perspective::ALL.map(|pov| encoding(set, position.board(), pov, &dead));
        compared.encodings += seen.len();
        for (pov, known) in Perspective::ALL.into_iter().zip(known.iter().flatten()) {
            let mut delta = Delta::default();
            set.encoder().diff(&before, &change, position.board(), pov, &mut delta);
            let new = &seen[pov.index()];
            assert_eq!(delta.added, without(new, known), "{mv:?} {before:?}\n{}", set.definition());
            assert_eq!(delta.removed, without(known, new), "{mv:?} {before:?}\n{}", set.definition());
            compared.deltas += 1;
        }
        known = Some(seen);
    }
}

fn encoding(set: &FeatureSet, board: &Board, pov: Perspective, dead: &[u32]) -> Vec<u32> {
    let expected = set.reference(board, pov);
    let mut active = Vec::new();
    set.encoder().encode(board, pov, &mut active);
    active.sort_unstable();
    assert_eq!(active, expected, "{pov:?} {board:?}\n{}", set.definition());
    let wrong = active.iter().find(|index| dead.binary_search(index).is_ok());
    assert_eq!(wrong, None, "a dead feature is active: {pov:?} {board:?}\n{}", set.definition());
    expected
}

/// Checks that every live feature's witness is legal and activates it; returns the number of live features.
fn check_witnesses(set: &FeatureSet, analysis: &Analysis) -> usize {
    let live = (0..set.num_features()).filter(|index| analysis.status(*index) == Status::Live);
    let mut known: HashMap<String, Vec<u32>> = HashMap::new();
    let mut number = 0;
    for index in live {
        let fen = analysis.witness(index).unwrap().fen();
        let active = known.entry(fen.clone()).or_insert_with(|| {
            let position: Chess = fen
                .parse::<Fen>()
                .unwrap()
                .into_position(CastlingMode::Standard)
                .unwrap_or_else(|e| panic!("{fen}: {e}"));
            set.reference(position.board(), Perspective::White)
        });
        assert!(active.binary_search(&index).is_ok(), "{index}\n{}", set.definition());
        number += 1;
    }
    number
}

/// Computes all results of `define` and the time taken.
fn define(text: &str) -> (FeatureSet, Analysis, Duration) {
    let start = Instant::now();
    let budget = Budget::brief();
    let set = parse(text);
    Factors::within(&set, budget).unwrap();
    let _ = (ActiveCounts::of(&set, budget), Lossless::within(&set, budget));
    let analysis = Analysis::within(&set, budget, |_, _| {});
    set.warnings(&analysis, budget);
    set.contexts();
    (set, analysis, start.elapsed())
}

#[test]
fn random_definitions_agree_with_the_reference() {
    let number = std::env::var("FSBENCH_DRAWN").map_or(DRAWN, |number| number.parse().unwrap());
    let mut compared = Compared::default();
    let mut too_slow = 0;
    for at in 0..number {
        let text = drawn(at).text();
        let (set, analysis, elapsed) = define(&text);
        if elapsed > TIME_LIMIT {
            too_slow += 1;
            println!("{at}: {elapsed:.1?}\n{text}");
        }
        compared.witnesses += check_witnesses(&set, &analysis);
        compared.dead += analysis.dead().len();
        compared.unresolved += analysis.tally().unresolved as usize;
        compare_over_game(&set, at, &analysis, &mut compared);
        if (at + 1) % 20 == 0 {
            println!("after {}: {compared:?}, {too_slow} too slow", at + 1);
        }
    }
    println!("{number} definitions: {compared:?}, all agree; {too_slow} took longer than {TIME_LIMIT:?}");
    assert!(compared.encodings as u64 > number * PLIES as u64, "{compared:?}");
}

/// The steps that an analysis counts never exceed its budget, however many bindings a definition has.
#[test]
fn an_analysis_stays_within_its_budget() {
    let hard = [
        SQUARES.to_owned(),
        "square(A) * square(B) * square(C) for A in pieces, B in pieces, C in pieces, D in pieces, F in pieces".into(),
        "count(1000 for A in pieces, B in pieces, C in moves(A)) * square(P) for P in pieces".into(),
        "square(P) for P in pieces if count(40 for A in pieces, B in targets(A) if count(3 for C in moves(B)) > 1) == \
         17"
        .into(),
    ];
    let hard = hard.map(|features| format!("features = \"{features}\"\n"));
    let drawn = (0..4).map(|number| drawn(number).text());
    for text in drawn.chain(hard) {
        let set = parse(&text);
        let start = Instant::now();
        let analysis = Analysis::of(&set, |_, _| {});
        assert!(analysis.steps() <= Analysis::STEPS, "{} steps\n{text}", analysis.steps());
        let tally = analysis.tally();
        println!("{} steps in {:.1?}, {tally:?}\n{text}", analysis.steps(), start.elapsed());
        assert_eq!(tally.dead + tally.live + tally.unresolved, set.num_features(), "{text}");
    }
}

/// Features beyond the budget are unresolved, never wrong, and the same in every run.
#[test]
fn features_beyond_the_budget_are_unresolved() {
    // The count is a square: 4, 9 or the maximum of 12.
    let set = parse("features = \"count(12 for A in pieces, N in pieces)\"\n");
    let [one, other] = [0, 1].map(|_| Analysis::of(&set, |_, _| {}));
    assert!(one.tally().unresolved > 0, "{:?}", one.tally());
    let statuses = |of: &Analysis| (0..set.num_features()).map(|index| of.status(index)).collect::<Vec<_>>();
    assert_eq!(statuses(&one), statuses(&other));
    check_witnesses(&set, &one);
}
