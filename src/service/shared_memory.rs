//! The shared memory: a file in `/dev/shm`, with or without a name.
//!
//! By default the file is made with `O_TMPFILE` (tempfile falls back on create-and-unlink). No path leads to it but the
//! `/proc/PID/fd` of processes that hold it open, so a process killed at any moment leaves nothing behind. With a name
//! ([`shm_name`](super::shm_name)), a consumer that cannot see this process in `/proc` can open it.
//!
//! `posix_fallocate` allocates every page at once: a full `/dev/shm` is an error here, not a SIGBUS at the first write.
//!
//! # Memory that another process can write
//! Producer and consumer map the same pages, and neither can keep the other from writing. Rust assumes that memory
//! behind a `&` does not change and that memory behind a `&mut` is not read or written by others, so no reference into
//! the mapping is ever formed: both sides copy through raw pointers, within bounds checked against the mapping. Inside
//! the protocol the copies never race: the pipe hands a slot from one side to the other, and its system calls order the
//! accesses. A partner that breaks the protocol can change the copied numbers, which the consumer therefore checks
//! after copying. It can also shorten the file, which kills the other side with SIGBUS; nothing prevents that.
#![allow(unsafe_code, reason = "maps memory that two processes share")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use bytemuck::{AnyBitPattern, NoUninit};
use memmap2::{MmapOptions, MmapRaw};

use super::control::SlotClaim;
use super::shm_name::{ShmName, sweep};
use super::{ServiceError, ShmNaming};

/// The folder of all shared memory.
pub(super) const SHM_FOLDER: &str = "/dev/shm";

/// The producer's mapping: `count` slots of `slot_bytes` bytes.
pub(super) struct Slots {
    map: MmapRaw,
    count: usize,
    slot_bytes: usize,
}

impl Slots {
    /// Zeroed memory of this process alone, for a consumer within it.
    pub(super) fn private(count: usize, slot_bytes: usize) -> Result<Slots, ServiceError> {
        let failed = |source| ServiceError::SharedMemory { action: "map private memory instead of", source };
        let bytes = slot_bytes.saturating_mul(count);
        let map = MmapOptions::new().len(bytes).map_anon().map_err(failed)?;
        // Best effort: a stream's first batches otherwise wait for thousands of pages.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Slots { map: map.into(), count, slot_bytes })
    }

    /// The claimed slot, for writing.
    pub(super) fn writer<'a>(&'a self, claim: &'a mut SlotClaim) -> SlotWriter<'a> {
        SlotWriter { start: self.start(claim.slot()), bytes: self.slot_bytes, _claim: claim }
    }

    /// The address of a slot's first byte.
    pub(super) fn start(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.count, "slot {slot} of {}", self.count);
        // SAFETY: the mapping has `count * slot_bytes` bytes and `slot < count`, so the offset stays inside it and
        // cannot overflow.
        unsafe { self.map.as_mut_ptr().add(slot * self.slot_bytes) }
    }
}

/// The producer's side of memory that it shares with a consumer's process.
pub(super) struct SharedMemory {
    file: File,
    slots: Slots,
}

impl SharedMemory {
    /// Removes the names of dead services, then allocates and maps zeroed memory. The memory loses its name, if it has
    /// one, when the returned name is dropped.
    pub(super) fn create(
        slots: usize,
        slot_bytes: usize,
        naming: ShmNaming,
    ) -> Result<(SharedMemory, Option<ShmName>), ServiceError> {
        sweep();
        let failed = |action| move |source| ServiceError::SharedMemory { action, source };
        let needed = (slot_bytes as u64).saturating_mul(slots as u64);
        let full = |free| {
            let slot_bytes = slot_bytes as u64;
            ServiceError::SharedMemoryFull { needed, slots, slot_bytes, free, folder: SHM_FOLDER }
        };
        let (file, name) = match naming {
            ShmNaming::Unnamed => (tempfile::tempfile_in(SHM_FOLDER).map_err(failed("create"))?, None),
            ShmNaming::Named => {
                let (file, name) = ShmName::create(needed as usize).map_err(failed("create"))?;
                (file, Some(name))
            }
        };
        let free = free_bytes(&file).map_err(failed("measure the free"))?;
        if needed > free {
            return Err(full(free));
        }
        allocate(&file, needed).map_err(|source| match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EFBIG) => full(free),
            _ => failed("allocate")(source),
        })?;
        let map = MmapOptions::new().len(needed as usize).map_raw(&file).map_err(failed("map"))?;
        Ok((SharedMemory { file, slots: Slots { map, count: slots, slot_bytes } }, name))
    }

    /// A path by which other processes of this user can open the memory while this process runs.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    pub(super) const fn slots(&self) -> &Slots {
        &self.slots
    }
}

