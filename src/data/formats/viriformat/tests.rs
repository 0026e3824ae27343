use std::io::Cursor;
use std::path::Path;

use rand::RngExt;
use shakmaty::{CastlingMode, Color, FromSetup, Piece, Position as _, Role, Setup, Square};

use super::*;
use crate::chess::castlings::every_castling;
use crate::chess::{Bitboard, Chess, Move, random_move, start_of_each_kind};
use crate::data::formats::{Format, SampleReader, SkippedSamples};
use crate::data::{GameResult, Sample};
use crate::units::{Ply, Seed};

fn read(bytes: &[u8]) -> (Vec<Record>, SkippedSamples) {
    let input = Box::new(Cursor::new(bytes.to_vec()));
    let mut reader = SampleReader::from_reader(input, Path::new("x"), Format::Viriformat, None).expect("opened");
    let mut records = Vec::new();
    while let Some(block) = reader.next_block().expect("read") {
        records.extend(block);
    }
    (records, reader.skipped())
}

fn write(records: &[Record]) -> (Vec<u8>, u64) {
    let mut encoder = (FORMAT.encoder.expect("written"))();
    let mut bytes = Vec::new();
    // The bytes do not depend on how the samples are passed.
    for part in records.chunks(7) {
        encoder.push(part, &mut bytes).expect("legal");
    }
    encoder.finish(&mut bytes).expect("legal");
    (bytes, encoder.split_games())
}

/// Random games of standard chess, Chess960 and double Chess960, some from the middle on.
fn games(count: u32, plies: u16) -> Vec<Record> {
    let mut records = Vec::new();
    for game in 0..count {
        let mut rng = Seed(45).stream("viriformat", u64::from(game));
        let mut position = start_of_each_kind(u64::from(game) / 3, &mut rng);
        let first = if game % 3 == 0 { 0 } else { rng.random_range(0..plies) };
        let white = [GameResult::Loss, GameResult::Draw, GameResult::Win][rng.random_range(0..3)];
        for ply in 0..first + plies {
            let rare = |mv: &&Move| mv.is_castle() || mv.is_en_passant() || mv.is_promotion();
            let legal = position.legal_moves();
            let rare = legal.iter().find(rare).filter(|_| rng.random_bool(0.5)).copied();
            let Some(mv) = rare.or_else(|| random_move(&position, &mut rng)) else { break };
            if ply >= first {
                let score = Some(rng.random_range(-3000..3000));
                let result = Some(position.turn().fold_wb(white, white.reversed()));
                let record = Record::of(&position, game, Ply(ply), Some(mv), score, result);
                records.push(record.expect("32 pieces"));
            }
            position.play_unchecked(mv);
        }
    }
    // A game that ended before its first sample has none: numbers have no gaps in files.
    let mut numbers: Vec<u32> = records.iter().map(Record::game).collect();
    numbers.dedup();
    let number = |game| numbers.binary_search(&game).expect("known") as u32;
    records.iter().map(|record| record.with_game(number(record.game()))).collect()
}

/// A reader of the format by its description alone: the board by shakmaty's setup, the moves by their squares.
fn oracle(mut bytes: &[u8]) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut game = 0;
    while !bytes.is_empty() {
        let mut setup = Setup::empty();
        let occupied = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        for (place, square) in Bitboard(occupied).into_iter().enumerate() {
            let code = bytes[8 + place / 2] >> (4 * (place % 2)) & 15;
            let role = [Role::Pawn, Role::Knight, Role::Bishop, Role::Rook, Role::Queen, Role::King, Role::Rook];
            let role = role[usize::from(code & 7)];
            setup.board.set_piece_at(square, Piece { color: Color::from_black(code > 7), role });
            if code & 7 == 6 {
                setup.castling_rights.add(square);
            }
        }
        setup.turn = Color::from_black(bytes[24] > 127);
        setup.ep_square = Square::try_from(bytes[24] & 127).ok();
        setup.halfmoves = u32::from(bytes[25]);
        setup.fullmoves = u32::from(u16::from_le_bytes([bytes[26], bytes[27]])).try_into().unwrap();
        let mut position = Chess::from_setup(setup, CastlingMode::Chess960).unwrap();
        let white = [GameResult::Loss, GameResult::Draw, GameResult::Win][usize::from(bytes[30])];
        bytes = &bytes[32..];
        while bytes[..4] != [0; 4] {
            let code = u16::from_le_bytes([bytes[0], bytes[1]]);
            let promotion = (code >> 14 == 3).then(|| Role::ALL[usize::from(code >> 12 & 3) + 1]);
            let squares = |mv: &Move| (mv.from().map(u16::from), u16::from(mv.to()), mv.promotion());
            let mut legal = position.legal_moves().into_iter();
            let mv = legal.find(|mv| squares(mv) == (Some(code & 63), code >> 6 & 63, promotion)).unwrap();
            assert_eq!(code >> 14 == 1, mv.is_en_passant());
            assert_eq!(code >> 14 == 2, mv.is_castle());
            let score = i16::from_le_bytes([bytes[2], bytes[3]]);
            let turn = position.turn();
            let ply = Ply((position.fullmoves().get() * 2 - 2) as u16 + u16::from(turn.is_black()));
            let score = Some(turn.fold_wb(score, -score));
            let result = Some(turn.fold_wb(white, white.reversed()));
            samples.push(Sample { position: position.clone(), game, ply, mv: Some(mv), score, result });
            position.play_unchecked(mv);
            bytes = &bytes[4..];
        }
        bytes = &bytes[4..];
        game += 1;
    }
    samples
}

