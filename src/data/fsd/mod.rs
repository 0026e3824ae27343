//! `.fsd`, the native format of samples: a header, fixed-size records and a checksum per block. `header.rs` documents
//! the layout of the file, `record.rs` the layout of a record.

mod header;
mod reader;
mod writer;

pub use header::{FsdHeader, MAGIC, VERSION};
pub use reader::Fsd;
pub(crate) use reader::GameSet;
pub use writer::{FsdWriter, Provenance};
