//! Damage costs the samples that it hits, and nothing else.

use std::path::Path;

use super::super::segments::Segments;
use super::super::{ChunkEncoder, Chunks, UsableSamples};
use super::*;
use crate::chess::{Chess, random_move};
use crate::data::formats::{Format, SampleReader, SkippedSamples};
use crate::data::{GameResult, Needs};
use crate::units::{Ply, Seed};
use rand::RngExt;
use shakmaty::Position as _;

/// A random game of this many samples; the encoder makes a chain of it.
fn game(number: u64, length: u16) -> Vec<Record> {
    let mut rng = Seed(9).stream("recovery", number);
    let mut position = Chess::default();
    let mut records = Vec::new();
    for ply in 0..length {
        let mv = random_move(&position, &mut rng).expect("short games go on");
        let score = Some(rng.random_range(-900..900));
        records.push(Record::of(&position, 0, Ply(ply), Some(mv), score, Some(GameResult::Draw)).expect("fits"));
        position.play_unchecked(mv);
    }
    records
}

fn chunk(games: &[Vec<Record>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = ChunkEncoder::default();
    for game in games {
        encoder.push(game, &mut bytes).expect("valid");
    }
    encoder.finish(&mut bytes).expect("valid");
    bytes
}

/// The samples and the log of a chunk's contents, read in portions of at least `most`.
fn read(bytes: &[u8], most: usize) -> (Vec<Record>, Vec<ChainSpan>, Vec<BrokenChain>) {
    let mut records = Vec::new();
    let mut chains = Vec::new();
    let mut log = ChainLog::default();
    let mut decoder = ChunkDecoder::new(bytes.to_vec());
    while decoder.read_sound(most, &mut records, &mut log) > 0 {
        chains.extend_from_slice(&log.chains);
    }
    (records, chains, log.broken)
}

/// Chains of one to forty samples, and where they stand in a chunk.
fn chains() -> (Vec<Vec<Record>>, Vec<u8>, Vec<ChainSpan>) {
    let games: Vec<_> = [30, 1, 12, 40, 1, 1, 9].into_iter().zip(0..).map(|(length, n)| game(n, length)).collect();
    let bytes = chunk(&games)[8..].to_vec();
    let (records, spans, broken) = read(&bytes, usize::MAX);
    assert!(records == games.concat() && broken.is_empty());
    assert!(spans.iter().map(|span| span.samples).eq(games.iter().map(Vec::len)));
    (games, bytes, spans)
}

#[test]
fn a_flipped_bit_changes_no_other_chain() {
    let (games, mut bytes, spans) = chains();
    let mut lost = 0;
    let mut changed = 0;
    for (number, span) in spans.iter().enumerate() {
        let before = games[..number].concat();
        let after = games[number + 1..].concat();
        for bit in 8 * span.at..8 * span.end {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (found, chains, broken) = read(&bytes, 1 + bit % 20);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let place = format!("bit {} of byte {} of chain {number}", bit % 8, bit / 8 - span.at);
            assert!(found.starts_with(&before), "{place}: {broken:?}");
            assert!(found.ends_with(&after), "{place}: {broken:?}");
            assert!(found.iter().all(|record| record.check().is_ok()), "{place}");
            assert_eq!(chains.iter().map(|chain| chain.samples).sum::<usize>(), found.len());
            for BrokenChain { at, end, .. } in &broken {
                assert!(span.at <= *at && *end <= span.end, "{place}: {broken:?}");
            }
            if broken.is_empty() {
                changed += 1;
            } else {
                lost += 1;
            }
        }
    }
    // Other scores, results and counters are legal, and some other moves.
    assert!(lost > changed / 2 && changed > 0, "{lost} {changed}");
}

/// Several broken chains, and longer stretches of nonsense.
#[test]
fn chains_between_broken_ones_are_read() {
    let (games, bytes, spans) = chains();
    let mut rng = Seed(4).stream("damage", 0);
    for round in 0..300 {
        let mut damaged = bytes.clone();
        let hit: Vec<bool> = spans.iter().map(|_| rng.random_bool(0.4)).collect();
        for (span, _) in spans.iter().zip(&hit).filter(|(_, hit)| **hit) {
            // The board at least, so that nothing of the chain can be read.
            let end = rng.random_range(span.at + 24..=span.end);
            damaged[span.at..end].iter_mut().for_each(|byte| *byte = rng.random());
        }
        let expected: Vec<Record> =
            games.iter().zip(&hit).filter(|(_, hit)| !**hit).flat_map(|(game, _)| game).copied().collect();
        let (found, _, broken) = read(&damaged, 7);
        assert!(found == expected, "round {round}: {hit:?} {broken:?}");
        assert_eq!(broken.is_empty(), !hit.contains(&true));
    }
}

fn file(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.binpack");
    std::fs::write(&path, bytes).expect("writable");
    (folder, path)
}

/// The samples of a stream, without their games.
fn stream(path: &Path) -> (Vec<Record>, SkippedSamples) {
    let mut reader = SampleReader::open(path, Some(Format::Binpack), None).expect("readable");
    let mut records = Vec::new();
    while let Some(block) = reader.next_block().expect("damage is no error") {
        records.extend(block.iter().map(|record| record.with_game(0)));
    }
    (records, reader.skipped())
}

/// Streaming a file in order and decoding its segments give the same samples and the same damage, with any number of
/// threads.
fn check_file(bytes: &[u8]) -> (Vec<Record>, SkippedSamples) {
    let (_folder, path) = file(bytes);
    let (records, skipped) = stream(&path);
    for threads in [1, 3] {
        match Segments::scan(&path, UsableSamples::Eval(Needs::Any), threads, &|_, _| {}) {
            Ok(segments) => {
                let mut buffer = Vec::new();
                let mut decoded = Vec::new();
                let mut all = Vec::new();
                for segment in 0..segments.segments().len() {
                    segments.decode(segment, &mut buffer, &mut decoded).expect("as scanned");
                    all.extend(decoded.iter().map(|record| record.with_game(0)));
                }
                assert!(all == records);
                assert_eq!(segments.skipped(), &skipped);
            }
            Err(error) => assert!(records.is_empty(), "{error}"),
        }
    }
    (records, skipped)
}

/// Three chunks of two chains.
fn three_chunks() -> ([Vec<Record>; 3], [Vec<u8>; 3]) {
    let games = [[0, 1], [2, 3], [4, 5]].map(|numbers| numbers.map(|number| game(number, 25)));
    let chunks = games.each_ref().map(|games| chunk(games));
    (games.map(|games| games.concat()), chunks)
}

#[test]
fn a_damaged_header_costs_its_chunk() {
    let (records, chunks) = three_chunks();
    let whole = chunks.concat();
    for bit in 0..64 {
        let mut bytes = whole.clone();
        bytes[chunks[0].len() + bit / 8] ^= 1 << (bit % 8);
        let (found, skipped) = check_file(&bytes);
        assert!(found.starts_with(&records[0]), "bit {bit}: {skipped:?}");
        assert!(found.ends_with(&records[2]), "bit {bit}: {skipped:?}");
        assert!(!skipped.is_empty(), "bit {bit}");
        let place = format!("chunk at byte {}", chunks[0].len());
        assert_eq!(skipped.examples[0].location, place, "bit {bit}: {skipped:?}");
    }
}

#[test]
fn bytes_between_chunks_are_left_out() {
    let (records, chunks) = three_chunks();
    let noise: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (found, skipped) = check_file(&[&chunks[0][..], &noise, &chunks[1], b"BIN", &chunks[2], b"BINP"].concat());
    assert!(found == records.concat());
    assert_eq!(skipped.by_reason_text(), "broken chunk: 2, cut-off chunk: 1");
    let (found, skipped) = check_file(&[&noise[..], &chunks[2]].concat());
    assert!(found == records[2]);
    assert_eq!(skipped.examples[0].location, "chunk at byte 0");
    let (found, skipped) = check_file(&noise);
    assert!(found.is_empty() && skipped.total() == 1);
}

/// The chunks before a cut, and the chains before it, are read.
#[test]
fn a_cut_costs_what_it_hits() {
    let (records, chunks) = three_chunks();
    let whole = chunks.concat();
    let first_two = chunks[0].len() + chunks[1].len();
    for cut in [first_two + 1, first_two + 8, first_two + 60, whole.len() - 90, whole.len() - 1] {
        let (found, skipped) = check_file(&whole[..cut]);
        let all = records.concat();
        assert!(found.len() >= 100 && all.starts_with(&found) && found.len().is_multiple_of(25), "{cut}");
        assert_eq!(skipped.by_reason_text(), "cut-off chunk: 1", "{cut}");
        assert_eq!(skipped.examples[0].location, format!("chunk at byte {first_two}"));
    }
    let (found, _) = check_file(&whole[..whole.len() - 1]);
    assert_eq!(found.len(), 125, "the last chunk's first chain is whole");
}

/// The decoder of chunks reads the same chunks from a file as from a stream, wherever they begin.
#[test]
fn chunks_of_a_stream_are_those_of_the_file() {
    let (_, chunks) = three_chunks();
    let mut chunks_found = Chunks::new(std::io::Cursor::new(chunks.concat()));
    for expected in &chunks {
        let found = chunks_found.next_chunk().expect("readable").expect("a chunk");
        assert!(found.bytes == expected[8..] && found.damage.is_none());
    }
    assert_eq!(chunks_found.next_chunk().expect("readable"), None);
}
