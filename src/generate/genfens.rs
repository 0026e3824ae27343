//! Openings by the UCI command `genfens`: those that fsbench draws, as games are begun, and those that it takes of
//! another engine.

use super::{GenerateError, GenerateGoal, GenerateJob, opening};
use crate::alpha_beta::{GenfensRequest, OpeningSource};
use crate::pipeline::generation::{BookSource, BookSpec, GenerateSettings};
use crate::pipeline::uci::{Engine, EngineSpec, SearchLimit};
use crate::play::Book;

/// Numbers of random moves after an opening of a book: both sides are to move equally often.
const AFTER_BOOK: (u16, u16) = (1, 4);

/// Starts to draw openings: of a book and 1 to 4 random moves, or of a start position and 8 or 9.
///
/// # Errors
/// When the book cannot be read.
pub fn draw_openings(request: &GenfensRequest) -> Result<OpeningSource, String> {
    let book = request.book.clone().map(BookSpec::of);
    let is_file = matches!(request.book, Some(BookSource::File(_)));
    let random_plies = if is_file { AFTER_BOOK } else { GenerateSettings::RANDOM_PLIES };
    let settings =
        GenerateSettings { book, random_plies, ..GenerateSettings::new(SearchLimit::Nodes(1), request.seed) };
    let book = opening::book_of(&settings).map_err(|error| error.to_string())?;
    let mut number = 0;
    Ok(Box::new(move || {
        let start = opening::begin(number, 1, &settings, book.as_ref()).map_err(|error| error.to_string())?;
        number += 1;
        Ok(start.line.position().clone())
    }))
}

/// The openings that an engine draws for the games of a job, one for each encounter.
pub(super) fn book_by(
    engine: &EngineSpec,
    settings: &GenerateSettings,
    job: &GenerateJob,
) -> Result<Book, GenerateError> {
    let GenerateGoal::Games(games) = job.goal else {
        return Err(GenerateError::Request(
            "--genfens draws an opening for each game: give a number of --games".into(),
        ));
    };
    let encounters = opening::fixture_of(u64::from(games) - 1, job.players.len()).encounter + 1;
    let drawn = Engine::draw_openings(engine, encounters, settings.seed, job.workers.answer_timeout);
    let positions = drawn.map_err(GenerateError::before_games)?;
    Ok(Book::of_positions(&engine.path, &positions)?)
}
