//! A shared-memory segment without a name.
//!
//! The segment is a file made with `O_TMPFILE` in `/dev/shm` (tempfile falls back on create-and-unlink): no path ever
//! leads to it but the `/proc/PID/fd` of those who hold it open, so a process killed at any moment leaves nothing
//! behind and there are no stale names to sweep. `posix_fallocate` takes every page at once: a full `/dev/shm` is an
//! error here instead of a SIGBUS at the first write.
#![allow(unsafe_code, reason = "maps memory that two processes share")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use bytemuck::{AnyBitPattern, NoUninit};
use memmap2::{MmapOptions, MmapRaw};

use super::ServiceError;
use super::control::Claim;

/// Where segments live.
const FOLDER: &str = "/dev/shm";

/// The producer's segment: `slots` slots of `slot_bytes`.
pub(super) struct Segment {
    file: File,
    map: MmapRaw,
    slots: usize,
    slot_bytes: usize,
}

impl Segment {
    /// Allocates and maps; every byte is zero.
    pub(super) fn create(slots: usize, slot_bytes: usize) -> Result<Segment, ServiceError> {
        let failed = |action| move |source| ServiceError::Segment { action, source };
        let needed = (slot_bytes as u64).saturating_mul(slots as u64);
        let file = tempfile::tempfile_in(FOLDER).map_err(failed("create"))?;
        let full =
            |free| ServiceError::SharedMemory { needed, slots, slot_bytes: slot_bytes as u64, free, folder: FOLDER };
        let free = free_bytes(&file).map_err(failed("measure the free"))?;
        if needed > free {
            return Err(full(free));
        }
        allocate(&file, needed).map_err(|source| match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EFBIG) => full(free),
            _ => ServiceError::Segment { action: "allocate", source },
        })?;
        let map = MmapOptions::new().len(needed as usize).map_raw(&file).map_err(failed("map"))?;
        Ok(Segment { file, map, slots, slot_bytes })
    }

    /// A path that leads other processes of this user here while this process runs.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// The slot that `claim` gives the exclusive right to.
    pub(super) fn writer<'a>(&'a self, claim: &'a mut Claim) -> SlotWriter<'a> {
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
    _claim: &'a mut Claim,
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
pub(super) struct View {
    map: MmapRaw,
    slot_bytes: usize,
}

/// A slot the service announced and that was not given back yet. Whoever gives a slot back drops its lease first.
#[derive(Debug)]
pub(super) struct Lease {
    slot: u8,
}

impl Lease {
    pub(super) const fn slot(&self) -> u8 {
        self.slot
    }
}

impl View {
    /// Maps the `slots` slots of what `path` leads to.
    pub(super) fn open(path: &Path, slots: usize, slot_bytes: usize) -> Result<View, ServiceError> {
        let failed = |source| ServiceError::Segment { action: "open the service's", source };
        let bytes = slots * slot_bytes;
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length < bytes as u64 {
            return Err(ServiceError::Protocol(format!("its shared memory has {length} bytes, {bytes} announced")));
        }
        let map = MmapOptions::new().len(bytes).map_raw_read_only(&file).map_err(failed)?;
        Ok(View { map, slot_bytes })
    }

    /// To be called once for each announcement.
    pub(super) const fn lease(&self, slot: u8) -> Lease {
        Lease { slot }
    }

    /// `len` elements at `offset` bytes from the slot's start; none where they do not lie in the slot, aligned.
    pub(super) fn slice<'a, T: AnyBitPattern>(
        &'a self,
        lease: &'a Lease,
        offset: usize,
        len: usize,
    ) -> Option<&'a [T]> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let start = usize::from(lease.slot).checked_mul(self.slot_bytes)?.checked_add(offset)?;
        let in_slot = offset.checked_add(bytes).is_some_and(|end| end <= self.slot_bytes);
        let in_map = start.checked_add(bytes).is_some_and(|end| end <= self.map.len());
        if !in_slot || !in_map || start % align_of::<T>() != 0 {
            return None;
        }
        // SAFETY: inside the mapping and aligned (a mapping begins on a page), any bits are a `T`. The service does not
        // write to a slot between announcing it and taking it back, and the lease, which the slice borrows, lives in
        // between.
        Some(unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(start).cast::<T>(), len) })
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

/// Whether the reader of a pipe is gone.
pub(super) fn reader_is_gone(pipe: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one pollfd is passed and stays alive over the call.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLERR | libc::POLLNVAL) != 0
}
