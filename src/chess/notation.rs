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
    Illegal { fen: String, cause: Box<PositionError<Chess>> },
}

/// The FEN of a position; it has an en passant square only where a capture is legal.
#[must_use]
pub fn fen_of(position: &Chess) -> String {
    Fen::from_position(position, EnPassantMode::Legal).to_string()
}

/// Parses the FEN of a legal position.
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
    let parsed: Fen = text.parse().map_err(|cause| FenError::Syntax { fen: text.into(), cause })?;
    let position = parsed.into_position(CastlingMode::Standard);
    position.map_err(|cause| FenError::Illegal { fen: text.into(), cause: Box::new(cause) })
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
