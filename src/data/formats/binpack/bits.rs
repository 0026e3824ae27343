//! Bits of a chain's text, highest first, and the numbers the format makes of them.

/// Most bits a ply takes: 4 for the piece, 8 for the move, 20 for the score.
const PLY_BITS: u32 = 32;

/// Reads a text from front to back, a ply at a time.
#[derive(Debug)]
pub struct BitReader {
    /// From the chunk's beginning.
    at: u64,
}

/// The next bits of a text, at least [`PLY_BITS`] of them; zeros beyond the chunk's end.
pub struct Window {
    bits: u64,
    taken: u32,
}

impl BitReader {
    pub const fn new(byte: usize) -> BitReader {
        BitReader { at: 8 * byte as u64 }
    }

    #[inline(always)]
    pub fn window(&self, chunk: &[u8]) -> Window {
        let byte = (self.at / 8) as usize;
        let word = match chunk.get(byte..).and_then(<[u8]>::first_chunk::<8>) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => {
                let mut padded = [0; 8];
                let rest = chunk.get(byte..).unwrap_or_default();
                padded[..rest.len()].copy_from_slice(rest);
                u64::from_be_bytes(padded)
            }
        };
        Window { bits: word << (self.at % 8), taken: 0 }
    }

    /// Goes on behind what was taken from the window; false where that lies beyond the chunk's end.
    #[inline(always)]
    #[must_use]
    pub const fn advance(&mut self, window: &Window, chunk: &[u8]) -> bool {
        self.at += window.taken as u64;
        self.at <= 8 * chunk.len() as u64
    }

    /// The first byte that nothing was read of.
    pub const fn byte(&self) -> usize {
        self.at.div_ceil(8) as usize
    }
}

impl Window {
    /// The next `count` bits, 31 at most.
    #[inline(always)]
    pub const fn take(&mut self, count: u32) -> u32 {
        let value = (self.bits >> 32) as u32;
        self.bits <<= count;
        self.taken += count;
        // Two shifts, for 0 bits.
        value >> 1 >> (31 - count)
    }

    /// A number in blocks of four bits, the lowest first, each behind a bit that is set where another follows; none
    /// where five do.
    #[inline(always)]
    pub const fn variable(&mut self) -> Option<u16> {
        let head = (self.bits >> 44) as u32;
        let more = [head >> 19 & 1, head >> 14 & 1, head >> 9 & 1, head >> 4 & 1];
        let nibbles = [head >> 15 & 15, head >> 10 & 15, head >> 5 & 15, head & 15];
        let second = more[0];
        let third = second & more[1];
        let fourth = third & more[2];
        if fourth & more[3] != 0 {
            return None;
        }
        let count = 5 * (1 + second + third + fourth);
        self.bits <<= count;
        self.taken += count;
        let kept =
            [nibbles[1] & second.wrapping_neg(), nibbles[2] & third.wrapping_neg(), nibbles[3] & fourth.wrapping_neg()];
        Some((nibbles[0] | kept[0] << 4 | kept[1] << 8 | kept[2] << 12) as u16)
    }
}

/// Writes a text.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that fill no byte yet, the last one lowest.
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// The lowest `count` bits of `value`, [`PLY_BITS`] at most.
    pub fn put(&mut self, value: u32, count: u32) {
        debug_assert!(count <= PLY_BITS);
        self.pending = self.pending << count | u64::from(value);
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            self.bytes.push((self.pending >> self.count) as u8);
        }
    }

    /// As [`Window::variable`] reads it.
    pub fn put_variable(&mut self, mut value: u16) {
        while value > 15 {
            self.put(16 | u32::from(value & 15), 5);
            value >>= 4;
        }
        self.put(u32::from(value), 5);
    }

    /// Bytes so far, a begun one among them.
    pub const fn len(&self) -> usize {
        self.bytes.len() + (self.count > 0) as usize
    }

    /// Appends the text, the last byte filled with zeros, and begins another.
    pub fn finish_into(&mut self, out: &mut Vec<u8>) {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
        out.append(&mut self.bytes);
        self.pending = 0;
    }
}

/// Bits for a number below `count`.
#[inline(always)]
pub const fn width(count: u32) -> u32 {
    32 - count.saturating_sub(1).leading_zeros()
}

