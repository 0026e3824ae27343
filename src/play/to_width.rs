//! Plays a match until its Elo is known closely enough.

use std::path::Path;

use super::book::Book;
use super::pentanomial::Pairs;
use super::player::Player;
use super::{MatchOutcome, MatchProgress, MatchSettings, PlayError, play_match};

/// Pairs before the first look at the interval.
const FIRST_PAIRS: u64 = 50;

/// Plays a match of two players, or continues it, until half the 95% interval is at most `half_width` Elo, or
/// `settings.pairs` pairs are played, or every opening where a repeated one gives the same game. The interval is looked
/// at in few stages, each planned from the stage before, and the stages depend on the results alone: a continued match
/// ends where an uninterrupted match does.
///
/// # Errors
/// As [`play_match`].
pub fn play_to_width(
    players: &[Player],
    settings: &MatchSettings,
    half_width: f64,
    folder: &Path,
    interrupted: &(dyn Fn() -> bool + Sync),
    progress: &mut dyn FnMut(&MatchProgress),
) -> Result<MatchOutcome, PlayError> {
    let mut most = settings.pairs;
    if settings.limit.is_reproducible() {
        let book = Book::open(&settings.openings, settings.opening_plies, settings.book_part)?;
        most = most.min(book.facts.openings);
    }
    let mut pairs = FIRST_PAIRS.min(most);
    loop {
        let stage = MatchSettings { pairs, ..settings.clone() };
        let result = play_match(players, &stage, folder, interrupted, progress)?;
        match following(pairs, result.pairings[0].pairs, half_width, most) {
            Some(more) => pairs = more,
            None => return Ok(result),
        }
    }
}

/// Pairs after which [`play_to_width`] ends, if the first pairs have these half points; `None` if it needs more of
/// them. `most`: pairs at most.
///
/// ```
/// use fsbench::play::pairs_to_width;
///
/// assert_eq!(pairs_to_width(&[1, 2, 3].repeat(100), 20.0, 1_000), Some(200));
/// assert_eq!(pairs_to_width(&[2; 50], 20.0, 1_000), None); // pairs that are all alike say nothing of their spread
/// ```
#[must_use]
pub fn pairs_to_width(points: &[u8], half_width: f64, most: u64) -> Option<u64> {
    let mut pairs = FIRST_PAIRS.min(most);
    loop {
        let mut counts = Pairs::default();
        points.get(..pairs as usize)?.iter().try_for_each(|points| counts.add(*points)).ok()?;
        match following(pairs, counts, half_width, most) {
            Some(more) => pairs = more,
            None => return Some(pairs),
        }
    }
}

/// Pairs after the next stage; `None` if these are enough.
fn following(pairs: u64, counts: Pairs, half_width: f64, most: u64) -> Option<u64> {
    let elo = counts.estimate().elo;
    let are_alike = counts.counts().iter().filter(|count| **count > 0).count() < 2;
    let reached = if are_alike { f64::INFINITY } else { (elo.high - elo.low) / 2.0 };
    (pairs < most && reached > half_width).then(|| next_stage(pairs, reached / half_width).min(most))
}

/// Pairs of the next stage, where the interval is `excess` times too wide: its width falls with the square root.
fn next_stage(pairs: u64, excess: f64) -> u64 {
    let needed = (pairs as f64 * excess * excess).ceil();
    // An early interval may be far off, or infinite.
    (needed as u64).clamp(pairs + pairs.div_ceil(10), pairs * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_grow_by_the_square_of_the_excess() {
        assert_eq!(next_stage(50, 1.5), 113);
        assert_eq!(next_stage(50, 1.001), 55);
        assert_eq!(next_stage(50, 10.0), 200);
        assert_eq!(next_stage(50, f64::INFINITY), 200);
    }
}
