//! The losses of the best epoch's validation, sample by sample, which a run keeps beside its weights.
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | magic `FSBLOSS1` |
//! | 8–11 | the epoch, from 1 |
//! | 12–15 | number n of samples |
//! | 16 … | n sample numbers (32 bits), n losses (f32), then for pqr n bytes: whether the move played is preferred |
//! | 4 more | CRC-32 of everything before |
//!
//! All numbers are little-endian.

use super::run_dir::{LOSSES, RunDir};
use super::trainer::SampleLosses;
use super::{TrainError, ValidatedSamples};

const MAGIC: &[u8; 8] = b"FSBLOSS1";
const HEAD_BYTES: usize = 16;

/// Largest split whose losses are kept; to validate a larger one again costs little beside its training.
pub const MOST_SAMPLES: usize = 1 << 20;

/// The losses of a validation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptLosses {
    /// The number of each sample in the data.
    pub numbers: Vec<u32>,
    pub each: SampleLosses,
}

impl KeptLosses {
    /// Writes the losses of an epoch, atomically.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, run_dir: &RunDir, epoch: u32) -> Result<(), TrainError> {
        let KeptLosses { numbers, each: SampleLosses { losses, preferred } } = self;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([epoch, numbers.len() as u32].map(u32::to_le_bytes).as_flattened());
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        losses.iter().for_each(|loss| bytes.extend(loss.to_le_bytes()));
        bytes.extend(preferred.iter().map(|preferred| u8::from(*preferred)));
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        run_dir.write_bytes(LOSSES, &bytes)
    }

    /// The losses of an epoch; `None` if the file is missing, damaged or another epoch's.
    #[must_use]
    pub fn read(run_dir: &RunDir, epoch: u32) -> Option<KeptLosses> {
        let bytes = std::fs::read(run_dir.path(LOSSES)).ok()?;
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        let (head, arrays) = body.split_at_checked(HEAD_BYTES)?;
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let samples = word(&head[12..]) as usize;
        let is_whole = head.starts_with(MAGIC) && crc32fast::hash(body).to_le_bytes() == *sum;
        let has_arrays = [8 * samples, 9 * samples].contains(&arrays.len());
        if !(is_whole && has_arrays && word(&head[8..]) == epoch) {
            return None;
        }
        let (numbers, rest) = arrays.split_at(4 * samples);
        let (losses, preferred) = rest.split_at(4 * samples);
        let losses = losses.chunks_exact(4).map(|bytes| f32::from_bits(word(bytes))).collect();
        let preferred = preferred.iter().map(|byte| *byte != 0).collect();
        let numbers = numbers.chunks_exact(4).map(word).collect();
        Some(KeptLosses { numbers, each: SampleLosses { losses, preferred } })
    }

    #[must_use]
    pub fn samples(&self) -> ValidatedSamples<'_> {
        let SampleLosses { losses, preferred } = &self.each;
        ValidatedSamples { numbers: &self.numbers, losses, preferred }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_read_as_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let run_dir = RunDir::create(&folder.path().join("run"), false).expect("made");
        for preferred in [vec![], vec![true, false, true]] {
            let each = SampleLosses { losses: vec![0.5, -0.0, 3e9], preferred };
            let kept = KeptLosses { numbers: vec![7, 0, u32::MAX], each };
            kept.write(&run_dir, 4).expect("written");
            assert_eq!(KeptLosses::read(&run_dir, 4), Some(kept));
            assert_eq!(KeptLosses::read(&run_dir, 3), None, "another epoch");
        }
        let path = run_dir.path(LOSSES);
        let whole = std::fs::read(&path).expect("written");
        for damage in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[damage] ^= 4;
            std::fs::write(&path, bytes).expect("written");
            assert_eq!(KeptLosses::read(&run_dir, 4), None, "byte {damage}");
            std::fs::write(&path, &whole[..damage]).expect("written");
            assert_eq!(KeptLosses::read(&run_dir, 4), None, "cut at {damage}");
        }
    }
}
