//! Why a match could not be played or finished.

use thiserror::Error;

use super::book::BookError;
use super::player::Player;
use crate::output::OutputError;
use crate::pipeline::JournalError;
use crate::pipeline::uci::UciError;

/// Why a match could not be played or finished.
#[derive(Debug, Error)]
pub enum MatchError {
    #[error("{0}")]
    Request(String),
    #[error("player {name}: {reason}")]
    Player { name: String, reason: String },
    #[error("player {name}: {}{}", with_advice(error), forfeits_note(*forfeits))]
    Engine {
        name: String,
        error: Box<UciError>,
        /// Games in a row that the engine lost by forfeit before the match was given up.
        forfeits: u64,
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
    #[error("the match was interrupted")]
    Stopped,
}

impl MatchError {
    /// The network or the request is not fit for a match.
    pub(super) fn player(player: &Player, reason: &impl ToString) -> MatchError {
        MatchError::Player { name: player.name.clone(), reason: reason.to_string() }
    }

    pub(super) fn engine(player: &Player, error: UciError) -> MatchError {
        MatchError::Engine { name: player.name.clone(), error: Box::new(error), forfeits: 0 }
    }

    /// Whether the request was wrong, rather than the work having failed.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            MatchError::Request(_) | MatchError::Player { .. } => true,
            MatchError::Engine { error, .. } => error.is_request(),
            MatchError::Openings(error) => error.is_request(),
            MatchError::Journal(error) => error.is_request(),
            MatchError::Output(_) | MatchError::Damaged { .. } | MatchError::Stopped => false,
        }
    }
}

fn forfeits_note(forfeits: u64) -> String {
    match forfeits {
        0 => String::new(),
        _ => format!("\nit lost {forfeits} games in a row by forfeit; these games are not kept"),
    }
}

/// An engine's failure and what to do about it.
fn with_advice(error: &UciError) -> String {
    let advice = match error {
        // These say themselves what to give instead.
        UciError::Start { .. } | UciError::UnknownOption { .. } | UciError::OptionValue { .. } => {
            return error.to_string();
        }
        UciError::Silent { .. } => "raise --patience if it needs longer, else leave it out",
        UciError::Ended { .. } | UciError::Nonsense { .. } => "mend the engine or leave it out",
    };
    let text = error.to_string();
    // The last lines of an engine that ended come last in its message.
    let separator = if text.contains('\n') { "\n" } else { "; " };
    text + separator + advice
}
