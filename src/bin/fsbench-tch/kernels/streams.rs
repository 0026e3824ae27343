//! The order of a device's work: two queues, the events by which one waits for the other, and copies between the host's
//! memory and the device's.
#![allow(unsafe_code, reason = "copies between memories take pointers")]

use std::ffi::c_void;
use std::rc::Rc;
use std::time::Duration;

use fsbench::train::TrainError;
use memmap2::MmapMut;

/// Work that runs in its order, beside the other queue's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The kernels', libtorch's and copies to the host.
    Compute,
    /// Copies of batches to the device.
    Copies,
}

/// A place in a queue, by number. One that was never recorded is passed already.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Event(pub usize);

/// The queues of a device. They end with this value.
pub trait Streams {
    /// # Errors
    /// When the device fails, here and below.
    fn event(&self) -> Result<Event, TrainError>;

    /// An event that keeps the time.
    ///
    /// # Errors
    /// As [`Streams::event`].
    fn timer(&self) -> Result<Event, TrainError>;

    /// The time between two timers, which the host has waited for.
    ///
    /// # Errors
    /// As [`Streams::event`].
    fn elapsed(&self, from: Event, to: Event) -> Result<Duration, TrainError>;

    /// Moves an event to the queue's end.
    ///
    /// # Errors
    /// As [`Streams::event`].
    fn record(&self, event: Event, queue: Queue) -> Result<(), TrainError>;

    /// What comes to the queue from now on waits for the event, as it was recorded last.
    ///
    /// # Errors
    /// As [`Streams::event`].
    fn queue_waits(&self, queue: Queue, event: Event) -> Result<(), TrainError>;

    /// This thread waits for the event, as it was recorded last.
    ///
    /// # Errors
    /// As [`Streams::event`].
    fn host_waits(&self, event: Event) -> Result<(), TrainError>;

    /// Copies to the device, in the queue of copies.
    ///
    /// # Errors
    /// As [`Streams::event`].
    ///
    /// # Safety
    /// Both memories hold so many bytes. They stay, and `from` unchanged, until the host has waited for an event
    /// recorded in the queue afterwards. The queue waits for the device's last use of `to`.
    unsafe fn upload(&self, to: *mut c_void, from: *const u8, bytes: usize) -> Result<(), TrainError>;

    /// Copies to the host, in the queue of the kernels.
    ///
    /// # Errors
    /// As [`Streams::event`].
    ///
    /// # Safety
    /// Both memories hold so many bytes. They stay, and nobody reads `to`, until the host has waited for an event
    /// recorded in the queue afterwards.
    unsafe fn download(&self, to: *mut u8, from: *const c_void, bytes: usize) -> Result<(), TrainError>;

    /// Lets copies of this memory run beside the program.
    ///
    /// # Errors
    /// When the device cannot: then the program waits for each copy.
    ///
    /// # Safety
    /// The memory stays until [`Streams::unpin`].
    unsafe fn pin(&self, start: *mut u8, bytes: usize) -> Result<(), String>;

    /// Undoes [`Streams::pin`].
    fn unpin(&self, start: *mut u8);
}

/// Memory of the host between which and the device copies run beside the program, if the device can do so.
pub struct HostMemory {
    memory: MmapMut,
    streams: Rc<dyn Streams>,
    pinned: Result<(), String>,
}

impl HostMemory {
    /// # Errors
    /// When there is not so much memory.
    pub fn new(streams: &Rc<dyn Streams>, bytes: usize) -> Result<HostMemory, TrainError> {
        let memory = MmapMut::map_anon(bytes.max(1));
        let mut memory = memory.map_err(|error| TrainError::Device { library: "memory", why: error.to_string() })?;
        // SAFETY: the memory stays until `drop`, which undoes this first.
        let pinned = unsafe { streams.pin(memory.as_mut_ptr(), memory.len()) };
        Ok(HostMemory { memory, streams: Rc::clone(streams), pinned })
    }

    /// Why copies are slow, if they are.
    pub fn slow(&self) -> Option<&str> {
        self.pinned.as_ref().err().map(String::as_str)
    }

    pub fn size(&self) -> usize {
        self.memory.len()
    }

    /// No copy of this memory may be under way.
    pub fn bytes(&self) -> &[u8] {
        &self.memory
    }

    /// No copy of this memory may be under way.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    pub fn start(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.pinned.is_ok() {
            self.streams.unpin(self.memory.as_mut_ptr());
        }
    }
}
