//! One sample as it stands in a `.fsd` file: 40 bytes, little-endian, no padding.
//!
//! | bytes | field |
//! |---|---|
//! | 0–23 | [`PackedBoard`] |
//! | 24–27 | game number, from 0, in file order |
//! | 28–29 | ply |
//! | 30–31 | move: bits 0–5 from, 6–11 to, 12–14 promotion (0 none, 1 knight … 4 queen); castling as king takes rook; 0 none |
//! | 32–33 | score, side to move's view, in the file's unit; −32768 none |
//! | 34 | game result, side to move's view: 0 loss, 1 draw, 2 win, 255 unknown |
//! | 35 | rule-50 counter in plies |
//! | 36 | bit 0 side to move (1 = Black); bits 1–4 castling rights, in the order K, Q, k, q |
//! | 37 | en passant file 0–7, 255 none |
//! | 38–39 | zero |

use std::num::NonZeroU32;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use shakmaty::{
    Bitboard, CastlingMode, CastlingSide, Chess, Color, EnPassantMode, File, FromSetup, Move, Position, Rank, Role,
    Setup, Square,
};
use thiserror::Error;

use crate::chess::{PackedBoard, PackedBoardError};
use crate::units::Ply;

/// How a game ended for one side.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GameResult {
    Loss = 0,
    Draw = 1,
    Win = 2,
}

impl GameResult {
    /// The same result for the opponent.
    #[must_use]
    pub const fn reversed(self) -> GameResult {
        match self {
            GameResult::Loss => GameResult::Win,
            GameResult::Draw => GameResult::Draw,
            GameResult::Win => GameResult::Loss,
        }
    }

    /// 0, 0.5 or 1.
    #[must_use]
    pub const fn points(self) -> f32 {
        self as u8 as f32 / 2.0
    }
}

/// A position with what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub position: Chess,
    /// Number of the game the position comes from.
    pub game: u32,
    pub ply: Ply,
    /// The move played, or the engine's choice.
    pub mv: Option<Move>,
    /// Side to move's view, in the file's unit.
    pub score: Option<i16>,
    /// Side to move's view.
    pub result: Option<GameResult>,
}

/// The 40 bytes of a sample. See the module's table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Record {
    board: PackedBoard,
    game: [u8; 4],
    ply: [u8; 2],
    mv: [u8; 2],
    score: [u8; 2],
    result: u8,
    rule50: u8,
    flags: u8,
    ep_file: u8,
    zero: [u8; 2],
}

const _: () = assert!(size_of::<Record>() == Record::BYTES);

/// Why a record is not a sample.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RecordError {
    #[error(transparent)]
    Board(#[from] PackedBoardError),
    #[error("{0}")]
    Illegal(String),
    #[error("the move {0} is illegal in the position")]
    Move(String),
    #[error("byte {offset} of the record is {value}, which stands for nothing")]
    Field { offset: usize, value: u8 },
}

const NO_SCORE: i16 = i16::MIN;
const NO_RESULT: u8 = 255;
const NO_FILE: u8 = 255;
const RIGHTS: [(Color, CastlingSide); 4] = [
    (Color::White, CastlingSide::KingSide),
    (Color::White, CastlingSide::QueenSide),
    (Color::Black, CastlingSide::KingSide),
    (Color::Black, CastlingSide::QueenSide),
];

impl Record {
    pub const BYTES: usize = 40;

    /// # Errors
    /// When more than 32 pieces stand on the board.
    pub fn pack(sample: &Sample) -> Result<Record, RecordError> {
        Record::of(&sample.position, sample.game, sample.ply, sample.mv, sample.score, sample.result)
    }

