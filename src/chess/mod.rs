//! Chess for NNUE on top of shakmaty's rules: perspectives, orientations, packed boards, the change that a move makes
//! on the board, games with their repetitions, notation, and Chess960.

mod change;
mod chess960;
mod game;
mod mobility;
mod notation;
mod packed;
mod packed_move;
mod perspective;
mod piece_board;
mod random_game;

/// Castling moves of Chess960, for tests.
#[cfg(test)]
#[path = "../../tests/common/castlings.rs"]
pub(crate) mod castlings;

pub use change::BoardChange;
pub use chess960::{CHESS960_STARTS, castling_mode, chess960_start};
pub use game::{Game, GameError};
pub use mobility::mobility;
pub use notation::{FenError, fen_of, fen_position, legal_move, parse_fen, uci_move, uci_move_chess960};
pub use packed::{PackedBoard, PackedBoardError, PieceCode};
pub use packed_move::PackedMove;
pub use perspective::{BlackOrientation, ByPerspective, Mirror, Orientation, Perspective};
pub use piece_board::PieceBoard;
pub use shakmaty::{Bitboard, Board, Chess, Color, File, Move, Piece, Rank, Role, Square};

#[cfg(feature = "report")]
pub(crate) use game::key_of;
pub(crate) use game::{key_after, key_after_null, key_after_pieces};
#[cfg(feature = "report")]
pub(crate) use notation::start_fen;
pub(crate) use random_game::random_move;
#[cfg(test)]
pub(crate) use random_game::{random_game, random_game_from, start_of_each_kind};

/// Whether two squares are equal or adjacent, so that the kings cannot occupy them.
#[must_use]
pub const fn too_close(a: u32, b: u32) -> bool {
    (a & 7).abs_diff(b & 7) <= 1 && (a >> 3).abs_diff(b >> 3) <= 1
}
