//! Positions as FEN and moves in UCI notation.

use shakmaty::fen::{Fen, ParseFenError};
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Chess, EnPassantMode, Move, PositionError};
use thiserror::Error;

/// Why a text is not the FEN of a legal position.
#[derive(Debug, Error)]
pub enum FenError {
    #[error("{fen:?} is not a FEN: {cause}")]
    Syntax { fen: String, cause: ParseFenError },
    #[error("{fen:?} is not a legal position: {cause}")]
    Position { fen: String, cause: FenPositionError },
}

/// Why the position of a FEN cannot be used.
#[derive(Debug, Error)]
pub enum FenPositionError {
    #[error("{0}")]
    Illegal(Box<PositionError<Chess>>),
    #[error("its castling rights are those of Chess960, which is not supported")]
    Chess960,
}

/// The legal position of a FEN that someone wrote. Many programs name an en passant square after every pawn's double
/// step, even one where no pawn stands; a square on which no capture is possible is dropped.
///
/// # Errors
/// When the position is not legal in standard chess.
pub fn fen_position(fen: &Fen) -> Result<Chess, FenPositionError> {
    let illegal = match position(fen, CastlingMode::Standard) {
        Ok(position) => return Ok(position),
        Err(cause) => cause,
    };
    let is_chess960 = match position(fen, CastlingMode::Chess960) {
        Ok(_) => true,
        Err(cause) => cause.ignore_too_much_material().is_ok(),
    };
    Err(if is_chess960 { FenPositionError::Chess960 } else { FenPositionError::Illegal(illegal) })
}

/// The legal position of a FEN, without an en passant square that no pawn can take.
fn position(fen: &Fen, mode: CastlingMode) -> Result<Chess, Box<PositionError<Chess>>> {
    fen.clone().into_position::<Chess>(mode).or_else(PositionError::ignore_invalid_ep_square).map_err(Box::new)
}

/// The FEN of a position; it has an en passant square only where a capture is legal.
#[must_use]
pub fn fen_of(position: &Chess) -> String {
    Fen::from_position(position, EnPassantMode::Legal).to_string()
}

/// Parses the FEN of a legal position, as [`fen_position`] takes it; blanks around it do not count.
///
/// ```
/// use fsbench::chess::{Chess, fen_of, parse_fen};
///
/// let fen = fen_of(&Chess::default());
/// assert_eq!(parse_fen(&fen)?, Chess::default());
/// # Ok::<(), fsbench::chess::FenError>(())
/// ```
///
/// # Errors
/// When the text is not a FEN, or its position is not legal.
pub fn parse_fen(text: &str) -> Result<Chess, FenError> {
    let text = text.trim();
    let parsed: Fen = text.parse().map_err(|cause| FenError::Syntax { fen: text.into(), cause })?;
    fen_position(&parsed).map_err(|cause| FenError::Position { fen: text.into(), cause })
}

/// A move in UCI notation; castling as e1g1.
#[must_use]
pub fn uci_move(mv: Move) -> String {
    UciMove::from_move(mv, CastlingMode::Standard).to_string()
}

/// Parses a legal move in UCI notation; castling as e1g1 or king takes rook.
#[must_use]
pub fn legal_move(text: &str, position: &Chess) -> Option<Move> {
    text.parse::<UciMove>().ok()?.to_move(position).ok()
}

/// For serde: the start position of a game as a FEN. Use with `default` and `skip_serializing_if = "is_initial"`, so
/// that the initial position is left out.
#[cfg(feature = "report")]
pub(crate) mod start_fen {
    use super::{Chess, fen_of, parse_fen};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn is_initial(position: &Chess) -> bool {
        *position == Chess::default()
    }

    pub fn serialize<S: Serializer>(position: &Chess, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&fen_of(position))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Chess, D::Error> {
        parse_fen(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_en_passant_squares_are_dropped() {
        let check = |fen: &str, expected: Result<&str, &str>| match (parse_fen(fen), expected) {
            (Ok(position), Ok(expected)) => assert_eq!(fen_of(&position), expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (found, _) => panic!("{fen}: {found:?}"),
        };
        // No pawn behind the square, the wrong side's rank, and no pawn that could capture.
        check("4k3/8/8/8/8/8/4P3/4K3 w - e6 0 1", Ok("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"));
        let start = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR";
        check(&format!("{start} w KQkq e3 0 1"), Ok(&format!("{start} w KQkq - 0 1")));
        check(&format!(" {start} b KQkq e3 0 1\r"), Ok(&format!("{start} b KQkq - 0 1")));
        check("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", Ok("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1"));
        check("4k3/8/8/8/8/8/8/R3K2R w KQkq - 0 1", Err("invalid castling rights"));
        check("4k3/8/8/8/8/8/8/R3K2R w KQkq e6 0 1", Err("invalid castling rights"));
        check("8/8/8/8/8/8/4P3/4K3 w - e6 0 1", Err("missing king"));
        check("4k3/8/8/8/8/8/4P3/9 w - - 0 1", Err("is not a FEN"));
    }

    #[test]
    fn chess960_is_named() {
        let check = |fen: &str| assert!(parse_fen(fen).expect_err("refused").to_string().contains("Chess960"), "{fen}");
        check("bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w KQkq - 0 1");
        check("bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1");
        check("nqrbknbr/ppppp1pp/5p2/8/6P1/8/PPPPPP1P/RKNNBBQR w KQkq - 0 2");
        check("nqrbknbr/ppppp1pp/5p2/8/6P1/8/PPPPPP1P/RKNNBBQR w KQkq e6 0 2");
        // Standard rights in Shredder's letters are no Chess960.
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR";
        assert_eq!(parse_fen(&format!("{start} w HAha - 0 1")).expect("standard"), Chess::default());
    }
}
