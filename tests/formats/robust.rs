//! Truncated and damaged files, and folders that cannot be written to.

use std::fs;
use std::path::Path;
use std::process::Command;

use fsbench::chess::Perspective;
use fsbench::data::formats::binpack::{
    Chunk, ChunkDecoder, ChunkEncoder, ChunkError, Chunks, MAX_MOVETEXT_BYTES, Triplet,
};
use fsbench::data::formats::{Format, SampleWriter};
use fsbench::data::{DataError, Fsd, Record};
use fsbench::features::{EncodeScratch, FeatureSet, RowBuffer};
use fsbench::units::Seed;
use tempfile::TempDir;

use crate::fixture::{check, names, provenance, read, samples, write};

/// The samples before a cut, all of them valid, and the error with which reading ended.
fn read_cut(path: &Path, format: Format, bytes: &[u8]) -> (Vec<Record>, Option<DataError>) {
    fs::write(path, bytes).unwrap();
    let (records, end) = read(path, Some(format));
    assert!(records.iter().all(|record| record.check().is_ok()));
    (records, end.err())
}

#[test]
fn a_file_cut_off_anywhere_is_an_error_or_its_beginning() {
    let folder = TempDir::new().unwrap();
    let records: Vec<Record> = samples(3, 12).into_iter().filter(|record| record.score().is_some()).collect();
    let formats = [
        Format::Fsd,
        Format::Binpack,
        Format::Viriformat,
        Format::Bullet,
        Format::Text,
        Format::BulletText,
        Format::Plain,
    ];
    for format in formats {
        let path = folder.path().join("x");
        write(&path, format, &records);
        let bytes = fs::read(&path).unwrap();
        let (all, _) = read(&path, Some(format));
        assert_eq!(all.len(), records.len());
        for cut in 0..bytes.len() {
            let (found, error) = read_cut(&path, format, &bytes[..cut]);
            assert!(found.len() <= all.len());
            // A cut between two entries of bullet or text leaves a valid shorter file. Reading text and binpacks never
            // ends in an error: broken parts are counted. So are games of viriformat, if a game begins at all.
            let is_valid = match format {
                Format::Bullet => cut % 32 == 0,
                Format::Text | Format::BulletText | Format::Plain | Format::Binpack => true,
                Format::Viriformat => cut == 0 || cut >= 36,
                _ => false,
            };
            assert_eq!(error.is_none(), is_valid, "{format:?} {cut}: {error:?}");
        }
    }
}

