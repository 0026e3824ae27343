//! A sample as stored in a `.fsd` file: 40 bytes, little-endian, no padding.
//!
//! | bytes | field |
//! |---|---|
//! | 0–23 | [`PackedBoard`] |
//! | 24–27 | game number, from 0, in file order |
//! | 28–29 | ply |
//! | 30–31 | move: bits 0–5 from, 6–11 to, 12–14 promotion (0 none, 1 knight … 4 queen); king takes rook: castling |
//! | 32–33 | score from the side to move's point of view, in the file's unit; −32768 none |
//! | 34 | game result from the side to move's point of view: 0 loss, 1 draw, 2 win, 255 unknown |
//! | 35 | rule-50 counter in plies |
//! | 36 | bit 0 side to move (1 = Black); bits 1–4 castling rights, in the order K, Q, k, q |
//! | 37 | en passant file 0–7, 255 none |
//! | 38–39 | castling rights of Chess960; zero where those of bits 1–4 are of standard chess |
//!
//! Rights are of standard chess if the king is on the e-file and the rook in the corner. If any right of a position is
//! not, bytes 38–39 hold all of them, four bits each, the lowest first, in the order K, Q, k, q: 8 + the rook's file, or
//! 0 without the right. Bits 1–4 of byte 36 say in either case which there are.

use std::num::NonZeroU32;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, File, FromSetup, Move, Position, Rank, Setup, Square};
use thiserror::Error;

use crate::chess::{PackedBoard, PackedBoardError, PackedMove, PieceCode};
use crate::units::Ply;

mod castling;
mod compact;

pub(super) use castling::{castling_rooks, chess960_rights};
pub use compact::CompactRecord;

/// The result of a game for one side.
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

    /// The result in PGN notation; `self` is White's view.
    #[must_use]
    pub const fn pgn(self) -> &'static str {
        match self {
            GameResult::Win => "1-0",
            GameResult::Draw => "1/2-1/2",
            GameResult::Loss => "0-1",
        }
    }

    /// 0, 0.5 or 1.
    #[must_use]
    pub const fn points(self) -> f32 {
        self as u8 as f32 / 2.0
    }
}

/// A position with its move, score and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub position: Chess,
    /// Number of the position's game.
    pub game: u32,
    pub ply: Ply,
    /// The move played, or the engine's choice.
    pub mv: Option<Move>,
    /// From the side to move's point of view, in the file's unit.
    pub score: Option<i16>,
    /// From the side to move's point of view.
    pub result: Option<GameResult>,
}

/// The fields of a record that describe its position.
#[derive(Copy, Clone, Debug)]
pub(super) struct PositionFields {
    pub board: PackedBoard,
    pub turn: Color,
    /// Bits 0–3: K, Q, k, q.
    pub castling: u8,
    /// Bytes 38–39 of the record.
    pub chess960_rights: u16,
    pub ep_file: Option<File>,
    pub rule50: u8,
    pub ply: Ply,
}

/// The 40 bytes of a sample, laid out as in the module's table.
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
    chess960_rights: [u8; 2],
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
    #[error("byte {offset} of the record is {value}, which is not a valid value")]
    Field { offset: usize, value: u8 },
}

const NO_SCORE: i16 = i16::MIN;
const NO_RESULT: u8 = 255;
const NO_FILE: u8 = 255;

impl Record {
    pub const BYTES: usize = 40;

    /// # Errors
    /// When more than 32 pieces stand on the board.
    pub fn pack(sample: &Sample) -> Result<Record, RecordError> {
        Record::of(&sample.position, sample.game, sample.ply, sample.mv, sample.score, sample.result)
    }

