//! The queues of the emulated device, which hides no missing wait. Kernels run at once. A copy to the device runs when the
//! kernels' queue or the host waits for it, a copy to the host when the host does: whoever does not wait finds old
//! numbers. Copying into memory that a kernel may still read is an error, as is copying from memory whose last copy
//! the host did not wait for.
#![allow(unsafe_code, reason = "copies between memories take pointers")]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fsbench::train::TrainError;

use super::streams::{Event, Queue, Streams};

/// See the module.
pub struct EmulatedStreams {
    /// Kernels started so far.
    started: Rc<Cell<u64>>,
    /// Whether memory can be pinned.
    pins: bool,
    work: RefCell<Work>,
}

#[derive(Default)]
struct Work {
    /// What waits in the queue of copies.
    copies: VecDeque<Waiting>,
    /// Copies to the host that wait, with their number.
    downloads: VecDeque<(usize, *mut u8, Vec<u8>)>,
    downloads_begun: usize,
    events: Vec<Recorded>,
    /// Memory of the device to which was copied.
    regions: Vec<Region>,
    /// Kernels for whose end the queue of copies waits.
    awaited: u64,
    /// Memory of the host whose copy the host did not wait for.
    leaving: Vec<(Range<usize>, Option<Event>)>,
}

enum Waiting {
    Copy { to: *mut u8, from: *const u8, bytes: usize },
    Event(Event),
}

#[derive(Copy, Clone, Default)]
struct Recorded {
    /// Whether it is at the queue of copies, and not yet passed.
    waits: bool,
    /// Kernels started when it was recorded in their queue.
    started: u64,
    downloads: usize,
    /// When it was passed.
    at: Option<Instant>,
}

struct Region {
    memory: Range<usize>,
    state: Use,
}

#[derive(Copy, Clone, PartialEq)]
enum Use {
    /// The kernels have not waited for the copy.
    Copied,
    /// Kernels may read it from now on.
    Read,
    /// Only so many first kernels could read it.
    Done(u64),
}

fn fault(why: &str) -> TrainError {
    TrainError::Device { library: "emulated GPU", why: why.into() }
}

impl EmulatedStreams {
    pub fn new(started: Rc<Cell<u64>>) -> EmulatedStreams {
        EmulatedStreams { started, pins: true, work: RefCell::default() }
    }

    /// A device that pins no memory.
    #[cfg(test)]
    pub fn without_pins(started: Rc<Cell<u64>>) -> EmulatedStreams {
        EmulatedStreams { pins: false, ..EmulatedStreams::new(started) }
    }
}

impl Work {
    /// Does what waits in the queue of copies, up to an event. Returns the memories copied to.
    fn copy_until(&mut self, event: Event) -> Vec<Range<usize>> {
        let mut copied = Vec::new();
        while self.events.get(event.0).is_some_and(|recorded| recorded.waits) {
            match self.copies.pop_front() {
                Some(Waiting::Copy { to, from, bytes }) => {
                    // SAFETY: as the caller of `upload` promised: both memories are still there.
                    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
                    copied.push(to as usize..to as usize + bytes);
                }
                Some(Waiting::Event(passed)) => {
                    if let Some(recorded) = self.events.get_mut(passed.0) {
                        recorded.waits = false;
                        recorded.at = Some(Instant::now());
                    }
                }
                None => break,
            }
        }
        copied
    }

    fn event(&mut self, event: Event) -> Result<&mut Recorded, TrainError> {
        self.events.get_mut(event.0).ok_or_else(|| fault("an event of another device"))
    }
}

impl Streams for EmulatedStreams {
    fn event(&self) -> Result<Event, TrainError> {
        let events = &mut self.work.borrow_mut().events;
        events.push(Recorded::default());
        Ok(Event(events.len() - 1))
    }

    fn timer(&self) -> Result<Event, TrainError> {
        self.event()
    }

    fn elapsed(&self, from: Event, to: Event) -> Result<Duration, TrainError> {
        let mut work = self.work.borrow_mut();
        let from = work.event(from)?.at;
        let to = work.event(to)?.at;
        match (from, to) {
            (Some(from), Some(to)) => Ok(to.saturating_duration_since(from)),
            _ => Err(fault("nobody waited for a timer")),
        }
    }

    fn record(&self, event: Event, queue: Queue) -> Result<(), TrainError> {
        let mut work = self.work.borrow_mut();
        let downloads = work.downloads_begun;
        let started = self.started.get();
        let waits = queue == Queue::Copies;
        let at = (!waits).then(Instant::now);
        *work.event(event)? = Recorded { waits, started, downloads, at };
        if queue == Queue::Copies {
            work.copies.push_back(Waiting::Event(event));
            for (_, until) in work.leaving.iter_mut().filter(|(_, until)| until.is_none()) {
                *until = Some(event);
            }
        }
        Ok(())
    }

    fn queue_waits(&self, queue: Queue, event: Event) -> Result<(), TrainError> {
        let mut work = self.work.borrow_mut();
        let recorded = *work.event(event)?;
        if queue == Queue::Copies {
            work.awaited = work.awaited.max(recorded.started);
            return Ok(());
        }
        work.copy_until(event);
        let started = self.started.get();
        if work.regions.iter().any(|region| region.state == Use::Copied) {
            for region in &mut work.regions {
                region.state = match region.state {
                    Use::Copied => Use::Read,
                    Use::Read => Use::Done(started),
                    done @ Use::Done(_) => done,
                };
            }
        }
        Ok(())
    }

