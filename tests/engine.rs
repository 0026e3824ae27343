//! The engine against the plain integer network: after every move of random games, on every back end, updated
//! accumulators are the refreshed ones and scores the reference's.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use fsbench::chess::{BoardChange, Chess, Move, Perspective};
use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
use fsbench::features::FeatureSet;
use fsbench::net::{QuantNet, Scheme, forward_integer, quantise};
use rayon::prelude::*;
use shakmaty::Position;

struct Case {
    set: FeatureSet,
    net: QuantNet,
    model: Model,
}

fn cases() -> Vec<Case> {
    let hidden: [&[usize]; 4] = [&[32, 32], &[], &[5], &[8, 3]];
    let case = |(n, set): (usize, FeatureSet)| {
        let l1 = [32, 24, 40, 1][n % 4];
        let float = common::random_net(set.num_features(), l1, hidden[n / 2 % 4], n as u64);
        let net = quantise(&float, &Scheme::stockfish()).expect("fits");
        Case { model: Model::new(&net), set, net }
    };
    common::sets().into_iter().enumerate().map(case).collect()
}

/// How often the special cases came up.
#[derive(Default)]
struct Seen {
    moves: AtomicU64,
    castles: AtomicU64,
    en_passant: AtomicU64,
    promotions: AtomicU64,
}

impl Seen {
    fn add(&self, mv: Move) {
        let count = |counter: &AtomicU64, happened: bool| {
            counter.fetch_add(u64::from(happened), Ordering::Relaxed);
        };
        count(&self.moves, true);
        count(&self.castles, mv.is_castle());
        count(&self.en_passant, mv.is_en_passant());
        count(&self.promotions, mv.is_promotion());
    }
}

#[test]
fn updated_accumulators_equal_refreshed_ones_over_1000_games() {
    let cases = cases();
    assert!(cases.len() >= 10);
    let seen = Seen::default();
    (0..1000u64).into_par_iter().for_each(|game| {
        let moves = common::random_game(game, 120);
        moves.iter().for_each(|mv| seen.add(*mv));
        cases.iter().for_each(|case| follow(case, &moves));
    });
    let counts = [&seen.moves, &seen.castles, &seen.en_passant, &seen.promotions].map(|n| n.load(Ordering::Relaxed));
    assert!(counts[0] > 80_000 && counts[1..].iter().all(|count| *count > 20), "{counts:?}");
}

fn follow(case: &Case, moves: &[Move]) {
    let Case { set, model, .. } = case;
    let evaluator = |strategy, back_end| Evaluator::new(set, model, strategy, back_end).expect("belongs to the set");
    let mut updated: Vec<_> =
        BackEnd::available().into_iter().map(|back_end| evaluator(Strategy::Incremental, back_end)).collect();
    let mut refreshed = evaluator(Strategy::Refresh, BackEnd::best());
    let mut position = Chess::default();
    updated.iter_mut().for_each(|evaluator| evaluator.set(position.board()));
    for (ply, mv) in moves.iter().enumerate() {
        let change = BoardChange::of(*mv, position.turn());
        let before = position.board().clone();
        position.play_unchecked(*mv);
        let turn = position.turn();
        refreshed.play(&before, &change, position.board());
        let score = refreshed.raw(turn);
        if ply % 5 == 0 {
            assert_eq!(score, reference(case, &position), "{}: {mv:?} {:?}", set.name(), position.board());
        }
        for evaluator in &mut updated {
            evaluator.play(&before, &change, position.board());
            for pov in Perspective::ALL {
                assert_eq!(evaluator.accumulator(pov), refreshed.accumulator(pov), "{}: {mv:?}", set.name());
            }
            assert_eq!(evaluator.raw(turn), score, "{}: {mv:?}", set.name());
        }
    }
}

fn reference(case: &Case, position: &Chess) -> i32 {
    let stm = Perspective::of(position.turn());
    let seen = |pov| case.set.reference(position.board(), pov);
    forward_integer(&case.net, &seen(stm), &seen(stm.other()))
}

#[test]
fn another_set_is_refused() {
    let case = &cases()[0];
    let other = FeatureSet::resolve("file(K)").expect("a definition");
    let error = Evaluator::new(&other, &case.model, Strategy::Refresh, BackEnd::best()).err().expect("refused");
    assert!(error.to_string().contains("has 8 features"), "{error}");
}
