//! Static exchange evaluation (SEE): the material that a series of captures on one square wins.

use shakmaty::attacks::{bishop_attacks, king_attacks, knight_attacks, pawn_attacks, rook_attacks};
use shakmaty::{Bitboard, Board, Color, Move, Role, Square};

/// A piece's value in an exchange, in centipawns. The king's is so high that it always captures last.
pub(super) const fn see_value(role: Role) -> i32 {
    match role {
        Role::Pawn => 100,
        Role::Knight | Role::Bishop => 325,
        Role::Rook => 500,
        Role::Queen => 975,
        Role::King => 10_000,
    }
}

const ROLES_BY_VALUE: [Role; 6] = [Role::Pawn, Role::Knight, Role::Bishop, Role::Rook, Role::Queen, Role::King];

/// Whether the static exchange evaluation of `mv` is at least `threshold` centipawns.
///
/// After the move both sides capture on its target square with their least valuable attacker and stop when a capture no
/// longer pays. Pins are ignored. Castling counts 0. A promotion by `mv` counts; promotions in later captures do not.
#[must_use]
pub fn see_at_least(board: &Board, turn: Color, mv: Move, threshold: i32) -> bool {
    let (from, to, captured_square, capture, promotion, role) = match mv {
        Move::Normal { from, to, capture, promotion, role } => (from, to, to, capture, promotion, role),
        Move::EnPassant { from, to } => {
            (from, to, Square::from_coords(to.file(), from.rank()), Some(Role::Pawn), None, Role::Pawn)
        }
        Move::Castle { .. } | Move::Put { .. } => return threshold <= 0,
    };
    let gained = capture.map_or(0, see_value) + promotion.map_or(0, |piece| see_value(piece) - see_value(Role::Pawn));
    let surplus = gained - threshold;
    if surplus < 0 {
        return false;
    }
    // The opponent's surplus once it has captured the piece that moved.
    let mut balance = see_value(promotion.unwrap_or(role)) - surplus;
    if balance <= 0 {
        return true;
    }
    let mut occupied = board.occupied().without(from).without(captured_square).with(to);
    let diagonal_sliders = board.bishops_and_queens();
    let straight_sliders = board.rooks_and_queens();
    let pawns = |color: Color| pawn_attacks(color.other(), to) & board.pawns() & board.by_color(color);
    let mut attackers = (pawns(Color::White) | pawns(Color::Black))
        | (knight_attacks(to) & board.knights())
        | (king_attacks(to) & board.kings())
        | (bishop_attacks(to, occupied) & diagonal_sliders)
        | (rook_attacks(to, occupied) & straight_sliders);
    attackers &= occupied;
    let mut side = turn;
    // Whether the side that moved first would reach the threshold if the captures ended here.
    let mut reached = true;
    loop {
        side = side.other();
        let own = attackers & board.by_color(side) & occupied;
        let Some((role, square)) = least_valuable(board, own) else { return reached };
        reached = !reached;
        // A king may not capture a defended piece.
        if role == Role::King && (attackers & board.by_color(side.other()) & occupied).any() {
            return !reached;
        }
        balance = see_value(role) - balance;
        if balance < i32::from(reached) {
            return reached;
        }
        occupied = occupied.without(square);
        // The capture may open a line for a slider behind the piece.
        if matches!(role, Role::Pawn | Role::Bishop | Role::Queen) {
            attackers |= bishop_attacks(to, occupied) & diagonal_sliders;
        }
        if matches!(role, Role::Rook | Role::Queen) {
            attackers |= rook_attacks(to, occupied) & straight_sliders;
        }
        attackers &= occupied;
    }
}

fn least_valuable(board: &Board, pieces: Bitboard) -> Option<(Role, Square)> {
    ROLES_BY_VALUE.into_iter().find_map(|role| Some((role, (pieces & board.by_role(role)).first()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{legal_move, parse_fen, random_game};
    use crate::units::Seed;
    use shakmaty::Position;

    /// SEE by recursion: each side may capture on `target` with its least valuable attacker or stop. Ignores pins and
    /// promotions.
    fn recursive_see(board: &Board, side: Color, target: Square) -> i32 {
        let Some(victim) = board.role_at(target) else { return 0 };
        let attackers = board.attacks_to(target, side, board.occupied());
        let Some((role, from)) = least_valuable(board, attackers) else { return 0 };
        if role == Role::King && board.attacks_to(target, side.other(), board.occupied().without(from)).any() {
            return 0;
        }
        let mut after = board.clone();
        after.discard_piece_at(from);
        after.set_piece_at(target, shakmaty::Piece { color: side, role });
        (see_value(victim) - recursive_see(&after, side.other(), target)).max(0)
    }

    /// For every move of random positions except promotions, the largest threshold reached is the recursive SEE.
    #[test]
    fn equals_recursive_see() {
        let (mut captures, mut en_passant) = (0, 0);
        for game in 0..300 {
            let mut rng = Seed(8).stream("exchange", game);
            for (position, _) in random_game(&mut rng, 120) {
                for mv in &position.legal_moves() {
                    if mv.is_castle() || mv.is_promotion() {
                        continue;
                    }
                    let capture = mv.capture();
                    let mut after = position.clone();
                    after.play_unchecked(*mv);
                    let gain = capture.map_or(0, see_value) - recursive_see(after.board(), after.turn(), mv.to());
                    let at_least = |threshold| see_at_least(position.board(), position.turn(), *mv, threshold);
                    assert!(at_least(gain) && !at_least(gain + 1), "{mv:?} {gain} in {:?}", position.board());
                    captures += u32::from(capture.is_some());
                    en_passant += u32::from(mv.is_en_passant());
                }
            }
        }
        assert!(captures > 1_000 && en_passant > 10, "{captures} {en_passant}");
    }

    #[test]
    fn known_exchanges() {
        let check = |fen: &str, uci: &str, gain: i32| {
            let position = parse_fen(fen).expect("a FEN");
            let mv = legal_move(uci, &position).expect("legal");
            let at_least = |threshold| see_at_least(position.board(), position.turn(), mv, threshold);
            assert!(at_least(gain) && !at_least(gain + 1), "{fen} {uci}");
        };
        // A hanging pawn; a protected one; a rook behind a rook.
        check("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1", "e1e5", 100);
        check("4k3/8/3p4/4p3/8/8/8/4RK2 w - - 0 1", "e1e5", -400);
        check("4r1k1/4r3/8/4p3/8/8/4R3/4R1K1 w - - 0 1", "e2e5", -400);
        check("7k/P7/8/8/8/8/8/K7 w - - 0 1", "a7a8q", 875);
        // En passant, unprotected; protected by a rook behind the captured pawn.
        check("7k/8/8/3pP3/8/8/8/K7 w - d6 0 1", "e5d6", 100);
        check("3r3k/8/8/3pP3/8/8/8/K7 w - d6 0 1", "e5d6", 0);
    }
}
