//! Static exchange evaluation: what a series of captures on one square wins.

use shakmaty::attacks::{bishop_attacks, rook_attacks};
use shakmaty::{Bitboard, Board, Color, Move, Role};

/// Worth of a piece in an exchange, in centipawns. A king can only capture last.
pub(super) const fn value(role: Role) -> i32 {
    match role {
        Role::Pawn => 100,
        Role::Knight | Role::Bishop => 325,
        Role::Rook => 500,
        Role::Queen => 975,
        Role::King => 10_000,
    }
}

const BY_WORTH: [Role; 6] = [Role::Pawn, Role::Knight, Role::Bishop, Role::Rook, Role::Queen, Role::King];

/// Whether `mv` wins at least `threshold` centipawns when both sides go on capturing on its target with their least
/// valuable piece as long as that pays.
///
/// Pins are ignored. Castling, promotions and en passant are counted by what they take and put at once.
#[must_use]
pub fn exchange_at_least(board: &Board, turn: Color, mv: Move, threshold: i32) -> bool {
    let Move::Normal { from, to, capture, promotion, role } = mv else {
        // Castling takes nothing; a pawn taken en passant can only be retaken by what stands ready, a pawn's worth.
        return threshold <= 0;
    };
    let gained = capture.map_or(0, value) + promotion.map_or(0, |piece| value(piece) - value(Role::Pawn));
    let ahead = gained - threshold;
    if ahead < 0 {
        return false;
    }
    // What the other side is ahead once it has taken the piece that moved.
    let mut balance = value(promotion.unwrap_or(role)) - ahead;
    if balance <= 0 {
        return true;
    }
    let mut occupied = board.occupied().without(from).with(to);
    let diagonal = board.bishops_and_queens();
    let straight = board.rooks_and_queens();
    let mut attackers =
        (board.attacks_to(to, Color::White, occupied) | board.attacks_to(to, Color::Black, occupied)) & occupied;
    let mut side = turn;
    // Whether the side that moved first comes out with the threshold; each capture turns it round.
    let mut reached = true;
    loop {
        side = side.other();
        let own = attackers & board.by_color(side) & occupied;
        let Some((role, square)) = least_valuable(board, own) else { return reached };
        reached = !reached;
        // A king may not capture into an attack.
        if role == Role::King && (attackers & board.by_color(side.other()) & occupied).any() {
            return !reached;
        }
        balance = value(role) - balance;
        if balance < i32::from(reached) {
            return reached;
        }
        occupied = occupied.without(square);
        if matches!(role, Role::Pawn | Role::Bishop | Role::Queen) {
            attackers |= bishop_attacks(to, occupied) & diagonal;
        }
        if matches!(role, Role::Rook | Role::Queen) {
            attackers |= rook_attacks(to, occupied) & straight;
        }
        attackers &= occupied;
    }
}

fn least_valuable(board: &Board, pieces: Bitboard) -> Option<(Role, shakmaty::Square)> {
    BY_WORTH.into_iter().find_map(|role| Some((role, (pieces & board.by_role(role)).first()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;
    use shakmaty::fen::Fen;
    use shakmaty::{CastlingMode, Chess, Position, Square};

    /// The exchange played out: captures on one square by the least valuable piece, each side free to stop. Pins are
    /// ignored, and so are promotions on the way.
    fn played_out(board: &Board, side: Color, target: Square) -> i32 {
        let Some(victim) = board.role_at(target) else { return 0 };
        let attackers = board.attacks_to(target, side, board.occupied());
        let Some((role, from)) = least_valuable(board, attackers) else { return 0 };
        if role == Role::King && board.attacks_to(target, side.other(), board.occupied().without(from)).any() {
            return 0;
        }
        let mut after = board.clone();
        after.discard_piece_at(from);
        after.set_piece_at(target, shakmaty::Piece { color: side, role });
        (value(victim) - played_out(&after, side.other(), target)).max(0)
    }

    /// Over all captures and quiet moves of random positions, the threshold at which the answer turns is the value of
    /// the exchange played out.
    #[test]
    fn equals_playing_the_exchange_out() {
        let mut captures = 0;
        for game in 0..300 {
            let mut rng = Seed(8).stream("exchange", game);
            let mut position = Chess::default();
            for _ in 0..120 {
                let moves = position.legal_moves();
                if moves.is_empty() {
                    break;
                }
                for mv in &moves {
                    let Move::Normal { capture, from, to, role, promotion: None } = *mv else { continue };
                    let mut after = position.board().clone();
                    after.discard_piece_at(from);
                    after.set_piece_at(to, shakmaty::Piece { color: position.turn(), role });
                    let gain = capture.map_or(0, value) - played_out(&after, position.turn().other(), to);
                    let at_least = |threshold| exchange_at_least(position.board(), position.turn(), *mv, threshold);
                    assert!(at_least(gain) && !at_least(gain + 1), "{mv:?} {gain} in {:?}", position.board());
                    captures += u32::from(capture.is_some());
                }
                position.play_unchecked(moves[rng.random_range(0..moves.len())]);
            }
        }
        assert!(captures > 1_000, "{captures}");
    }

    #[test]
    fn known_exchanges() {
        let check = |fen: &str, uci: &str, gain: i32| {
            let position: Chess =
                fen.parse::<Fen>().expect("a FEN").into_position(CastlingMode::Standard).expect("legal");
            let mv = uci.parse::<shakmaty::uci::UciMove>().expect("UCI").to_move(&position).expect("legal");
            let at_least = |threshold| exchange_at_least(position.board(), position.turn(), mv, threshold);
            assert!(at_least(gain) && !at_least(gain + 1), "{fen} {uci}");
        };
        // A hanging pawn; a protected one; a rook behind a rook.
        check("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1", "e1e5", 100);
        check("4k3/8/3p4/4p3/8/8/8/4RK2 w - - 0 1", "e1e5", -400);
        check("4r1k1/4r3/8/4p3/8/8/4R3/4R1K1 w - - 0 1", "e2e5", -400);
        check("7k/P7/8/8/8/8/8/K7 w - - 0 1", "a7a8q", 875);
    }
}
