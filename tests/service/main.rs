//! The sample service as a consumer meets it: the built binary, its pipes and its memory.

mod content;
mod failures;
mod fixture;
mod python;
