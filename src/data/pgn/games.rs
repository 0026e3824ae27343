//! Reads the games of a file. The file is cut into texts in order; all cores parse them while the next ones are read;
//! games come out in file order.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position};

use super::splitter::{GameTexts, Splitter};
use super::{
    Eval, EvalOptions, EvalUnit, EvalView, GameHeader, GameVisitor, ParsedGames, PgnNotes, PgnParser, SkipReason,
    SkippedGame, WholeNumbers,
};
use crate::cpu::{map_tasks, run_beside};
use crate::data::input::{Input, InputPath};
use crate::data::{DataError, GameResult};
use crate::units::{Ply, SortedMap};

/// A game read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgnGame {
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
    let reader = GameReader::new(Input::open(&InputPath::File(path.into()))?, GameCollector, EvalOptions::default());
    Ok(Games { reader, ready: VecDeque::new() })
}

/// The games of a file, in file order. Malformed games are skipped and counted. When the file itself is cut off or
/// damaged, the games before that come first, then one error, then nothing.
pub struct Games {
    reader: GameReader<GameCollector>,
    ready: VecDeque<PgnGame>,
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
    type Item = Result<PgnGame, DataError>;

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
    type Output = PgnGame;

    fn begin_game(&self, _: &GameHeader, _: usize) -> ControlFlow<PgnGame, Vec<PlayedMove>> {
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

    fn end_game(&self, moves: Vec<PlayedMove>, header: GameHeader, result: Option<GameResult>) -> PgnGame {
        PgnGame { offset: header.offset, start: header.start, moves, result }
    }
}

/// The games skipped so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedGames {
    /// Games that were left out, by reason.
    pub by_reason: SortedMap<SkipReason, u64>,
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
        *self.by_reason.get_or_default(game.reason) += 1;
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
    options: EvalOptions,
    /// How scores without a point are read, once the options or the file decide it.
    whole_numbers: Option<WholeNumbers>,
    pub skipped: SkippedGames,
    notes: PgnNotes,
}

/// Games that one task parses.
const TASK_GAMES: usize = 16;

impl<V: GameVisitor> GameReader<V> {
    pub fn new(input: Input, visitor: V, options: EvalOptions) -> GameReader<V> {
        GameReader {
            visitor,
            splitter: Splitter::new(input),
            next_texts: None,
            games_read: 0,
            options,
            whole_numbers: options.whole_numbers(),
            skipped: SkippedGames::default(),
            notes: PgnNotes::default(),
        }
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
        let texts = self.next_texts.take().unwrap_or_else(|| self.splitter.next_texts());
        if texts.is_empty() {
            return self.splitter.take_failure().map_or(Ok(None), |cause| Err(self.read_error(cause)));
        }
        let GameReader { visitor, splitter, .. } = self;
        let rules = self.options.rules(self.whole_numbers.unwrap_or(WholeNumbers::Pawns));
        let mut next = None;
        let mut parsed = Vec::new();
        run_beside(&mut || next = Some(splitter.next_texts()), &mut || {
            parsed = parse_texts(&*visitor, &texts, &|| PgnParser::new(rules));
        });
        if self.whole_numbers.is_none() {
            self.whole_numbers = self.decide_whole_numbers(&parsed)?;
            if let Some(decided) = self.whole_numbers.filter(|decided| *decided != WholeNumbers::Pawns) {
                let rules = self.options.rules(decided);
                parsed = parse_texts(&self.visitor, &texts, &|| PgnParser::new(rules));
            }
        }
        self.splitter.recycle(texts);
        self.next_texts = next;
        let mut games = Vec::with_capacity(parsed.iter().map(|parsed| parsed.games.len()).sum());
        for task in parsed {
            self.notes.add(task.notes);
            for game in task.games {
                match game {
                    Ok(game) => games.push(game),
                    Err(skipped) => self.skipped.add(skipped),
                }
            }
        }
        self.games_read += games.len() as u64;
        Ok(Some(games))
    }

    /// The unusual features of the games so far, and how they were read.
    pub fn notes(&self) -> PgnNotes {
        let mut notes = self.notes.clone();
        if notes.whole_numbers > 0 {
            notes.whole_numbers_read_as = self.whole_numbers;
            notes.view = Some(self.options.eval_view.unwrap_or(EvalView::White));
            notes.unit_was_given = self.options.eval_unit.is_some();
        }
        notes
    }

    /// How scores without a point are read, where the games of a batch decide it: they have a point, or they have such
    /// scores and the whole file must be searched for a point. Depends on the file alone, not on the batches.
    fn decide_whole_numbers(&self, parsed: &[ParsedGames<V::Output>]) -> Result<Option<WholeNumbers>, DataError> {
        if parsed.iter().any(|task| task.notes.points) {
            return Ok(Some(WholeNumbers::Pawns));
        }
        if parsed.iter().all(|task| task.notes.whole_numbers == 0) {
            return Ok(None);
        }
        let origin = self.input().origin.clone();
        if origin == InputPath::Stdin {
            let reason = "its first scores have no point, and it cannot be read twice to find one: say --eval-unit cp \
                          or pawns";
            return Err(DataError::Input { input: origin.path().display().to_string(), reason: reason.into() });
        }
        let pawns = EvalOptions { eval_unit: Some(EvalUnit::Pawns), ..self.options };
        let mut search = GameReader::new(Input::open(&origin)?, ScoresOnly, pawns);
        // Damage is reported when the games are read.
        while let Ok(Some(_)) = search.next_batch() {
            if search.notes.points {
                return Ok(Some(WholeNumbers::Pawns));
            }
        }
        Ok(Some(if search.notes.commas { WholeNumbers::DecimalComma } else { WholeNumbers::Centipawns }))
    }

    fn read_error(&self, cause: std::io::Error) -> DataError {
        let input = self.input();
        let path = input.origin.path();
        match input.compression.name() {
            "plain" => DataError::Read { path, cause },
            compression => {
                let at = self.splitter.bytes_read();
                let games = self.games_read;
                DataError::BrokenStream { path, compression, at, games, cause }
            }
        }
    }
}

/// Parses texts on all cores, a few games a task; the tasks come in the order of the texts.
fn parse_texts<V: GameVisitor>(
    visitor: &V,
    texts: &GameTexts,
    parser: &(dyn Fn() -> PgnParser + Sync),
) -> Vec<ParsedGames<V::Output>> {
    // A parser remembers whether its fast reader fails, so it is handed on from task to task.
    let idle: Mutex<Vec<PgnParser>> = Mutex::new(Vec::new());
    let idle_parsers = || idle.lock().unwrap_or_else(PoisonError::into_inner);
    map_tasks(texts.len().div_ceil(TASK_GAMES), &|task| {
        let found = idle_parsers().pop();
        let mut parser = found.unwrap_or_else(parser);
        let mut parsed = ParsedGames::with_capacity(TASK_GAMES);
        let mut reader = None;
        for game in task * TASK_GAMES..texts.len().min((task + 1) * TASK_GAMES) {
            parser.parse(visitor, texts.text(game), &mut reader, &mut parsed);
        }
        idle_parsers().push(parser);
        parsed
    })
}

/// Reads games for the notes on their scores alone.
struct ScoresOnly;

impl GameVisitor for ScoresOnly {
    type State = ();
    type Output = ();

    fn begin_game(&self, _: &GameHeader, _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn visit_move(&self, (): &mut (), _: &Chess, _: Move) {}

    fn visit_eval(&self, (): &mut (), _: Eval) {}

    fn end_game(&self, (): (), _: GameHeader, _: Option<GameResult>) {}
}
