//! Engines side by side, each searching one position after another.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use shakmaty::fen::Fen;
use shakmaty::{Chess, EnPassantMode, Position};

use super::{FailReason, LabelSettings};
use crate::data::Record;
use crate::pipeline::uci::{Answer, Engine, UciError, Workers};

/// What came of a position.
pub enum Outcome {
    Found(Answer),
    Failed {
        reason: FailReason,
        message: String,
    },
    /// The engine cannot be started again.
    NoEngine(UciError),
}

/// A searched position.
pub struct Searched {
    pub number: u32,
    pub outcome: Outcome,
    /// Engines that were killed or died on the way.
    pub lost: u64,
}

/// Where positions come from and go to.
pub trait Task {
    type Error;
    /// The number of the next record to search.
    fn next(&mut self) -> Option<u32>;
    /// Takes what came of one; an error ends the work.
    fn keep(&mut self, searched: Searched) -> Result<(), Self::Error>;
}

/// Searches the records of a task on `workers.concurrency` engines, `first` among them. They end in no fixed order.
pub fn search_all<T: Task>(
    records: &[Record],
    settings: &LabelSettings,
    workers: &Workers,
    first: Engine,
    task: &mut T,
) -> Result<(), T::Error> {
    let stop = AtomicBool::new(false);
    let (jobs, queue) = channel();
    let queue = Mutex::new(queue);
    let concurrency = workers.concurrency.clamp(1, Workers::MOST);
    std::thread::scope(|scope| {
        let (sender, results) = channel();
        let mut first = Some(first);
        for _ in 0..concurrency {
            let worker = Worker { settings, patience: workers.answer_timeout, engine: first.take(), lost: 0 };
            let (sender, queue, stop) = (sender.clone(), &queue, &stop);
            scope.spawn(move || worker.run(records, queue, &sender, stop));
        }
        drop(sender);
        // Two a worker: one under way, one waiting.
        let mut under_way = 0;
        let mut outcome = Ok(());
        loop {
            while under_way < 2 * concurrency
                && let Some(number) = task.next()
                && jobs.send(number).is_ok()
            {
                under_way += 1;
            }
            if under_way == 0 {
                break;
            }
            let Ok(searched) = results.recv() else { break };
            under_way -= 1;
            outcome = task.keep(searched);
            if outcome.is_err() {
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
        drop(jobs);
        // What was under way is kept too; the first failure is the one reported.
        for searched in results {
            if matches!(searched.outcome, Outcome::Found(_)) {
                outcome = outcome.and(task.keep(searched));
            }
        }
        outcome
    })
}

struct Worker<'a> {
    settings: &'a LabelSettings,
    patience: Duration,
    /// None before the first position and after a failure.
    engine: Option<Engine>,
    lost: u64,
}

impl Worker<'_> {
    fn run(mut self, records: &[Record], queue: &Mutex<Receiver<u32>>, results: &Sender<Searched>, stop: &AtomicBool) {
        loop {
            // A worker that panicked held no lock: nothing here panics with it.
            let job = queue.lock().map(|queue| queue.recv());
            let Ok(Ok(number)) = job else { return };
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let outcome = self.look_at(&records[number as usize], stop);
            let lost = std::mem::take(&mut self.lost);
            if results.send(Searched { number, outcome, lost }).is_err() {
                return;
            }
        }
    }

    fn look_at(&mut self, record: &Record, stop: &AtomicBool) -> Outcome {
        let position = match record.position() {
            Ok(position) => position,
            Err(error) => return Outcome::Failed { reason: FailReason::NotLegal, message: error.to_string() },
        };
        if position.legal_moves().is_empty() {
            let message = "the game is over there".into();
            return Outcome::Failed { reason: FailReason::NoLegalMove, message };
        }
        let fen = fen(&position);
        let mut tries = self.settings.retries;
        loop {
            let failure = match self.search(&fen, &position) {
                Ok(answer) => return Outcome::Found(answer),
                Err(failure) => failure,
            };
            if tries == 0 || stop.load(Ordering::Relaxed) {
                return failure;
            }
            tries -= 1;
        }
    }

    /// One try, on a new engine where there is none.
    fn search(&mut self, fen: &str, position: &Chess) -> Result<Answer, Outcome> {
        let mut engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::start(&self.settings.engine, self.patience).map_err(Outcome::NoEngine)?,
        };
        let answer = engine.new_game().and_then(|()| engine.search(fen, "", position, self.settings.limit));
        match answer {
            Ok(answer) => {
                self.engine = Some(engine);
                Ok(answer)
            }
            Err(error) => {
                self.lost += 1;
                Err(Outcome::Failed { reason: FailReason::of(&error), message: error.to_string() })
            }
        }
    }
}

/// What the engine is told: with the lowest move number the rule-50 counter allows, so that the answer is the same for
/// every record that holds the position.
fn fen(position: &Chess) -> String {
    let fen = Fen::from_position(position, EnPassantMode::Legal).to_string();
    let number = 1 + position.halfmoves().div_ceil(2);
    fen.rsplit_once(' ').map(|(fields, _)| format!("{fields} {number}")).unwrap_or(fen)
}
