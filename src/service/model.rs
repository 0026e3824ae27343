//! The ring's protocol under a model checker, which runs it in all orders of its threads' steps, with the values that
//! atomics may have on a CPU of weak memory order such as ARM's.
//!
//! The files below are the library's own, compiled a second time with the checker's primitives. What threads pass on
//! stands in cells that the checker watches: an access that no synchronisation orders ends the test. The pipe between
//! two processes is a lock with a queue: system calls of one pipe lock it in the kernel.

#![allow(clippy::duplicate_mod, reason = "the code under test is the library's own, over other primitives")]

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use super::{END, MAX_SLOTS, ServiceError, Shard, SlotHeader};
use crate::data::CompactRecord;
use control::{NextSlot, StreamControl, StreamEnd};
use exchange::{announce, listen};
use sample_cell::SampleCell;
use shared_tasks::SharedTasks;
use sync::{Condvar, Mutex, explore, explore_interrupted, lock};

#[path = "control.rs"]
#[allow(dead_code, reason = "other modules use the rest")]
mod control;
#[path = "exchange.rs"]
mod exchange;
#[path = "sample_cell.rs"]
mod sample_cell;
#[path = "shared_tasks.rs"]
mod shared_tasks;

/// As `service::sync`.
mod sync {
    use std::sync::PoisonError;

    use loom::model::Builder;
    pub use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    pub use loom::sync::{Condvar, Mutex, MutexGuard};

    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn explore(test: impl Fn() + Send + Sync + 'static) {
        explore_interrupted(3, test);
    }

    /// All orders in which threads are interrupted at most so many times where they need not wait.
    pub fn explore_interrupted(times: usize, test: impl Fn() + Send + Sync + 'static) {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(times);
        builder.check(test);
    }
}

/// A stream whose slots hold the numbers of their batches.
struct Ring {
    control: StreamControl,
    slots: Vec<UnsafeCell<u64>>,
}

impl Ring {
    #[allow(clippy::arc_with_non_send_sync, reason = "the checker's threads take turns in one")]
    fn open(slots: usize, batches: u64) -> Arc<Ring> {
        let control = StreamControl::default();
        control.open(slots, 0, Some(batches), Shard::WHOLE);
        Arc::new(Ring { control, slots: (0..slots).map(|_| UnsafeCell::new(u64::MAX)).collect() })
    }

    #[allow(unsafe_code, reason = "the checker watches the access")]
    fn write(&self, slot: usize, batch: u64) {
        // SAFETY: the checker stops at an access that races with this one.
        self.slots[slot].with_mut(|number| unsafe { *number = batch });
    }

    #[allow(unsafe_code, reason = "the checker watches the access")]
    fn read(&self, slot: u8) -> u64 {
        // SAFETY: the checker stops at an access that races with this one.
        self.slots[usize::from(slot)].with(|number| unsafe { *number })
    }

    /// A worker, as `serve::fill_slots`.
    fn fill_slots(&self) {
        while let Some(claim) = self.control.claim() {
            self.write(claim.slot(), claim.batch());
            let header = SlotHeader { batch: claim.batch(), ..SlotHeader::default() };
            self.control.fill(claim, header);
        }
    }

    fn start_worker(self: &Arc<Ring>) -> thread::JoinHandle<()> {
        let ring = Arc::clone(self);
        thread::spawn(move || ring.fill_slots())
    }

    /// A consumer in this process. `is_hasty`: it gives a slot back before it has read it.
    fn consume(&self, is_hasty: bool) {
        let mut expected = 0;
        loop {
            match self.control.next_announcement() {
                NextSlot::Batch(slot, header) => {
                    if is_hasty {
                        self.control.give_back(slot).expect("held");
                    }
                    assert_eq!((self.read(slot), header.batch), (expected, expected));
                    if !is_hasty {
                        self.control.give_back(slot).expect("held");
                    }
                    expected += 1;
                }
                NextSlot::Complete => return,
                NextSlot::Ended => unreachable!("nobody ends the stream"),
            }
        }
    }
}

#[test]
fn two_workers_fill_what_a_consumer_reads() {
    explore(|| {
        let ring = Ring::open(2, 3);
        let workers = [ring.start_worker(), ring.start_worker()];
        ring.consume(false);
        for worker in workers {
            worker.join().expect("no panic");
        }
    });
}

/// The checker does see what the protocol prevents.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_slot_that_was_given_back_too_early_is_a_race() {
    explore(|| {
        let ring = Ring::open(1, 2);
        let worker = ring.start_worker();
        ring.consume(true);
        worker.join().expect("no panic");
    });
}

/// A worker that fails while others wait ends the stream for all.
#[test]
fn a_failure_wakes_everyone() {
    explore(|| {
        let ring = Ring::open(1, 3);
        let worker = ring.start_worker();
        let failing = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                if ring.control.claim().is_some() {
                    ring.control.end(StreamEnd::Failed(ServiceError::Worker("a test".into())));
                }
            })
        };
        loop {
            match ring.control.next_announcement() {
                NextSlot::Batch(slot, header) => {
                    assert_eq!(ring.read(slot), header.batch);
                    ring.control.give_back(slot).expect("held");
                }
                NextSlot::Complete => break,
                NextSlot::Ended => {
                    assert!(ring.control.take_failure().is_some());
                    break;
                }
            }
        }
        failing.join().expect("no panic");
        worker.join().expect("no panic");
    });
}

