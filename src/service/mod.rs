//! The sample service: a process that encodes batches into shared memory for a trainer in any language.
//!
//! `PROTOCOL.md` beside this file is the contract for consumers in other languages. [`run`] is the producer's side (the
//! verb `samples-service`), [`Client`] the consumer's, [`bench`] the producer without a consumer.
//!
//! Shared memory has no name unless one is asked for: the segment is an unlinked file in `/dev/shm` which others reach
//! through the producer's `/proc/PID/fd`. The kernel frees it when the last process that mapped it is gone, however it
//! went. With `--shm named` it has a name until the consumer has mapped it.
//!
//! # Trust
//! A [`Client`] trusts the program it starts no further than it must. What a service describes, announces and puts into
//! headers, offsets and indices is checked, and batches are copied out of the shared memory before anybody sees them: a
//! broken service gives errors and wrong numbers, never memory errors. What remains is in its power: to send nothing,
//! and to shorten the memory under a consumer, which dies of SIGBUS then.

mod batch_encoder;
mod batch_source;
mod bench;
mod binpack_batches;
mod client;
mod control;
mod eligible;
mod mapped_batches;
mod prepared_stream;
mod protocol;
mod request;
mod schedule;
mod serve;
mod service_process;
mod shard;
mod shared_memory;
mod shm_name;
mod shuffle;

pub use bench::{BenchReport, bench};
pub use client::{Batch, Client, Csr};
pub use prepared_stream::PreparedStream;
pub use protocol::{Array, Description, Dtype, Field, Header, Layout};
pub use request::{ReadMode, Request};
pub use serve::run;
pub use shard::Shard;
pub use shm_name::ShmNaming;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::data::{DataError, RecordError};

/// What the service writes when every batch was handed over.
pub const END: u8 = 255;
/// What the service writes when it cannot go on; the reason stands on stderr.
pub const FAILED: u8 = 254;
/// Slot numbers stay below this, clear of [`END`] and [`FAILED`].
pub const MAX_SLOTS: usize = 200;
/// The bitset layout is refused above this many bytes a slot.
pub const MAX_BITSET_SLOT: u64 = 64 << 20;

/// Why batches do not come.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("{0}")]
    Request(String),
    #[error(
        "the batches need {needed} bytes of shared memory ({slots} slots of {slot_bytes}) and {folder} has {free} free; \
         ask for fewer slots or a smaller batch, or enlarge {folder}"
    )]
    SharedMemoryFull { needed: u64, slots: usize, slot_bytes: u64, free: u64, folder: &'static str },
    #[error("cannot {action} shared memory: {source}")]
    SharedMemory { action: &'static str, source: io::Error },
    #[error("sample {index} of the data: {source}")]
    Record { index: u32, source: RecordError },
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("sample {index} of the data has no legal move besides the one played, so it makes no pqr triplet")]
    NoOtherMove { index: u32 },
    #[error("batch {batch} has {indices} active features and its slot holds {room}; ask for a smaller batch size")]
    SlotFull { batch: u64, indices: usize, room: usize },
    #[error("the consumer wrote {byte}, which is no slot that waits to be given back (waiting: {waiting})")]
    WrongSlot { byte: u8, waiting: String },
    #[error("a worker thread of the service panicked: {0}")]
    Worker(String),
    #[error("cannot write to the consumer: {0}")]
    Consumer(io::Error),
    #[error("cannot start {program}: {source}", program = program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("the sample service {what} ({status}){}", indented(tail))]
    Died { what: &'static str, status: String, tail: String },
    #[error("the sample service broke its protocol: {0}")]
    Protocol(String),
}

impl ServiceError {
    /// Whether what was asked for is at fault, and not the work.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            ServiceError::Data(error) => error.is_request(),
            _ => matches!(self, ServiceError::Request(_)),
        }
    }
}

fn indented(tail: &str) -> String {
    if tail.is_empty() { String::new() } else { format!("; it said:\n  {}", tail.trim_end().replace('\n', "\n  ")) }
}
