//! Writes samples as games: consecutive samples of a game become one game of the file, as far as each is the position
//! after the move before.

use super::{CASTLING, EN_PASSANT, PROMOTION};
use crate::chess::PackedMove;
use crate::data::formats::binpack::{BitInstructions, BitTask, InvalidSample, Position, dispatch};
use crate::data::formats::format_table::SampleEncoder;
use crate::data::formats::packed_position::{self, white_result, white_score};
use crate::data::{GameResult, Record, RecordError};

/// Encodes games; the last one is open until the sample after it is known.
#[derive(Debug, Default)]
pub struct GameEncoder {
    open: Option<PendingGame>,
    samples: u64,
    split_games: u64,
}

/// A game that may go on.
#[derive(Debug)]
struct PendingGame {
    /// Number of the game among the samples.
    game: u32,
    /// White's view.
    result: GameResult,
    /// The position after the last move.
    position: Position,
}

impl PendingGame {
    /// Whether a sample is the next one of the game.
    #[inline(always)]
    fn continues_with(&self, record: &Record, bits: impl BitInstructions) -> bool {
        let here = || {
            let fields = self.position.fields(bits);
            Record::from_fields(fields, self.game, record.packed_move(), record.score(), record.result())
        };
        record.game() == self.game && white_result(record) == self.result && here() == *record
    }
}

impl SampleEncoder for GameEncoder {
    fn push(&mut self, records: &[Record], out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        dispatch(AppendMoves { encoder: self, records, out })
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        self.close(out);
        Ok(())
    }

    fn split_games(&self) -> u64 {
        self.split_games
    }
}

/// A call of [`SampleEncoder::push`].
struct AppendMoves<'a> {
    encoder: &'a mut GameEncoder,
    records: &'a [Record],
    out: &'a mut Vec<u8>,
}

impl BitTask for AppendMoves<'_> {
    type Output = Result<(), InvalidSample>;
    const PACKS_CODES: bool = true;

    #[inline(always)]
    fn run(self, bits: impl BitInstructions) -> Result<(), InvalidSample> {
        let AppendMoves { encoder, records, out } = self;
        for record in records {
            encoder.add(record, bits, out).map_err(|problem| InvalidSample { sample: encoder.samples, problem })?;
            encoder.samples += 1;
        }
        Ok(())
    }
}

impl GameEncoder {
    #[inline(always)]
    fn add(&mut self, record: &Record, bits: impl BitInstructions, out: &mut Vec<u8>) -> Result<(), RecordError> {
        let mv = record.packed_move().ok_or_else(|| record.no_such_move())?;
        let game = match &mut self.open {
            Some(game) if game.continues_with(record, bits) => game,
            _ => self.begin(record, out)?,
        };
        if !game.position.allows(mv) {
            return Err(record.no_such_move());
        }
        let [code, score] = [move_code(&game.position, mv), white_score(record).cast_unsigned()];
        out.extend_from_slice(&(u32::from(code) | u32::from(score) << 16).to_le_bytes());
        if game.position.play(mv) { Ok(()) } else { Err(record.no_such_move()) }
    }

    /// Ends the game before a sample and begins one with it.
    #[inline(never)]
    fn begin(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<&mut PendingGame, RecordError> {
        self.split_games += u64::from(self.open.as_ref().is_some_and(|last| last.game == record.game()));
        self.close(out);
        let result = white_result(record);
        let position = Position::new(&record.position()?, record.ply())?;
        out.extend(packed_position::write(record, 0, result));
        Ok(self.open.insert(PendingGame { game: record.game(), result, position }))
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.extend([0; super::PAIR_BYTES]);
        }
    }
}

/// The code of a pseudo-legal move.
#[inline(always)]
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