    fn host_waits(&self, event: Event) -> Result<(), TrainError> {
        let mut work = self.work.borrow_mut();
        work.copy_until(event);
        let until = work.event(event)?.downloads;
        while work.downloads.front().is_some_and(|(number, ..)| *number < until) {
            if let Some((_, to, bytes)) = work.downloads.pop_front() {
                // SAFETY: as the caller of `download` promised: the memory is still there, and nobody reads it.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
            }
        }
        work.leaving.retain(|(_, until)| *until != Some(event));
        Ok(())
    }

    unsafe fn upload(&self, to: *mut c_void, from: *const u8, bytes: usize) -> Result<(), TrainError> {
        let mut work = self.work.borrow_mut();
        let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        let source = from as usize..from as usize + bytes;
        if work.leaving.iter().any(|(memory, _)| overlap(memory, &source)) {
            return Err(fault("the host did not wait for the last copy of this memory"));
        }
        let memory = to as usize..to as usize + bytes;
        let awaited = work.awaited;
        for region in work.regions.iter().filter(|region| overlap(&region.memory, &memory)) {
            match region.state {
                Use::Done(started) if started <= awaited => {}
                _ => return Err(fault("a copy to memory that kernels may still read")),
            }
        }
        work.regions.retain(|region| !overlap(&region.memory, &memory));
        work.regions.push(Region { memory, state: Use::Copied });
        work.leaving.push((source, None));
        work.copies.push_back(Waiting::Copy { to: to.cast(), from, bytes });
        Ok(())
    }

    unsafe fn download(&self, to: *mut u8, from: *const c_void, bytes: usize) -> Result<(), TrainError> {
        let mut work = self.work.borrow_mut();
        // SAFETY: as the caller promises; the kernels that write it have run.
        let values = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec();
        let number = work.downloads_begun;
        work.downloads.push_back((number, to, values));
        work.downloads_begun += 1;
        Ok(())
    }

    unsafe fn pin(&self, _start: *mut u8, _bytes: usize) -> Result<(), String> {
        if self.pins { Ok(()) } else { Err("the emulated GPU pins no memory".into()) }
    }

    fn unpin(&self, _start: *mut u8) {}
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "tests")]
mod tests {
    use super::*;

    /// A device, two of its memories, and two events.
    struct Device {
        streams: EmulatedStreams,
        started: Rc<Cell<u64>>,
        memory: [[u8; 4]; 2],
        copied: Event,
        used: Event,
    }

    impl Device {
        fn new() -> Device {
            let started = Rc::new(Cell::new(0));
            let streams = EmulatedStreams::new(Rc::clone(&started));
            let [copied, used] = [(); 2].map(|()| streams.event().expect("an event"));
            Device { streams, started, memory: [[0; 4]; 2], copied, used }
        }

        fn upload(&mut self, to: usize, from: &[u8; 4]) -> Result<(), TrainError> {
            let to = self.memory[to].as_mut_ptr().cast();
            // SAFETY: both have four bytes and outlive the device's work.
            unsafe { self.streams.upload(to, from.as_ptr(), 4) }?;
            self.streams.record(self.copied, Queue::Copies)
        }
    }

    #[test]
    fn a_copy_arrives_when_it_is_waited_for() {
        let source = [1, 2, 3, 4];
        let mut device = Device::new();
        device.upload(0, &source).expect("free");
        assert_eq!(device.memory[0], [0; 4]);
        device.streams.queue_waits(Queue::Compute, device.copied).expect("recorded");
        assert_eq!(device.memory[0], source);
        let mut back = [0u8; 4];
        // SAFETY: both have four bytes and outlive the device's work.
        unsafe { device.streams.download(back.as_mut_ptr(), source.as_ptr().cast(), 4) }.expect("memory");
        device.streams.host_waits(device.copied).expect("another event");
        assert_eq!(back, [0; 4]);
        device.streams.record(device.used, Queue::Compute).expect("an event");
        device.streams.host_waits(device.used).expect("recorded");
        assert_eq!(back, source);
    }

    #[test]
    fn memory_that_kernels_may_read_is_not_copied_to() {
        let sources = [[1u8; 4], [2; 4], [3; 4]];
        let mut device = Device::new();
        device.upload(0, &sources[0]).expect("free");
        device.streams.queue_waits(Queue::Compute, device.copied).expect("recorded");
        device.started.set(5);
        device.streams.record(device.used, Queue::Compute).expect("an event");
        // The kernels still read it.
        assert!(device.upload(0, &sources[1]).is_err());
        device.upload(1, &sources[1]).expect("free");
        device.streams.queue_waits(Queue::Compute, device.copied).expect("recorded");
        // They read the other memory now, but the queue of copies does not know that they are through with this one.
        assert!(device.upload(0, &sources[2]).is_err());
        device.streams.queue_waits(Queue::Copies, device.used).expect("recorded");
        device.upload(0, &sources[2]).expect("free");
    }

    #[test]
    fn memory_of_the_host_is_left_before_it_is_filled_again() {
        let source = [1, 2, 3, 4];
        let mut device = Device::new();
        device.upload(0, &source).expect("free");
        assert!(device.upload(1, &source).is_err());
        device.streams.host_waits(device.copied).expect("recorded");
        device.upload(1, &source).expect("free");
    }
}
