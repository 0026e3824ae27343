//! Contents and order of the batches.

use fsbench::chess::{BoardChange, Perspective};
use fsbench::data::{Method, Record, Split};
use fsbench::features::FeatureSet;
use fsbench::service::{Layout, Request};
use fsbench::units::Seed;
use shakmaty::{Board, Color, Position};

use super::fixture::{CopiedBatch, Fixture, all_batches};

/// The active features by the reference encoder, stm then nstm.
pub fn reference(set: &FeatureSet, board: &Board, turn: Color) -> [Vec<u32>; 2] {
    let stm = Perspective::of(turn);
    [stm, stm.other()].map(|pov| {
        let mut features = set.reference(board, pov);
        features.sort_unstable();
        features
    })
}

/// The active features in a batch, stm then nstm.
pub fn served(batch: &CopiedBatch, position: usize) -> [Vec<u32>; 2] {
    [batch.active(0, position), batch.active(1, position)]
}

fn check_eval(batch: &CopiedBatch, sample: usize, record: &Record, set: &FeatureSet) {
    let known = record.unpack().expect("the data is good");
    assert_eq!(served(batch, sample), reference(set, known.position.board(), known.position.turn()));
    let score = known.score.map_or(f32::NAN, f32::from);
    let result = known.result.map_or(f32::NAN, fsbench::data::GameResult::points);
    assert_eq!((batch.scores[sample], batch.results[sample]), (score.to_bits(), result.to_bits()));
    let pieces = known.position.board().occupied().count();
    assert_eq!((batch.plies[sample], usize::from(batch.piece_counts[sample])), (known.ply.0, pieces));
}

#[test]
fn an_eval_epoch_holds_the_features_of_every_record_once() {
    let fixture = Fixture::new(Method::Eval);
    let data = fixture.open();
    for name in ["piece", "king-piece", "piece-move"] {
        let set = FeatureSet::resolve(name).expect("a shipped set");
        let batches = all_batches(&Request { set: name.into(), epochs: 2, ..fixture.request() });
        for (number, batch) in batches.iter().enumerate() {
            assert_eq!((batch.number, batch.positions), (number as u64, batch.samples));
            assert_eq!(batch.csr[0].0.len(), batch.positions + 1);
            for (sample, &index) in batch.sample_indices.iter().enumerate() {
                check_eval(batch, sample, &data.records()[index as usize], &set);
            }
        }
        let epochs = [0, 1].map(|epoch| order(&batches, epoch));
        assert_ne!(epochs[0], epochs[1]);
        for mut epoch in epochs {
            epoch.sort_unstable();
            assert!(epoch.iter().copied().eq(0..data.records().len() as u32));
        }
        let short = data.records().len() % 100;
        assert!(short > 0, "choose another number of games");
        let sizes: Vec<usize> = batches.iter().map(|batch| batch.samples).filter(|&samples| samples != 100).collect();
        assert_eq!(sizes, [short, short]);
    }
}

/// The sample indices of an epoch, in the order served.
pub fn order(batches: &[CopiedBatch], epoch: u32) -> Vec<u32> {
    let of_epoch = batches.iter().filter(|batch| batch.epoch == epoch);
    of_epoch.flat_map(|batch| batch.sample_indices.iter().copied()).collect()
}

#[test]
fn bitset_and_csr_agree() {
    for method in [Method::Eval, Method::Pqr] {
        let fixture = Fixture::new(method);
        let csr = all_batches(&Request { set: "compact".into(), ..fixture.request() });
        let bitset = all_batches(&Request { set: "compact".into(), layout: Layout::Bitset, ..fixture.request() });
        assert_eq!(csr.len(), bitset.len());
        for (csr, bitset) in csr.iter().zip(&bitset) {
            assert_eq!(csr.sample_indices, bitset.sample_indices);
            assert!(bitset.csr.iter().all(|(offsets, indices)| offsets.is_empty() && indices.is_empty()));
            for side in 0..2 {
                assert_eq!(bitset.bits[side].len(), 3 * bitset.positions);
                for (position, words) in bitset.bits[side].chunks_exact(3).enumerate() {
                    let set: Vec<u32> =
                        (0..192).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1).map(|bit| bit as u32).collect();
                    assert_eq!(set, csr.active(side, position));
                }
            }
        }
    }
}

