//! Reads the games of a file. The file is cut into texts in order; all cores parse them while the next ones are read;
//! games come out in file order.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position};

use super::splitter::{GameTexts, Splitter};
use super::{Eval, GameHeader, GameVisitor, Parser, SkipReason, SkippedGame};
use crate::data::input::{Input, InputPath};
use crate::data::{DataError, GameResult};
use crate::units::Ply;

/// A game read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    /// Offset of its text in the decompressed file.
    pub offset: u64,
    pub start: Chess,
    pub moves: Vec<PlayedMove>,
    /// White's result; `None` for `*`, or where neither a `Result` tag nor the end of the moves gives it.
    pub result: Option<GameResult>,
}

/// A move of a game, and the evaluation in its comment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PlayedMove {
    pub mv: Move,
    /// Evaluation of the position after the move, from White's point of view.
    pub eval: Option<Eval>,
}

/// The ply of the first move from `start`, by the position's move number.
#[must_use]
pub fn first_ply(start: &Chess) -> Ply {
    let plies = (start.fullmoves().get() - 1).saturating_mul(2);
    Ply(plies.saturating_add(u32::from(start.turn().is_black())).min(u32::from(u16::MAX)) as u16)
}

/// Opens a file of games: PGN, plain or compressed with zstd, gzip or bzip2.
///
/// # Errors
/// When the file cannot be read or does not hold games.
pub fn games(path: &Path) -> Result<Games, DataError> {
    let reader = GameReader::new(Input::open(&InputPath::File(path.into()))?, GameCollector);
    Ok(Games { reader, ready: VecDeque::new() })
}

/// The games of a file, in file order. Malformed games are skipped and counted. When the file itself is cut off or
/// damaged, the games before that come first, then one error, then nothing.
pub struct Games {
    reader: GameReader<GameCollector>,
    ready: VecDeque<Game>,
}

impl Games {
    #[must_use]
    pub fn skipped(&self) -> &SkippedGames {
        &self.reader.skipped
    }

    #[must_use]
    pub fn compression(&self) -> &'static str {
        self.reader.compression()
    }
}

impl Iterator for Games {
    type Item = Result<Game, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(game) = self.ready.pop_front() {
                return Some(Ok(game));
            }
            match self.reader.next_batch() {
                Ok(Some(games)) => self.ready.extend(games),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Collects whole games.
pub(super) struct GameCollector;

impl GameVisitor for GameCollector {
    type State = Vec<PlayedMove>;
    type Output = Game;

    fn begin_game(&self, _: &GameHeader, _: usize) -> ControlFlow<Game, Vec<PlayedMove>> {
        ControlFlow::Continue(Vec::with_capacity(128))
    }

    fn visit_move(&self, moves: &mut Vec<PlayedMove>, _: &Chess, mv: Move) {
        moves.push(PlayedMove { mv, eval: None });
    }

    fn visit_eval(&self, moves: &mut Vec<PlayedMove>, eval: Eval) {
        if let Some(played) = moves.last_mut() {
            played.eval = Some(eval);
        }
    }

    fn end_game(&self, moves: Vec<PlayedMove>, header: GameHeader, result: Option<GameResult>) -> Game {
        Game { offset: header.offset, start: header.start, moves, result }
    }
}

/// The games skipped so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedGames {
    pub by_reason: BTreeMap<SkipReason, u64>,
    /// The first ten.
    pub examples: Vec<SkippedGame>,
}

impl SkippedGames {
    const EXAMPLES: usize = 10;

    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason.values().sum()
    }

    fn add(&mut self, game: SkippedGame) {
        *self.by_reason.entry(game.reason).or_default() += 1;
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(game);
        }
    }
}

/// Reads the games of one input through a visitor, a batch at a time.
pub struct GameReader<V> {
    visitor: V,
    splitter: Splitter,
    /// The texts after the current batch, read while that batch was parsed.
    next_texts: Option<GameTexts>,
    games_read: u64,
    pub skipped: SkippedGames,
}

/// Games that one task parses.
const TASK_GAMES: usize = 16;

impl<V: GameVisitor> GameReader<V> {
    pub fn new(input: Input, visitor: V) -> GameReader<V> {
        let skipped = SkippedGames::default();
        GameReader { visitor, splitter: Splitter::new(input), next_texts: None, games_read: 0, skipped }
    }

    pub fn compression(&self) -> &'static str {
        self.splitter.input().compression.name()
    }

    pub fn input(&self) -> &Input {
        self.splitter.input()
    }

    /// The next games, in file order; `None` at the end. A batch may be empty.
    ///
    /// # Errors
    /// When the input is cut off or damaged; all games before that come first.
    pub fn next_batch(&mut self) -> Result<Option<Vec<V::Output>>, DataError> {
        let GameReader { visitor, splitter, next_texts, .. } = self;
        let visitor = &*visitor;
        let texts = next_texts.take().unwrap_or_else(|| splitter.next_texts());
        if texts.is_empty() {
            return splitter.take_failure().map_or(Ok(None), |cause| Err(self.read_error(cause)));
        }
        let parse_task = |parser: &mut Parser, task: usize| {
            let mut games = Vec::with_capacity(TASK_GAMES);
            let mut reader = None;
            for game in task * TASK_GAMES..texts.len().min((task + 1) * TASK_GAMES) {
                parser.parse(visitor, texts.text(game), &mut reader, &mut games);
            }
            games
        };
        let tasks = texts.len().div_ceil(TASK_GAMES);
        let parse_all = || (0..tasks).into_par_iter().map_init(Parser::default, parse_task).collect::<Vec<_>>();
        let (next, parsed) = rayon::join(|| splitter.next_texts(), parse_all);
        self.splitter.recycle(texts);
        self.next_texts = Some(next);
        let mut games = Vec::with_capacity(parsed.len());
        for game in parsed.into_iter().flatten() {
            match game {
                Ok(game) => games.push(game),
                Err(skipped) => self.skipped.add(skipped),
            }
        }
        self.games_read += games.len() as u64;
        Ok(Some(games))
    }

    fn read_error(&self, cause: std::io::Error) -> DataError {
        let input = self.input();
        let path = input.origin.path();
        match input.compression.name() {
            "plain" => DataError::Read { path, cause },
            compression => {
                let (at, games) = (self.splitter.bytes_read(), self.games_read);
                DataError::BrokenStream { path, compression, at, games, cause }
            }
        }
    }
}
