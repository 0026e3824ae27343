//! The bits of a chain's movetext, highest first, and the number encodings of the format.

/// The most bits of a ply: 4 for the piece, 8 for the move, 20 for the score.
const PLY_BITS: u32 = 32;

/// Reads a movetext ply by ply.
#[derive(Debug)]
pub struct BitReader {
    /// Bits from the beginning of the chunk.
    at: u64,
}

/// The next bits of a movetext, at least [`PLY_BITS`]; zeros beyond the end of the chunk.
pub struct BitWindow {
    bits: u64,
    taken: u32,
}

impl BitReader {
    pub const fn new(byte: usize) -> BitReader {
        BitReader { at: 8 * byte as u64 }
    }

    #[inline(always)]
    pub fn window(&self, chunk: &[u8]) -> BitWindow {
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
        BitWindow { bits: word << (self.at % 8), taken: 0 }
    }

    /// Advances past the bits taken from the window; false if they lie beyond the end of the chunk.
    #[inline(always)]
    #[must_use]
    pub const fn advance(&mut self, window: &BitWindow, chunk: &[u8]) -> bool {
        self.at += window.taken as u64;
        self.at <= 8 * chunk.len() as u64
    }

    /// The first byte from which nothing was read.
    pub const fn end_byte(&self) -> usize {
        self.at.div_ceil(8) as usize
    }
}

impl BitWindow {
    /// Takes the next `count` bits, 31 at most.
    #[inline(always)]
    pub const fn take(&mut self, count: u32) -> u32 {
        let value = (self.bits >> 32) as u32;
        self.bits <<= count;
        self.taken += count;
        // Two shifts, because `count` may be 0.
        value >> 1 >> (31 - count)
    }

    /// Takes a number of variable length: blocks of four bits, the lowest first, each preceded by a bit that tells
    /// whether another block follows. `None` if five blocks follow each other.
    #[inline(always)]
    pub const fn read_vle(&mut self) -> Option<u16> {
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

/// Writes a movetext.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// The bits that do not fill a byte yet, the last one lowest.
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits of `value`, [`PLY_BITS`] at most.
    pub fn put(&mut self, value: u32, count: u32) {
        debug_assert!(count <= PLY_BITS);
        self.pending = self.pending << count | u64::from(value);
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            self.bytes.push((self.pending >> self.count) as u8);
        }
    }

    /// Appends a number as [`BitWindow::read_vle`] reads it.
    pub fn write_vle(&mut self, mut value: u16) {
        while value > 15 {
            self.put(16 | u32::from(value & 15), 5);
            value >>= 4;
        }
        self.put(u32::from(value), 5);
    }

    /// Bytes so far, including a partial one.
    pub const fn len(&self) -> usize {
        self.bytes.len() + (self.count > 0) as usize
    }

    /// Moves the movetext to `out`, its last byte padded with zeros.
    pub fn finish_into(&mut self, out: &mut Vec<u8>) {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
        out.append(&mut self.bytes);
        self.pending = 0;
    }
}

/// The number of bits for a number below `count`.
#[inline(always)]
pub const fn width(count: u32) -> u32 {
    32 - count.saturating_sub(1).leading_zeros()
}

/// Maps signed numbers to unsigned ones with the sign in the lowest bit: 0, −1, 1, −2 become 0, 1, 2, 3.
pub const fn signed_to_unsigned(value: i16) -> u16 {
    let bits = value.cast_unsigned();
    (if value < 0 { bits ^ 0x7fff } else { bits }).rotate_left(1)
}

/// The inverse of [`signed_to_unsigned`].
#[inline(always)]
pub const fn unsigned_to_signed(value: u16) -> i16 {
    let bits = value.rotate_right(1);
    (bits ^ (0x7fff * (bits >> 15))).cast_signed()
}

/// A set of bits whose `n`-th member is found without a loop.
#[derive(Copy, Clone, Debug)]
pub struct BitSelect {
    set: u64,
    /// In each byte, the number of set bits up to and including that byte.
    sums: u64,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x80 * ONES;

impl BitSelect {
    #[inline]
    pub const fn new(set: u64) -> BitSelect {
        // Counts per pair, nibble and byte; the multiplication sums the bytes up.
        let pairs = set - (set >> 1 & 0x5555_5555_5555_5555);
        let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
        BitSelect { set, sums: bytes.wrapping_mul(ONES) }
    }

    /// The `n`-th lowest member, counted from 0; the set must have more than `n`.
    #[inline]
    pub const fn nth(self, n: u32) -> u32 {
        // A byte's top bit stays set where its sum is at most n. The number of such bytes is the byte to look into.
        let before = ((((n as u64 * ONES) | TOPS) - self.sums) & TOPS) >> 7;
        let shift = before.wrapping_mul(ONES) >> 56 << 3 & 63;
        let left = n as u64 - (self.sums << 8 >> shift & 0xff);
        let byte = self.set >> shift & 0xff;
        shift as u32 + NTH_IN_BYTE[(left as usize & 7) << 8 | byte as usize] as u32
    }
}

/// Position of the n-th set bit of a byte, at index n · 256 + byte.
const NTH_IN_BYTE: [u8; 2048] = {
    let mut table = [0; 2048];
    let mut at = 0;
    while at < 2048 {
        let mut byte = at & 255;
        let mut left = at >> 8;
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
            assert_eq!(signed_to_unsigned(unsigned_to_signed(value)), value);
            let mut writer = BitWriter::default();
            writer.put(5, 3);
            writer.write_vle(value);
            let mut bytes = Vec::new();
            writer.finish_into(&mut bytes);
            let mut reader = BitReader::new(0);
            let mut window = reader.window(&bytes);
            assert_eq!((window.take(3), window.read_vle()), (5, Some(value)));
            assert!(reader.advance(&window, &bytes) && reader.end_byte() == bytes.len());
        }
        assert_eq!([0i16, -1, 1, -2, 2].map(signed_to_unsigned), [0, 1, 2, 3, 4]);
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9, 16, 27].map(width), [0, 0, 1, 2, 2, 3, 3, 4, 4, 5]);
    }

    #[test]
    fn a_number_of_five_blocks_is_refused() {
        let bytes = [0xff; 8];
        assert_eq!(BitReader::new(0).window(&bytes).read_vle(), None);
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
            let members: Vec<u32> = (0..64).filter(|at| set >> at & 1 == 1).collect();
            let select = BitSelect::new(set);
            for (n, member) in members.iter().enumerate() {
                assert_eq!(select.nth(n as u32), *member, "{set:#x} {n}");
            }
        }
        assert_eq!(BitSelect::new(u64::MAX).nth(63), 63);
    }
}
