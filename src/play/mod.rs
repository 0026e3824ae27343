//! Playing strength: matches between networks and UCI engines, and what their results say about Elo.
//!
//! [`play_match`] plays openings in pairs with colours swapped; [`Pairs`] counts them, [`Sprt`] tests them one after
//! the other, [`ratings`] compares more than two players.

mod adjudication;
mod book;
mod equal_cost;
mod error;
mod game;
mod game_line;
mod limit;
mod minimax;
mod openings;
mod pairing;
mod player;
mod pool;
mod rating;
mod runner;
mod schedule;
mod scoreboard;
mod settings;
mod shards;
mod sprt;
mod tally;
mod to_width;

use crate::statistics::pentanomial;

pub use crate::statistics::pentanomial::{Interval, MatchEstimate, Pairs, PairsError};
pub use adjudication::Adjudication;
pub use book::{Book, BookError};
pub use equal_cost::{CostRatio, equal_cost};
pub use error::MatchError;
pub use game::{Forfeit, MatchGame, MatchMove, SearchInfo, Termination};
pub use game_line::GameLine;
pub use limit::{MoveLimit, parse_time_control};
pub use openings::{OpeningSettings, balanced_openings};
pub use pairing::Pairing;
pub use player::{NetworkPlayer, Player, PlayerIdentity, PlayerKind, PlayerSetup};
pub use rating::{PairingResult, Rating, are_bounded, ratings};
pub use runner::{MatchResult, open_book, play_match};
pub use schedule::TournamentType;
pub use scoreboard::{MatchProgress, PlayerWork};
pub use settings::MatchSettings;
pub use shards::{play_shard, shard_of};
pub use sprt::{EloModel, Sprt, SprtError, SprtOutcome, SprtState};
pub use to_width::{pairs_to_width, play_to_width};
