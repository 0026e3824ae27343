//! The settings of a match.

use super::PlayError;
use super::adjudication::Adjudication;
use super::book::BookPart;
use super::fixtures::TournamentType;
use super::limit::MoveLimit;
use super::player::{Player, PlayerSetup};
use super::sprt::Sprt;
use crate::pipeline::generation::BookSource;
use crate::units::Seed;

/// The settings of a match. All but `pairs`, `sprt`, `concurrency` and the patience of `setup` determine its games, the
/// overhead only where time limits the moves.
#[derive(Clone, Debug)]
pub struct MatchSettings {
    pub limit: MoveLimit,
    pub tournament: TournamentType,
    /// Game pairs per pairing.
    pub pairs: u64,
    pub openings: BookSource,
    /// Moves taken from each game of a PGN book; all of them if `None`.
    pub opening_plies: Option<u16>,
    /// `None`: all openings of the book.
    pub book_part: Option<BookPart>,
    pub seed: Seed,
    pub adjudication: Option<Adjudication>,
    /// Ends the match once the test has decided; two players only.
    pub sprt: Option<Sprt>,
    pub setup: PlayerSetup,
    /// Games at once.
    pub concurrency: usize,
}

impl MatchSettings {
    /// Checks that these players can play a match.
    pub(super) fn check(&self, players: &[Player]) -> Result<(), PlayError> {
        let request = |text: &str| Err(PlayError::Request(text.into()));
        if players.len() < 2 {
            return request("a match needs at least two players");
        }
        if self.pairs == 0 {
            return request("a match needs at least one pair of games");
        }
        if self.sprt.is_some() && players.len() > 2 {
            return request("a sequential test compares two players; leave --sprt out or give two");
        }
        let without_nodes = players.iter().any(|player| player.nodes.is_none_or(|nodes| nodes == 0));
        if matches!(self.limit, MoveLimit::Nodes(0)) && without_nodes {
            return request("a search needs at least one node");
        }
        Ok(())
    }

    /// Checks that a book has openings enough. At a node limit, an opening played again gives the same game again, and
    /// copies of a game would be counted as evidence.
    pub(super) fn check_book(&self, openings: u64) -> Result<(), PlayError> {
        if !self.limit.is_reproducible() || self.pairs <= openings {
            return Ok(());
        }
        Err(PlayError::Request(format!(
            "{} pairs, but {} has {openings} openings: at a node limit an opening played again gives the same game \
             again; play at most {openings} pairs, or make a larger book with `fsbench openings --count`",
            self.pairs, self.openings
        )))
    }
}
