//! Sample formats and PGN.

use std::io::Cursor;
use std::path::Path;

use fsbench::chess::Perspective;
use fsbench::data::formats::binpack::{Chunk, ChunkDecoder, ChunkEncoder, Chunks};
use fsbench::data::formats::{Format, SampleReader, SampleWriter};
use fsbench::data::{DataError, EvalOptions, Fsd, Provenance, Purpose, Record, ScoreUnit, games};
use fsbench::features::{EncodeScratch, FeatureSet, RowBuffer};
use fsbench::pipeline::{Manifest, manifest_path, verify};
use fsbench::units::Seed;

use super::{file, repaired_document, split_at_zero};

/// All samples; those before an error are valid, too.
fn read(mut reader: SampleReader) -> (Vec<Record>, Result<(), DataError>) {
    let mut records = Vec::new();
    loop {
        match reader.next_block() {
            Ok(Some(block)) => records.extend(block),
            Ok(None) => return (records, Ok(())),
            Err(error) => return (records, Err(error)),
        }
    }
}

fn check_valid(records: &[Record]) {
    assert!(records.iter().all(|record| record.check().is_ok()));
}

pub fn pgn(bytes: &[u8]) {
    let path = file("x.pgn", bytes);
    if let Ok(mut games) = games(&path) {
        // After an error nothing comes.
        while games.next().is_some_and(|game| game.is_ok()) {}
    }
    if let Ok(reader) = SampleReader::open(&path, Some(Format::Pgn), None) {
        check_valid(&read(reader).0);
    }
}

/// Decoded samples are encoded and decoded to the same samples.
pub fn binpack(bytes: &[u8]) {
    let mut chunks = Chunks::new(bytes);
    while let Ok(Some(Chunk { bytes, .. })) = chunks.next_chunk() {
        let mut records = Vec::new();
        let _ = ChunkDecoder::new(bytes.clone()).read(usize::MAX, &mut records);
        check_valid(&records);
        unchecked(&bytes, records.len());
        let mut again = Vec::new();
        let mut encoder = ChunkEncoder::default();
        if encoder.push(&records, &mut again).is_err() {
            continue;
        }
        encoder.finish(&mut again).expect("what was pushed is valid");
        let mut copies = Vec::new();
        let mut written = Chunks::new(again.as_slice());
        while let Some(Chunk { bytes, .. }) = written.next_chunk().expect("memory is readable") {
            ChunkDecoder::new(bytes).read(usize::MAX, &mut copies).expect("our own chunk");
        }
        let content = |record: &Record| (record.position().ok(), record.score(), record.result(), record.ply());
        assert!(copies.iter().map(content).eq(records.iter().map(content)));
    }
    let path = file("x.binpack", bytes);
    if let Ok(reader) = SampleReader::open(&path, Some(Format::Binpack), None) {
        check_valid(&read(reader).0);
    }
}

/// The unchecked decoder reads bytes that another process may change: it gives an error or samples whose features are
/// in range.
fn unchecked(chunk: &[u8], samples: usize) {
    let mut found = Vec::new();
    let _ = ChunkDecoder::unchecked(chunk.to_vec(), 7).read(samples.max(1), &mut found);
    thread_local! { static SET: FeatureSet = FeatureSet::shipped("half-kp").expect("shipped"); }
    SET.with(|set| {
        let mut sides = <[RowBuffer; 2]>::default();
        let mut scratch = EncodeScratch::default();
        let boards = found.iter().map(|record| (record.board(), Perspective::of(record.turn())));
        set.encoder().append_batch(boards, &mut sides, &mut scratch);
        assert!(sides.iter().all(|side| side.rows().iter().all(|row| *row < set.num_features())));
    });
}

