//! Quantities with a unit, seeds of random streams, and shards of lists.

mod shard;
mod sort;
mod sorted_map;

pub use shard::Shard;
pub use sort::{sort_by, sort_by_key};
pub use sorted_map::SortedMap;

use std::fmt::{self, Display, Formatter};
use std::num::ParseIntError;
use std::str::FromStr;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An evaluation in hundredths of a pawn.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Centipawn(pub i32);

/// Number of half-moves since the game's initial position. White's first move is played at ply 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ply(pub u16);

/// Expected game result in [0, 1]: 0 is a loss, 0.5 a draw, 1 a win.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wdl(pub f32);

impl Wdl {
    /// The expected result of an evaluation: the logistic function σ(score / scale).
    #[must_use]
    pub fn from_score(score: f32, scale: f32) -> Wdl {
        Wdl(1.0 / (1.0 + libm::expf(-score / scale)))
    }
}

/// Seed of all random streams of a run. A stream depends only on the seed, a name and an index, not on the number of
/// threads or the order of requests.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Display for Seed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Seed {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Seed, ParseIntError> {
        text.parse().map(Seed)
    }
}

impl Seed {
    /// A generator for one purpose (`name`) and one work item (`index`).
    #[must_use]
    pub fn stream(self, name: &str, index: u64) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.digest(name, index))
    }

    /// A counter-based generator for one purpose, cheap enough to use once per sample.
    #[must_use]
    pub fn draws(self, name: &str) -> Draws {
        let [a, b, c, d, e, f, g, h, ..] = self.digest(name, 0);
        Draws { key: u64::from_le_bytes([a, b, c, d, e, f, g, h]) }
    }

    fn digest(self, name: &str, index: u64) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0.to_le_bytes());
        hasher.update(&index.to_le_bytes());
        hasher.update(name.as_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// Random numbers by index. All draws cost the same, so threads can use them in any order.
#[derive(Copy, Clone, Debug)]
pub struct Draws {
    key: u64,
}

impl Draws {
    /// 64 random bits for `index`, by the splitmix64 finaliser (Steele, Lea, Flood 2014) over the keyed counter.
    #[must_use]
    pub fn at(self, index: u64) -> u64 {
        let mut z = self.key.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound` for `index` (0 if `bound` is 0). The bias is below `bound` / 2^64.
    #[must_use]
    pub fn below(self, index: u64, bound: u32) -> u32 {
        ((u128::from(self.at(index)) * u128::from(bound)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_depend_only_on_seed_name_and_index() {
        let first = |seed: Seed, name, index| seed.stream(name, index).next_u64();
        assert_eq!(first(Seed(1), "a", 0), first(Seed(1), "a", 0));
        assert_ne!(first(Seed(1), "a", 0), first(Seed(2), "a", 0));
        assert_ne!(first(Seed(1), "a", 0), first(Seed(1), "b", 0));
        assert_ne!(first(Seed(1), "a", 0), first(Seed(1), "a", 1));
    }

    #[test]
    fn bounded_draws_cover_the_range_evenly() {
        let draws = Seed(7).draws("cover");
        let mut counts = [0u32; 10];
        for index in 0..100_000 {
            counts[draws.below(index, 10) as usize] += 1;
        }
        assert!(counts.iter().all(|&n| (9_500..10_500).contains(&n)), "{counts:?}");
        assert_eq!(draws.below(3, 0), 0);
    }

    #[test]
    fn wdl_is_the_logistic() {
        assert_eq!(Wdl::from_score(0.0, 410.0), Wdl(0.5));
        assert!((Wdl::from_score(410.0, 410.0).0 - 0.731_058_6).abs() < 1e-6);
    }
}
