//! The tags of a game that the pipeline uses.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::fen::Fen;
use shakmaty::{ByColor, Chess, Position};

use super::SkipReason;
use super::tokenizer::{MalformedGame, result_of};
use crate::chess::fen_position;
use crate::data::GameResult;

/// The tags of a game.
#[derive(Clone, Debug)]
pub struct GameHeader {
    /// Offset of the game's text in the decompressed file.
    pub offset: u64,
    pub start: Chess,
    /// White's result; `None` without a `Result` tag that names one.
    pub result: Option<GameResult>,
    /// Elo ratings given in the tags.
    pub ratings: ByColor<Option<u16>>,
    pub speed: Option<Speed>,
}

/// The tags of a game while they are read.
pub struct Tags {
    pub header: GameHeader,
    /// Whether the `Termination` tag speaks of an illegal move.
    pub says_illegal: bool,
    /// Malformed tags that are not needed.
    pub malformed: u64,
    /// Why the game cannot be read; a variant is named whatever the order of the tags.
    problem: Option<MalformedGame>,
    has_start: bool,
    /// Where a tag says that the game is one of Chess960.
    chess960: Option<usize>,
}

impl Tags {
    pub fn new(offset: u64) -> Tags {
        let ratings = ByColor { white: None, black: None };
        let header = GameHeader { offset, start: Chess::default(), result: None, ratings, speed: None };
        Tags { header, says_illegal: false, malformed: 0, problem: None, has_start: false, chess960: None }
    }

    /// Takes a tag; `at` is its place in the text.
    pub fn take(&mut self, name: &[u8], value: &[u8], at: usize) {
        match name {
            b"Result" => self.header.result = result_of(value.trim_ascii()),
            b"WhiteElo" => self.header.ratings.white = rating(value),
            b"BlackElo" => self.header.ratings.black = rating(value),
            b"TimeControl" => self.header.speed = Speed::of(value),
            b"Termination" => self.says_illegal = says_illegal(value),
            _ if name.eq_ignore_ascii_case(b"FEN") => match start_position(value) {
                Some(start) => {
                    self.header.start = start;
                    self.has_start = true;
                }
                None => {
                    let problem = MalformedGame { reason: SkipReason::StartPosition, offset: at };
                    self.problem.get_or_insert(problem);
                }
            },
            _ if name.eq_ignore_ascii_case(b"Variant") => match Rules::of(value) {
                Rules::Standard => {}
                Rules::Chess960 => self.chess960 = Some(at),
                Rules::Other => self.problem = Some(MalformedGame { reason: SkipReason::Variant, offset: at }),
            },
            _ => {}
        }
    }

    /// Why the game cannot be read, once all tags are taken. A game of Chess960 needs its start position.
    pub fn problem(&self) -> Option<MalformedGame> {
        let without_start = || self.chess960.filter(|_| !self.has_start);
        let missing = || without_start().map(|offset| MalformedGame { reason: SkipReason::Variant, offset });
        self.problem.or_else(missing)
    }
}

/// Whether the game cannot be read without the tag at the beginning of a text, which is malformed.
pub fn is_needed(tag: &[u8]) -> bool {
    let name = tag.strip_prefix(b"[").unwrap_or(tag).trim_ascii_start();
    let length = name.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(name.len());
    [&b"FEN"[..], b"Variant"].iter().any(|needed| name[..length].eq_ignore_ascii_case(needed))
}

/// Whether a text speaks of an illegal move; `rules infraction` is the PGN standard's word for it.
pub fn says_illegal(text: &[u8]) -> bool {
    let contains = |word: &[u8]| text.windows(word.len()).any(|found| found.eq_ignore_ascii_case(word));
    contains(b"illegal") || contains(b"rules infraction")
}

/// Time class of a game by its `TimeControl` tag: base time plus forty increments, with Lichess's limits.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema,
)]
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
fn rating(value: &[u8]) -> Option<u16> {
    number(std::str::from_utf8(value).ok()?)
}

/// The rules that a `Variant` tag names.
enum Rules {
    Standard,
    /// Also with different start positions of the two sides.
    Chess960,
    Other,
}

impl Rules {
    fn of(variant: &[u8]) -> Rules {
        let letters = variant.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase);
        match &letters.collect::<Vec<u8>>()[..] {
            b"standard" | b"chess" | b"normal" | b"fromposition" | b"" => Rules::Standard,
            b"chess960"
            | b"960"
            | b"fischerandom"
            | b"fischerrandom"
            | b"fischerandomchess"
            | b"fischerrandomchess"
            | b"frc"
            | b"doublechess960"
            | b"doublefischerandom"
            | b"doublefischerrandom"
            | b"dfrc"
            | b"freestyle"
            | b"freestylechess" => Rules::Chess960,
            _ => Rules::Other,
        }
    }
}

/// The position of a `FEN` tag, of standard chess or Chess960.
fn start_position(fen: &[u8]) -> Option<Chess> {
    let text = fen.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let start = fen_position(&Fen::from_ascii(text).ok()?).ok()?;
    (start.board().occupied().count() <= 32).then_some(start)
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
