//! The shared memory: a file in the system's folder for that (`/dev/shm` on Linux), with or without a name.
//!
//! By default, on Linux, the file is made with `O_TMPFILE` (tempfile falls back on create-and-unlink). No path leads to it but the
//! `/proc/PID/fd` of processes that hold it open, so a process killed at any moment leaves nothing behind. With a name
//! ([`shm_name`](super::shm_name)), a consumer that cannot see this process in `/proc` can open it.
//!
//! Every page is allocated at once: a full `/dev/shm` is an error here, not a SIGBUS at the first write.
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
use std::path::Path;

use bytemuck::{AnyBitPattern, NoUninit};
use memmap2::{MmapOptions, MmapRaw};

use super::control::SlotClaim;
use super::shm_name::{ShmName, sweep};
use super::{ServiceError, ShmNaming};
use crate::system;

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
        system::want_large_pages(map.as_ptr(), map.len());
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
        let folder = system::shm_folder();
        let free = system::free_bytes(&folder).map_err(failed("measure the free"))?;
        let full = || {
            let slot_bytes = slot_bytes as u64;
            ServiceError::SharedMemoryFull { needed, slots, slot_bytes, free, folder: folder.clone() }
        };
        if needed > free {
            return Err(full());
        }
        let out_of_room = |action| {
            let full = &full;
            move |source: io::Error| match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => full(),
                _ => failed(action)(source),
            }
        };
        let (file, name) = match naming {
            ShmNaming::Unnamed if system::OPEN_FILES_HAVE_PATHS => {
                (tempfile::tempfile_in(&folder).map_err(failed("create"))?, None)
            }
            _ => {
                let (file, name) = ShmName::create(needed as usize).map_err(out_of_room("create"))?;
                (file, Some(name))
            }
        };
        system::allocate(&file, needed).map_err(out_of_room("allocate"))?;
        let map = MmapOptions::new().len(needed as usize).map_raw(&file).map_err(failed("map"))?;
        Ok((SharedMemory { file, slots: Slots { map, count: slots, slot_bytes } }, name))
    }

    /// A path by which other processes of this user can open memory without a name while this process runs.
    pub(super) fn path(&self) -> Option<String> {
        system::path_of_open(&self.file)
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
