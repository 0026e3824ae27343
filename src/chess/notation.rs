//! Positions as FEN and moves in UCI notation.

use shakmaty::fen::{Fen, ParseFenError};
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, File, Move, Position, PositionError};
use thiserror::Error;

use super::castling_mode;

/// Why a text is not the FEN of a legal position.
#[derive(Debug, Error)]
pub enum FenError {
    #[error("{fen:?} is not a FEN: {cause}")]
    Syntax { fen: String, cause: ParseFenError },
    #[error("{fen:?} is not a legal position: {cause}")]
    Position { fen: String, cause: Box<PositionError<Chess>> },
}

/// The legal position of a FEN that someone wrote, of standard chess or Chess960: castling rights are read as X-FEN and
/// Shredder-FEN. Many programs name an en passant square after every pawn's double step, even one where no pawn stands;
/// a square on which no capture is possible is dropped.
///
/// # Errors
/// When the position is legal neither in standard chess nor in Chess960: the reason in standard chess.
pub fn fen_position(fen: &Fen) -> Result<Chess, Box<PositionError<Chess>>> {
    let read = |mode: CastlingMode| {
        fen.clone().into_position::<Chess>(mode).or_else(PositionError::ignore_invalid_ep_square).map_err(Box::new)
    };
    read(CastlingMode::Standard).or_else(|error| read(CastlingMode::Chess960).map_err(|_| error))
}

/// The FEN of a position; it has an en passant square only where a capture is legal. Castling rights of Chess960 are
/// written as the files of the rooks (Shredder-FEN), those of standard chess as everywhere.
#[must_use]
pub fn fen_of(position: &Chess) -> String {
    let fen = Fen::from_position(position, EnPassantMode::Legal).to_string();
    if castling_mode(position).is_standard() {
        return fen;
    }
    let mut fields: Vec<&str> = fen.split(' ').collect();
    let rights = shredder_rights(position);
    if let Some(field) = fields.get_mut(2) {
        *field = &rights;
    }
    fields.join(" ")
}

/// The files of the rooks that may castle, White's in capitals first, from file h to file a.
fn shredder_rights(position: &Chess) -> String {
    let mut rights = String::new();
    let rooks = position.castles().castling_rights();
    for color in Color::ALL {
        for file in File::ALL.into_iter().rev() {
            if rooks.contains(shakmaty::Square::from_coords(file, color.backrank())) {
                rights.push(if color.is_white() { file.upper_char() } else { file.char() });
            }
        }
    }
    rights
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

/// A move in UCI notation. Castling is e1g1 where king and rook stand as in standard chess, else king takes rook; either
/// is read by [`legal_move`].
#[must_use]
pub fn uci_move(mv: Move) -> String {
    let is_standard = match mv {
        Move::Castle { king, rook } => king.file() == File::E && matches!(rook.file(), File::A | File::H),
        _ => true,
    };
    UciMove::from_move(mv, CastlingMode::from_standard(is_standard)).to_string()
}

/// A move in UCI notation as engines write and read it when their option `UCI_Chess960` is set: castling as king takes
/// rook.
#[must_use]
pub fn uci_move_chess960(mv: Move) -> String {
    UciMove::from_move(mv, CastlingMode::Chess960).to_string()
}

/// Parses a legal move in UCI notation; castling as king takes rook or, where king and rook stand as in standard chess,
/// as e1g1. Any other step of the king is a step.
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
    fn rights_of_chess960() {
        let check = |fen: &str, expected: &str| {
            let position = parse_fen(fen).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(fen_of(&position), expected);
            assert_eq!(parse_fen(expected).expect("written"), position);
        };
        // X-FEN and Shredder-FEN of one position.
        let start = "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR";
        check(&format!("{start} w KQkq - 0 1"), &format!("{start} w HFhf - 0 1"));
        check(&format!("{start} w HFhf - 0 1"), &format!("{start} w HFhf - 0 1"));
        check(&format!("{start} b fHFh - 0 1"), &format!("{start} b HFhf - 0 1"));
        let double = "nqrbknbr/ppppp1pp/5p2/8/6P1/8/PPPPPP1P/RKNNBBQR";
        check(&format!("{double} w KQkq e6 0 2"), &format!("{double} w HAhc - 0 2"));
        // An inner rook: K would be the outer one.
        check("4k3/8/8/8/8/8/8/4KR1R w F - 0 1", "4k3/8/8/8/8/8/8/4KR1R w F - 0 1");
        check("4k3/8/8/8/8/8/8/4KR1R w K - 0 1", "4k3/8/8/8/8/8/8/4KR1R w K - 0 1");
        // Standard rights in Shredder's letters are no Chess960, nor are those that a game of Chess960 has left.
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR";
        check(&format!("{start} w HAha - 0 1"), &format!("{start} w KQkq - 0 1"));
        check("1rk5/8/8/8/8/8/8/R3K2R w KQq - 0 1", "1rk5/8/8/8/8/8/8/R3K2R w HAb - 0 1");
        let mut position = parse_fen("1rk5/8/8/8/8/8/8/R3K2R b KQq - 0 1").expect("legal");
        position.play_unchecked(legal_move("c8d7", &position).expect("legal"));
        assert_eq!(fen_of(&position), "1r6/3k4/8/8/8/8/8/R3K2R w KQ - 1 2");
        let refused = |fen: &str| assert!(parse_fen(fen).expect_err(fen).to_string().contains("invalid castling"));
        refused("4k3/8/8/8/8/8/8/4K3 w K - 0 1");
        refused("4k3/8/8/8/8/8/8/R2K4 w C - 0 1");
    }

    #[test]
    fn castling_takes_the_own_rook() {
        let check = |fen: &str, text: &str, castles: bool, written: &str, chess960: &str| {
            let position = parse_fen(fen).expect("legal");
            let mv = legal_move(text, &position).unwrap_or_else(|| panic!("{text} in {fen}"));
            assert_eq!((mv.is_castle(), uci_move(mv).as_str()), (castles, written), "{text} in {fen}");
            assert_eq!(uci_move_chess960(mv), chess960);
            assert_eq!(legal_move(written, &position), Some(mv));
        };
        check("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", true, "e1g1", "e1h1");
        check("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1h1", true, "e1g1", "e1h1");
        // A step to the square where castling would put the king.
        check("4k3/8/8/8/8/8/8/5K1R w K - 0 1", "f1g1", false, "f1g1", "f1g1");
        check("4k3/8/8/8/8/8/8/5K1R w K - 0 1", "f1h1", true, "f1h1", "f1h1");
        check("4k3/8/8/8/8/8/8/4K1R1 w K - 0 1", "e1g1", true, "e1g1", "e1g1");
        check("4k3/8/8/8/8/8/8/1R3K2 w Q - 0 1", "f1b1", true, "f1b1", "f1b1");
        let position = parse_fen("4k3/8/8/8/8/8/8/1R2K3 w Q - 0 1").expect("legal");
        assert_eq!(legal_move("e1c1", &position), None);
    }
}