/// Either end of a pipe.
#[derive(Clone)]
struct ModelPipe(Arc<(Mutex<PipeContent>, Condvar)>);

#[derive(Default)]
struct PipeContent {
    bytes: VecDeque<u8>,
    is_closed: bool,
}

impl ModelPipe {
    fn new() -> ModelPipe {
        ModelPipe(Arc::new((Mutex::default(), Condvar::new())))
    }

    fn close(&self) {
        lock(&self.0.0).is_closed = true;
        self.0.1.notify_all();
    }
}

impl Write for ModelPipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            lock(&self.0.0).bytes.extend(bytes);
            self.0.1.notify_all();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for ModelPipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut content = lock(&self.0.0);
        while content.bytes.is_empty() && !content.is_closed {
            content = self.0.1.wait(content).expect("no panic");
        }
        content.bytes.read(buffer)
    }
}

/// A consumer in another process, as PROTOCOL.md describes it.
fn consume_by_pipe(ring: &Ring, mut from_service: ModelPipe, mut to_service: ModelPipe) {
    let mut byte = [0];
    let mut expected = 0;
    loop {
        from_service.read_exact(&mut byte).expect("open");
        let [slot] = byte;
        if slot == END {
            return to_service.close();
        }
        assert_eq!(ring.read(slot), expected);
        to_service.write_all(&byte).expect("open");
        expected += 1;
    }
}

#[test]
fn slots_pass_between_processes() {
    // With three interruptions this alone takes a minute.
    explore_interrupted(2, || {
        let ring = Ring::open(1, 2);
        let [output, input] = [ModelPipe::new(), ModelPipe::new()];
        let worker = ring.start_worker();
        let consumer = {
            let (ring, output, input) = (Arc::clone(&ring), output.clone(), input.clone());
            thread::spawn(move || consume_by_pipe(&ring, output, input))
        };
        let listener = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || listen(input, &ring.control))
        };
        let mut mapped = 0;
        announce("", &ring.control, &mut output.clone(), &mut || mapped += 1).expect("open");
        // With one slot, the first is back before the second batch is announced.
        assert_eq!(mapped, 1);
        for thread in [worker, consumer, listener] {
            thread.join().expect("no panic");
        }
        assert!(matches!(ring.control.take_end(), Some(StreamEnd::Finished | StreamEnd::Stopped)));
    });
}

/// A window of samples that is decoded by tasks.
struct Window {
    tasks: SharedTasks,
    cells: Vec<SampleCell>,
    failing: Option<usize>,
}

impl Window {
    fn new(tasks: usize, failing: Option<usize>) -> Arc<Window> {
        let cells = (0..tasks).map(|_| SampleCell::default()).collect();
        Arc::new(Window { tasks: SharedTasks::new(tasks), cells, failing })
    }

    fn sample(task: usize) -> [u64; 4] {
        [task as u64, 7, 8, u64::MAX]
    }

    /// As `BinpackWindow::decode`; whether all samples may be read.
    fn decode(&self, is_hasty: bool) -> bool {
        let should_stop = || false;
        let done = self.tasks.run(&should_stop, &mut |task| {
            if self.failing == Some(task) {
                return Err(ServiceError::Worker("a test".into()));
            }
            self.cells[task].store(CompactRecord::from_words(Window::sample(task)));
            Ok(())
        });
        done.is_ok() && (is_hasty || self.tasks.wait(&should_stop))
    }

    fn check(&self, is_hasty: bool) {
        if self.decode(is_hasty) {
            assert!(self.failing.is_none(), "a failed task was taken for done");
            for (task, cell) in self.cells.iter().enumerate() {
                assert_eq!(cell.load().words(), Window::sample(task), "a sample was read before it was written");
            }
        }
    }
}

fn decode_by_two_workers(tasks: usize, failing: Option<usize>, is_hasty: bool) {
    explore(move || {
        let window = Window::new(tasks, failing);
        let other = {
            let window = Arc::clone(&window);
            thread::spawn(move || window.check(is_hasty))
        };
        window.check(is_hasty);
        other.join().expect("no panic");
        assert_eq!(window.tasks.are_complete(), failing.is_none());
    });
}

#[test]
fn samples_are_read_after_all_tasks() {
    decode_by_two_workers(3, None, false);
}

#[test]
fn no_worker_reads_samples_of_a_failed_task() {
    decode_by_two_workers(2, Some(1), false);
    decode_by_two_workers(1, Some(0), false);
}

/// The checker does see what the tasks' lock prevents.
#[test]
#[should_panic(expected = "a sample was read before it was written")]
fn samples_read_without_waiting_are_not_there() {
    decode_by_two_workers(2, None, true);
}
