//! Formats of other programs that are not read: they are recognised by their content, so that none is taken for another
//! format, and named with a way to go on.

use std::fmt;

use shakmaty::{CastlingMode, Chess, Color, FromSetup, Move, Piece, Position as _, PositionError, Role, Setup, Square};

use super::{bullet, text};
use crate::chess::Bitboard;

/// A format of another program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ForeignFormat {
    Viriformat,
    Marlinformat,
    /// Lines `FEN | score | result`.
    BulletText,
    /// Lines `FEN [result] score`.
    BracketedResult,
    /// Stockfish's `.plain`.
    Plain,
    /// EPD with results in an operation.
    EpdResults,
    /// FENs or EPD without scores or results.
    Positions,
    /// c-chess-cli's `FEN,Eval,Result`.
    CChessCli,
}

impl ForeignFormat {
    const fn name(self) -> &'static str {
        match self {
            ForeignFormat::Viriformat => "viriformat",
            ForeignFormat::Marlinformat => "marlinformat",
            ForeignFormat::BulletText => "bullet's text, `FEN | score | result`",
            ForeignFormat::BracketedResult => "text of lines `FEN [result] score`",
            ForeignFormat::Plain => "Stockfish's .plain format",
            ForeignFormat::EpdResults => "EPD with results",
            ForeignFormat::Positions => "a list of positions without scores (FEN or EPD)",
            ForeignFormat::CChessCli => "c-chess-cli's `FEN,Eval,Result`",
        }
    }

    /// How its data can be used.
    const fn remedy(self) -> &'static str {
        match self {
            ForeignFormat::Viriformat => "convert it to bulletformat with `bullet-utils viribinpack splat`",
            ForeignFormat::Marlinformat | ForeignFormat::BulletText => {
                "convert it to bulletformat with `bullet-utils convert`"
            }
            ForeignFormat::Plain => "convert it to a .binpack with the `convert` of Stockfish's tools",
            ForeignFormat::Positions => {
                "write two commas behind every FEN to have its positions as samples without a score and a move"
            }
            ForeignFormat::BracketedResult | ForeignFormat::EpdResults | ForeignFormat::CChessCli => {
                "rewrite its lines as `FEN | score | result`, both from White's point of view, and convert that to \
                 bulletformat with `bullet-utils convert`"
            }
        }
    }
}

impl fmt::Display for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, which fsbench does not read; {}", self.name(), self.remedy())
    }
}

/// Lines that are inspected.
const LINES: usize = 32;

/// The foreign format of a text by its first lines, none of which is one of our samples.
pub fn of_text(beginning: &[u8]) -> Option<ForeignFormat> {
    let lines = || beginning.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES);
    if lines().any(text::is_sample) {
        return None;
    }
    lines().find_map(of_line)
}

/// The foreign format of a line.
pub fn of_line(line: &[u8]) -> Option<ForeignFormat> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    let line = std::str::from_utf8(line).ok()?;
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    if let [fen, _, result] = columns[..]
        && fen.eq_ignore_ascii_case("fen")
        && result.eq_ignore_ascii_case("result")
    {
        return Some(ForeignFormat::CChessCli);
    }
    if line.strip_prefix("fen ").is_some_and(begins_with_board) {
        return Some(ForeignFormat::Plain);
    }
    if !begins_with_board(line) {
        return None;
    }
    if line.contains('|') {
        return Some(ForeignFormat::BulletText);
    }
    if let [_, score, result] = columns[..] {
        let is_result = ["0", "1", "2", "-1", "0.0", "0.5", "1.0"].contains(&result);
        return (is_result && score.parse::<f32>().is_ok()).then_some(ForeignFormat::CChessCli);
    }
    if line.contains('[') {
        return Some(ForeignFormat::BracketedResult);
    }
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if columns.len() > 1 && !line.contains('"') || !matches!(fields.get(1), Some(&("w" | "b"))) {
        return None;
    }
    let has_result = ["1-0", "0-1", "1/2-1/2"].iter().any(|result| line.contains(result));
    Some(if has_result { ForeignFormat::EpdResults } else { ForeignFormat::Positions })
}

/// Whether a line begins with the eight ranks of a FEN.
fn begins_with_board(line: &str) -> bool {
    let board = line.split([' ', '\t', '|', ',']).next().unwrap_or_default();
    board.matches('/').count() == 7 && board.bytes().all(|byte| b"pnbrqkPNBRQK12345678/".contains(&byte))
}

