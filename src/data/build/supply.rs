//! Any input as sifted samples by game, in order.

use super::options::Options;
use super::sieve::{Sieve, Sifted};
use crate::data::input::{Input, Origin};
use crate::data::manifest::Source;
use crate::data::pgn::Reading;
use crate::data::{DataError, ScoreUnit, Skipped};

/// An input being read and sifted.
pub struct Supply {
    games: Reading<Sieve>,
    /// Games handed out.
    read: u64,
}

impl Supply {
    /// # Errors
    /// When the input cannot be read or is of no kind that is supported.
    pub fn open(origin: &Origin, options: &Options, scores_later: bool) -> Result<Supply, DataError> {
        let unit = ScoreUnit::Centipawns;
        let sieve = Sieve::new(options.clone(), scores_later, unit.centipawns());
        Ok(Supply { games: Reading::new(Input::open(origin)?, sieve), read: 0 })
    }

    pub const fn score_unit(&self) -> ScoreUnit {
        ScoreUnit::Centipawns
    }

    /// The next samples with the number of their game, in order; none at the end.
    ///
    /// # Errors
    /// When the input breaks off.
    pub fn batch(&mut self) -> Result<Option<Vec<(u64, Sifted)>>, DataError> {
        let Some(games) = self.games.batch()? else { return Ok(None) };
        let first = self.read;
        self.read += games.len() as u64;
        Ok(Some((first..).zip(games).collect()))
    }

    /// Bytes read, as stored.
    pub fn bytes(&self) -> u64 {
        self.games.input().meter.bytes()
    }

    pub fn compression(&self) -> &'static str {
        self.games.compression()
    }

    pub fn skipped(&self) -> &Skipped {
        &self.games.skipped
    }

    /// What the manifest says of it, once it is read.
    pub fn source(&self, games: u64, weight: f64) -> Source {
        let input = self.games.input();
        Source {
            path: input.origin.path().display().to_string(),
            bytes: input.meter.bytes(),
            blake3: input.meter.hash().to_hex().to_string(),
            games,
            skipped: self.games.skipped.clone(),
            weight,
        }
    }
}
