//! The command `genfens`, by which OpenBench has engines draw the openings of games for data.

use std::io::Write;
use std::str::SplitWhitespace;
use std::sync::Arc;

use super::{Game, OpeningSource, Score, SearchThread, Searcher};
use crate::alpha_beta::Limits;
use crate::chess::fen_of;
use crate::pipeline::generation::{BookSource, GenerateSettings};
use crate::units::Seed;

/// The arguments of `genfens N seed S book B`: B is a file of openings, or `None`. After these, `chess960` or
/// `double-chess960` may take the place of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenfensRequest {
    pub count: u32,
    pub seed: Seed,
    /// `None`: the initial position.
    pub book: Option<BookSource>,
}

/// Nodes of the search that judges an opening: a fraction of a second, of the seconds that OpenBench waits for each.
const NODES: u64 = 20_000;
/// Openings in a row beyond the bound after which there is no hope.
const MOST_REJECTED: u32 = 200;

impl GenfensRequest {
    /// Parses the words after `genfens`; the error is a message for the user.
    pub(super) fn parse(mut words: SplitWhitespace<'_>) -> Result<GenfensRequest, String> {
        let wrong = |what: &str| format!("{what}; genfens N seed S book None is expected, or a file in place of None");
        let count = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| wrong("genfens takes a number"))?;
        let mut seed = Seed(0);
        let mut books = Vec::new();
        while let Some(word) = words.next() {
            match word {
                "seed" => {
                    let number = words.next().and_then(|word| word.parse().ok());
                    seed = Seed(number.ok_or_else(|| wrong("seed takes a number"))?);
                }
                "book" => match words.next() {
                    Some(name) if name.eq_ignore_ascii_case("none") => {}
                    Some(file) => books.push(BookSource::File(file.into())),
                    None => return Err(wrong("book takes a file")),
                },
                "chess960" => books.push(BookSource::Chess960),
                "double-chess960" => books.push(BookSource::DoubleChess960),
                _ => return Err(wrong(&format!("genfens does not know \"{word}\""))),
            }
        }
        match books.len() {
            0 | 1 => Ok(GenfensRequest { count, seed, book: books.pop() }),
            _ => Err(wrong("openings come from one source")),
        }
    }
}

impl<W: Write> SearchThread<'_, W> {
    /// Draws openings. With a network, those that a search scores beyond the bound of generated games are left out.
    pub(super) fn draw_openings(&self, mut searcher: Option<&mut Searcher<'_>>, request: &GenfensRequest) {
        let drawn = (self.host.openings)(request).and_then(|mut source| {
            for _ in 0..request.count {
                let fen = self.opening(searcher.as_deref_mut(), &mut source)?;
                self.shared.write_line(&format!("info string genfens {fen}"));
                if self.shared.is_output_closed() {
                    break;
                }
            }
            Ok(())
        });
        if let Err(message) = drawn {
            self.shared.write_error(&message);
        }
    }

    fn opening(&self, mut searcher: Option<&mut Searcher<'_>>, source: &mut OpeningSource) -> Result<String, String> {
        let bound = i32::from(GenerateSettings::OPENING_BOUND);
        for _ in 0..MOST_REJECTED {
            let position = source()?;
            let fen = fen_of(&position);
            let Some(searcher) = &mut searcher else { return Ok(fen) };
            searcher.clear();
            searcher.set_stop_flag(Arc::clone(&self.shared.output_closed));
            let limits = Limits { nodes: Some(NODES), ..Limits::default() };
            match searcher.search(&Game::new(position), &limits, |_| ()).score {
                Score::Cp(score) if score.abs() <= bound => return Ok(fen),
                Score::Cp(_) | Score::Mate(_) => {}
            }
        }
        Err(format!("{MOST_REJECTED} openings in a row lie beyond ±{bound} cp: take other openings"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_openbenchs() {
        let check = |text: &str, expected: Result<(u32, u64, Option<BookSource>), &str>| {
            let found = GenfensRequest::parse(text.split_whitespace());
            match (found, expected) {
                (Ok(GenfensRequest { count, seed, book }), Ok(expected)) => {
                    assert_eq!((count, seed.0, book), expected, "{text}");
                }
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        };
        check("5 seed 42 book None ", Ok((5, 42, None)));
        check("5 seed 18446744073709551615 book none", Ok((5, u64::MAX, None)));
        check("9 seed 1 book Books/x.epd", Ok((9, 1, Some(BookSource::File("Books/x.epd".into())))));
        check("9 seed 1 book None chess960", Ok((9, 1, Some(BookSource::Chess960))));
        check("9 seed 1 book None double-chess960", Ok((9, 1, Some(BookSource::DoubleChess960))));
        check("", Err("genfens takes a number"));
        check("x seed 1", Err("genfens takes a number"));
        check("5 seed -1", Err("seed takes a number"));
        check("5 seed 1 book", Err("book takes a file"));
        check("5 seed 1 book x.epd chess960", Err("one source"));
        check("5 seed 1 book None fast", Err("does not know \"fast\""));
    }
}