    /// [`Record::pack`] without a sample of its own.
    ///
    /// # Errors
    /// When more than 32 pieces stand on the board.
    pub fn of(
        position: &Chess,
        game: u32,
        ply: Ply,
        mv: Option<Move>,
        score: Option<i16>,
        result: Option<GameResult>,
    ) -> Result<Record, RecordError> {
        let castles = position.castles();
        let rights = RIGHTS.iter().enumerate().filter(|(_, (color, side))| castles.has(*color, *side));
        let flags = rights.fold(u8::from(position.turn().is_black()), |bits, (bit, _)| bits | 2 << bit);
        Ok(Record {
            board: PackedBoard::pack(position.board())?,
            game: game.to_le_bytes(),
            ply: ply.0.to_le_bytes(),
            mv: mv.map_or(0, pack_move).to_le_bytes(),
            score: score.unwrap_or(NO_SCORE).to_le_bytes(),
            result: result.map_or(NO_RESULT, |result| result as u8),
            rule50: position.halfmoves().min(255) as u8,
            flags,
            ep_file: position.ep_square(EnPassantMode::Legal).map_or(NO_FILE, |square| square.file() as u8),
            zero: [0; 2],
        })
    }

    /// # Errors
    /// When the bytes hold no legal position, or a move that is illegal in it.
    pub fn unpack(&self) -> Result<Sample, RecordError> {
        let position = self.position()?;
        let mv = match u16::from_le_bytes(self.mv) {
            0 => None,
            packed => Some(
                position
                    .legal_moves()
                    .into_iter()
                    .find(|mv| pack_move(*mv) == packed)
                    .ok_or_else(|| RecordError::Move(describe_move(packed)))?,
            ),
        };
        Ok(Sample { position, game: self.game(), ply: self.ply(), mv, score: self.score(), result: self.result() })
    }

    /// The position alone, validated.
    ///
    /// # Errors
    /// When the bytes hold no legal position.
    pub fn position(&self) -> Result<Chess, RecordError> {
        let mut setup = Setup::empty();
        setup.board = self.board.unpack()?;
        setup.turn = self.turn();
        for (bit, (color, side)) in RIGHTS.iter().enumerate() {
            if self.flags & (2 << bit) != 0 {
                setup.castling_rights |= Bitboard::from(home_rook(*color, *side));
            }
        }
        setup.ep_square = match self.ep_file {
            NO_FILE => None,
            file @ 0..=7 => {
                let rank = self.turn().fold_wb(Rank::Sixth, Rank::Third);
                Some(Square::from_coords(File::new(u32::from(file)), rank))
            }
            value => return Err(RecordError::Field { offset: 37, value }),
        };
        setup.halfmoves = u32::from(self.rule50);
        setup.fullmoves = NonZeroU32::MIN.saturating_add(u32::from(self.ply().0 / 2));
        Chess::from_setup(setup, CastlingMode::Standard).map_err(|error| RecordError::Illegal(error.to_string()))
    }

    #[must_use]
    pub const fn with_game(self, game: u32) -> Record {
        Record { game: game.to_le_bytes(), ..self }
    }

    #[must_use]
    pub const fn with_score(self, score: Option<i16>) -> Record {
        let score = match score {
            Some(score) => score,
            None => NO_SCORE,
        };
        Record { score: score.to_le_bytes(), ..self }
    }

    #[must_use]
    pub const fn with_result(self, result: Option<GameResult>) -> Record {
        let result = match result {
            Some(result) => result as u8,
            None => NO_RESULT,
        };
        Record { result, ..self }
    }

    /// A number noted in the last two bytes while samples are being made; zero in files.
    #[must_use]
    pub(super) const fn scratch(&self) -> u16 {
        u16::from_le_bytes(self.zero)
    }

    #[must_use]
    pub(super) const fn with_scratch(self, number: u16) -> Record {
        Record { zero: number.to_le_bytes(), ..self }
    }

    /// The same for two records of the same board, side to move, castling rights and en passant square (and move);
    /// different for others, as far as 64 bits go.
    #[must_use]
    pub(super) fn key(&self, with_move: bool) -> u64 {
        let mut bytes = [0u8; 28];
        bytes[..24].copy_from_slice(bytemuck::bytes_of(&self.board));
        bytes[24] = self.flags;
        bytes[25] = self.ep_file;
        if with_move {
            bytes[26..].copy_from_slice(&self.mv);
        }
        let hash = blake3::hash(&bytes);
        u64::from_le_bytes(std::array::from_fn(|i| hash.as_bytes()[i]))
    }

    #[must_use]
    pub const fn board(&self) -> &PackedBoard {
        &self.board
    }