#[test]
fn threads_and_slots_change_nothing() {
    for method in [Method::Eval, Method::Pqr] {
        let fixture = Fixture::new(method);
        let request = Request { epochs: 2, ..fixture.request() };
        let expected = all_batches(&Request { threads: 1, slots: Some(1), ..request.clone() });
        for (threads, slots) in [(1, 4), (2, 2), (4, 7)] {
            assert!(
                all_batches(&Request { threads, slots: Some(slots), ..request.clone() }) == expected,
                "{threads} threads, {slots} slots"
            );
        }
        assert!(all_batches(&Request { seed: Seed(10), ..request }) != expected);
    }
}

#[test]
fn a_later_start_batch_skips_batches() {
    let fixture = Fixture::new(Method::Pqr);
    let request = Request { epochs: 2, ..fixture.request() };
    let whole = all_batches(&request);
    for start in [1, whole.len() / 2 + 1, whole.len() - 1, whole.len(), whole.len() + 5] {
        let rest = all_batches(&Request { start_batch: start as u64, ..request.clone() });
        assert!(rest == whole[start.min(whole.len())..], "from batch {start}");
    }
}

#[test]
fn epochs_can_be_limited_and_unshuffled() {
    let fixture = Fixture::new(Method::Eval);
    let whole = all_batches(&fixture.request());
    let part = all_batches(&Request { epoch_samples: Some(250), epochs: 2, ..fixture.request() });
    assert_eq!(part.iter().map(|batch| batch.samples).collect::<Vec<_>>(), [100, 100, 50, 100, 100, 50]);
    assert_eq!(order(&part, 0), order(&whole, 0)[..250]);
    assert_ne!(order(&part, 0), order(&part, 1));
    let plain = all_batches(&Request { shuffle: false, ..fixture.request() });
    assert!(order(&plain, 0).into_iter().eq(0..fixture.open().records().len() as u32));
}

#[test]
fn a_split_keeps_games_whole() {
    let fixture = Fixture::new(Method::Eval);
    let data = fixture.open();
    let split = |split| {
        let request = Request { split, validation: 0.3, split_seed: Seed(4), ..fixture.request() };
        let mut games: Vec<u32> = Vec::new();
        let indices = order(&all_batches(&request), 0);
        games.extend(indices.iter().map(|&index| data.records()[index as usize].game()));
        games.sort_unstable();
        games.dedup();
        (indices.len(), games)
    };
    let [train, validation, whole] = [Split::Train, Split::Validation, Split::All].map(split);
    assert_eq!(train.0 + validation.0, whole.0);
    assert!(!validation.1.is_empty() && train.1.len() > validation.1.len());
    let mut games = [train.1, validation.1].concat();
    games.sort_unstable();
    assert_eq!(games, whole.1);
}

#[test]
fn a_triplet_is_a_position_its_played_move_and_another_move() {
    let fixture = Fixture::new(Method::Pqr);
    let data = fixture.open();
    let set = FeatureSet::resolve("piece").expect("a shipped set");
    let batches = all_batches(&Request { epochs: 2, ..fixture.request() });
    let mut others = vec![[None, None]; data.records().len()];
    for batch in &batches {
        assert_eq!(batch.positions, 3 * batch.samples);
        assert!(batch.scores.is_empty() && batch.results.is_empty());
        for (sample, &index) in batch.sample_indices.iter().enumerate() {
            let known = data.records()[index as usize].unpack().expect("the data is good");
            let played = known.mv.expect("pqr samples have a move");
            let turn = known.position.turn();
            let after =
                |mv| reference(&set, &BoardChange::of(mv, turn).applied_to(known.position.board()), turn.other());
            assert_eq!(served(batch, 3 * sample), reference(&set, known.position.board(), turn));
            assert_eq!(served(batch, 3 * sample + 1), after(played));
            let random = served(batch, 3 * sample + 2);
            let moves = known.position.legal_moves();
            let other = moves.iter().filter(|&&mv| mv != played).find(|&&mv| after(mv) == random);
            others[index as usize][batch.epoch as usize] = Some(*other.expect("R follows another legal move"));
        }
    }
    let seen: Vec<_> = others.iter().map(|[first, second]| (first.expect("served"), second.expect("served"))).collect();
    let changed = seen.iter().filter(|(first, second)| first != second).count();
    assert!(changed * 2 > seen.len(), "the random move changes from epoch to epoch: {changed} of {}", seen.len());
}
