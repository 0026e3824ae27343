//! The squares that sliders attack, by magic multiplication: for machine code, which looks them up inline.

use std::sync::LazyLock;

use shakmaty::{Bitboard, Square};

use super::form::Slider;
use super::interpreter::attacked;

/// How to find what a slider on a square attacks: the table's element (occupied & mask) · factor >> shift.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Magic {
    mask: u64,
    factor: u64,
    /// Address of the table's first element, of eight bytes.
    table: u64,
    shift: u64,
}

impl Magic {
    pub(super) const BYTES: usize = size_of::<Magic>();
    pub(super) const MASK_OFFSET: usize = std::mem::offset_of!(Magic, mask);
    pub(super) const FACTOR_OFFSET: usize = std::mem::offset_of!(Magic, factor);
    pub(super) const TABLE_OFFSET: usize = std::mem::offset_of!(Magic, table);
    pub(super) const SHIFT_OFFSET: usize = std::mem::offset_of!(Magic, shift);
}

/// By square. The table is made when it is first asked for.
pub(super) fn magics(slider: Slider) -> &'static [Magic; 64] {
    static BISHOPS: LazyLock<[Magic; 64]> = LazyLock::new(|| build(Slider::Bishop));
    static ROOKS: LazyLock<[Magic; 64]> = LazyLock::new(|| build(Slider::Rook));
    match slider {
        Slider::Bishop => &BISHOPS,
        Slider::Rook => &ROOKS,
    }
}

fn build(slider: Slider) -> [Magic; 64] {
    let factors = match slider {
        Slider::Bishop => &BISHOP_FACTORS,
        Slider::Rook => &ROOK_FACTORS,
    };
    let sizes = Square::ALL.map(|square| 1 << relevant(slider, square).count());
    // Never freed, like the array that points into it.
    let mut rest: &'static mut [u64] = vec![0; sizes.iter().sum()].leak();
    let mut magics = [Magic::default(); 64];
    for square in Square::ALL {
        let (table, others) = rest.split_at_mut(sizes[usize::from(square)]);
        rest = others;
        let mask = relevant(slider, square);
        let factor = factors[usize::from(square)];
        let shift = 64 - mask.count() as u32;
        for occupied in mask.carry_rippler() {
            table[(occupied.0.wrapping_mul(factor) >> shift) as usize] = attacked(slider, square, occupied).0;
        }
        magics[usize::from(square)] =
            Magic { mask: mask.0, factor, table: table.as_ptr().expose_provenance() as u64, shift: u64::from(shift) };
    }
    magics
}

/// The squares whose occupation matters: those attacked on an empty board but for the last one of each direction.
fn relevant(slider: Slider, square: Square) -> Bitboard {
    let mut edge = Bitboard::EMPTY;
    for line in [0xff, 0xff << 56, 0x0101_0101_0101_0101, 0x8080_8080_8080_8080] {
        if !Bitboard(line).contains(square) {
            edge |= Bitboard(line);
        }
    }
    attacked(slider, square, Bitboard::EMPTY) & !edge
}

#[rustfmt::skip]
const BISHOP_FACTORS: [u64; 64] = [
    0x0040_1001_0045_9180, 0x0220_0414_2242_4100, 0x8008_2801_0020_0100, 0x0209_0401_0000_0001,
    0x1102_0211_0012_008a, 0x0021_0120_3001_8002, 0x2889_0802_0220_0404, 0x0000_2084_1008_0a09,
    0x4100_4410_3021_2500, 0x4800_4410_8425_0060, 0x0008_4850_a106_0009, 0x0220_7804_8101_0008,
    0x0100_0a02_1000_1101, 0x0040_4182_2020_0040, 0x0010_1208_2208_0400, 0x0000_1230_8808_0880,
    0x4120_3830_02b0_2300, 0x0a04_6030_0108_0500, 0x0030_0492_0082_0008, 0x0012_4004_0502_0080,
    0x1104_0102_20a0_0600, 0x9082_0008_4150_2400, 0x0200_e844_040a_8300, 0x8000_a142_050c_0a01,
    0x0420_2010_3004_0100, 0x2001_a020_b004_0b00, 0x4004_0300_0a0e_0400, 0x0042_0800_2401_0c60,
    0x0041_0100_2870_4000, 0x0008_0040_0205_0780, 0x6058_0c40_0904_2210, 0x1b04_2100_0041_0889,
    0x0870_0212_4508_1040, 0x8000_b044_2510_1404, 0x1562_2110_0001_0400, 0x0040_0202_8048_0080,
    0x0030_008a_0004_2200, 0x0001_0502_0011_0044, 0x0422_a40c_0081_0180, 0x0208_0500_611a_4200,
    0x1c01_2310_4040_3001, 0x0001_0308_0200_6000, 0x8042_0928_0400_0800, 0x4209_20b1_4800_3400,
    0x4000_4014_0820_0900, 0x0002_0408_0088_6200, 0x0012_9001_0101_0221, 0x0110_0080_8100_1080,
    0x0052_0690_0410_0000, 0x4400_4042_6820_000d, 0x0008_0031_0808_0020, 0x0400_2009_2088_0000,
    0x9000_0150_0202_0010, 0x0a40_2004_0906_0800, 0x0540_0891_5400_9004, 0x040c_1002_0041_0100,
    0x2002_8068_8210_4000, 0x0008_2484_0405_0c60, 0x1022_4211_0861_1000, 0x5000_2002_0084_0c04,
    0x3020_0084_2222_4400, 0x0800_4060_1810_9120, 0x0c04_4828_9808_0a40, 0x824c_0824_880a_0040,
];

