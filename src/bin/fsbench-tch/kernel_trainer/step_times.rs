//! Where a step's time goes on the device: every few steps are timed, by events in its queues.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use fsbench::train::TrainError;
use fsbench::train::tch_program::NAME;
use serde_json::{Map, Value};

use crate::kernels::streams::{Event, Queue, Streams};

/// Environment variable that makes a run on a GPU say, at the end of each epoch, how long the parts of a step took.
pub const STEP_TIMES: &str = "FSBENCH_STEP_TIMES";

/// Of so many steps, one is timed, so that a step takes no longer for it.
const EVERY: u64 = 8;
/// Spans that wait to be read: those of several steps, so that the host waits for none.
const MOST_UNREAD: usize = 64;

/// A part of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The kernels' queue is empty, or waits for a copy.
    Waiting,
    /// Rows of the table to activations.
    Forward,
    /// The dense layers and the loss, and their gradients.
    Dense,
    /// The gradients of activations to the table's.
    Backward,
    Update,
    /// The copy of a batch, beside the other parts.
    Copying,
}

const PARTS: [(Part, &str); 6] = [
    (Part::Waiting, "waiting"),
    (Part::Forward, "forward"),
    (Part::Dense, "dense"),
    (Part::Backward, "backward"),
    (Part::Update, "update"),
    (Part::Copying, "copying"),
];

/// The times of a run's steps since the last report.
pub struct StepTimes {
    streams: Rc<dyn Streams>,
    /// Steps so far, timed or not.
    steps: Cell<u64>,
    /// Whether the step in the making is timed.
    timed: Cell<bool>,
    /// The end of its last part.
    last: Cell<Option<Event>>,
    work: RefCell<Work>,
}

#[derive(Default)]
struct Work {
    free: Vec<Event>,
    /// The oldest first.
    unread: VecDeque<Span>,
    sums: [Duration; PARTS.len()],
    timed_steps: u64,
}

struct Span {
    start: Event,
    end: Event,
    part: Part,
    /// Whether no other span starts where this one ends.
    is_last: bool,
}

impl StepTimes {
    pub fn new(streams: Rc<dyn Streams>) -> StepTimes {
        StepTimes {
            streams,
            steps: Cell::new(0),
            timed: Cell::new(false),
            last: Cell::new(None),
            work: RefCell::default(),
        }
    }

    /// The place that a queue has reached, if this step is timed.
    ///
    /// # Errors
    /// When the device fails, here and below.
    pub fn now(&self, queue: Queue) -> Result<Option<Event>, TrainError> {
        if !self.timed.get() {
            return Ok(None);
        }
        let free = self.work.borrow_mut().free.pop();
        let event = match free {
            Some(event) => event,
            None => self.streams.timer()?,
        };
        self.streams.record(event, queue)?;
        Ok(Some(event))
    }

    /// To be called when a batch's copy was started; `start`: before it.
    ///
    /// # Errors
    /// As [`StepTimes::now`].
    pub fn copied(&self, start: Option<Event>) -> Result<(), TrainError> {
        let Some(start) = start else { return Ok(()) };
        let Some(end) = self.now(Queue::Copies)? else { return Ok(()) };
        self.note(Span { start, end, part: Part::Copying, is_last: true })
    }

    /// To be called when a part's kernels were started.
    ///
    /// # Errors
    /// As [`StepTimes::now`].
    pub fn ended(&self, part: Part) -> Result<(), TrainError> {
        let Some(end) = self.now(Queue::Compute)? else { return Ok(()) };
        let Some(start) = self.last.replace(Some(end)) else { return Ok(()) };
        self.note(Span { start, end, part, is_last: part == Part::Update })
    }

    /// To be called when all of a step was started.
    ///
    /// # Errors
    /// As [`StepTimes::now`].
    pub fn step_ended(&self) -> Result<(), TrainError> {
        self.work.borrow_mut().timed_steps += u64::from(self.timed.get());
        self.steps.set(self.steps.get() + 1);
        self.timed.set(self.steps.get().is_multiple_of(EVERY));
        let start = self.now(Queue::Compute)?;
        self.last.set(start);
        Ok(())
    }

    fn note(&self, span: Span) -> Result<(), TrainError> {
        let mut work = self.work.borrow_mut();
        work.unread.push_back(span);
        if work.unread.len() > MOST_UNREAD { self.read(&mut work) } else { Ok(()) }
    }

    /// Reads the oldest span.
    fn read(&self, work: &mut Work) -> Result<(), TrainError> {
        let Some(Span { start, end, part, is_last }) = work.unread.pop_front() else { return Ok(()) };
        self.streams.host_waits(end)?;
        work.sums[part as usize] += self.streams.elapsed(start, end)?;
        work.free.push(start);
        if is_last {
            work.free.push(end);
        }
        Ok(())
    }

    /// Waits for all steps and says how long their parts took on average, in µs, on standard error.
    ///
    /// # Errors
    /// As [`StepTimes::now`].
    pub fn report(&self) -> Result<(), TrainError> {
        let mut work = self.work.borrow_mut();
        while !work.unread.is_empty() {
            self.read(&mut work)?;
        }
        // The next step is not timed: before it may come a validation.
        self.timed.set(false);
        work.free.extend(self.last.take());
        let sums = std::mem::take(&mut work.sums);
        let steps = std::mem::take(&mut work.timed_steps);
        if steps == 0 {
            return Ok(());
        }
        let mut all = Map::new();
        all.insert("timed_steps".into(), steps.into());
        for (part, name) in PARTS {
            let microseconds = sums[part as usize].as_secs_f64() * 1e6 / steps as f64;
            all.insert(name.into(), microseconds.into());
        }
        let _ = writeln!(io::stderr(), "{NAME}: step times in µs: {}", Value::Object(all));
        Ok(())
    }
}