    /// What a search depends on: board, side to move, castling rights, en passant and rule-50 counter.
    #[must_use]
    pub fn search_key(&self) -> ([u8; 24], [u8; 3]) {
        (bytemuck::cast(self.board), [self.flags, self.ep_file, self.rule50])
    }

    /// The same sample with another move, packed.
    #[must_use]
    pub(super) fn with_move(self, mv: u16) -> Record {
        Record { mv: mv.to_le_bytes(), ..self }
    }

    /// Side to move.
    #[must_use]
    pub const fn turn(&self) -> Color {
        Color::from_black(self.flags & 1 != 0)
    }

    #[must_use]
    pub const fn game(&self) -> u32 {
        u32::from_le_bytes(self.game)
    }

    #[must_use]
    pub const fn ply(&self) -> Ply {
        Ply(u16::from_le_bytes(self.ply))
    }

    /// Whether the record names a move.
    #[must_use]
    pub const fn has_move(&self) -> bool {
        u16::from_le_bytes(self.mv) != 0
    }

    /// Whether `mv`, a legal move of the position, is the record's move.
    #[must_use]
    pub fn is_move(&self, mv: Move) -> bool {
        u16::from_le_bytes(self.mv) == pack_move(mv)
    }

    /// What to say of a record none of whose position's legal moves is its move.
    #[must_use]
    pub fn no_such_move(&self) -> RecordError {
        RecordError::Move(describe_move(u16::from_le_bytes(self.mv)))
    }

    /// Side to move's view, in the file's unit.
    #[must_use]
    pub const fn score(&self) -> Option<i16> {
        match i16::from_le_bytes(self.score) {
            NO_SCORE => None,
            score => Some(score),
        }
    }

    /// Side to move's view.
    #[must_use]
    pub const fn result(&self) -> Option<GameResult> {
        match self.result {
            0 => Some(GameResult::Loss),
            1 => Some(GameResult::Draw),
            2 => Some(GameResult::Win),
            _ => None,
        }
    }
}

const fn home_rook(color: Color, side: CastlingSide) -> Square {
    let file = match side {
        CastlingSide::KingSide => File::H,
        CastlingSide::QueenSide => File::A,
    };
    Square::from_coords(file, color.backrank())
}

/// As bytes 30–31 hold it.
pub(super) fn pack_move(mv: Move) -> u16 {
    let promotion = mv.promotion().map_or(0, |role| role as u16 - Role::Pawn as u16);
    mv.from().map_or(0, u16::from) | u16::from(mv.to()) << 6 | promotion << 12
}

fn describe_move(packed: u16) -> String {
    let square = |shift: u32| Square::new(u32::from(packed >> shift & 63));
    let promotion = ["", "n", "b", "r", "q"].get(usize::from(packed >> 12)).unwrap_or(&"?");
    format!("{}{}{promotion}", square(0), square(6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn random_games_round_trip() {
        for game in 0..100u32 {
            let mut rng = Seed(3).stream("record", u64::from(game));
            let mut position = Chess::default();
            for ply in 0..150 {
                let moves = position.legal_moves();
                if moves.is_empty() {
                    break;
                }
                let mv = moves[rng.random_range(0..moves.len())];
                let sample = Sample {
                    position: position.clone(),
                    game,
                    ply: Ply(ply),
                    mv: Some(mv),
                    score: Some(-123),
                    result: Some(GameResult::Win),
                };
                let back = Record::pack(&sample).expect("fits").unpack().expect("legal");
                assert_eq!(back, sample);
                position.play_unchecked(mv);
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let position = Chess::default();
        let sample = Sample { position, game: 0, ply: Ply(0), mv: None, score: None, result: None };
        let good = Record::pack(&sample).expect("fits");
        assert_eq!(good.unpack(), Ok(sample));
        let check = |mutate: fn(&mut Record), expected: &str| {
            let mut record = good;
            mutate(&mut record);
            assert_eq!(record.unpack().expect_err("broken").to_string(), expected);
        };
        check(|r| r.ep_file = 9, "byte 37 of the record is 9, which stands for nothing");
        check(|r| r.mv = (12u16 | 44 << 6).to_le_bytes(), "the move e2e6 is illegal in the position");
        check(
            |r| r.board = PackedBoard::zeroed(),
            "illegal position: empty board, missing king, invalid castling rights",
        );
    }
}
