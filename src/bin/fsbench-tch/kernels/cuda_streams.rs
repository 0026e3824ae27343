//! The queues of an NVIDIA GPU: the legacy default stream, which is libtorch's, and a stream of our own for copies.
#![allow(unsafe_code, reason = "CUDA's driver")]

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

use cudarc::driver::result as driver;
use cudarc::driver::sys as cuda;
use fsbench::train::TrainError;

use super::cuda::{failed, make_current};
use super::streams::{Event, Queue, Streams};

pub struct CudaStreams {
    context: cuda::CUcontext,
    /// It does not wait for the default stream, nor that one for it.
    copies: cuda::CUstream,
    events: RefCell<Vec<cuda::CUevent>>,
}

impl CudaStreams {
    /// `context`: the device's primary context, which is never released.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(context: cuda::CUcontext) -> Result<CudaStreams, TrainError> {
        make_current(context)?;
        let copies = driver::stream::create(driver::stream::StreamKind::NonBlocking);
        let copies = copies.map_err(|error| failed("CUDA", &error))?;
        Ok(CudaStreams { context, copies, events: RefCell::default() })
    }

    fn stream(&self, queue: Queue) -> cuda::CUstream {
        match queue {
            Queue::Compute => ptr::null_mut(),
            Queue::Copies => self.copies,
        }
    }

    fn create(&self, flags: cuda::CUevent_flags) -> Result<Event, TrainError> {
        make_current(self.context)?;
        let event = driver::event::create(flags).map_err(|error| failed("CUDA", &error))?;
        let mut events = self.events.borrow_mut();
        events.push(event);
        Ok(Event(events.len() - 1))
    }

    /// The event, with the context made this thread's.
    fn entered(&self, event: Event) -> Result<cuda::CUevent, TrainError> {
        make_current(self.context)?;
        let event = self.events.borrow().get(event.0).copied();
        event.ok_or_else(|| failed("CUDA", &"an event of another device"))
    }
}

impl Streams for CudaStreams {
    fn event(&self) -> Result<Event, TrainError> {
        self.create(cuda::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn timer(&self) -> Result<Event, TrainError> {
        self.create(cuda::CUevent_flags::CU_EVENT_DEFAULT)
    }

    fn elapsed(&self, from: Event, to: Event) -> Result<Duration, TrainError> {
        let from = self.entered(from)?;
        let to = self.entered(to)?;
        // SAFETY: the events live as long as `self`.
        let milliseconds = unsafe { driver::event::elapsed(from, to) }.map_err(|error| failed("CUDA", &error))?;
        Ok(Duration::from_secs_f32(milliseconds.max(0.0) / 1e3))
    }

    fn record(&self, event: Event, queue: Queue) -> Result<(), TrainError> {
        let event = self.entered(event)?;
        // SAFETY: event and stream live as long as `self`.
        unsafe { driver::event::record(event, self.stream(queue)) }.map_err(|error| failed("CUDA", &error))
    }

    fn queue_waits(&self, queue: Queue, event: Event) -> Result<(), TrainError> {
        let event = self.entered(event)?;
        let flags = cuda::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and stream live as long as `self`.
        let waits = unsafe { driver::stream::wait_event(self.stream(queue), event, flags) };
        waits.map_err(|error| failed("CUDA", &error))
    }

    fn host_waits(&self, event: Event) -> Result<(), TrainError> {
        let event = self.entered(event)?;
        // SAFETY: the event lives as long as `self`.
        unsafe { driver::event::synchronize(event) }.map_err(|error| failed("CUDA", &error))
    }

    unsafe fn upload(&self, to: *mut c_void, from: *const u8, bytes: usize) -> Result<(), TrainError> {
        make_current(self.context)?;
        // SAFETY: as the caller promises.
        let copied = unsafe { cuda::cuMemcpyHtoDAsync_v2(to as cuda::CUdeviceptr, from.cast(), bytes, self.copies) };
        copied.result().map_err(|error| failed("CUDA", &error))
    }

    unsafe fn download(&self, to: *mut u8, from: *const c_void, bytes: usize) -> Result<(), TrainError> {
        make_current(self.context)?;
        let stream = self.stream(Queue::Compute);
        // SAFETY: as the caller promises.
        let copied = unsafe { cuda::cuMemcpyDtoHAsync_v2(to.cast(), from as cuda::CUdeviceptr, bytes, stream) };
        copied.result().map_err(|error| failed("CUDA", &error))
    }

    unsafe fn pin(&self, start: *mut u8, bytes: usize) -> Result<(), String> {
        make_current(self.context).map_err(|error| error.to_string())?;
        // SAFETY: as the caller promises.
        let registered = unsafe { cuda::cuMemHostRegister_v2(start.cast(), bytes, 0) };
        registered.result().map_err(|error| error.to_string())
    }

    fn unpin(&self, start: *mut u8) {
        if make_current(self.context).is_ok() {
            // SAFETY: the memory was registered and is still there. Fails only if the device is lost.
            let _ = unsafe { cuda::cuMemHostUnregister(start.cast()) };
        }
    }
}

impl Drop for CudaStreams {
    fn drop(&mut self) {
        if make_current(self.context).is_err() {
            return;
        }
        for event in self.events.borrow_mut().drain(..) {
            // SAFETY: the event was created here and is used by nobody any more. Fails only if the device is lost.
            let _ = unsafe { driver::event::destroy(event) };
        }
        // SAFETY: as above.
        let _ = unsafe { driver::stream::destroy(self.copies) };
    }
}