#[test]
fn games_round_trip_and_a_second_reader_agrees() {
    let records = games(300, 120);
    let (bytes, split) = write(&records);
    assert_eq!(split, 0);
    let expected: Vec<Record> = oracle(&bytes).iter().map(|sample| Record::pack(sample).expect("fits")).collect();
    assert_eq!(expected, records);
    let (found, skipped) = read(&bytes);
    assert_eq!((found == records, skipped.total()), (true, 0));
    assert_eq!(write(&found).0, bytes);
    let moves: Vec<Sample> = records.iter().map(|record| record.unpack().expect("legal")).collect();
    let castles_in_chess960 = records
        .iter()
        .zip(&moves)
        .any(|(record, sample)| record.has_chess960_rights() && sample.mv.is_some_and(shakmaty::Move::is_castle));
    assert!(castles_in_chess960);
    let kinds: [&dyn Fn(Move) -> bool; 3] = [&Move::is_castle, &Move::is_en_passant, &Move::is_promotion];
    for kind in kinds {
        assert!(moves.iter().any(|sample| sample.mv.is_some_and(kind)), "the games show every kind of move");
    }
}

/// The start position, 1. e4 (+10) e5 (+20) 2. Qh5 (−30) Ke7 3. Qxe5#, White won.
fn example() -> Vec<u8> {
    let mut bytes = 0xffff_0000_0000_ffff_u64.to_le_bytes().to_vec();
    bytes.extend([0x16, 0x42, 0x25, 0x61, 0, 0, 0, 0, 0x88, 0x88, 0x88, 0x88, 0x9e, 0xca, 0xad, 0xe9]);
    bytes.extend([64, 0, 1, 0, 0, 0, 2, 0]);
    let moves = [(12, 28, 10), (52, 36, 20), (3, 39, -30), (60, 52, 32_767), (39, 36, 32_767i16)];
    for (from, to, score) in moves {
        bytes.extend((from | (to << 6) as u16).to_le_bytes());
        bytes.extend(score.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes
}

fn swap_nibbles(game: &mut [u8]) {
    game[8..24].iter_mut().for_each(|byte| *byte = byte.rotate_left(4));
}

#[test]
fn scores_and_results_are_the_movers() {
    let check = |bytes: &[u8]| {
        let (records, skipped) = read(bytes);
        assert!(skipped.is_empty(), "{skipped:?}");
        let scores: Vec<_> = records.iter().map(|record| (record.ply().0, record.score())).collect();
        let expected = [10, -20, -30, -32_767, 32_767].into_iter().zip(0..);
        assert_eq!(scores, expected.map(|(score, ply)| (ply, Some(score))).collect::<Vec<_>>());
        let results: Vec<_> = records.iter().filter_map(Record::result).collect();
        let [win, loss] = [GameResult::Win, GameResult::Loss];
        assert_eq!(results, [win, loss, win, loss, win]);
        let last = records[4].unpack().expect("legal");
        let mut position = last.position;
        position.play_unchecked(last.mv.expect("a move"));
        assert!(position.is_checkmate());
    };
    let game = example();
    assert_eq!(game.len(), 56);
    check(&game);
    let mut swapped = game.clone();
    swap_nibbles(&mut swapped);
    check(&swapped);
    check(&[&[0; 8][..], &[7, 0, 3, 0], b"abc", &[0; 4], &game].concat());
}

#[test]
fn games_are_recognised() {
    let recognised = |bytes: &[u8]| recovery::begins_with_game(bytes);
    let game = example();
    assert!(recognised(&game) && recognised(&game.repeat(20)));
    let mut swapped = game.clone();
    swap_nibbles(&mut swapped);
    assert!(recognised(&swapped));
    // A game without a move; positions alone.
    assert!(recognised(&[&game[..32], &[0; 4]].concat()));
    assert!(!recognised(&game[..32]) && !recognised(&game[..32].repeat(9)));
    let mut odd = game;
    odd[33] ^= 0x40;
    assert!(!recognised(&odd));
    assert!(!recognised(&[0; 4096]) && !recognised(b"") && !recognised(&[0x55; 4096]));
}

#[test]
fn shuffled_samples_become_games_of_one_move() {
    let records = games(20, 40);
    let reversed: Vec<Record> = records.iter().rev().copied().collect();
    let (bytes, split) = write(&reversed);
    let (found, _) = read(&bytes);
    let alone = |record: &Record| record.with_game(0);
    assert!(found.iter().map(alone).eq(reversed.iter().map(alone)));
    assert_eq!(found.last().map(Record::game), Some(records.len() as u32 - 1));
    let last = records.last().map_or(0, Record::game);
    assert_eq!(split, records.len() as u64 - 1 - u64::from(last));
}

/// Every castling of Chess960, in games of one move.
#[test]
fn castlings_of_chess960_round_trip() {
    let records: Vec<Record> = (0..)
        .zip(every_castling())
        .map(|(game, (position, mv))| {
            let ply = Ply(u16::from(position.turn().is_black()));
            let record = Record::of(&position, game, ply, Some(mv), Some(7), Some(GameResult::Draw));
            record.expect("fits")
        })
        .collect();
    let (bytes, _) = write(&records);
    let (found, skipped) = read(&bytes);
    assert_eq!((found == records, skipped.total()), (true, 0));
    let oracle: Vec<Record> = oracle(&bytes).iter().map(|sample| Record::pack(sample).expect("fits")).collect();
    assert_eq!(oracle, records);
}

#[test]
fn a_cut_off_file_loses_its_last_game() {
    let records = games(4, 12);
    let (bytes, _) = write(&records);
    for length in 1..bytes.len() {
        let input = Box::new(Cursor::new(bytes[..length].to_vec()));
        let mut reader = SampleReader::from_reader(input, Path::new("x"), Format::Viriformat, None).expect("opened");
        let mut found = Vec::new();
        while let Ok(Some(block)) = reader.next_block() {
            found.extend(block);
        }
        let whole: Vec<Record> = records.iter().take(found.len()).copied().collect();
        assert_eq!(found, whole, "{length}");
        let next = records.get(found.len()).map(Record::game);
        assert!(found.last().is_none_or(|last| Some(last.game()) != next), "{length}");
    }
}

/// Any flipped bit changes the game that holds it and no other.
#[test]
fn a_flipped_bit_changes_one_game() {
    let records = games(4, 9);
    let (bytes, _) = write(&records);
    let by_game = |records: &[Record]| -> Vec<Vec<Record>> {
        let games = records.chunk_by(|a, b| a.game() == b.game());
        games.map(|game| game.iter().map(|record| record.with_game(0)).collect()).collect()
    };
    let expected = by_game(&records);
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let (found, skipped) = read(&damaged);
        for record in &found {
            assert_eq!(record.check(), Ok(()), "{bit}");
        }
        let found = by_game(&found);
        let lost: Vec<_> = expected.iter().filter(|game| !found.contains(game)).collect();
        let new: Vec<_> = found.iter().filter(|game| !expected.contains(game)).collect();
        assert!(lost.len() <= 1 && new.len() <= lost.len(), "bit {bit}: {} lost, {} new", lost.len(), new.len());
        assert!(lost.len() == new.len() || !skipped.is_empty(), "bit {bit}: {skipped:?}");
    }
}
