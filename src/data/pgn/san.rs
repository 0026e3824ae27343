//! Resolves SAN to a move: the usual cases without generating moves, the rest through shakmaty.

use shakmaty::san::San;
use shakmaty::{Bitboard, Board, Chess, Color, Move, Position, Rank, Role, Square, attacks};

/// The legal move that `san` names in `position`; `None` if there is none or several.
pub fn resolve(san: San, position: &Chess) -> Option<Move> {
    resolve_unambiguous(san, position).or_else(|| san.to_move(position).ok())
}

/// The move, if exactly one piece can make it pseudo-legally and it is legal.
fn resolve_unambiguous(san: San, position: &Chess) -> Option<Move> {
    let San::Normal { role, file, rank, capture, to, promotion: None } = san else { return None };
    let board = position.board();
    let turn = position.turn();
    let taken = board.role_at(to);
    if position.us().contains(to) || taken.is_some() != capture {
        return None;
    }
    let occupied = board.occupied();
    let origins = match role {
        Role::Pawn if to.rank() == turn.fold_wb(Rank::Eighth, Rank::First) => return None,
        Role::Pawn if capture => attacks::pawn_attacks(turn.other(), to),
        Role::Pawn => pawn_push_origin(turn, to, occupied),
        Role::Knight => attacks::knight_attacks(to),
        Role::Bishop => attacks::bishop_attacks(to, occupied),
        Role::Rook => attacks::rook_attacks(to, occupied),
        Role::Queen => attacks::queen_attacks(to, occupied),
        Role::King => attacks::king_attacks(to),
    };
    let mut origins = origins & position.our(role);
    if let Some(file) = file {
        origins &= Bitboard::from_file(file);
    }
    if let Some(rank) = rank {
        origins &= Bitboard::from_rank(rank);
    }
    let from = origins.single_square()?;
    let after = occupied.without(from).with(to);
    let king = if role == Role::King { to } else { board.king_of(turn)? };
    let safe = !is_attacked(board, king, turn.other(), after, board.by_color(turn.other()).without(to));
    safe.then_some(Move::Normal { role, from, capture: taken, to, promotion: None })
}

/// Squares that a bishop and a rook attack on an empty board.
static LINES: [(Bitboard, Bitboard); 64] = {
    let mut lines = [(Bitboard::EMPTY, Bitboard::EMPTY); 64];
    let mut square = 0;
    while square < 64 {
        let from = Square::new(square as u32);
        let empty = Bitboard::EMPTY;
        lines[square] = (attacks::bishop_attacks(from, empty), attacks::rook_attacks(from, empty));
        square += 1;
    }
    lines
};

/// Whether one of `attackers`, which belong to `color`, attacks `square` given the `occupied` squares.
fn is_attacked(board: &Board, square: Square, color: Color, occupied: Bitboard, attackers: Bitboard) -> bool {
    let of = |role| board.by_role(role) & attackers;
    let near = attacks::pawn_attacks(color.other(), square) & of(Role::Pawn)
        | attacks::knight_attacks(square) & of(Role::Knight)
        | attacks::king_attacks(square) & of(Role::King);
    let (diagonals, straights) = LINES[usize::from(square)];
    let queens = of(Role::Queen);
    // Usually no slider stands on these lines, and the lookups below are not needed.
    let by_bishop = (queens | of(Role::Bishop)) & diagonals;
    let by_rook = (queens | of(Role::Rook)) & straights;
    near.any()
        || by_bishop.any() && (attacks::bishop_attacks(square, occupied) & by_bishop).any()
        || by_rook.any() && (attacks::rook_attacks(square, occupied) & by_rook).any()
}

/// The square from which a pawn can be pushed to `to`.
fn pawn_push_origin(turn: Color, to: Square, occupied: Bitboard) -> Bitboard {
    let back = turn.fold_wb(-8, 8);
    match to.offset(back) {
        Some(middle) if !occupied.contains(middle) && to.rank() == turn.fold_wb(Rank::Fourth, Rank::Fifth) => {
            middle.offset(back).map_or(Bitboard::EMPTY, Bitboard::from_square)
        }
        Some(from) => Bitboard::from_square(from),
        None => Bitboard::EMPTY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::random_move;
    use crate::units::Seed;
    use rand::RngExt;
    use shakmaty::{File, Rank};

    /// Every SAN of a move to a square, legal or not.
    fn every_san() -> impl Iterator<Item = San> {
        let files = || std::iter::once(None).chain(File::ALL.map(Some));
        let ranks = || std::iter::once(None).chain(Rank::ALL.map(Some));
        Role::ALL.into_iter().flat_map(move |role| {
            Square::ALL.into_iter().flat_map(move |to| {
                files().flat_map(move |file| {
                    ranks().filter(move |rank| file.is_none() || rank.is_none()).flat_map(move |rank| {
                        [true, false].map(|capture| San::Normal { role, file, rank, capture, to, promotion: None })
                    })
                })
            })
        })
    }

    #[test]
    fn unambiguous_moves_agree_with_shakmaty() {
        let mut resolved = 0;
        for game in 0..12 {
            let mut rng = Seed(8).stream("san", game);
            let mut position = Chess::default();
            for _ in 0..120 {
                for mv in &position.legal_moves() {
                    assert_eq!(resolve(San::from_move(&position, *mv), &position), Some(*mv));
                }
                if rng.random_ratio(1, 12) {
                    for san in every_san() {
                        if let Some(mv) = resolve_unambiguous(san, &position) {
                            resolved += 1;
                            assert_eq!(san.to_move(&position).ok(), Some(mv), "{san}");
                        }
                    }
                }
                let Some(mv) = random_move(&position, &mut rng) else { break };
                position.play_unchecked(mv);
            }
        }
        assert!(resolved > 1000, "{resolved}");
    }
}
