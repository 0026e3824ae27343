//! Lists of pairs of pieces.

/// Pairs of pieces of a board as it stands: the state of the first (code · 64 + square), 10 bits, above the state of
/// the second.
#[derive(Default)]
pub struct PiecePairs {
    /// Longer than it has pairs.
    buffer: Vec<u32>,
    count: usize,
}

impl PiecePairs {
    /// Makes room for `most` pairs, and drops all.
    pub fn clear(&mut self, most: usize) {
        self.count = 0;
        if self.buffer.len() < most + PiecePairs::AT_ONCE {
            self.buffer.resize(most + PiecePairs::AT_ONCE, 0);
        }
    }

    pub fn as_slice(&self) -> &[u32] {
        &self.buffer[..self.count]
    }

    /// Pairs that are written at once, to mispredict fewer branches: most pieces attack at most so many.
    const AT_ONCE: usize = 2;

    /// Adds the pairs of a state with the pieces on the squares of `seconds`.
    #[inline(always)]
    pub fn push(&mut self, first: u32, seconds: u64, state_at: impl Fn(u32) -> u32) {
        self.push_each(seconds, |square| pair(first, state_at(square)));
    }

    /// Adds a pair for each of `squares`.
    #[inline(always)]
    pub fn push_each(&mut self, mut squares: u64, pair_of: impl Fn(u32) -> u32) {
        let mut at = self.count;
        loop {
            let mut added = 0;
            for slot in &mut self.buffer[at..at + PiecePairs::AT_ONCE] {
                *slot = pair_of(squares.trailing_zeros() & 63);
                added += usize::from(squares != 0);
                squares &= squares.wrapping_sub(1);
            }
            at += added;
            if squares == 0 {
                break;
            }
        }
        self.count = at;
    }

    /// Adds a pair if `is_one`.
    #[inline(always)]
    pub fn push_if(&mut self, is_one: bool, pair: u32) {
        self.buffer[self.count] = pair;
        self.count += usize::from(is_one);
    }
}

/// The pair of two states.
pub const fn pair(first: u32, second: u32) -> u32 {
    first << 10 | second
}