    /// As [`Record::pack`], from the parts of a sample.
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
        PackedBoard::fits(position.board())?;
        let flags = u8::from(position.turn().is_black()) | castling::rights(position) << 1;
        Ok(Record {
            board: PackedBoard::of(position.board()),
            game: game.to_le_bytes(),
            ply: ply.0.to_le_bytes(),
            mv: mv.map_or(PackedMove::NONE, PackedMove::of).bits().to_le_bytes(),
            score: score.unwrap_or(NO_SCORE).to_le_bytes(),
            result: result.map_or(NO_RESULT, |result| result as u8),
            rule50: position.halfmoves().min(255) as u8,
            flags,
            ep_file: position.ep_square(EnPassantMode::Legal).map_or(NO_FILE, |square| square.file() as u8),
            chess960_rights: chess960_rights(position).to_le_bytes(),
        })
    }

    /// # Errors
    /// When the position or the move is illegal.
    pub fn unpack(&self) -> Result<Sample, RecordError> {
        let position = self.position()?;
        let mv = match self.packed_move() {
            None => None,
            Some(packed) => Some(packed.in_position(&position).ok_or_else(|| self.no_such_move())?),
        };
        Ok(Sample { position, game: self.game(), ply: self.ply(), mv, score: self.score(), result: self.result() })
    }

    /// A record from its fields. It is put together in five words: a decoder that stored its bytes one by one would
    /// make the CPU wait for them.
    #[inline(always)]
    pub(super) fn from_fields(
        fields: PositionFields,
        game: u32,
        mv: Option<PackedMove>,
        score: Option<i16>,
        result: Option<GameResult>,
    ) -> Record {
        let codes = fields.board.codes();
        let mv = mv.unwrap_or(PackedMove::NONE).bits();
        let score = score.unwrap_or(NO_SCORE).cast_unsigned();
        let result = result.map_or(NO_RESULT, |result| result as u8);
        let flags = u8::from(fields.turn.is_black()) | fields.castling << 1;
        let ep_file = fields.ep_file.map_or(NO_FILE, |file| file as u8);
        let place = u64::from(game) | u64::from(fields.ply.0) << 32 | u64::from(mv) << 48;
        let values = u64::from(score)
            | u64::from(result) << 16
            | u64::from(fields.rule50) << 24
            | u64::from(flags) << 32
            | u64::from(ep_file) << 40
            | u64::from(fields.chess960_rights) << 48;
        let words = [fields.board.occupancy(), codes as u64, (codes >> 64) as u64, place, values];
        bytemuck::cast(words.map(u64::to_le))
    }

    /// Checks that position and move are legal and that the record is encoded as [`Record::pack`] does.
    ///
    /// # Errors
    /// As [`Record::unpack`]; otherwise names the first byte that differs.
    pub fn check(&self) -> Result<(), RecordError> {
        let proper = Record::pack(&self.unpack()?)?;
        let found = bytemuck::bytes_of(self);
        let proper = bytemuck::bytes_of(&proper);
        match found.iter().zip(proper).position(|(found, proper)| found != proper) {
            Some(offset) => Err(RecordError::Field { offset, value: found[offset] }),
            None => Ok(()),
        }
    }

    #[must_use]
    pub const fn with_game(mut self, game: u32) -> Record {
        self.game = game.to_le_bytes();
        self
    }

    #[must_use]
    pub fn with_score(mut self, score: Option<i16>) -> Record {
        self.set_score(score);
        self
    }

    /// [`Record::with_score`] in place.
    pub fn set_score(&mut self, score: Option<i16>) {
        self.score = score.unwrap_or(NO_SCORE).to_le_bytes();
    }

    #[must_use]
    pub fn with_result(mut self, result: Option<GameResult>) -> Record {
        self.result = result.map_or(NO_RESULT, |result| result as u8);
        self
    }

    /// The position, validated.
    ///
    /// # Errors
    /// When the position is illegal.
    pub fn position(&self) -> Result<Chess, RecordError> {
        let mut setup = Setup::empty();
        setup.board = self.board.unpack()?;
        setup.turn = self.turn();
        for (right, rook) in self.castling_rooks().into_iter().enumerate() {
            if self.castling() >> right & 1 != 0 {
                setup.castling_rights.add(rook);
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
        let mode = CastlingMode::from_chess960(self.chess960_rights() != 0);
        Chess::from_setup(setup, mode).map_err(|error| RecordError::Illegal(error.to_string()))
    }

    /// The rooks of castling rights in the order K, Q, k, q, whether or not the rights are there.
    #[must_use]
    pub(in crate::data) fn castling_rooks(&self) -> [Square; 4] {
        castling_rooks(self.chess960_rights())
    }

    /// Bytes 38–39: castling rights of Chess960; 0 if all rights are of standard chess.
    #[must_use]
    pub(in crate::data) const fn chess960_rights(&self) -> u16 {
        u16::from_le_bytes(self.chess960_rights)
    }

    /// Whether the position has castling rights that standard chess does not know.
    #[must_use]
    pub const fn has_chess960_rights(&self) -> bool {
        self.chess960_rights() != 0
    }

    /// Whether the move, if it is legal, castles: it goes to a square of an own piece.
    #[must_use]
    pub fn castles(&self) -> bool {
        let Some(mv) = self.packed_move() else { return false };
        let own = |code: PieceCode| code.piece().is_some_and(|piece| piece.color == self.turn());
        self.board.pieces().any(|(square, code)| square == mv.to() && own(code))
    }

    /// The same sample without castling rights.
    #[must_use]
    pub(in crate::data) const fn without_castling(self) -> Record {
        Record { flags: self.flags & 1, chess960_rights: [0; 2], ..self }
    }

    /// A hash of board, side to move, castling rights and en passant square, and of the move if asked for.
    #[must_use]
    pub(crate) fn key(&self, with_move: bool) -> u64 {
        let mut bytes = [0u8; 30];
        bytes[..24].copy_from_slice(bytemuck::bytes_of(&self.board));
        bytes[24] = self.flags;
        bytes[25] = self.ep_file;
        if with_move {
            bytes[26..28].copy_from_slice(&self.mv);
        }
        bytes[28..].copy_from_slice(&self.chess960_rights);
        let hashed = if self.has_chess960_rights() { &bytes[..] } else { &bytes[..28] };
        let hash = blake3::hash(hashed);
        u64::from_le_bytes(std::array::from_fn(|i| hash.as_bytes()[i]))
    }

    #[must_use]
    pub const fn board(&self) -> &PackedBoard {
        &self.board
    }

    /// The fields on which a search depends: board, side to move, castling rights, en passant and rule-50 counter.
    #[must_use]
    pub fn search_key(&self) -> ([u8; 24], [u8; 5]) {
        let [low, high] = self.chess960_rights;
        (bytemuck::cast(self.board), [self.flags, self.ep_file, self.rule50, low, high])
    }

    pub(crate) fn set_move(&mut self, mv: PackedMove) {
        self.mv = mv.bits().to_le_bytes();
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

    /// Castling rights, bits 0–3: K, Q, k, q.
    #[must_use]
    pub const fn castling(&self) -> u8 {
        self.flags >> 1 & 15
    }

    /// File of the pawn that can be captured en passant.
    #[must_use]
    pub const fn ep_file(&self) -> Option<File> {
        match self.ep_file {
            file @ 0..=7 => Some(File::new(file as u32)),
            _ => None,
        }
    }

    /// Plies since the last pawn move or capture, at most 255.
    #[must_use]
    pub const fn rule50(&self) -> u8 {
        self.rule50
    }

    /// Whether the record has a move.
    #[must_use]
    pub const fn has_move(&self) -> bool {
        u16::from_le_bytes(self.mv) != 0
    }

    /// The record's move.
    #[must_use]
    pub const fn packed_move(&self) -> Option<PackedMove> {
        if self.has_move() { Some(PackedMove::from_bits(u16::from_le_bytes(self.mv))) } else { None }
    }

    /// Whether `mv`, a legal move of the position, is the record's move.
    #[must_use]
    pub fn is_move(&self, mv: Move) -> bool {
        self.packed_move() == Some(PackedMove::of(mv))
    }

    /// The error for a record whose move is not legal in its position.
    #[must_use]
    pub fn no_such_move(&self) -> RecordError {
        RecordError::Move(PackedMove::from_bits(u16::from_le_bytes(self.mv)).to_string())
    }

    /// From the side to move's point of view, in the file's unit.
    #[must_use]
    pub const fn score(&self) -> Option<i16> {
        match i16::from_le_bytes(self.score) {
            NO_SCORE => None,
            score => Some(score),
        }
    }

    /// From the side to move's point of view.
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

#[cfg(test)]
mod tests;
