//! Writes a game as PGN.

use std::fmt::Write;

use shakmaty::san::SanPlus;
use shakmaty::{Chess, Move, Position};

use crate::chess::{castling_mode, fen_of};
use crate::data::GameResult;

/// A game being written as PGN: tags first, then moves and comments.
///
/// Writing to a string cannot fail, so the results of `write!` are ignored.
pub struct PgnWriter {
    text: String,
    /// `None` while tags are written.
    position: Option<Chess>,
    /// Whether the last move shows whose move is next; else Black's next move gets its number.
    number_is_known: bool,
}

impl PgnWriter {
    pub fn new() -> PgnWriter {
        PgnWriter { text: String::with_capacity(2048), position: None, number_is_known: false }
    }

    pub fn tag(&mut self, name: &str, value: &str) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(self.text, "[{name} \"{value}\"]");
    }

    /// The tags of the start position; none for the initial position. One of Chess960 makes the game that variant's.
    pub fn start_tags(&mut self, start: &Chess) {
        if castling_mode(start).is_chess960() {
            self.tag("Variant", "Chess960");
        }
        if *start != Chess::default() {
            self.tag("SetUp", "1");
            self.tag("FEN", &fen_of(start));
        }
    }

    /// Ends the tags; the moves begin at `start`.
    pub fn begin_moves(&mut self, start: &Chess) {
        self.text.push('\n');
        self.position = Some(start.clone());
    }

    /// Writes a legal move.
    pub fn play(&mut self, mv: Move) {
        let position = self.position.get_or_insert_default();
        let number = position.fullmoves();
        let _ = match (position.turn().is_white(), self.number_is_known) {
            (true, _) => write!(self.text, "{number}. "),
            (false, true) => Ok(()),
            (false, false) => write!(self.text, "{number}... "),
        };
        let _ = write!(self.text, "{} ", SanPlus::from_move_and_play_unchecked(position, mv));
        self.number_is_known = true;
    }

    /// Writes a comment, which must not contain a closing brace.
    pub fn comment(&mut self, text: &str) {
        let _ = write!(self.text, "{{{text}}} ");
    }

    /// Shows the number of Black's next move, as the PGN standard asks after a comment.
    pub fn repeat_number(&mut self) {
        self.number_is_known = false;
    }

    /// Ends the game; returns the whole text.
    pub fn finish(self, result: GameResult) -> String {
        self.text + result.pgn() + "\n\n"
    }
}
