//! Reading the games of a file: cut into texts in order, parsed by all cores while the next texts are read, handed out
//! in file order.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position};

use super::player::Scribe;
use super::splitter::{Splitter, Texts};
use super::{Eval, Head, Parser, SkipReason, SkippedGame};
use crate::data::input::{Input, Origin};
use crate::data::{DataError, GameResult};
use crate::units::Ply;

/// A game read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    /// Where its text begins, in bytes of the decompressed file.
    pub offset: u64,
    pub start: Chess,
    pub moves: Vec<PlayedMove>,
    /// White's view; none for `*` or where there is no `Result` tag and no result at the end of the moves.
    pub result: Option<GameResult>,
}

/// A move of the game and what its comment says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PlayedMove {
    pub mv: Move,
    /// White's view, of the position after the move.
    pub eval: Option<Eval>,
}

/// The ply of the first move from `start`: 0, or what the move number of the position says.
#[must_use]
pub fn first_ply(start: &Chess) -> Ply {
    let plies = (start.fullmoves().get() - 1).saturating_mul(2);
    Ply(plies.saturating_add(u32::from(start.turn().is_black())).min(u32::from(u16::MAX)) as u16)
}

/// Opens a file of games: PGN, plain or compressed with zstd, gzip or bzip2.
///
/// # Errors
/// When the file cannot be read or is no file of games.
pub fn games(path: &Path) -> Result<Games, DataError> {
    let reading = Reading::new(Input::open(&Origin::File(path.into()))?, Whole);
    Ok(Games { reading, ready: VecDeque::new(), failure: None })
}

/// The games of a file, in file order. Broken games are passed over and counted. When the file itself breaks off, the
/// games before that come first, then one error, then nothing.
pub struct Games {
    reading: Reading<Whole>,
    ready: VecDeque<Game>,
    failure: Option<DataError>,
}

impl Games {
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.reading.skipped
    }

    #[must_use]
    pub fn compression(&self) -> &'static str {
        self.reading.compression()
    }
}

impl Iterator for Games {
    type Item = Result<Game, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(game) = self.ready.pop_front() {
                return Some(Ok(game));
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(failure));
            }
            match self.reading.batch() {
                Ok(Some(games)) => self.ready.extend(games),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Keeps games whole.
pub(super) struct Whole;

impl Scribe for Whole {
    type Page = Vec<PlayedMove>;
    type Kept = Game;

    fn open(&self, _: &Head, _: usize) -> ControlFlow<Game, Vec<PlayedMove>> {
        ControlFlow::Continue(Vec::with_capacity(128))
    }

    fn ply(&self, moves: &mut Vec<PlayedMove>, _: &Chess, mv: Move) {
        moves.push(PlayedMove { mv, eval: None });
    }

    fn eval(&self, moves: &mut Vec<PlayedMove>, eval: Eval) {
        if let Some(played) = moves.last_mut() {
            played.eval = Some(eval);
        }
    }

    fn close(&self, moves: Vec<PlayedMove>, head: Head, result: Option<GameResult>) -> Game {
        Game { offset: head.offset, start: head.start, moves, result }
    }
}

/// What was passed over so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub by_reason: BTreeMap<SkipReason, u64>,
    /// The first few.
    pub examples: Vec<SkippedGame>,
}

impl Skipped {
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

/// The games of one input as a scribe keeps them, a batch at a time.
pub struct Reading<S> {
    scribe: S,
    splitter: Splitter,
    /// Read while the batch before was parsed.
    ahead: Option<Texts>,
    /// Games handed out.
    read: u64,
    pub skipped: Skipped,
}

/// Games read by one reader, one after the other.
const GROUP: usize = 16;

impl<S: Scribe> Reading<S> {
    pub fn new(input: Input, scribe: S) -> Reading<S> {
        Reading { scribe, splitter: Splitter::new(input), ahead: None, read: 0, skipped: Skipped::default() }
    }

    pub fn compression(&self) -> &'static str {
        self.splitter.input().compression.name()
    }

    pub fn input(&self) -> &Input {
        self.splitter.input()
    }

    /// The next games, in file order; none at the end. A batch may be empty.
    ///
    /// # Errors
    /// When the input breaks off, after all games before that.
    pub fn batch(&mut self) -> Result<Option<Vec<S::Kept>>, DataError> {
        let Reading { scribe, splitter, ahead, .. } = self;
        let scribe = &*scribe;
        let now = ahead.take().unwrap_or_else(|| splitter.next());
        if now.is_empty() {
            return splitter.failure().map_or(Ok(None), |cause| Err(self.broken(cause)));
        }
        let parse = |parser: &mut Parser, group: usize| {
            let mut games = Vec::with_capacity(GROUP);
            let mut reader = None;
            for game in group * GROUP..now.len().min((group + 1) * GROUP) {
                let (rest, length, offset) = now.from(game);
                parser.parse(scribe, rest, length, offset, &mut reader, &mut games);
            }
            games
        };
        let groups = now.len().div_ceil(GROUP);
        let parse = || (0..groups).into_par_iter().map_init(Parser::default, parse).collect::<Vec<_>>();
        let (next, parsed) = rayon::join(|| splitter.next(), parse);
        self.splitter.recycle(now);
        self.ahead = Some(next);
        let mut games = Vec::with_capacity(parsed.len());
        for game in parsed.into_iter().flatten() {
            match game {
                Ok(game) => games.push(game),
                Err(skipped) => self.skipped.add(skipped),
            }
        }
        self.read += games.len() as u64;
        Ok(Some(games))
    }

    fn broken(&self, cause: std::io::Error) -> DataError {
        let input = self.input();
        let path = input.origin.path();
        match input.compression.name() {
            "plain" => DataError::Read { path, cause },
            compression => {
                DataError::Broken { path, compression, at: self.splitter.bytes_read(), games: self.read, cause }
            }
        }
    }
}