/// Reads a stream of a format without a header. Samples read are written and read to the same samples.
fn stream(bytes: &[u8], format: Format) {
    let of = |bytes: Vec<u8>| SampleReader::from_reader(Box::new(Cursor::new(bytes)), Path::new("input"), format, None);
    let Ok(reader) = of(bytes.to_vec()) else { return };
    let (records, _) = read(reader);
    check_valid(&records);
    if records.is_empty() {
        return;
    }
    let path = file("again", b"");
    let mut writer = SampleWriter::create(&path, format, false).expect("a folder for the inputs");
    writer.push(&records).expect("what was read is valid");
    let purpose = Purpose::Any;
    let score_unit = ScoreUnit::Centipawns;
    let provenance = Provenance { purpose, score_unit, seed: Seed(0), games: 0, sources: [0; 32] };
    let written = writer.finish(provenance).expect("room for the samples");
    assert!(written.omissions.samples.is_empty() && written.omissions.fields.is_empty(), "{:?}", written.omissions);
    let again = of(std::fs::read(&path).expect("just written")).expect("our own file");
    assert_eq!(again.skipped().total(), 0);
    let (copies, end) = read(again);
    assert!(end.is_ok() && copies == records, "{end:?}");
}

pub fn bulletformat(bytes: &[u8]) {
    stream(bytes, Format::Bullet);
}

pub fn viriformat(bytes: &[u8]) {
    stream(bytes, Format::Viriformat);
}

pub fn text(bytes: &[u8]) {
    stream(bytes, Format::Text);
}

/// Text in another program's form, which the first line of the input need not show.
pub fn foreign_text(bytes: &[u8]) {
    for format in [Format::BulletText, Format::Plain, Format::Epd, Format::CChessCli] {
        let input = Box::new(Cursor::new(bytes.to_vec()));
        if let Ok(reader) = SampleReader::from_reader(input, Path::new("input"), format, None) {
            check_valid(&read(reader).0);
        }
    }
}

/// Bytes of the header, of which the last four are its checksum.
const HEADER: usize = 256;

/// The input: a byte that says which checksums to repair (1 the blocks', 2 the header's, 4 the manifest's, if it has
/// one), the manifest up to a zero byte, the file. A manifest that is accepted is written and read to the same one.
pub fn fsd(bytes: &[u8]) {
    let Some((&repairs, rest)) = bytes.split_first() else { return };
    let (manifest, content) = split_at_zero(rest);
    let mut content = content.to_vec();
    if repairs & 1 != 0 {
        repair_blocks(&mut content);
    }
    if repairs & 2 != 0
        && let Some(header) = content.get_mut(..HEADER)
    {
        let sum = crc32fast::hash(&header[..HEADER - 4]);
        header[HEADER - 4..].copy_from_slice(&sum.to_le_bytes());
    }
    let path = file("x.fsd", &content);
    let manifest = if repairs & 4 != 0 { repaired_document(manifest) } else { manifest.to_vec() };
    std::fs::write(manifest_path(&path), manifest).expect("room for a manifest");
    let report =
        verify::verify(&path, Some(Format::Fsd), EvalOptions::default(), &mut |_| {}).expect("the file is readable");
    if let Ok(fsd) = Fsd::open(&path) {
        if let Ok(manifest) = Manifest::of(&fsd) {
            let text = serde_json::to_string_pretty(&manifest).expect("JSON");
            assert_eq!(serde_json::from_str::<Manifest>(&text).expect("just written"), manifest);
        }
        let (records, end) = read(SampleReader::open(&path, None, None).expect("opened before"));
        assert!(end.is_ok());
        assert_eq!(records.len() as u64, report.samples);
        if report.problems == 0 {
            check_valid(&records);
        }
    }
    let _ = fsbench::data::formats::detect(&path);
}

/// Writes the checksums that the blocks of a file have by its header, and the records' hash.
fn repair_blocks(content: &mut [u8]) {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let bytes = content.get(at..at + bytes)?;
        Some(bytes.iter().rev().fold(0usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (Some(samples), Some(block)) = (number(16, 8), number(24, 4)) else { return };
    let Some(records_end) = samples.checked_mul(Record::BYTES).and_then(|bytes| bytes.checked_add(HEADER)) else {
        return;
    };
    let Some(records) = content.get(HEADER..records_end).filter(|_| block > 0) else { return };
    let hash = blake3::hash(records);
    let sums: Vec<u8> = records
        .chunks(block.saturating_mul(Record::BYTES))
        .flat_map(|block| crc32fast::hash(block).to_le_bytes())
        .collect();
    if let Some(to) = content.get_mut(records_end..records_end + sums.len()) {
        to.copy_from_slice(&sums);
    }
    content[48..80].copy_from_slice(hash.as_bytes());
}
