//! The shared-memory segment: a file in `/dev/shm`, with or without a name.
//!
//! Without (the default), the file is made with `O_TMPFILE` (tempfile falls back on create-and-unlink): no path ever leads
//! to it but the `/proc/PID/fd` of those who hold it open, so a process killed at any moment leaves nothing behind. With
//! a name ([`named`](super::shm_name)), a consumer that cannot see this process in `/proc` can open it.
//!
//! `posix_fallocate` takes every page at once: a full `/dev/shm` is an error here instead of a SIGBUS at the first write.
//!
//! # Trust
//! Producer and consumer map the same pages, and neither can keep the other from writing. So no reference into shared
//! memory is ever formed: both sides copy bytes through raw pointers, at places that are checked against the mapping. A
//! hostile partner can send wrong numbers; the consumer checks those it is led by. One thing cannot be guarded against: a
//! service that shortens the file after it was mapped kills its consumer with SIGBUS. Start services that you trust.
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

/// Where segments live.
pub(super) const FOLDER: &str = "/dev/shm";

/// The producer's segment: `slots` slots of `slot_bytes`.
pub(super) struct SharedMemory {
    file: File,
    map: MmapRaw,
    slots: usize,
    slot_bytes: usize,
}

impl SharedMemory {
    /// Allocates and maps; every byte is zero. Names of dead services are swept before. The name, where one is asked for, lives no longer than what is returned.
    pub(super) fn create(
        slots: usize,
        slot_bytes: usize,
        naming: ShmNaming,
    ) -> Result<(SharedMemory, Option<ShmName>), ServiceError> {
        sweep();
        let failed = |action| move |source| ServiceError::SharedMemory { action, source };
        let needed = (slot_bytes as u64).saturating_mul(slots as u64);
        let full = |free| ServiceError::SharedMemoryFull {
            needed,
            slots,
            slot_bytes: slot_bytes as u64,
            free,
            folder: FOLDER,
        };
        let (file, name) = match naming {
            ShmNaming::Unnamed => (tempfile::tempfile_in(FOLDER).map_err(failed("create"))?, None),
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
            _ => ServiceError::SharedMemory { action: "allocate", source },
        })?;
        let map = MmapOptions::new().len(needed as usize).map_raw(&file).map_err(failed("map"))?;
        Ok((SharedMemory { file, map, slots, slot_bytes }, name))
    }

    /// A path that leads other processes of this user here while this process runs.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// The slot that `claim` gives the exclusive right to.
    pub(super) fn writer<'a>(&'a self, claim: &'a mut SlotClaim) -> SlotWriter<'a> {
        assert!(claim.slot() < self.slots, "slot {} of {}", claim.slot(), self.slots);
        // SAFETY: the slot lies inside the mapping, which has `slots * slot_bytes` bytes.
        let start = unsafe { self.map.as_mut_ptr().add(claim.slot() * self.slot_bytes) };
        SlotWriter { start, bytes: self.slot_bytes, _claim: claim }
    }
}

/// The right to write one slot.
pub(super) struct SlotWriter<'a> {
    start: *mut u8,
    bytes: usize,
    _claim: &'a mut SlotClaim,
}

impl SlotWriter<'_> {
    /// Copies `values` to `offset` bytes from the slot's start.
    pub(super) fn write<T: NoUninit>(&mut self, offset: usize, values: &[T]) {
        let bytes = size_of_val(values);
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "{bytes} bytes at {offset} of {}", self.bytes);
        // SAFETY: the destination was just checked to lie inside the slot, and no reference to shared memory exists on
        // this side. Nobody else writes here: the claim cannot be copied and is lent to this writer, and the consumer
        // does not touch a slot it was not told of.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), self.start.add(offset), bytes) }
    }
}

/// The consumer's view of a segment.
pub(super) struct Mapping {
    map: MmapRaw,
    slot_bytes: usize,
}

impl Mapping {
    /// Maps the `slots` slots of what `path` leads to.
    pub(super) fn open(path: &Path, slots: usize, slot_bytes: usize) -> Result<Mapping, ServiceError> {
        let failed = |source| ServiceError::SharedMemory { action: "open the service's", source };
        let bytes = slots * slot_bytes;
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length < bytes as u64 {
            return Err(ServiceError::Protocol(format!("its shared memory has {length} bytes, {bytes} announced")));
        }
        let map = MmapOptions::new().len(bytes).map_raw_read_only(&file).map_err(failed)?;
        Ok(Mapping { map, slot_bytes })
    }

    /// Replaces what `out` holds by `len` elements at `offset` bytes from a slot's start; none where they do not lie in the
    /// slot, and `out` is then empty.
    #[must_use]
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
        // SAFETY: the source lies inside the mapping and the destination in what was just reserved; they cannot overlap. No
        // reference into the mapping exists. Should the service write meanwhile, which the protocol forbids, the copy
        // holds any bits, and any bits are a `T`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.map.as_ptr().add(start), out.as_mut_ptr().cast::<u8>(), bytes);
            out.set_len(len);
        }
        Some(())
    }
}

/// Free bytes of the file system that `file` lies on.
fn free_bytes(file: &File) -> io::Result<u64> {
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the descriptor is open and `stat` is room for the answer.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fstatvfs succeeded and filled it.
    let stat = unsafe { stat.assume_init() };
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    loop {
        // SAFETY: the descriptor is open; no memory is passed.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Whether a pipe has something to read, or an end; waits for it up to `longest`.
pub(super) fn is_readable(pipe: &impl AsRawFd, longest: Duration) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let milliseconds = longest.as_millis().min(1000) as libc::c_int;
    // SAFETY: one pollfd is passed and stays alive over the call.
    unsafe { libc::poll(&raw mut poll, 1, milliseconds) > 0 }
}

/// Whether the reader of a pipe is gone.
pub(super) fn reader_is_gone(pipe: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one pollfd is passed and stays alive over the call.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLERR | libc::POLLNVAL) != 0
}
