//! viriformat as the crate of its author writes and reads it: random games of standard chess, Chess960 and double
//! Chess960 that the crate plays.

use std::fs;

use fsbench::chess::{Chess, Move, PackedMove, fen_of, parse_fen};
use fsbench::data::formats::Format;
use fsbench::data::{GameResult, Record};
use fsbench::units::{Ply, Seed};
use rand::RngExt;
use shakmaty::Position;
use tempfile::TempDir;
use viriformat::chess::board::{Board as CrateBoard, DrawType, GameOutcome, WinType};
use viriformat::chess::chessmove::Move as CrateMove;
use viriformat::chess::piece::Colour;
use viriformat::dataformat::{Game as CrateGame, WDL};

use crate::common::start_of_each_kind;
use crate::fixture::{read_all, write};

/// Past this rule-50 counter the crate takes a position for a drawn game's end.
const MOST_REVERSIBLE_PLIES: u8 = 99;

/// Games that the crate plays: standard chess, Chess960 and double Chess960, each kind with every result.
fn games(count: u32) -> Vec<CrateGame> {
    (0..count)
        .map(|number| {
            let mut rng = Seed(61).stream("viriformat", u64::from(number));
            let start = start_of_each_kind(u64::from(number));
            let mut board = CrateBoard::new();
            board.set_from_fen(&fen_of(&start), true).unwrap();
            let mut game = CrateGame::new(&board);
            for _ in 0..rng.random_range(1..160) {
                let legal = board.legal_moves();
                if legal.is_empty() || board.fifty_move_counter() > MOST_REVERSIBLE_PLIES {
                    break;
                }
                let rare = legal.iter().find(|mv| mv.is_castle() || mv.is_ep() || mv.is_promo());
                let rare = rare.filter(|_| rng.random_bool(0.5));
                let mv = *rare.unwrap_or(&legal[rng.random_range(0..legal.len())]);
                game.add_move(mv, rng.random_range(-i16::MAX..=i16::MAX));
                assert!(board.make_move_simple(mv));
            }
            game.set_outcome(match number / 3 % 3 {
                0 => GameOutcome::WhiteWin(WinType::Adjudication),
                1 => GameOutcome::Draw(DrawType::Adjudication),
                _ => GameOutcome::BlackWin(WinType::Adjudication),
            });
            game
        })
        .collect()
}

/// The crate's board by its text, which does not name the rooks that castle.
fn position(board: &CrateBoard) -> Chess {
    let text = board.to_string();
    let mut fields: Vec<&str> = text.split(' ').collect();
    let rights = board.castling_rights();
    let mut rooks = String::new();
    for colour in [Colour::White, Colour::Black] {
        for rook in [rights.kingside(colour), rights.queenside(colour)].into_iter().flatten() {
            let file = char::from(b"ABCDEFGH"[rook.index() % 8]);
            rooks.push(if colour == Colour::White { file } else { file.to_ascii_lowercase() });
        }
    }
    fields[2] = if rooks.is_empty() { "-" } else { &rooks };
    parse_fen(&fields.join(" ")).unwrap()
}

/// The crate's move among the position's legal ones.
fn move_of(position: &Chess, mv: CrateMove) -> Move {
    let promotion = mv.promotion_type().map(|role| usize::from(role.inner()));
    let is_same = |ours: &Move| {
        let squares = [ours.from().unwrap(), ours.to()].map(usize::from);
        squares == [mv.from().index(), mv.to().index()]
            && ours.promotion().map(|role| role as usize - 1) == promotion
            && [ours.is_castle(), ours.is_en_passant()] == [mv.is_castle(), mv.is_ep()]
    };
    *position.legal_moves().iter().find(|ours| is_same(ours)).unwrap()
}

/// The samples of a game as the crate plays it. In each of its positions the legal moves are ours, too.
fn samples(number: u32, game: &CrateGame) -> Vec<Record> {
    let white_result = match game.outcome() {
        WDL::Win => GameResult::Win,
        WDL::Draw => GameResult::Draw,
        WDL::Loss => GameResult::Loss,
    };
    let mut board = game.initial_position();
    let mut samples = Vec::new();
    for (mv, score) in &game.moves {
        let position = position(&board);
        let packed = |moves: &mut dyn Iterator<Item = Move>| {
            let mut bits: Vec<u16> = moves.map(|mv| PackedMove::of(mv).bits()).collect();
            bits.sort_unstable();
            bits
        };
        let theirs = packed(&mut board.legal_moves().into_iter().map(|mv| move_of(&position, mv)));
        assert_eq!(theirs, packed(&mut position.legal_moves().into_iter()), "{board}");
        let turn = position.turn();
        let score = turn.fold_wb(score.get(), -score.get());
        let result = turn.fold_wb(white_result, white_result.reversed());
        let ply = Ply(u16::try_from(board.ply()).unwrap());
        let mv_here = move_of(&position, *mv);
        samples.push(Record::of(&position, number, ply, Some(mv_here), Some(score), Some(result)).unwrap());
        assert!(board.make_move_simple(*mv));
    }
    samples
}

#[test]
fn the_crate_and_we_read_and_write_the_same() {
    let games = games(180);
    let mut bytes = Vec::new();
    for game in &games {
        game.serialise_into(&mut bytes).unwrap();
    }
    let expected: Vec<Record> = (0..).zip(&games).flat_map(|(number, game)| samples(number, game)).collect();
    let kinds: [fn(&Record) -> bool; 3] = [
        |record| record.has_chess960_rights() && record.castles(),
        |record| record.packed_move().is_some_and(|mv| mv.promotion().is_some()),
        |record| record.unpack().unwrap().mv.unwrap().is_en_passant(),
    ];
    assert!(kinds.iter().all(|is_kind| expected.iter().any(is_kind)), "the games show every kind of move");

    let folder = TempDir::new().unwrap();
    let theirs = folder.path().join("theirs.bin");
    fs::write(&theirs, &bytes).unwrap();
    assert!(read_all(&theirs) == expected);
    let ours = folder.path().join("ours.vf");
    write(&ours, Format::Viriformat, &expected);
    let written = fs::read(&ours).unwrap();
    assert!(written == bytes, "the bytes are equal, too");
    let mut rest = written.as_slice();
    for game in &games {
        assert!(CrateGame::deserialise_from(&mut rest, Vec::new()).unwrap() == *game);
    }
    assert!(rest.is_empty());
}