/// The foreign format of binary data by its first bytes.
pub fn of_binary(beginning: &[u8]) -> Option<ForeignFormat> {
    if bullet::has_position(beginning) {
        return None;
    }
    let (board, moves) = after_extensions(beginning)?.split_first_chunk()?;
    for order in [NibbleOrder::LowFirst, NibbleOrder::HighFirst] {
        if packed_position(board, order).is_some_and(|position| begins_with_moves(position, moves)) {
            return Some(ForeignFormat::Viriformat);
        }
    }
    let (boards, rest) = beginning.as_chunks::<PACKED_BYTES>();
    let are_boards = boards.iter().all(|board| packed_position(board, NibbleOrder::LowFirst).is_some());
    (rest.is_empty() && are_boards).then_some(ForeignFormat::Marlinformat)
}

/// Which half of a byte holds the first of two pieces: in the format the lower one; some writers swap them.
#[derive(Copy, Clone)]
enum NibbleOrder {
    LowFirst,
    HighFirst,
}

/// Bytes of a board of viriformat and marlinformat.
const PACKED_BYTES: usize = 32;

/// A file of viriformat from its first board on: records with eight zero bytes in place of a board, a number, a length
/// and four zero bytes at the end hold other things.
fn after_extensions(mut bytes: &[u8]) -> Option<&[u8]> {
    while let Some(header) = bytes.first_chunk::<12>().filter(|header| header.starts_with(&[0; 8])) {
        let length = usize::from(u16::from_le_bytes([header[10], header[11]]));
        let end = bytes.get(header.len() + length..)?;
        bytes = end.strip_prefix(&[0; 4])?;
    }
    Some(bytes)
}

/// The position of a board of viriformat or marlinformat, little-endian: occupancy (64 bits), a nibble per piece (role,
/// 6 for a rook that may castle; bit 3 Black), en passant square or 64 with bit 7 for Black to move, rule-50 counter,
/// move number (16 bits), score (16 bits), result 0 to 2, an unused byte.
fn packed_position(bytes: &[u8; PACKED_BYTES], order: NibbleOrder) -> Option<Chess> {
    let occupied = bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let turn = bytes[24];
    let result = bytes[30];
    if occupied.count_ones() > 32 || turn & 127 > 64 || result > 2 {
        return None;
    }
    let mut setup = Setup::empty();
    let nibbles = bytes[8..24].iter().flat_map(|byte| match order {
        NibbleOrder::LowFirst => [byte & 15, byte >> 4],
        NibbleOrder::HighFirst => [byte >> 4, byte & 15],
    });
    for (square, nibble) in Bitboard(occupied).into_iter().zip(nibbles) {
        let castles = nibble & 7 == 6;
        let role = if castles { Role::Rook } else { *Role::ALL.get(usize::from(nibble & 7))? };
        setup.board.set_piece_at(square, Piece { color: Color::from_black(nibble >= 8), role });
        if castles {
            setup.castling_rights |= Bitboard::from(square);
        }
    }
    setup.turn = Color::from_black(turn >= 128);
    setup.ep_square = Square::try_from(turn & 127).ok();
    let position = Chess::from_setup(setup, CastlingMode::Chess960);
    position
        .or_else(PositionError::ignore_invalid_ep_square)
        .or_else(PositionError::ignore_too_much_material)
        .or_else(PositionError::ignore_impossible_check)
        .ok()
}

/// Moves of a game that are checked.
const CHECKED_MOVES: usize = 4;

/// Whether pairs of a legal move and a score follow, or the four zero bytes that end a game.
fn begins_with_moves(mut position: Chess, bytes: &[u8]) -> bool {
    let pairs = bytes.as_chunks::<4>().0;
    for pair in &pairs[..pairs.len().min(CHECKED_MOVES)] {
        if *pair == [0; 4] {
            return true;
        }
        let code = u16::from_le_bytes([pair[0], pair[1]]);
        let Some(mv) = position.legal_moves().into_iter().find(|mv| code_of(*mv) == Some(code)) else { return false };
        position.play_unchecked(mv);
    }
    !pairs.is_empty()
}

