//! Places of set bits, where no instruction finds them.

/// For each byte the places of its set bits, lowest first.
static PLACES: [[u16; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][count] = bit as u16;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// [`super::Vector::places`] of masks of eight bits.
#[inline(always)]
pub fn of_bytes(masks: &[u16], to: &mut [u16]) -> usize {
    let mut count = 0;
    for (index, mask) in masks.iter().enumerate() {
        // A copy of its own, so that all eight are moved at once.
        let mut places = PLACES[usize::from(mask & 0xff)];
        for place in &mut places {
            *place = place.wrapping_add(8 * index as u16);
        }
        to[count..][..8].copy_from_slice(&places);
        count += mask.count_ones() as usize;
    }
    count
}