/// With any bit flipped, decoding gives valid samples or an error that names the chunk.
#[test]
fn a_flipped_bit_in_a_binpack_gives_an_error_or_valid_samples() {
    let mut bytes = Vec::new();
    let mut encoder = ChunkEncoder::default();
    encoder.push(&samples(4, 60), &mut bytes).unwrap();
    encoder.finish(&mut bytes).unwrap();
    let mut errors = 0;
    for bit in 0..8 * bytes.len() {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut chunks = Chunks::new(bytes.as_slice());
        let mut block = Vec::new();
        let Chunk { bytes: contents, damage, .. } = chunks.next_chunk().unwrap().unwrap();
        let broken = damage.is_some() || ChunkDecoder::new(contents).read(usize::MAX, &mut block).is_err();
        errors += usize::from(broken);
        assert!(block.iter().all(|record| record.check().is_ok()), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    // Scores, results and counters may take any value; most of the rest may not.
    assert!(errors > bytes.len() * 8 / 3, "{errors} of {} bits", bytes.len() * 8);
}

/// The unchecked decoder reads bytes that were validated before. If they have changed since, it may return an error or
/// wrong samples, but nothing out of range.
#[test]
fn the_unchecked_decoder_is_safe_on_changed_bytes() {
    let mut bytes = Vec::new();
    let records = samples(4, 60);
    let mut encoder = ChunkEncoder::default();
    encoder.push(&records, &mut bytes).unwrap();
    encoder.finish(&mut bytes).unwrap();
    let sets = ["half-ka-v2-hm", "half-kp", "piece"].map(|name| FeatureSet::resolve(name).unwrap());
    let mut sides = <[RowBuffer; 2]>::default();
    let mut scratch = EncodeScratch::default();
    let chunk = &mut bytes[8..];
    let mut errors = 0;
    for bit in 0..8 * chunk.len() {
        chunk[bit / 8] ^= 1 << (bit % 8);
        let mut found = Vec::new();
        let read = ChunkDecoder::unchecked(chunk.to_vec(), 7).read(records.len() + 1, &mut found);
        chunk[bit / 8] ^= 1 << (bit % 8);
        errors += usize::from(read.is_err());
        assert!(found.iter().map(Record::game).eq(7..7 + found.len() as u32));
        for record in &found {
            let _ = Triplet::draw(record, Seed(1).draws("test"), bit as u64);
        }
        for set in &sets {
            sides.iter_mut().for_each(RowBuffer::clear);
            let boards = found.iter().map(|record| (record.board(), Perspective::of(record.turn())));
            set.encoder().append_batch(boards, &mut sides, &mut scratch);
            for side in &sides {
                assert_eq!(side.ends().len(), found.len());
                assert!(side.rows().iter().all(|row| *row < set.num_features()), "bit {bit}");
            }
        }
    }
    assert!(errors > 0);
}

#[test]
fn headers_with_impossible_sizes_are_refused() {
    let check = |bytes: &[u8], expected: &ChunkError| {
        assert_eq!(Chunks::new(bytes).next_chunk().unwrap().unwrap().damage.as_ref(), Some(expected));
    };
    let claim = |size: u32, rest: &[u8]| [b"BINP", &size.to_le_bytes()[..], rest].concat();
    check(&claim(u32::MAX, &[]), &ChunkError::TooLarge { size: u64::from(u32::MAX), most: 100 << 20 });
    check(&claim(100 << 20, &[0; 99]), &ChunkError::CutOff { size: 100 << 20, left: 99 });
    check(b"BINP\x01\0", &ChunkError::Header { bytes: 6 });
    check(b"PGN \0\0\0\0", &ChunkError::Magic { found: "PGN ".into() });
    let short = ChunkDecoder::new(vec![0; 33]).read(1, &mut Vec::new());
    assert_eq!(short, Err(ChunkError::Stem { at: 0, left: 33 }));

    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.fsd");
    write(&path, Format::Fsd, &samples(1, 20));
    let mut bytes = fs::read(&path).unwrap();
    bytes[16..24].copy_from_slice(&(1u64 << 32).to_le_bytes());
    let sum = crc32fast::hash(&bytes[..252]).to_le_bytes();
    bytes[252..256].copy_from_slice(&sum);
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(Fsd::open(&path), Err(DataError::Length { .. })));
    bytes[8] = 9;
    fs::write(&path, &bytes).unwrap();
    let (_, end) = read(&path, None);
    assert!(matches!(end, Err(DataError::Version { found: 9, .. })));
}

/// A chunk is decoded block by block, however many samples it holds; the encoder splits a very long game into chains.
#[test]
fn large_chunks_and_long_games_are_decoded_in_blocks() {
    let records: Vec<Record> = endless_game(60_000);
    let mut bytes = Vec::new();
    let mut encoder = ChunkEncoder::default();
    encoder.push(&records, &mut bytes).unwrap();
    encoder.finish(&mut bytes).unwrap();
    assert!(bytes.len() > 3 * MAX_MOVETEXT_BYTES, "{} bytes", bytes.len());
    let mut chunks = Chunks::new(bytes.as_slice());
    let mut found = Vec::new();
    while let Some(chunk) = chunks.next_chunk().unwrap() {
        let mut decoder = ChunkDecoder::new(chunk.bytes);
        let mut block = Vec::new();
        while decoder.read(100, &mut block).unwrap() > 0 {
            assert!(block.len() <= 100);
            found.append(&mut block);
        }
    }
    assert!(found == records);
}

/// One game in which the knights go back and forth. The ply restarts at 0 before it exceeds its field.
fn endless_game(count: usize) -> Vec<Record> {
    use fsbench::data::{GameResult, Sample};
    use fsbench::units::Ply;
    use shakmaty::uci::UciMove;
    use shakmaty::{Chess, Position};
    let mut position = Chess::default();
    let mut records = Vec::new();
    for index in 0..count {
        let mv: UciMove = ["g1f3", "g8f6", "f3g1", "f6g8"][index % 4].parse().unwrap();
        let mv = mv.to_move(&position).unwrap();
        let result = Some(GameResult::Draw);
        let ply = Ply((index % 16_384) as u16);
        let score = Some((index * 7_919 % 20_000) as i16);
        let sample = Sample { position: position.clone(), game: 0, ply, mv: Some(mv), score, result };
        records.push(Record::pack(&sample).unwrap());
        position.play_unchecked(mv);
    }
    records
}

/// Reading on all workers of rayon's pool at once does not deadlock: decoders have a pool of their own.
#[test]
fn every_worker_can_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.binpack");
    let records = samples(30, 100);
    write(&path, Format::Binpack, &records);
    let counts = rayon::broadcast(|_| read(&path, None).0.len());
    assert!(counts.iter().all(|count| *count == records.len()), "{counts:?}");
}

#[test]
fn broken_samples_are_not_written() {
    let folder = TempDir::new().unwrap();
    let mut records = samples(2, 40);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut records);
    // The move of sample 30: a1 to a1, promoting.
    bytes[30 * 40 + 30..30 * 40 + 32].copy_from_slice(&[0, 0x10]);
    for (name, format) in [("x.binpack", Format::Binpack), ("x.txt", Format::Text)] {
        let mut writer = SampleWriter::create(&folder.path().join(name), format, false).unwrap();
        let end = writer.push(&records).and_then(|()| writer.finish(provenance(&records)));
        assert!(matches!(end, Err(DataError::InvalidSample { sample: 30, .. })), "{name}");
        assert!(names(folder.path()).is_empty());
    }
}

/// A file-size limit stands in for a full disk: the write fails in the same way.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let folder = TempDir::new().unwrap();
    write(&folder.path().join("source.fsd"), Format::Fsd, &samples(200, 150));
    for target in ["x.fsd", "x.binpack", "x.bullet", "x.txt"] {
        let script = format!("trap '' XFSZ; ulimit -f 20; exec \"$0\" dataset convert source.fsd {target}");
        let mut command = Command::new("sh");
        let output = command.args(["-c", &script, env!("CARGO_BIN_EXE_fsbench")]).current_dir(&folder).output();
        check(&output.unwrap(), 1, &format!("cannot write {target}"));
        assert_eq!(names(folder.path()), ["source.fsd"]);
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_to_is_an_error() {
    // Not even root can create files here.
    let closed = Path::new("/proc/self");
    let error = SampleWriter::create(&closed.join("x.binpack"), Format::Binpack, false).map(drop).unwrap_err();
    assert!(matches!(error, DataError::Write { .. }), "{error}");
}
