//! A pool of engines or of networks, each of which searches one position after another.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use shakmaty::{Chess, Position};

use super::scorer::SearchPosition;
use super::{FailReason, LabelSettings};
use crate::chess::fen_of;
use crate::data::Record;
use crate::pipeline::uci::{Answer, Engine, UciError, UciGame, Workers};

/// The outcome of a search.
pub enum SearchOutcome {
    Answered(Answer),
    Failed {
        reason: FailReason,
        message: String,
    },
    /// The engine cannot be started again.
    NoEngine(UciError),
}

pub struct SearchedRecord {
    pub number: u32,
    pub outcome: SearchOutcome,
    /// Engines that died or were killed during the search.
    pub engines_lost: u64,
}

/// Chooses the records to search and receives the outcomes.
pub trait SearchQueue {
    type Error;
    /// The number of the next record to search.
    fn next(&mut self) -> Option<u32>;
    /// Receives an outcome; an error ends the search of all records.
    fn receive(&mut self, searched: SearchedRecord) -> Result<(), Self::Error>;
}

/// Searches the records of `queue` with `searchers`, one thread each. Outcomes arrive in no fixed order.
pub fn search_all<Q: SearchQueue>(
    records: &[Record],
    searchers: Vec<PositionSearcher<'_>>,
    queue: &mut Q,
) -> Result<(), Q::Error> {
    // Relaxed: records and answers come by the channels.
    let stop = AtomicBool::new(false);
    let (jobs, waiting) = channel();
    let waiting = Mutex::new(waiting);
    let concurrency = searchers.len();
    std::thread::scope(|scope| {
        let (sender, results) = channel();
        for searcher in searchers {
            let sender = sender.clone();
            let waiting = &waiting;
            let stop = &stop;
            scope.spawn(move || run(searcher, records, waiting, &sender, stop));
        }
        drop(sender);
        // Each worker has at most two records: one being searched, one waiting.
        let mut in_flight = 0;
        let mut result = Ok(());
        loop {
            while in_flight < 2 * concurrency
                && let Some(number) = queue.next()
                && jobs.send(number).is_ok()
            {
                in_flight += 1;
            }
            if in_flight == 0 {
                break;
            }
            let Ok(searched) = results.recv() else { break };
            in_flight -= 1;
            result = queue.receive(searched);
            if result.is_err() {
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
        drop(jobs);
        // Answers still in flight are kept too; the first error is the one returned.
        for searched in results {
            if matches!(searched.outcome, SearchOutcome::Answered(_)) {
                result = result.and(queue.receive(searched));
            }
        }
        result
    })
}

/// What searches the positions of one thread.
pub enum PositionSearcher<'a> {
    Engine(Box<UciSearcher<'a>>),
    Network(SearchPosition<'a>),
}

/// Searches the records that are waiting, until no more can come.
fn run(
    mut searcher: PositionSearcher<'_>,
    records: &[Record],
    waiting: &Mutex<Receiver<u32>>,
    results: &Sender<SearchedRecord>,
    stop: &AtomicBool,
) {
    loop {
        // The lock is never poisoned: nothing panics while it is held.
        let job = waiting.lock().map(|waiting| waiting.recv());
        let Ok(Ok(number)) = job else { return };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let outcome = searcher.search_record(&records[number as usize], stop);
        let engines_lost = match &mut searcher {
            PositionSearcher::Engine(engine) => std::mem::take(&mut engine.engines_lost),
            PositionSearcher::Network(_) => 0,
        };
        if results.send(SearchedRecord { number, outcome, engines_lost }).is_err() {
            return;
        }
    }
}

impl PositionSearcher<'_> {
    fn search_record(&mut self, record: &Record, stop: &AtomicBool) -> SearchOutcome {
        let position = match record.position() {
            Ok(position) => position,
            Err(error) => return SearchOutcome::Failed { reason: FailReason::NotLegal, message: error.to_string() },
        };
        let is_over = || {
            let message = "the game is over in this position".into();
            SearchOutcome::Failed { reason: FailReason::NoLegalMove, message }
        };
        match self {
            _ if position.legal_moves().is_empty() => is_over(),
            PositionSearcher::Engine(engine) => engine.search_position(&position, stop),
            PositionSearcher::Network(search) => search(&position).map_or_else(is_over, SearchOutcome::Answered),
        }
    }
}

/// Searches with a UCI engine.
pub struct UciSearcher<'a> {
    settings: &'a LabelSettings,
    answer_timeout: Duration,
    /// `None` before the first position and after a failure.
    engine: Option<Engine>,
    engines_lost: u64,
}

impl<'a> UciSearcher<'a> {
    /// `engine`: one that runs already.
    pub fn new(settings: &'a LabelSettings, workers: &Workers, engine: Option<Engine>) -> UciSearcher<'a> {
        UciSearcher { settings, answer_timeout: workers.answer_timeout, engine, engines_lost: 0 }
    }

    /// Searches a position; tries again as often as the settings allow.
    fn search_position(&mut self, position: &Chess, stop: &AtomicBool) -> SearchOutcome {
        let game = UciGame { start: fen(position), ..UciGame::new(position) };
        let mut retries = self.settings.retries;
        loop {
            let failure = match self.search(&game, position) {
                Ok(answer) => return SearchOutcome::Answered(answer),
                Err(failure) => failure,
            };
            if retries == 0 || stop.load(Ordering::Relaxed) {
                return failure;
            }
            retries -= 1;
        }
    }

    /// Searches once, with a new engine if no engine is running.
    fn search(&mut self, game: &UciGame, position: &Chess) -> Result<Answer, SearchOutcome> {
        let mut engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::start(&self.settings.engine, self.answer_timeout).map_err(SearchOutcome::NoEngine)?,
        };
        let answer = engine.new_game().and_then(|()| engine.search(game, position, self.settings.limit));
        match answer {
            Ok(answer) => {
                self.engine = Some(engine);
                Ok(answer)
            }
            // Another try would meet the same refusal.
            Err(error) if error.is_request() => Err(SearchOutcome::NoEngine(error)),
            Err(error) => {
                self.engines_lost += 1;
                Err(SearchOutcome::Failed { reason: FailReason::of(&error), message: error.to_string() })
            }
        }
    }
}

/// The FEN sent to the engine. It has the lowest move number that the rule-50 counter allows, so that the answer is the
/// same for every record with this position.
fn fen(position: &Chess) -> String {
    let fen = fen_of(position);
    let number = 1 + position.halfmoves().div_ceil(2);
    fen.rsplit_once(' ').map(|(fields, _)| format!("{fields} {number}")).unwrap_or(fen)
}
