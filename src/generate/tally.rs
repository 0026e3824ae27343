//! The games of a generation so far: counted in the order of their numbers, so that the last one that is needed does
//! not depend on how many are played at once.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use shakmaty::Position;

use super::GenerateGoal;
use crate::data::GameResult;
use crate::play::{GameSummary, PlayError, PlayedGame, Termination};

/// The progress of a generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerateProgress {
    /// Games that were not dropped.
    pub games: u32,
    /// Games that were dropped: an engine failed in them, or their opening lies beyond the bound.
    pub dropped: u32,
    /// Searched positions of the games.
    pub positions: u64,
    /// Moves of the games.
    pub plies: u64,
    /// Games without a winner.
    pub draws: u32,
    /// Positions by phase, of the games that this run has played.
    pub phases: PhaseCounts,
    pub speed: GenerateSpeed,
}

impl GenerateProgress {
    /// Games that are done, the dropped ones included.
    #[must_use]
    pub const fn done(&self) -> u32 {
        self.games + self.dropped
    }
}

/// The games so far.
pub(super) struct GenerationTally {
    goal: GenerateGoal,
    /// Searched positions of each game that is done, by number.
    positions: Vec<Option<u32>>,
    /// Games that are done without a gap, up to the last one that is needed.
    pub(super) counted: u64,
    counted_positions: u64,
    pub(super) progress: GenerateProgress,
}

impl GenerationTally {
    pub(super) fn new(goal: GenerateGoal) -> GenerationTally {
        let progress = GenerateProgress::default();
        GenerationTally { goal, positions: Vec::new(), counted: 0, counted_positions: 0, progress }
    }

    /// Notes a game of the journal, which is not counted yet.
    pub(super) fn note(&mut self, game: &GameSummary) {
        let is_dropped = game.forfeit.is_some() || game.termination == Termination::Opening;
        let positions = if is_dropped { 0 } else { game.counts.positions };
        let index = game.game as usize;
        if self.positions.len() <= index {
            self.positions.resize(index + 1, None);
        }
        self.positions[index] = Some(positions);
        let progress = &mut self.progress;
        if is_dropped {
            progress.dropped += 1;
        } else {
            progress.games += 1;
            progress.positions += u64::from(positions);
            progress.plies += u64::from(game.counts.plies);
            progress.draws += u32::from(game.result == GameResult::Draw);
        }
    }

    /// Adds a game that this run has played; `elapsed` is the time since its first game began.
    pub(super) fn add(&mut self, game: &PlayedGame, elapsed: Duration) {
        self.note(&game.summary());
        if game.termination != Termination::Opening && game.forfeit.is_none() {
            self.progress.phases.add(game);
        }
        self.progress.speed.add(game, elapsed);
        self.count();
    }

    /// Counts the games that are done without a gap.
    pub(super) fn count(&mut self) {
        while !self.is_reached()
            && let Some(Some(positions)) = self.positions.get(self.counted as usize)
        {
            self.counted += 1;
            self.counted_positions += u64::from(*positions);
        }
    }

    /// An error if the games lead nowhere.
    pub(super) fn check(&self) -> Result<(), PlayError> {
        /// Games after which there must be a position.
        const FIRST_GAMES: u32 = 1000;
        let GenerateProgress { games, dropped, positions, .. } = self.progress;
        if positions > 0 || games + dropped < FIRST_GAMES {
            return Ok(());
        }
        Err(PlayError::Request(format!(
            "none of the first {FIRST_GAMES} games has a position to keep ({dropped} were dropped): raise the \
             opening bound, or take other openings"
        )))
    }

    /// Whether the counted games are enough.
    pub(super) fn is_reached(&self) -> bool {
        match self.goal {
            GenerateGoal::Games(games) => self.counted == u64::from(games),
            GenerateGoal::Positions(positions) => self.counted_positions >= positions,
        }
    }
}

/// Searched positions by the number of pieces on the board.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseCounts {
    /// 25 to 32 pieces.
    pub opening: u64,
    /// 13 to 24 pieces.
    pub middlegame: u64,
    /// 2 to 12 pieces.
    pub endgame: u64,
}

impl PhaseCounts {
    /// Adds the searched positions of a game.
    pub(super) fn add(&mut self, game: &PlayedGame) {
        let mut position = game.start.clone();
        for played in &game.moves {
            if played.search.is_some() {
                let count = match position.board().occupied().count() {
                    25.. => &mut self.opening,
                    13.. => &mut self.middlegame,
                    _ => &mut self.endgame,
                };
                *count += 1;
            }
            position.play_unchecked(played.mv);
        }
    }

    /// The shares in words; `None` without positions.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        let PhaseCounts { opening, middlegame, endgame } = *self;
        let all = opening + middlegame + endgame;
        let percent = |count: u64| count as f64 * 100.0 / all as f64;
        (all > 0).then(|| {
            let [opening, middlegame, endgame] = [opening, middlegame, endgame].map(percent);
            format!("opening {opening:.0}%, middlegame {middlegame:.0}%, endgame {endgame:.0}%")
        })
    }
}

/// The work of this run alone, without the games of an interrupted one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GenerateSpeed {
    /// Searched positions.
    pub positions: u64,
    /// Nodes of all searches.
    pub nodes: u64,
    /// Time in which the games were played.
    pub seconds: f64,
}

impl GenerateSpeed {
    fn add(&mut self, game: &PlayedGame, elapsed: Duration) {
        let searches = || game.moves.iter().filter_map(|played| played.search);
        self.positions += searches().count() as u64;
        self.nodes += searches().map(|search| search.nodes).sum::<u64>();
        self.seconds = elapsed.as_secs_f64();
    }

    /// Searched positions per second; 0 before there are any.
    #[must_use]
    pub fn positions_per_second(&self) -> f64 {
        self.positions as f64 / self.seconds.max(1e-9)
    }

    /// Nodes per second; 0 before there are any.
    #[must_use]
    pub fn nodes_per_second(&self) -> f64 {
        self.nodes as f64 / self.seconds.max(1e-9)
    }
}
