//! Games between networks and UCI engines, and the evidence of matches on Elo.
//!
//! [`GamePool`] plays games for whoever needs them: matches, and data (`generate`). [`play_match`] plays openings in
//! pairs with colours swapped; [`Pairs`] counts them, [`Sprt`] tests them one after the other, [`ratings`] compares
//! more than two players.

mod adjudication;
mod book;
mod epd;
mod equal_cost;
mod error;
mod fixtures;
mod game;
mod game_line;
mod game_loop;
mod journal;
mod limit;
mod minimax;
mod openings;
mod options;
mod player;
mod pool;
mod rating;
mod runner;
mod scoreboard;
mod seats;
mod settings;
mod shards;
mod sprt;
mod tally;
mod to_width;

use crate::statistics::pentanomial;

pub use crate::statistics::pentanomial::{Interval, MatchEstimate, Pairs, PairsError};
pub use adjudication::{Adjudication, AdjudicationRules, DrawRule, WinRule};
pub use book::{Book, BookError, BookPart};
pub use equal_cost::{CostPlayer, CostRatio, equal_cost};
pub use error::PlayError;
pub use fixtures::{Fixture, TournamentType, fixture};
pub use game::{Forfeit, GameLength, GameMove, GameSummary, PlayedGame, SearchInfo, Termination};
pub use game_line::GameLine;
pub use game_loop::{GameRules, GameStart, RandomMoves};
pub use journal::GameJournal;
pub use limit::{MoveLimit, parse_time_control};
pub use openings::{OpeningSettings, balanced_openings};
pub use options::MatchOptions;
pub use player::{NetworkPlayer, Player, PlayerIdentity, PlayerKind, PlayerSetup};
pub use pool::{GamePool, KeepGame, OnFault, PooledGame};
pub use rating::{PairingResult, Rating, are_bounded, ratings};
pub use runner::{MatchOutcome, play_match};
pub use scoreboard::{MatchProgress, PlayerWork};
pub use settings::MatchSettings;
pub use shards::{play_shard, shard_of};
pub use sprt::{EloModel, Sprt, SprtError, SprtOutcome, SprtState};
pub use to_width::{pairs_to_width, play_to_width};