/// The right to write one slot; ends with the borrow of its claim.
pub(super) struct SlotWriter<'a> {
    start: *mut u8,
    bytes: usize,
    _claim: &'a mut SlotClaim,
}

impl SlotWriter<'_> {
    /// Copies `values` to byte `offset` of the slot.
    pub(super) fn write<T: NoUninit>(&mut self, offset: usize, values: &[T]) {
        let bytes = size_of_val(values);
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "{bytes} bytes at {offset} of {}", self.bytes);
        // SAFETY: `values` has `bytes` initialised bytes (`NoUninit`), and the assertion keeps the destination inside
        // the slot. They do not overlap, because no reference into the mapping exists. No thread of this process races:
        // a slot has at most one claim, which cannot be copied and is mutably borrowed here, and claims pass from
        // thread to thread through a mutex. The consumer does not touch a slot that it does not hold; if it does so all
        // the same, it spoils the bytes for itself alone, since the producer never reads them.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), self.start.add(offset), bytes) }
    }
}

/// The consumer's side: the service's memory, mapped for reading.
pub(super) struct Mapping {
    map: MmapRaw,
    slot_bytes: usize,
}

impl Mapping {
    /// Maps `slots` slots of the file at `path`.
    pub(super) fn open(path: &Path, slots: usize, slot_bytes: usize) -> Result<Mapping, ServiceError> {
        let failed = |source| ServiceError::SharedMemory { action: "open the service's", source };
        let bytes = slots * slot_bytes;
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length < bytes as u64 {
            let message = format!("its shared memory has {length} bytes, but its description says {bytes}");
            return Err(ServiceError::Protocol(message));
        }
        let map = MmapOptions::new().len(bytes).map_raw_read_only(&file).map_err(failed)?;
        Ok(Mapping { map, slot_bytes })
    }

    /// Replaces the contents of `out` by `len` elements from byte `offset` of a slot. `None`, with `out` empty, if they
    /// do not lie in the slot.
    ///
    /// Never inlined: so the compiler cannot replace a later use of `out`, which the caller has checked by then, with a
    /// second read of the shared bytes, which the service may have changed.
    #[must_use]
    #[inline(never)]
    pub(super) fn copy<T: AnyBitPattern>(&self, slot: u8, offset: usize, len: usize, out: &mut Vec<T>) -> Option<()> {
        out.clear();
        let bytes = len.checked_mul(size_of::<T>())?;
        let start = usize::from(slot).checked_mul(self.slot_bytes)?.checked_add(offset)?;
        let in_slot = offset.checked_add(bytes).is_some_and(|end| end <= self.slot_bytes);
        let in_map = start.checked_add(bytes).is_some_and(|end| end <= self.map.len());
        if !in_slot || !in_map {
            return None;
        }
        out.reserve(len);
        // SAFETY: the checks keep the source inside the mapping, the destination was just reserved, and they do not
        // overlap: the vector has an allocation of its own. No reference into the mapping exists. A service that keeps
        // the protocol does not write a slot that the client holds. From one that does, the copy may take any mixture
        // of old and new bytes, and any bytes are valid values of `T` (`AnyBitPattern`), so `set_len` exposes
        // initialised values.
        unsafe {
            std::ptr::copy_nonoverlapping(self.map.as_ptr().add(start), out.as_mut_ptr().cast::<u8>(), bytes);
            out.set_len(len);
        }
        Some(())
    }
}

/// Free bytes of the file system that holds `file`.
fn free_bytes(file: &File) -> io::Result<u64> {
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the descriptor is open, and `stat` is writable and large enough for the result.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fstatvfs succeeded, so it filled `stat`.
    let stat = unsafe { stat.assume_init() };
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    loop {
        // SAFETY: the descriptor is open, and no pointer is passed.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Waits, at most `timeout`, until a pipe has data or is at its end; returns whether it is.
pub(super) fn is_readable(pipe: &impl AsRawFd, timeout: Duration) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let milliseconds = timeout.as_millis().min(1000) as libc::c_int;
    // SAFETY: the count of 1 matches the one pollfd, which outlives the call.
    unsafe { libc::poll(&raw mut poll, 1, milliseconds) > 0 }
}

/// Whether the reader of a pipe is gone.
pub(super) fn reader_is_gone(pipe: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: the count of 1 matches the one pollfd, which outlives the call.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLERR | libc::POLLNVAL) != 0
}
