//! Follows a game with an exported network, as an engine would: accumulators are updated move by move.
//!
//!     fsbench export network.safetensors --lang rust --out exported
//!     cp examples/export/follow_game.rs exported
//!     cd exported && rustc --edition 2021 -O follow_game.rs
//!     ./follow_game weights.bin e2e4 e7e5 g1f3
//!
//! It plays the moves that it is given, in UCI notation, and does not check that they are legal.

mod feature_set;
mod network;

use feature_set::{Board, BLACK, WHITE};
use network::{centipawns, evaluate, Accumulator, Network};

const PAWN: usize = 0;
const ROOK: usize = 3;
const KING: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let weights = arguments.next().ok_or("usage: follow_game WEIGHTS MOVE…")?;
    let net = Network::from_bytes(&std::fs::read(weights)?)?;

    let mut board = initial_board();
    let mut side_to_move = WHITE;
    let mut accumulators = [Accumulator::new(&net), Accumulator::new(&net)];
    for pov in [WHITE, BLACK] {
        accumulators[pov].refresh(&net, &board, pov);
    }
    print("start", evaluate(&net, &accumulators, &board, side_to_move));
    for text in arguments {
        let after = play(&board, side_to_move, &text)?;
        for pov in [WHITE, BLACK] {
            accumulators[pov].update(&net, &board, &after, pov);
        }
        board = after;
        side_to_move = 1 - side_to_move;
        print(&text, evaluate(&net, &accumulators, &board, side_to_move));
    }
    Ok(())
}

fn print(text: &str, score: i32) {
    println!("{text}: {} cp ({score} internal units), side to move's view", centipawns(score));
}

fn initial_board() -> Board {
    let white = [0xff00, 0x42, 0x24, 0x81, 0x08, 0x10];
    Board { pieces: [white, white.map(u64::swap_bytes)] }
}

/// The board after a move such as e2e4, e1g1 (castling; e1h1, too) or e7e8q.
fn play(board: &Board, side: usize, text: &str) -> Result<Board, String> {
    let wrong = |what: &str| format!("`{text}`: {what}");
    let bytes = text.as_bytes();
    if !(4..=5).contains(&bytes.len()) {
        return Err(wrong("a move has four or five letters"));
    }
    let from = square(&bytes[..2]).ok_or_else(|| wrong("no square to move from"))?;
    let to = square(&bytes[2..4]).ok_or_else(|| wrong("no square to move to"))?;
    let origin = 1u64 << from;
    let target = 1u64 << to;
    let role = (0..6).find(|role| board.pieces[side][*role] & origin != 0);
    let role = role.ok_or_else(|| wrong("no piece of the side to move there"))?;

    let mut after = *board;
    after.pieces[side][role] ^= origin;
    let takes_own_rook = board.pieces[side][ROOK] & target != 0;
    if role == KING && (takes_own_rook || (from & 7).abs_diff(to & 7) == 2) {
        let is_kingside = to > from;
        let first = from & !7;
        let rook = if takes_own_rook { to } else { first + if is_kingside { 7 } else { 0 } };
        after.pieces[side][ROOK] &= !(1 << rook);
        after.pieces[side][KING] |= 1 << (first + if is_kingside { 6 } else { 2 });
        after.pieces[side][ROOK] |= 1 << (first + if is_kingside { 5 } else { 3 });
        return Ok(after);
    }
    let mut captured = target;
    if role == PAWN && (from & 7) != (to & 7) && board.occupied() & target == 0 {
        // En passant: the captured pawn stands beside the capturing one.
        captured = 1 << ((from & !7) | (to & 7));
    }
    for pieces in &mut after.pieces[1 - side] {
        *pieces &= !captured;
    }
    let promoted = match bytes.get(4) {
        None => role,
        Some(letter) => 1 + b"nbrq".iter().position(|other| other == letter).ok_or_else(|| wrong("no such role"))?,
    };
    after.pieces[side][promoted] |= target;
    Ok(after)
}

/// The square of a name such as e4.
fn square(name: &[u8]) -> Option<u32> {
    let file = name[0].checked_sub(b'a')?;
    let rank = name[1].checked_sub(b'1')?;
    (file < 8 && rank < 8).then_some(u32::from(8 * rank + file))
}
