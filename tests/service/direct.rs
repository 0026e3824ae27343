//! Binpacks that are decoded while they are served.

use fsbench::data::formats::{Format, SampleReader, SampleWriter};
use fsbench::data::{Method, Needs, Purpose, Record, ScoreUnit, Split};
use fsbench::features::FeatureSet;
use fsbench::service::{Client, Layout, Request, ServiceError};
use shakmaty::Position;

use super::content::{order, reference, served};
use super::fixture::{Fixture, all_batches, program, read_in};

/// A binpack's samples, in its order.
fn samples(path: &std::path::Path) -> Vec<Record> {
    let mut reader = SampleReader::open(path, Some(Format::Binpack), None).expect("just written");
    let mut all = Vec::new();
    while let Some(block) = reader.next_block().expect("just written") {
        all.extend(block);
    }
    all
}

#[test]
fn every_sample_is_served_once_per_epoch() {
    let fixture = Fixture::new(Method::Eval);
    let data = fixture.binpack();
    let records = samples(&data);
    assert_eq!(records.len(), fixture.open().records().len());
    for name in ["half-ka-v2-hm", "half-kp", "compact", "piece-move"] {
        let set = FeatureSet::resolve(name).expect("a shipped set");
        let batches =
            all_batches(&Request { set: name.into(), data: data.clone().into(), epochs: 2, ..fixture.request() });
        for batch in &batches {
            for (number, &index) in batch.sample_indices.iter().enumerate() {
                let known = records[index as usize].unpack().expect("legal");
                let board = known.position.board();
                let turn = known.position.turn();
                assert_eq!(served(batch, number), reference(&set, board, turn), "{name}");
                let score = known.score.map_or(f32::NAN, f32::from);
                assert_eq!((batch.scores[number], batch.plies[number]), (score.to_bits(), known.ply.0));
            }
        }
        let epochs = [0, 1].map(|epoch| order(&batches, epoch));
        assert_ne!(epochs[0], epochs[1]);
        for mut epoch in epochs {
            epoch.sort_unstable();
            assert!(epoch.into_iter().eq(0..records.len() as u32));
        }
    }
}

/// Without `--from-unit` a binpack's scores are in an engine's internal units.
#[test]
fn the_unit_of_scores_can_be_given() {
    let fixture = Fixture::new(Method::Eval);
    let data = fixture.binpack();
    let records = samples(&data);
    for (from_unit, pawn) in
        [(None, 208), (Some(ScoreUnit::Centipawns), 100), (Some(ScoreUnit::Internal { pawn: 361 }), 361)]
    {
        let request = Request { data: data.clone().into(), reading: read_in(from_unit), ..fixture.request() };
        for batch in all_batches(&request) {
            for (score, &index) in batch.scores.iter().zip(&batch.sample_indices) {
                let known = f64::from(records[index as usize].score().expect("scored"));
                let found = f64::from(f32::from_bits(*score));
                assert!((found - known * 100.0 / f64::from(pawn)).abs() < 1e-3, "{from_unit:?}: {found} {known}");
            }
        }
        let described = Client::spawn(program(), &request).expect("the service starts").description().score_unit;
        assert_eq!(described.pawn(), pawn);
    }
    let wrong = Request { reading: read_in(Some(ScoreUnit::STOCKFISH)), ..fixture.request() };
    let error = Client::spawn(program(), &wrong).err().expect("refused").to_string();
    assert!(error.contains("records 100 units per pawn for its scores, not 208"), "{error}");
}

/// Samples that lack a required score or result are left out.
#[test]
fn samples_have_what_the_request_needs() {
    let fixture = Fixture::new(Method::Eval);
    let path = fixture.path.with_extension("part.fsd");
    let records = fixture.open().records().to_vec();
    let two_thirds_scored: Vec<Record> =
        records.iter().zip(0..).map(|(record, n)| if n % 3 == 0 { record.with_score(None) } else { *record }).collect();
    let mut writer = SampleWriter::create(&path, Format::Fsd, false).expect("the folder is writable");
    writer.push(&two_thirds_scored).expect("good");
    writer.finish(Fixture::provenance(Purpose::Eval)).expect("the disk has room");
    let binpack = path.with_extension("binpack");
    let mut writer = SampleWriter::create(&binpack, Format::Binpack, true).expect("the folder is writable");
    writer.push(&two_thirds_scored).expect("good");
    writer.finish(Fixture::provenance(Purpose::Any)).expect("the disk has room");
    let reordered = samples(&binpack);
    for (data, known) in [(path, two_thirds_scored), (binpack, reordered)] {
        for needs in [Needs::Score, Needs::Result, Needs::Both, Needs::Any] {
            let request = Request { data: data.clone().into(), needs: Some(needs), ..fixture.request() };
            let mut indices = order(&all_batches(&request), 0);
            indices.sort_unstable();
            let expected: Vec<u32> =
                (0..).zip(&known).filter(|(_, record)| needs.met_by(record)).map(|(index, _)| index).collect();
            assert!(indices == expected, "{needs:?} of {}", data.display());
        }
    }
}

#[test]
fn threads_slots_and_a_later_start_change_nothing() {
    for (method, layout) in [(Method::Eval, Layout::Csr), (Method::Pqr, Layout::Bitset)] {
        let fixture = Fixture::new(method);
        let request = Request { data: fixture.binpack().into(), layout, epochs: 2, ..fixture.request() };
        let expected = all_batches(&Request { threads: 1, slots: Some(1), ..request.clone() });
        assert!(all_batches(&Request { threads: 3, slots: Some(5), ..request.clone() }) == expected);
        let start = expected.len() / 2 + 1;
        assert!(all_batches(&Request { start_batch: start as u64, ..request }) == expected[start..]);
    }
}

#[test]
fn an_empty_split_is_refused_and_a_cut_costs_one_chain() {
    let fixture = Fixture::new(Method::Eval);
    let data = fixture.binpack();
    let request = Request { data: data.clone().into(), ..fixture.request() };
    let empty = Request { split: Split::Validation, validation: 0.0, ..request.clone() };
    match Client::spawn(program(), &empty) {
        Err(error @ ServiceError::Died { .. }) => assert!(error.to_string().contains("--read built"), "{error}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("served"),
    }
    let samples = |request: &Request| order(&all_batches(request), 0).len();
    let whole = samples(&request);
    let bytes = std::fs::read(&data).expect("just written");
    std::fs::write(&data, &bytes[..bytes.len() - 3]).expect("writable");
    let rest = samples(&request);
    assert!(rest > whole / 2 && rest < whole, "{rest} of {whole}");
}
