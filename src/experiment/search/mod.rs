//! `[search]`: changes of a feature set that `fsbench search` tries.

pub mod candidates;
