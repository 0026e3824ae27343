//! Lists of pairs of pieces.

/// Pairs of pieces of a board as it stands: the state of the first (code · 64 + square), 10 bits, above that of the
/// second.
#[derive(Default)]
pub struct Pairs {
    /// Longer than it has pairs.
    buffer: Vec<u32>,
    count: usize,
}

impl Pairs {
    /// Makes room for `most` pairs, and drops all.
    pub fn clear(&mut self, most: usize) {
        self.count = 0;
        if self.buffer.len() < most + Pairs::AT_ONCE {
            self.buffer.resize(most + Pairs::AT_ONCE, 0);
        }
    }

    pub fn as_slice(&self) -> &[u32] {
        &self.buffer[..self.count]
    }

    /// Pairs that are written at once, to mispredict fewer branches: most pieces attack at most so many.
    const AT_ONCE: usize = 2;

    /// Adds the pairs of a state with those on the squares of `seconds`.
    #[inline(always)]
    pub fn push(&mut self, first: u32, mut seconds: u64, state_at: impl Fn(u32) -> u32) {
        let number = seconds.count_ones() as usize;
        let mut at = self.count;
        loop {
            for slot in &mut self.buffer[at..at + Pairs::AT_ONCE] {
                *slot = pair(first, state_at(seconds.trailing_zeros() & 63));
                seconds &= seconds.wrapping_sub(1);
            }
            if seconds == 0 {
                break;
            }
            at += Pairs::AT_ONCE;
        }
        self.count += number;
    }

    /// Adds a pair.
    pub fn push_one(&mut self, pair: u32) {
        self.buffer[self.count] = pair;
        self.count += 1;
    }
}

/// The pair of two states.
pub const fn pair(first: u32, second: u32) -> u32 {
    first << 10 | second
}
