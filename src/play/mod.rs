//! Playing strength: matches between networks and UCI engines, and what their results say about Elo.
//!
//! [`play_match`] plays openings in pairs with colours swapped; [`Pairs`] counts them, [`Sprt`] tests them one after the
//! other, [`ratings`] compares more than two players.

mod adjudication;
mod equal_cost;
mod game;
mod limit;
mod openings;
mod pentanomial;
mod player;
mod rating;
mod runner;
mod schedule;
mod sprt;

pub use adjudication::Adjudication;
pub use equal_cost::{CostRatio, equal_cost};
pub use game::{MatchGame, MatchMove, SearchInfo, Termination};
pub use limit::{MoveLimit, parse_time_control};
pub use openings::{OpeningSettings, balanced_openings};
pub use pentanomial::{Interval, MatchEstimate, Pairs, PairsError};
pub use player::{NetworkPlayer, Player, PlayerIdentity, PlayerKind, PlayerSetup};
pub use rating::{PairingResult, Rating, ratings};
pub use runner::{MatchError, MatchProgress, MatchResult, MatchSettings, PlayerWork, play_match};
pub use schedule::Schedule;
pub use sprt::{EloModel, Sprt, SprtError, SprtOutcome, SprtState};
