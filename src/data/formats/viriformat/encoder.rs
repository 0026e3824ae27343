//! Writes samples as games: consecutive samples of a game become one game of the file, as far as each is the position
//! after the move before.

use super::{CASTLING, EN_PASSANT, PROMOTION};
use crate::chess::PackedMove;
use crate::data::formats::binpack::{InvalidSample, Portable, Position};
use crate::data::formats::format_table::SampleEncoder;
use crate::data::formats::packed_position::{self, white_result, white_score};
use crate::data::{GameResult, Record, RecordError};

/// Encodes games; the last one is open until the sample after it is known.
#[derive(Debug, Default)]
pub struct GameEncoder {
    open: Option<OpenGame>,
    samples: u64,
    split_games: u64,
}

/// A game that may go on.
#[derive(Debug)]
struct OpenGame {
    /// Number of the game among the samples.
    game: u32,
    /// White's view.
    result: GameResult,
    /// The position after the last move.
    position: Position,
}

impl OpenGame {
    /// Whether a sample is the next one of the game.
    fn continues_with(&self, record: &Record) -> bool {
        record.game() == self.game
            && white_result(record) == self.result
            && Record::from_fields(
                self.position.fields(Portable),
                self.game,
                record.packed_move(),
                record.score(),
                record.result(),
            ) == *record
    }
}

impl SampleEncoder for GameEncoder {
    fn push(&mut self, records: &[Record], out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        for record in records {
            self.add(record, out).map_err(|problem| InvalidSample { sample: self.samples, problem })?;
            self.samples += 1;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        self.close(out);
        Ok(())
    }

    fn split_games(&self) -> u64 {
        self.split_games
    }
}

impl GameEncoder {
    fn add(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), RecordError> {
        let mv = record.packed_move().ok_or_else(|| record.no_such_move())?;
        let mut game = match self.open.take() {
            Some(game) if game.continues_with(record) => game,
            last => {
                self.split_games += u64::from(last.as_ref().is_some_and(|last| last.game == record.game()));
                self.open = last;
                self.close(out);
                let result = white_result(record);
                let position = Position::new(&record.position()?, record.ply())?;
                out.extend(packed_position::write(record, 0, result));
                OpenGame { game: record.game(), result, position }
            }
        };
        if !game.position.allows(mv) {
            return Err(record.no_such_move());
        }
        out.extend(move_code(&game.position, mv).to_le_bytes());
        out.extend(white_score(record).to_le_bytes());
        if !game.position.play(mv) {
            return Err(record.no_such_move());
        }
        self.open = Some(game);
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.extend([0; super::PAIR_BYTES]);
        }
    }
}

/// The code of a pseudo-legal move.
fn move_code(position: &Position, mv: PackedMove) -> u16 {
    let promotion = mv.promotion().map_or(0, |role| role as u16 - shakmaty::Role::Knight as u16);
    let kind = if mv.promotion().is_some() {
        PROMOTION
    } else if position.is_castling(mv) {
        CASTLING
    } else if position.is_en_passant(mv) {
        EN_PASSANT
    } else {
        0
    };
    mv.from() as u16 | (mv.to() as u16) << 6 | promotion << 12 | kind << 14
}
