//! Why games could not be played or finished.

use thiserror::Error;

use super::book::BookError;
use super::player::Player;
use crate::output::OutputError;
use crate::pipeline::JournalError;
use crate::pipeline::uci::UciError;

/// Why games could not be played or finished.
#[derive(Debug, Error)]
pub enum PlayError {
    #[error("{0}")]
    Request(String),
    #[error("player {name}: {reason}")]
    Player { name: String, reason: String },
    #[error("player {name}: {}{}", with_advice(error), forfeits_note(*failures))]
    Engine {
        name: String,
        error: Box<UciError>,
        /// Games in a row that the engine spoiled before the work was given up; 0 if it could not be started.
        failures: u64,
    },
    #[error(transparent)]
    Openings(#[from] BookError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("game {game} of the journal is damaged: {reason}; remove its line to play it again")]
    Damaged { game: u64, reason: String },
    /// The caller asked to stop; finished games are in the journal.
    #[error("interrupted")]
    Stopped,
}

impl PlayError {
    /// The network cannot play.
    pub(super) fn player(player: &Player, reason: &impl ToString) -> PlayError {
        PlayError::Player { name: player.name.clone(), reason: reason.to_string() }
    }

    pub(super) fn engine(player: &Player, error: UciError) -> PlayError {
        PlayError::Engine { name: player.name.clone(), error: Box::new(error), failures: 0 }
    }

    /// Whether the request was wrong, rather than the work having failed.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            PlayError::Request(_) | PlayError::Player { .. } => true,
            PlayError::Engine { error, .. } => error.is_request(),
            PlayError::Openings(error) => error.is_request(),
            PlayError::Journal(error) => error.is_request(),
            PlayError::Output(_) | PlayError::Damaged { .. } | PlayError::Stopped => false,
        }
    }
}

fn forfeits_note(failures: u64) -> String {
    match failures {
        0 => String::new(),
        _ => format!("\nit lost {failures} games in a row by forfeit; these games are not kept"),
    }
}

/// An engine's failure and what to do about it.
fn with_advice(error: &UciError) -> String {
    let advice = match error {
        // These say themselves what to give instead.
        UciError::Start { .. }
        | UciError::UnknownOption { .. }
        | UciError::NoChess960 { .. }
        | UciError::OptionValue { .. } => return error.to_string(),
        UciError::Silent { .. } => "raise --patience if it needs longer, else leave it out",
        UciError::Ended { .. } | UciError::Nonsense { .. } => "mend the engine or leave it out",
    };
    let text = error.to_string();
    // The last lines of an engine that ended come last in its message.
    let separator = if text.contains('\n') { "\n" } else { "; " };
    text + separator + advice
}
