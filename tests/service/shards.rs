//! Shards: several trainers share one stream.

use fsbench::data::Method;
use fsbench::service::{Layout, Request, Shard};

use super::fixture::{CopiedBatch, Fixture, all_batches};

#[test]
fn shards_are_disjoint_and_together_make_up_the_stream() {
    for (method, layout) in [(Method::Eval, Layout::Csr), (Method::Pqr, Layout::Bitset)] {
        let fixture = Fixture::new(method);
        for data in [fixture.path.clone(), fixture.binpack()] {
            let request = Request { data: data.into(), layout, epochs: 2, ..fixture.request() };
            let whole = all_batches(&request);
            for of in [2, 3] {
                let shard = |index| {
                    all_batches(&Request { shard: Shard { index, of }, threads: 3, slots: Some(2), ..request.clone() })
                };
                let mut shards: Vec<_> = (0..of).map(|index| shard(index).into_iter()).collect();
                let together: Vec<CopiedBatch> =
                    (0..whole.len()).map(|number| shards[number % of as usize].next().expect("one more")).collect();
                assert!(together == whole, "{method:?} {of}");
                assert!(shards.iter_mut().all(|shard| shard.next().is_none()));
            }
        }
    }
}

#[test]
fn a_shard_with_a_later_start_keeps_its_own_batches() {
    let fixture = Fixture::new(Method::Eval);
    let request = Request { epochs: 2, shard: Shard { index: 1, of: 3 }, ..fixture.request() };
    let whole = all_batches(&request);
    assert!(whole.len() > 4);
    for start in [1, 2, 5, 1_000_000] {
        let rest = all_batches(&Request { start_batch: start, ..request.clone() });
        let expected: Vec<CopiedBatch> = whole.iter().filter(|batch| batch.number >= start).cloned().collect();
        assert!(rest == expected, "from batch {start}");
    }
}
