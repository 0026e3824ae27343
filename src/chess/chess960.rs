//! Chess960: its start positions, and which positions need its rules of castling.

use shakmaty::{Bitboard, CastlingMode, Chess, Color, File, FromSetup, Piece, Position, Role, Setup, Square};

/// Start positions of one side.
pub const CHESS960_STARTS: u32 = 960;

/// The start position in which White's and Black's back ranks have these numbers, by Scharnagl's numbering; 518 is
/// standard chess. Different numbers make it one of double Chess960. `None` if a number is 960 or larger.
///
/// ```
/// use fsbench::chess::{Chess, chess960_start, fen_of};
///
/// assert_eq!(chess960_start(518, 518), Some(Chess::default()));
/// let start = chess960_start(0, 959).expect("numbers below 960");
/// assert_eq!(fen_of(&start), "rkrnnqbb/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFca - 0 1");
/// ```
#[must_use]
pub fn chess960_start(white: u32, black: u32) -> Option<Chess> {
    let mut setup = Setup::empty();
    for (color, number) in [(Color::White, white), (Color::Black, black)] {
        for (file, role) in File::ALL.into_iter().zip(back_rank(number)?) {
            let home = Square::from_coords(file, color.backrank());
            setup.board.set_piece_at(home, Piece { color, role });
            setup
                .board
                .set_piece_at(Square::from_coords(file, color.relative_rank(shakmaty::Rank::Second)), color.pawn());
            if role == Role::Rook {
                setup.castling_rights.add(home);
            }
        }
    }
    let is_standard = white == STANDARD && black == STANDARD;
    Chess::from_setup(setup, CastlingMode::from_standard(is_standard)).ok()
}

/// The number of standard chess.
const STANDARD: u32 = 518;

/// The pieces of a start position from file a to file h.
fn back_rank(number: u32) -> Option<[Role; 8]> {
    /// The places of the knights among the five files that bishops and queen leave.
    const KNIGHTS: [[usize; 2]; 10] = [[0, 1], [0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]];
    if number >= CHESS960_STARTS {
        return None;
    }
    let number = number as usize;
    let mut rank = [None; 8];
    rank[2 * (number % 4) + 1] = Some(Role::Bishop);
    rank[2 * (number / 4 % 4)] = Some(Role::Bishop);
    let knights = KNIGHTS.get(number / 96)?;
    let mut place = |nth: usize, role: Role| {
        let mut free = rank.iter_mut().filter(|role| role.is_none());
        free.nth(nth).map(|free| *free = Some(role))
    };
    place(number / 16 % 6, Role::Queen)?;
    // The later knight first, so that the earlier one's place still counts from the same file.
    place(knights[1], Role::Knight)?;
    place(knights[0], Role::Knight)?;
    place(0, Role::Rook)?;
    place(0, Role::King)?;
    place(0, Role::Rook)?;
    Some(rank.map(|role| role.unwrap_or(Role::Pawn)))
}

/// The rules by which the castling rights of a position are to be understood: those of standard chess if kings with
/// rights are on the e-file and their rooks in the corners.
///
/// A position of a game of Chess960 may need no more than standard rules, since rights are lost.
#[must_use]
pub fn castling_mode(position: &Chess) -> CastlingMode {
    let castles = position.castles();
    let rights = castles.castling_rights();
    // Rights that were read by standard rules are standard.
    if castles.mode() == CastlingMode::Standard || rights.is_empty() {
        return CastlingMode::Standard;
    }
    let is_home = |color: Color| {
        !castles.has_color(color) || position.board().king_of(color).is_some_and(|king| king.file() == File::E)
    };
    let standard = (rights & !Bitboard::CORNERS).is_empty() && is_home(Color::White) && is_home(Color::Black);
    CastlingMode::from_standard(standard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_number_is_another_start_position() {
        let mut ranks = HashSet::new();
        for number in 0..CHESS960_STARTS {
            let start = chess960_start(number, number).expect("legal");
            let rank = back_rank(number).expect("a number below 960");
            let of = |role: Role| -> Vec<usize> { (0..8).filter(|file| rank[*file] == role).collect() };
            let [bishops, rooks, kings] = [Role::Bishop, Role::Rook, Role::King].map(of);
            assert!(bishops[0] % 2 != bishops[1] % 2 && rooks[0] < kings[0] && kings[0] < rooks[1], "{number}");
            assert_eq!((of(Role::Queen).len(), of(Role::Knight).len()), (1, 2), "{number}");
            assert_eq!(castling_mode(&start).is_standard(), kings[0] == 4 && rooks == [0, 7], "{number}");
            ranks.insert(rank);
        }
        assert_eq!(ranks.len(), 960);
        assert!(chess960_start(960, 0).is_none() && chess960_start(0, 960).is_none());
    }
}
