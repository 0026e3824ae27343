use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::data::Method;
use crate::data::Needs;
use crate::data::formats::binpack::{UsableSamples, random_games};
use crate::units::Seed;

/// Four windows of about two segments each, in batches of 1,000; and all records in the file's order.
fn batches_with(change: impl FnOnce(&mut Request)) -> (BinpackBatches, Vec<Record>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("games.binpack");
    let records = random_games(&path, 300);
    let mut request = Request { batch_size: 1_000, seed: Seed(5), epochs: 2, ..Request::new("", &path, Method::Eval) };
    change(&mut request);
    let segments = Segments::scan(&path, UsableSamples::Eval(Needs::Any), 2, &|_, _| {}).expect("a good file");
    let batches = BinpackBatches::new(&request, vec![segments]).expect("samples");
    (BinpackBatches { window_samples: 6_000, ..batches }, records)
}

/// What batches for eval show of a record.
fn for_eval(record: &Record) -> impl PartialEq + use<> {
    (*record.board(), record.turn(), record.ply(), record.score(), record.result())
}

fn records_of(batches: &BinpackBatches, number: u64) -> Vec<Record> {
    let ranges = batches.batch(number, &|| false).expect("a good file").expect("not stopped");
    let mut all = Vec::new();
    for range in &ranges {
        let reader = range.reader();
        all.extend(reader.locate(0..range.len()).map(DecodedSample::record));
    }
    all
}

#[test]
fn an_epoch_holds_every_sample_once() {
    let (batches, records) = batches_with(|_| {});
    assert_eq!(batches.batch_order().epoch_samples, records.len() as u64);
    assert!(batches.epoch(0).windows.len() > 3);
    let epochs = [0, 1].map(|epoch| {
        let per_epoch = batches.batch_order().batches_per_epoch();
        let numbers = epoch * per_epoch..(epoch + 1) * per_epoch;
        let all: Vec<Vec<Record>> = numbers.map(|number| records_of(&batches, number)).collect();
        assert!(all[..all.len() - 1].iter().all(|batch| batch.len() == 1_000));
        all.concat()
    });
    assert!(epochs[0] != epochs[1]);
    for mut epoch in epochs {
        let moved = epoch.windows(2).filter(|pair| pair[0].game() + 1 != pair[1].game()).count();
        assert!(moved * 10 > epoch.len() * 9, "{moved} of {}", epoch.len());
        epoch.sort_by_key(Record::game);
        assert!(epoch.iter().map(Record::game).eq(0..records.len() as u32));
        assert!(epoch.iter().zip(&records).all(|(served, record)| for_eval(served) == for_eval(record)));
    }
}

#[test]
fn batches_are_the_same_in_any_order_and_by_many_threads() {
    let (forwards, _) = batches_with(|_| {});
    let count = forwards.batch_order().batches().expect("two epochs");
    let expected: Vec<Vec<Record>> = (0..count).map(|number| records_of(&forwards, number)).collect();
    let (backwards, _) = batches_with(|_| {});
    for number in (0..count).rev() {
        assert!(records_of(&backwards, number) == expected[number as usize], "{number}");
    }
    let (shared, _) = batches_with(|_| {});
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(batch) = expected.get(number) else { return };
                    assert!(records_of(&shared, number as u64) == *batch, "{number}");
                }
            });
        }
    });
}

#[test]
fn batches_follow_the_request() {
    let (unshuffled, records) = batches_with(|request| request.shuffle = false);
    let served = records_of(&unshuffled, 0);
    assert!(served.iter().map(for_eval).eq(records[..1_000].iter().map(for_eval)));
    let (other_seed, _) = batches_with(|request| request.seed = Seed(6));
    let (usual, _) = batches_with(|_| {});
    assert!(records_of(&other_seed, 0) != records_of(&usual, 0));
    let (limited, _) = batches_with(|request| request.epoch_samples = Some(1_500));
    assert_eq!((limited.batch_order().batches(), records_of(&limited, 1).len()), (Some(4), 500));
    assert!(records_of(&limited, 0) == records_of(&usual, 0));
    let samples_in = |split| {
        let (batches, _) = batches_with(|request| (request.split, request.validation) = (split, 0.4));
        batches.batch_order().epoch_samples
    };
    let [train, validation] = [Split::Train, Split::Validation].map(samples_in);
    assert!(train > 0 && validation > 0);
    assert_eq!(train + validation, records.len() as u64);
}

#[test]
fn a_stopped_worker_does_not_wait() {
    let (batches, _) = batches_with(|_| {});
    assert!(batches.batch(0, &|| true).expect("no failure").is_none());
}
