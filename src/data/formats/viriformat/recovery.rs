//! Recognises where games begin: in a file of unknown format, and after damage.

use shakmaty::{Chess, Move, Position as _, Role};

use super::PAIR_BYTES;
use crate::data::formats::packed_position::{self, NibbleOrder, PackedPosition};

/// Moves of a game that show that it is one.
const CHECKED_MOVES: usize = 4;
/// Bytes that show whether a game begins somewhere.
pub const CHECKED_BYTES: usize = packed_position::BYTES + PAIR_BYTES * CHECKED_MOVES;
/// Games that are compared for the order of nibbles.
const COMPARED_GAMES: usize = 8;
/// Bytes in which they are sought.
const COMPARED_BYTES: usize = 1 << 18;

/// Whether the beginning of a file shows that it is viriformat.
pub fn begins_with_game(beginning: &[u8]) -> bool {
    let Some(bytes) = after_extensions(beginning) else { return false };
    [NibbleOrder::LowFirst, NibbleOrder::HighFirst].into_iter().any(|order| starts_game(bytes, order))
}

/// A file from its first game on; `None` if an extension record is cut off or damaged.
fn after_extensions(mut bytes: &[u8]) -> Option<&[u8]> {
    while bytes.starts_with(&[0; 8]) {
        bytes = &bytes[extension_length(bytes)?..];
    }
    Some(bytes)
}

/// Length of the extension record at the beginning of `bytes`, if it is whole and sound.
pub fn extension_length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<12>()?;
    let end = header.len() + usize::from(u16::from_le_bytes([header[10], header[11]]));
    bytes.get(end..)?.starts_with(&[0; PAIR_BYTES]).then_some(end + PAIR_BYTES)
}

/// Whether bytes begin with a legal position and legal moves, as far as they go.
pub fn starts_game(bytes: &[u8], order: NibbleOrder) -> bool {
    let Some((board, moves)) = bytes.split_first_chunk() else { return false };
    let Ok(packed) = PackedPosition::read(board, order) else { return false };
    let Ok(position) = packed.position() else { return false };
    let pairs = moves.as_chunks::<PAIR_BYTES>().0;
    !pairs.is_empty() && first_illegal_move(position, &pairs[..pairs.len().min(CHECKED_MOVES)]).is_none()
}

/// The number of the first pair whose move is illegal. The zeros at a game's end end the search.
fn first_illegal_move(mut position: Chess, pairs: &[[u8; PAIR_BYTES]]) -> Option<usize> {
    for (number, pair) in pairs.iter().enumerate() {
        if *pair == [0; PAIR_BYTES] {
            return None;
        }
        let code = u16::from_le_bytes([pair[0], pair[1]]);
        let Some(mv) = position.legal_moves().into_iter().find(|mv| code_of(*mv) == Some(code)) else {
            return Some(number);
        };
        position.play_unchecked(mv);
    }
    None
}

/// The code of a legal move.
fn code_of(mv: Move) -> Option<u16> {
    let promotion = mv.promotion().map_or(0, |role| role as u16 - Role::Knight as u16);
    let kind = match mv {
        Move::EnPassant { .. } => super::EN_PASSANT,
        Move::Castle { .. } => super::CASTLING,
        Move::Normal { promotion: Some(_), .. } => super::PROMOTION,
        Move::Normal { .. } | Move::Put { .. } => 0,
    };
    Some(mv.from()? as u16 | (mv.to() as u16) << 6 | promotion << 12 | kind << 14)
}

/// The first offset from `from` on at which a game begins.
pub fn next_game(bytes: &[u8], from: usize, order: NibbleOrder) -> Option<usize> {
    (from..bytes.len().saturating_sub(packed_position::BYTES)).find(|at| starts_game(&bytes[*at..], order))
}

/// The order of nibbles in which more of the first bytes are games; `None` if no game begins in either order.
pub fn nibble_order(bytes: &[u8]) -> Option<NibbleOrder> {
    let bytes = &bytes[..bytes.len().min(COMPARED_BYTES)];
    let low = first_games(bytes, NibbleOrder::LowFirst);
    let high = first_games(bytes, NibbleOrder::HighFirst);
    match (low, high) {
        (None, None) => None,
        (Some(_), None) => Some(NibbleOrder::LowFirst),
        (None, Some(_)) => Some(NibbleOrder::HighFirst),
        (Some(low), Some(high)) => {
            // Shares, since the games of one order may end sooner. Short games from the start position are games in both.
            let is_high = high.read * low.end > low.read * high.end;
            Some(if is_high { NibbleOrder::HighFirst } else { NibbleOrder::LowFirst })
        }
    }
}

/// The first games of a file in one of the orders.
struct FirstGames {
    /// Bytes of games, up to the first illegal move of each.
    read: usize,
    /// Where the game after them begins.
    end: usize,
}

/// `None` if there is no game.
fn first_games(bytes: &[u8], order: NibbleOrder) -> Option<FirstGames> {
    let mut games = FirstGames { read: 0, end: next_game(bytes, 0, order)? };
    for _ in 0..COMPARED_GAMES {
        let Some((board, rest)) = bytes[games.end..].split_first_chunk() else { break };
        let Ok(position) = PackedPosition::read(board, order).and_then(|packed| packed.position()) else { break };
        let pairs = rest.as_chunks::<PAIR_BYTES>().0;
        let end = pairs.iter().position(|pair| *pair == [0; PAIR_BYTES]);
        let moves = &pairs[..end.unwrap_or(pairs.len())];
        let legal = match first_illegal_move(position, moves) {
            Some(legal) => legal,
            // With the zeros at its end, where it has not been cut off.
            None => moves.len() + usize::from(end.is_some()),
        };
        let length = packed_position::BYTES + PAIR_BYTES * legal;
        games.read += length;
        games.end = next_game(bytes, games.end + length, order).unwrap_or(bytes.len());
    }
    Some(games)
}
