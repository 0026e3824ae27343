//! Our codecs agree with the crates that define the formats.

use std::fs;
use std::path::Path;

use bulletformat::ChessBoard;
use fsbench::data::Record;
use fsbench::data::formats::Format;
use fsbench::data::formats::binpack::{ChunkDecoder, Chunks, NO_SCORE};
use sfbinpack::chess::r#move::{Move, MoveType};
use sfbinpack::chess::piece::Piece;
use sfbinpack::chess::piecetype::PieceType;
use sfbinpack::chess::position::Position as TheirPosition;
use sfbinpack::chess::{color::Color as TheirColor, coords::Square as TheirSquare};
use sfbinpack::{CompressedTrainingDataEntryReader, CompressedTrainingDataEntryWriter, TrainingDataEntry};
use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Color, EnPassantMode, Position, Role};
use tempfile::TempDir;

use crate::fixture::{read_all, samples, shared, write};

/// FEN, move, score, ply and result: the fields that both decoders give.
type Fields = (String, String, i16, u16, i16);

fn ours(record: &Record) -> Fields {
    let sample = record.unpack().unwrap();
    let fen = Fen::from_position(&sample.position, EnPassantMode::Legal).to_string();
    let mv = sample.mv.unwrap().to_uci(CastlingMode::Standard).to_string();
    (fen, mv, record.score().unwrap_or(NO_SCORE), record.ply().0, record.result().unwrap() as i16 - 1)
}

fn theirs(entry: &TrainingDataEntry) -> Fields {
    (entry.pos.fen().unwrap(), entry.mv.as_uci(), entry.score, entry.ply, entry.result)
}

/// Checks that both decoders read the same samples from these bytes, and returns their number.
fn check_same(bytes: &[u8]) -> usize {
    let mut reader = CompressedTrainingDataEntryReader::from_slice(bytes).unwrap();
    let mut chunks = Chunks::new(bytes);
    let mut count = 0;
    while let Some(chunk) = chunks.next_chunk().unwrap() {
        let mut decoder = ChunkDecoder::new(chunk.bytes);
        let mut block = Vec::new();
        while decoder.read(1000, &mut block).unwrap() > 0 {
            for record in block.drain(..) {
                assert!(reader.has_next());
                assert_eq!(ours(&record), theirs(&reader.next()), "sample {count}");
                assert_eq!(record.check(), Ok(()));
                count += 1;
            }
        }
    }
    assert!(!reader.has_next());
    count
}

fn entry(record: &Record) -> TrainingDataEntry {
    let (fen, _, score, ply, result) = ours(record);
    let sample = record.unpack().unwrap();
    let mv = record.packed_move().unwrap();
    let color = match record.turn() {
        Color::White => TheirColor::White,
        Color::Black => TheirColor::Black,
    };
    let kind = match sample.mv.unwrap() {
        shakmaty::Move::Castle { .. } => MoveType::Castle,
        shakmaty::Move::EnPassant { .. } => MoveType::EnPassant,
        other if other.is_promotion() => MoveType::Promotion,
        _ => MoveType::Normal,
    };
    let promoted = mv.promotion().map_or(Piece::none(), |role| {
        let role = match role {
            Role::Knight => PieceType::Knight,
            Role::Bishop => PieceType::Bishop,
            Role::Rook => PieceType::Rook,
            _ => PieceType::Queen,
        };
        Piece::new(role, color)
    });
    let square = |square: shakmaty::Square| TheirSquare::new(square as u32);
    TrainingDataEntry {
        pos: TheirPosition::from_fen(&fen).unwrap(),
        mv: Move::new(square(mv.from()), square(mv.to()), kind, promoted),
        score,
        ply,
        result,
    }
}

fn written_by_them(records: &[Record]) -> Vec<u8> {
    let mut writer = CompressedTrainingDataEntryWriter::new_in_memory().unwrap();
    for record in records {
        writer.write_entry(&entry(record)).unwrap();
    }
    writer.into_bytes().unwrap()
}

fn written_by_us(records: &[Record], folder: &Path) -> Vec<u8> {
    let path = folder.join("ours.binpack");
    write(&path, Format::Binpack, records);
    fs::read(path).unwrap()
}

#[test]
fn random_games_agree_with_sfbinpack() {
    let folder = TempDir::new().unwrap();
    let records = samples(300, 200);
    let bytes = written_by_us(&records, folder.path());
    assert_eq!(check_same(&bytes), records.len());
    assert_eq!(read_all(&folder.path().join("ours.binpack")), records);
    // The bytes are equal too, because one chunk holds all samples.
    assert!(bytes == written_by_them(&records));
}

#[test]
fn files_of_stockfish_agree_with_sfbinpack() {
    let Some(small) = shared("stockfish-small.binpack") else { return };
    assert_eq!(check_same(&fs::read(small).unwrap()), 434_921);
    let selfplay = fs::read(shared("selfplay.binpack").unwrap()).unwrap();
    let mut end = 0;
    for _ in 0..2 {
        let size: [u8; 4] = selfplay[end + 4..end + 8].try_into().unwrap();
        end += 8 + u32::from_le_bytes(size) as usize;
    }
    let count = check_same(&selfplay[..end]);
    assert!(count > 500_000, "{count}");

    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("first.binpack"), &selfplay[..end]).unwrap();
    let records = read_all(&folder.path().join("first.binpack"));
    let again = written_by_us(&records, folder.path());
    assert_eq!(check_same(&again), count);
    assert_eq!(read_all(&folder.path().join("ours.binpack")), records);
}

#[test]
fn positions_agree_with_bulletformat() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.bullet");
    let records = samples(60, 150);
    write(&path, Format::Bullet, &records);
    let bytes = fs::read(&path).unwrap();
    let scored: Vec<&Record> = records.iter().filter(|record| record.score().is_some()).collect();
    let (entries, rest) = bytes.as_chunks::<32>();
    assert_eq!((entries.len(), rest.len()), (scored.len(), 0));
    for (entry, record) in entries.iter().zip(&scored) {
        let sample = record.unpack().unwrap();
        let board = sample.position.board();
        let bitboards = [
            board.white(),
            board.black(),
            board.pawns(),
            board.knights(),
            board.bishops(),
            board.rooks(),
            board.queens(),
            board.kings(),
        ];
        let score = record.score().unwrap();
        let points = record.result().unwrap().points();
        let white = record.turn() == Color::White;
        let (white_score, white_points) = if white { (score, points) } else { (-score, 1.0 - points) };
        let theirs =
            ChessBoard::from_raw(bitboards.map(|board| board.0), usize::from(!white), white_score, white_points)
                .unwrap();
        let ours = ChessBoard {
            occ: u64::from_le_bytes(entry[..8].try_into().unwrap()),
            pcs: entry[8..24].try_into().unwrap(),
            score: i16::from_le_bytes([entry[24], entry[25]]),
            result: entry[26],
            ksq: entry[27],
            opp_ksq: entry[28],
            extra: entry[29..].try_into().unwrap(),
        };
        assert_eq!(ours, theirs);
    }
    // bulletformat stores each position as seen from the side to move.
    for (back, record) in read_all(&path).iter().zip(&scored) {
        assert_eq!((back.score(), back.result(), back.turn()), (record.score(), record.result(), Color::White));
        let back = back.unpack().unwrap();
        let sample = record.unpack().unwrap();
        let expected = match sample.position.turn() {
            Color::White => sample.position.board().clone(),
            Color::Black => sample.position.board().clone().into_mirrored(),
        };
        assert_eq!(back.position.board(), &expected);
    }
}
