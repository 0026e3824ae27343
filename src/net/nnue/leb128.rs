//! Signed LEB128: seven bits per byte, lowest first. Bit 7 is set if another byte follows; bit 6 of the last byte is
//! the sign.

/// The first bytes of a compressed array.
pub const MAGIC: &[u8] = b"COMPRESSED_LEB128";

/// Reads one number of at most `bits` bits from the start of `bytes`. Returns it with its length in bytes, or `None` if
/// it does not end within `bytes` or does not fit.
pub fn read(bytes: &[u8], bits: u32) -> Option<(i32, usize)> {
    let mut value = 0i64;
    let max_length = bits.div_ceil(7) as usize;
    for (index, byte) in bytes.iter().take(max_length).enumerate() {
        let shift = 7 * index as u32;
        value |= i64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let unused = 64 - (shift + 7);
            let value = value << unused >> unused;
            let largest = (1i64 << (bits - 1)) - 1;
            return (-largest - 1..=largest).contains(&value).then_some((value as i32, index + 1));
        }
    }
    None
}

/// Appends the shortest encoding of a number.
pub fn write(value: i32, out: &mut Vec<u8>) {
    let mut rest = value;
    loop {
        let byte = (rest & 0x7f) as u8;
        rest >>= 7;
        let sign = byte & 0x40 != 0;
        if (rest == 0 && !sign) || (rest == -1 && sign) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(
            value in any::<i32>(),
            small in any::<i16>(),
            rest in prop::collection::vec(any::<u8>(), 0..3),
        ) {
            for (value, bits) in [(value, 32), (i32::from(small), 16)] {
                let mut bytes = Vec::new();
                write(value, &mut bytes);
                let length = bytes.len();
                prop_assert!((0..length).all(|cut| read(&bytes[..cut], bits).is_none()));
                bytes.extend(&rest);
                prop_assert_eq!(read(&bytes, bits), Some((value, length)));
            }
        }
    }

    #[test]
    fn by_hand() {
        let check = |bytes: &[u8], bits, expected| assert_eq!(read(bytes, bits), expected, "{bytes:?}");
        check(&[0x02], 16, Some((2, 1)));
        check(&[0x7e, 9], 16, Some((-2, 1)));
        check(&[0x80, 0x01], 16, Some((128, 2)));
        // Longer than needed, but valid.
        check(&[0x80, 0x00], 16, Some((0, 2)));
        check(&[0xff, 0xff, 0x03], 16, None);
        check(&[0x80, 0x80, 0x80, 0x00], 16, None);
        check(&[0x80; 9], 32, None);
        check(&[], 32, None);
    }
}
