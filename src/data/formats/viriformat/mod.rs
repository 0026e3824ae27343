//! viriformat: games one after another. A game is a position ([`packed_position`](super::packed_position)) with the
//! game's result, then four bytes per move, then four zero bytes:
//!
//! | bytes of a move | field |
//! |---|---|
//! | 0–1 | from and to, 6 bits each (castling as king takes rook); promotion, 2 bits (N B R Q); kind, 2 bits: 1 en passant, 2 castling, 3 promotion |
//! | 2–3 | score of the position before the move, White's view |
//!
//! Eight zero bytes in place of an occupancy begin an extension record: a number and a length, 16 bits each, the content,
//! four zero bytes. Extension records are skipped.
//!
//! Nothing marks where a game begins. A game with an impossible move is therefore left out as a whole, and the next one
//! begins where a position with legal moves after it stands (`recovery.rs`).

mod decoder;
mod encoder;
mod recovery;
#[cfg(test)]
mod tests;

use super::ScoreUnit;
use super::format_table::{FormatTable, GameRule};
use super::omissions::{OmissionCounter, OmittedField, OmittedSample};
use crate::data::Record;

pub const FORMAT: FormatTable = FormatTable {
    name: "viriformat",
    endings: &["vf", "viri", "viriformat"],
    recognises: recovery::begins_with_game,
    is_text: false,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::Recorded,
    needs_result: true,
    read: Some(decoder::read),
    adapt,
    encoder: Some(|| Box::new(encoder::GameEncoder::default())),
};

/// Bytes of a move with its score, and of the zeros at a game's end.
const PAIR_BYTES: usize = 4;
/// A longer game is taken for damage.
const MAX_GAME_BYTES: usize = super::packed_position::BYTES + PAIR_BYTES * (1 << 16);

const EN_PASSANT: u16 = 1;
const CASTLING: u16 = 2;
const PROMOTION: u16 = 3;

fn adapt(record: Record, counter: &mut OmissionCounter) -> Option<Record> {
    if record.score().is_none() {
        return counter.omit_sample(OmittedSample::NoScore);
    }
    if !record.has_move() {
        return counter.omit_sample(OmittedSample::NoMove);
    }
    // The ply's parity follows from the side to move.
    counter.omit_field(OmittedField::Ply, record.ply().0 % 2 != u16::from(record.turn().is_black()));
    Some(record)
}
