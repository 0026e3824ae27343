//! The sample service: a process that encodes batches into shared memory for a trainer in any language.
//!
//! `PROTOCOL.md` beside this file is the contract for consumers in other languages. [`run`] is the producer (the
//! command `samples-service`), [`Client`] the consumer, and [`bench()`] measures the producer without a consumer.
//! [`LocalStream`] makes the same batches for a consumer in this process.
//!
//! By default the shared memory has no name (on Linux; elsewhere always one): it is an unlinked file in `/dev/shm`, which consumers open through the
//! producer's `/proc/PID/fd`. The kernel frees it when the last process that mapped it has ended, even by a kill. With
//! `--shm named` it has a name until the consumer has mapped it.
//!
//! # Trust
//! A [`Client`] does not trust the service. It checks the description, the slot numbers, headers, offsets and indices,
//! and copies every batch out of the shared memory before it hands it out: a broken service causes errors or wrong
//! numbers, but no memory errors. Two things remain in the service's power: it can send nothing, and it can shorten the
//! shared memory, which kills the consumer with SIGBUS.

mod all_segments;
mod batch_encoder;
mod batch_order;
mod batch_reader;
mod batch_source;
mod bench;
mod binpack_batches;
mod client;
mod control;
mod eligible;
mod exchange;
mod local_stream;
mod mapped_batches;
mod mapped_files;
#[cfg(test)]
mod model;
mod prepare;
mod prepared_stream;
mod process_bound;
mod protocol;
mod request;
mod sample_cell;
mod sample_lookup;
mod serve;
mod service_process;
mod shared_memory;
mod shared_tasks;
mod shm_name;
mod shuffle;
mod sync;
mod window_memory;

pub use batch_reader::{Announcement, BatchMemory, BatchReader, ClientBatch, Csr};
pub use bench::{BenchReport, bench};
pub use client::Client;
pub use local_stream::{LocalBatch, LocalStream, NextBatch};
pub use mapped_files::{MappedFiles, check_plies, check_validation};
pub use prepare::{PrepareObserver, ServedFile, prepare, prepare_mixture};
pub use prepared_stream::PreparedStream;
pub use process_bound::ProcessBound;
pub use protocol::{Array, Description, Dtype, Field, Layout, SlotHeader};
pub use request::{ReadMode, ReadOptions, Request};
pub use sample_lookup::DataSample;
pub use serve::run;
pub use shm_name::ShmNaming;

pub use crate::units::Shard;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::data::{DataError, RecordError};
use crate::features::FeatureError;
use crate::pipeline::BuildError;

/// The byte the service writes after it has announced every batch.
pub const END: u8 = 255;
/// The byte the service writes when it fails; the reason is on stderr.
pub const FAILED: u8 = 254;
/// Slot numbers stay below this, clear of [`END`] and [`FAILED`].
pub const MAX_SLOTS: usize = 200;
/// The bitset layout is refused for slots of more bytes than this.
pub const MAX_BITSET_SLOT: u64 = 64 << 20;

/// Errors of the service and of its client.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("{0}")]
    Request(String),
    #[error(transparent)]
    Set(#[from] FeatureError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(
        "the batches need {needed} bytes of shared memory ({slots} slots of {slot_bytes}) and {} has {free} free; \
         ask for fewer slots or a smaller batch, or enlarge {}",
        folder.display(),
        folder.display()
    )]
    SharedMemoryFull { needed: u64, slots: usize, slot_bytes: u64, free: u64, folder: PathBuf },
    #[error("cannot {action} shared memory: {source}")]
    SharedMemory { action: &'static str, source: io::Error },
    #[error("sample {index} of the data: {source}")]
    Record { index: u32, source: RecordError },
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("sample {index} of the data has no legal move besides the one played, so it makes no pqr triplet")]
    NoOtherMove { index: u32 },
    #[error(
        "batch {batch} has {indices} active features, but its slot has room for {capacity}; use a smaller batch size"
    )]
    SlotFull { batch: u64, indices: usize, capacity: usize },
    #[error("the consumer wrote {byte}, which is not the number of a slot it holds (it holds {held})")]
    WrongSlot { byte: u8, held: String },
    #[error(
        "these batches are made by threads of process {owner}, which a process forked from it does not have; start a \
         stream in this process"
    )]
    Forked { owner: u32 },
    #[error("cannot start {threads} threads: {source}; ask for fewer with --threads")]
    Threads { threads: usize, source: io::Error },
    #[error("a worker thread of the service panicked: {0}")]
    Worker(String),
    #[error("cannot write to the consumer: {0}")]
    Consumer(io::Error),
    #[error("cannot start {program}: {source}", program = program.display())]
    Start { program: PathBuf, source: io::Error },
    /// `refused`: it ended with the exit status of a wrong request.
    #[error("the sample service {event} ({status}){}", quoted(error_lines))]
    Died { event: &'static str, status: String, refused: bool, error_lines: String },
    #[error("the sample service broke its protocol: {0}")]
    Protocol(String),
}

impl ServiceError {
    /// Whether the request was wrong, as opposed to work that failed.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            ServiceError::Data(error) => error.is_request(),
            ServiceError::Build(error) => error.is_request(),
            ServiceError::Died { refused, .. } => *refused,
            _ => matches!(self, ServiceError::Request(_) | ServiceError::Set(_)),
        }
    }
}

fn quoted(error_lines: &str) -> String {
    match error_lines.trim_end() {
        "" => String::new(),
        text => format!("; it says:\n  {}", text.replace('\n', "\n  ")),
    }
}