#[rustfmt::skip]
const ROOK_FACTORS: [u64; 64] = [
    0x0280_0810_4002_8020, 0x0040_08a0_0040_1000, 0x0080_1000_8020_000c, 0x1480_0482_0800_1000,
    0x0880_0800_0400_0280, 0x1100_0813_0084_0002, 0x2100_2420_8200_2100, 0x0100_0048_8300_0032,
    0x8018_8008_4001_8420, 0x0202_4040_1000_2000, 0x0601_0020_0500_4410, 0x6000_8008_0010_0080,
    0x0020_8004_0048_0080, 0x0016_0004_0830_0600, 0x4004_0008_2402_1001, 0x0401_0000_8600_4b00,
    0x0020_8080_0030_4005, 0x0050_0840_0020_08c2, 0x8020_0280_2010_0180, 0x0010_8480_0802_5000,
    0x6000_8180_0400_0800, 0x0105_0100_0218_0400, 0x8100_0400_3008_4209, 0x8400_0200_0400_88c1,
    0x0040_2380_8000_4008, 0xc020_1000_4000_2240, 0x2100_1001_8020_0082, 0x0a00_1000_8018_0080,
    0x0088_a801_0014_9100, 0x000a_001a_0010_086c, 0x3091_0804_0010_0e21, 0x0013_0182_0000_c421,
    0x01c0_8040_0680_0020, 0x0430_2207_0200_4080, 0x0208_2000_4100_1101, 0x4480_9060_4200_0a00,
    0x1100_0400_8080_1801, 0x4908_8004_0080_0200, 0x0811_0a10_a400_0308, 0x2809_4051_1200_0084,
    0x0000_2081_4002_8000, 0x0100_c020_1000_4000, 0x58a0_2200_8042_0010, 0x5508_2010_4202_0008,
    0x0104_1188_0101_0004, 0x0020_0440_2028_0110, 0x0802_0024_0832_0001, 0x2008_4988_5502_0004,
    0x0801_0a10_2040_8200, 0x3005_4010_2000_8e80, 0x0112_8050_0160_0080, 0x0a00_230b_0050_0100,
    0x0200_4800_1005_0100, 0x8015_0200_802c_0080, 0x8789_1002_0108_0400, 0x4600_0380_4411_0200,
    0x0c09_8411_0040_6202, 0x8012_1222_8100_4001, 0x0100_2001_0108_c015, 0x2100_0804_2100_1001,
    0x0002_0008_a004_d002, 0x8416_0088_0c10_0102, 0x0a00_1008_a801_1204, 0x0448_0410_4281_0222,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn split_mix(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = *state;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    /// Sparse random numbers, until one gives no two different sets of attacked squares the same element.
    fn search(slider: Slider, square: Square) -> u64 {
        let mask = relevant(slider, square);
        let shift = 64 - mask.count();
        let cases: Vec<[u64; 2]> =
            mask.carry_rippler().map(|occupied| [occupied.0, attacked(slider, square, occupied).0]).collect();
        let mut state = square as u64 + 64 * (slider == Slider::Rook) as u64;
        let mut random = || split_mix(&mut state);
        let mut table = vec![[0; 2]; cases.len()];
        for number in 1u64.. {
            let factor = random() & random() & random();
            let fits = cases.iter().all(|[occupied, attacked]| {
                let element = &mut table[(occupied.wrapping_mul(factor) >> shift) as usize];
                let fits = element[0] != number || element[1] == *attacked;
                *element = [number, *attacked];
                fits
            });
            if fits {
                return factor;
            }
        }
        unreachable!()
    }

    #[test]
    fn factors_are_those_of_a_search() {
        for (slider, factors) in [(Slider::Bishop, BISHOP_FACTORS), (Slider::Rook, ROOK_FACTORS)] {
            let found = Square::ALL.map(|square| search(slider, square));
            assert_eq!(found, factors, "{slider:?}");
        }
    }
}
