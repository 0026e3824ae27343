//! Attacked squares for given occupied squares. The tables take a few kilobytes and stay in the L1 cache; the large
//! ones of move generators are evicted by the samples that stream through.

/// By square: its file, diagonal and antidiagonal without the square itself.
static LINES: [[u64; 3]; 64] = lines();
/// By file and the occupancy of a rank's six inner squares: the attacked squares of the rank.
static RANKS: [[u8; 64]; 8] = ranks();
/// By role (pawn 0 … king 5) and square: the squares attacked by knights and kings; empty for the other roles.
pub static STEPS: [[u64; 64]; 8] = steps();

/// Squares attacked along ranks and files.
#[inline(always)]
pub fn straight(at: u32, occupied: u64) -> u64 {
    let file = at as usize & 7;
    let rank = at & 56;
    let along = RANKS[file][(occupied >> rank >> 1) as usize & 63];
    let [file, ..] = LINES[at as usize & 63];
    u64::from(along) << rank | line_attacks(at, file, occupied)
}

/// Squares attacked along diagonals.
#[inline(always)]
pub fn diagonal(at: u32, occupied: u64) -> u64 {
    let [_, diagonal, antidiagonal] = LINES[at as usize & 63];
    line_attacks(at, diagonal, occupied) | line_attacks(at, antidiagonal, occupied)
}

/// Squares attacked on a line that has one square per rank (hyperbola quintessence, o^(o−2r)). Subtracting the slider's
/// bit from the blockers changes all bits up to the next blocker; the byte-swapped board gives the other direction.
#[inline(always)]
fn line_attacks(at: u32, line: u64, occupied: u64) -> u64 {
    let slider = 1u64 << (at & 63);
    let blockers = occupied & line;
    let up = blockers.wrapping_sub(slider);
    let down = blockers.swap_bytes().wrapping_sub(slider.swap_bytes()).swap_bytes();
    (up ^ down) & line
}

/// The first `most` squares from `from` in one direction, up to the edge of the board.
const fn ray(from: usize, file_step: i32, rank_step: i32, most: usize) -> u64 {
    let mut file = from as i32 & 7;
    let mut rank = from as i32 >> 3;
    let mut squares = 0;
    let mut count = 0;
    while count < most {
        file += file_step;
        rank += rank_step;
        if file < 0 || file > 7 || rank < 0 || rank > 7 {
            break;
        }
        squares |= 1 << (8 * rank + file);
        count += 1;
    }
    squares
}

const fn lines() -> [[u64; 3]; 64] {
    let mut lines = [[0; 3]; 64];
    let mut at = 0;
    while at < 64 {
        lines[at] = [
            ray(at, 0, 1, 7) | ray(at, 0, -1, 7),
            ray(at, 1, 1, 7) | ray(at, -1, -1, 7),
            ray(at, -1, 1, 7) | ray(at, 1, -1, 7),
        ];
        at += 1;
    }
    lines
}

const fn ranks() -> [[u8; 64]; 8] {
    let mut ranks = [[0; 64]; 8];
    let mut at = 0;
    while at < 512 {
        let file = at / 64;
        let inner = at % 64;
        let blockers = (inner << 1) as u8;
        let mut right = file + 1;
        while right < 8 {
            ranks[file][inner] |= 1 << right;
            right = if blockers >> right & 1 == 1 { 8 } else { right + 1 };
        }
        let mut left = file;
        while left > 0 {
            left -= 1;
            ranks[file][inner] |= 1 << left;
            if blockers >> left & 1 == 1 {
                left = 0;
            }
        }
        at += 1;
    }
    ranks
}

const fn steps() -> [[u64; 64]; 8] {
    const KNIGHT: [(i32, i32); 8] = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)];
    const KING: [(i32, i32); 8] = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)];
    let mut steps = [[0; 64]; 8];
    let mut at = 0;
    while at < 64 {
        let mut step = 0;
        while step < 8 {
            steps[1][at] |= ray(at, KNIGHT[step].0, KNIGHT[step].1, 1);
            steps[5][at] |= ray(at, KING[step].0, KING[step].1, 1);
            step += 1;
        }
        at += 1;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;
    use shakmaty::attacks::{bishop_attacks, king_attacks, knight_attacks, rook_attacks};
    use shakmaty::{Bitboard, Square};

    #[test]
    fn attacks_agree_with_shakmaty() {
        let mut rng = Seed(2).stream("attacks", 0);
        for round in 0..20_000 {
            let occupied: u64 = rng.random::<u64>() & if round % 2 == 0 { rng.random() } else { !0 };
            let at = rng.random_range(0..64u32);
            let square = Square::new(at);
            let board = Bitboard(occupied);
            assert_eq!(straight(at, occupied), rook_attacks(square, board).0, "{square} {occupied:#x}");
            assert_eq!(diagonal(at, occupied), bishop_attacks(square, board).0, "{square} {occupied:#x}");
            let reached = STEPS.each_ref().map(|squares| squares[at as usize]);
            assert_eq!(reached, [0, knight_attacks(square).0, 0, 0, 0, king_attacks(square).0, 0, 0]);
        }
    }
}
