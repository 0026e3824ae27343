//! The threads that decode samples: a pool of their own. Whoever waits for a block may itself be a worker of another pool;
//! were it one of these, it could wait for a block that is still to be decoded further down its own stack.
//!
//! So no task of this pool waits for a block, and none is put there that does.

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::data::DataError;

static POOL: LazyLock<Result<ThreadPool, String>> = LazyLock::new(|| {
    let named = ThreadPoolBuilder::new().thread_name(|number| format!("decoder {number}"));
    named.num_threads(rayon::current_num_threads()).build().map_err(|error| error.to_string())
});

/// The pool, as large as rayon's global one. `path` is what is to be decoded.
///
/// # Errors
/// When its threads could not be started.
pub fn decoders(path: &Path) -> Result<&'static ThreadPool, DataError> {
    POOL.as_ref().map_err(|error| {
        let cause = io::Error::other(format!("the threads that decode it could not be started: {error}"));
        DataError::Read { path: path.into(), cause }
    })
}
