//! The tags of a game that the pipeline uses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use shakmaty::fen::Fen;
use shakmaty::{ByColor, Chess, Outcome, Position};

use crate::chess::fen_position;

/// The tags of a game.
#[derive(Clone, Debug)]
pub struct GameHeader {
    /// Offset of the game's text in the decompressed file.
    pub offset: u64,
    pub start: Chess,
    /// None without a `Result` tag that names one.
    pub outcome: Option<Outcome>,
    /// Elo ratings given in the tags.
    pub ratings: ByColor<Option<u16>>,
    pub speed: Option<Speed>,
}

impl GameHeader {
    pub(super) fn new(offset: u64) -> GameHeader {
        let ratings = ByColor { white: None, black: None };
        GameHeader { offset, start: Chess::default(), outcome: None, ratings, speed: None }
    }
}

/// Time class of a game by its `TimeControl` tag: base time plus forty increments, with Lichess's limits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Speed {
    /// Below 30 seconds.
    Ultrabullet,
    /// Below 3 minutes.
    Bullet,
    /// Below 8 minutes.
    Blitz,
    /// Below 25 minutes.
    Rapid,
    Classical,
    /// No clock, or days per move.
    Correspondence,
}

impl Speed {
    /// Parses the tag's value: `300+3`, `60`, `-`, `1/259200`, `40/5400:1800`.
    #[must_use]
    pub fn of(time_control: &[u8]) -> Option<Speed> {
        let text = std::str::from_utf8(time_control).ok()?.trim();
        if text == "-" || text.starts_with("1/") {
            return Some(Speed::Correspondence);
        }
        let mut seconds = 0u64;
        for period in text.split(':') {
            let clock = period.split_once('/').map_or(period, |(_, clock)| clock);
            let (base, increment) = clock.split_once('+').unwrap_or((clock, "0"));
            seconds += number::<u32>(base).map(u64::from)? + 40 * number::<u32>(increment).map(u64::from)?;
        }
        Some(match seconds {
            0..30 => Speed::Ultrabullet,
            30..180 => Speed::Bullet,
            180..480 => Speed::Blitz,
            480..1500 => Speed::Rapid,
            _ => Speed::Classical,
        })
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Speed::Ultrabullet => "ultrabullet",
            Speed::Bullet => "bullet",
            Speed::Blitz => "blitz",
            Speed::Rapid => "rapid",
            Speed::Classical => "classical",
            Speed::Correspondence => "correspondence",
        })
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

/// An Elo rating; `None` for values such as `?` and `-`.
pub(super) fn rating(value: &[u8]) -> Option<u16> {
    number(std::str::from_utf8(value).ok()?)
}

pub(super) fn is_standard(variant: &[u8]) -> bool {
    [&b"standard"[..], b"chess", b"normal", b"from position", b"?", b""]
        .iter()
        .any(|name| variant.trim_ascii().eq_ignore_ascii_case(name))
}

pub(super) fn start_position(fen: &[u8]) -> Option<Chess> {
    let position = fen_position(Fen::from_ascii(fen.trim_ascii()).ok()?).ok()?;
    (position.board().occupied().count() <= 32).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_controls() {
        let check = |text: &str, expected| assert_eq!(Speed::of(text.as_bytes()), expected, "{text}");
        check("15+0", Some(Speed::Ultrabullet));
        check("60+0", Some(Speed::Bullet));
        check("180", Some(Speed::Blitz));
        check("180+5", Some(Speed::Blitz));
        check("300+5", Some(Speed::Rapid));
        check("40/5400+30:1800+30", Some(Speed::Classical));
        check("-", Some(Speed::Correspondence));
        check("1/259200", Some(Speed::Correspondence));
        check("?", None);
    }
}