/// Signed numbers of small size to small unsigned ones: the sign goes to the lowest bit.
pub const fn fold(value: i16) -> u16 {
    let bits = value.cast_unsigned();
    (if value < 0 { bits ^ 0x7fff } else { bits }).rotate_left(1)
}

/// The reverse of [`fold`].
#[inline(always)]
pub const fn unfold(folded: u16) -> i16 {
    let bits = folded.rotate_right(1);
    (bits ^ (0x7fff * (bits >> 15))).cast_signed()
}

/// A set of squares, counted byte by byte: its members are found by their place without a loop.
#[derive(Copy, Clone, Debug)]
pub struct Counted {
    set: u64,
    /// In each byte, the number of set bits up to and with that byte.
    sums: u64,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x80 * ONES;

impl Counted {
    #[inline]
    pub const fn new(set: u64) -> Counted {
        // In pairs, nibbles, bytes; multiplying sums the bytes up.
        let pairs = set - (set >> 1 & 0x5555_5555_5555_5555);
        let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
        Counted { set, sums: bytes.wrapping_mul(ONES) }
    }

    /// The `n`-th lowest member, from 0; there must be more than `n`.
    #[inline]
    pub const fn nth(self, n: u32) -> u32 {
        // A byte's top bit stays set where its sum is at most n: so many bytes come before the one looked for.
        let before = ((((n as u64 * ONES) | TOPS) - self.sums) & TOPS) >> 7;
        let shift = before.wrapping_mul(ONES) >> 56 << 3 & 63;
        let left = n as u64 - (self.sums << 8 >> shift & 0xff);
        let byte = self.set >> shift & 0xff;
        shift as u32 + NTH_IN_BYTE[(left as usize & 7) << 8 | byte as usize] as u32
    }
}

/// Place of the n-th set bit of a byte, at n · 256 + byte.
const NTH_IN_BYTE: [u8; 2048] = {
    let mut table = [0; 2048];
    let mut at = 0;
    while at < 2048 {
        let (mut byte, mut left) = (at & 255, at >> 8);
        while left > 0 && byte != 0 {
            byte &= byte - 1;
            left -= 1;
        }
        table[at] = byte.trailing_zeros() as u8 & 7;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn numbers_round_trip() {
        for value in 0..=u16::MAX {
            assert_eq!(fold(unfold(value)), value);
            let mut writer = BitWriter::default();
            writer.put(5, 3);
            writer.put_variable(value);
            let mut bytes = Vec::new();
            writer.finish_into(&mut bytes);
            let mut reader = BitReader::new(0);
            let mut window = reader.window(&bytes);
            assert_eq!((window.take(3), window.variable()), (5, Some(value)));
            assert!(reader.advance(&window, &bytes) && reader.byte() == bytes.len());
        }
        assert_eq!([0i16, -1, 1, -2, 2].map(fold), [0, 1, 2, 3, 4]);
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9, 16, 27].map(width), [0, 0, 1, 2, 2, 3, 3, 4, 4, 5]);
    }

    #[test]
    fn a_number_of_five_blocks_is_none() {
        let bytes = [0xff; 8];
        assert_eq!(BitReader::new(0).window(&bytes).variable(), None);
    }

    #[test]
    fn reading_beyond_the_end_is_noticed() {
        let bytes = [0xa5];
        let mut reader = BitReader::new(0);
        let mut window = reader.window(&bytes);
        assert_eq!((window.take(4), window.take(0), window.take(4)), (10, 0, 5));
        assert!(reader.advance(&window, &bytes));
        let mut window = reader.window(&bytes);
        assert_eq!(window.take(1), 0);
        assert!(!reader.advance(&window, &bytes));
    }

    #[test]
    fn the_nth_bit_is_found() {
        let mut rng = Seed(1).stream("nth", 0);
        for round in 0..10_000 {
            let mut set: u64 = rng.random();
            if round % 2 == 0 {
                set &= rng.random::<u64>() & rng.random::<u64>();
            }
            let places: Vec<u32> = (0..64).filter(|at| set >> at & 1 == 1).collect();
            let counted = Counted::new(set);
            for (n, place) in places.iter().enumerate() {
                assert_eq!(counted.nth(n as u32), *place, "{set:#x} {n}");
            }
        }
        assert_eq!(Counted::new(u64::MAX).nth(63), 63);
    }
}