/// A move in viriformat: from and to (6 bits each; castling as king takes rook), promotion (2 bits, N B R Q), and its
/// kind (2 bits: 1 en passant, 2 castling, 3 promotion).
fn code_of(mv: Move) -> Option<u16> {
    let promotion = mv.promotion().map_or(0, |role| role as u16 - Role::Knight as u16);
    let kind = match mv {
        Move::EnPassant { .. } => 1,
        Move::Castle { .. } => 2,
        Move::Normal { promotion: Some(_), .. } => 3,
        Move::Normal { .. } | Move::Put { .. } => 0,
    };
    Some(mv.from()? as u16 | (mv.to() as u16) << 6 | promotion << 12 | kind << 14)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    #[test]
    fn texts_are_recognised_by_their_lines() {
        let check = |text: &str, expected: Option<ForeignFormat>| {
            assert_eq!(of_text(text.as_bytes()), expected, "{text}");
        };
        let lines = |rest: &str| format!("{START}{rest}\n{START}{rest}\n");
        check(&lines(" | 35 | 1.0"), Some(ForeignFormat::BulletText));
        check(&lines("|-35|0-1"), Some(ForeignFormat::BulletText));
        check(&format!("\u{feff}\r\n{START} | 35 | 0.5\r\n"), Some(ForeignFormat::BulletText));
        check(&lines(" [0.5] 12"), Some(ForeignFormat::BracketedResult));
        check(&lines(" [1.0]"), Some(ForeignFormat::BracketedResult));
        check(&lines(" c9 \"1-0\";"), Some(ForeignFormat::EpdResults));
        check(&lines("; c9 \"1/2-1/2\", note;"), Some(ForeignFormat::EpdResults));
        check(&lines(""), Some(ForeignFormat::Positions));
        check(&lines(" bm e4; id \"a, b\";"), Some(ForeignFormat::Positions));
        for result in ["0", "1", "2", " 1", "0.5"] {
            check(&lines(&format!(",35,{result}")), Some(ForeignFormat::CChessCli));
        }
        check(&format!("FEN,Eval,Result\n{START},35,1\n"), Some(ForeignFormat::CChessCli));
        check(&format!("fen {START}\nmove e2e4\nscore 54\nply 0\nresult 1\ne\n"), Some(ForeignFormat::Plain));
        // Our own, also where some lines are broken, and games.
        for ours in [",35,e2e4", ",,", ",35,", ",#-3,e7e8q", ",,0000"] {
            check(&lines(ours), None);
        }
        check(&format!("{START} | 3 | 1.0\n{START},35,e2e4\n"), None);
        for other in ["[Event \"a/b/c/d/e/f/g/h\"]\n", "1. e4 { a | b } e5 *\n", "a/b/c/d/e/f/g/h w - -", ""] {
            check(other, None);
        }
    }

    /// The start position, 1. e4 e5 2. Qh5 Ke7 3. Qxe5#.
    fn viriformat() -> Vec<u8> {
        let mut bytes = 0xffff_0000_0000_ffff_u64.to_le_bytes().to_vec();
        bytes.extend([0x16, 0x42, 0x25, 0x61, 0, 0, 0, 0, 0x88, 0x88, 0x88, 0x88, 0x9e, 0xca, 0xad, 0xe9]);
        bytes.extend([64, 0, 1, 0, 0, 0, 2, 0]);
        let moves = [(12, 28, 10), (52, 36, 20), (3, 39, -30), (60, 52, 32_767), (39, 36, 32_767i16)];
        for (from, to, score) in moves {
            bytes.extend((from | (to << 6) as u16).to_le_bytes());
            bytes.extend(score.to_le_bytes());
        }
        bytes.extend([0; 4]);
        bytes
    }

    #[test]
    fn boards_are_recognised_by_their_positions() {
        let game = viriformat();
        assert_eq!(game.len(), 56);
        assert_eq!(of_binary(&game), Some(ForeignFormat::Viriformat));
        assert_eq!(of_binary(&game.repeat(20)), Some(ForeignFormat::Viriformat));
        let mut swapped = game.clone();
        swapped[8..24].iter_mut().for_each(|byte| *byte = byte.rotate_left(4));
        assert_eq!(of_binary(&swapped), Some(ForeignFormat::Viriformat));
        // A game without a move.
        assert_eq!(of_binary(&[&game[..32], &[0; 4]].concat()), Some(ForeignFormat::Viriformat));
        let extension = [&[0; 8][..], &[7, 0, 3, 0], b"abc", &[0; 4], &game].concat();
        assert_eq!(of_binary(&extension), Some(ForeignFormat::Viriformat));
        assert_eq!(of_binary(&game[..32].repeat(9)), Some(ForeignFormat::Marlinformat));
        let mut odd = game.clone();
        odd[33] ^= 0x40;
        assert_eq!(of_binary(&odd), None);
        assert_eq!(of_binary(&[0; 4096]), None);
        assert_eq!(of_binary(b""), None);
        assert_eq!(of_binary(&[0x55; 4096]), None);
    }
}
