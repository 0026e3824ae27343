//! `[search]`: tries changes of a feature set, round by round, and makes the best one the incumbent.
//!
//! A search is a sequence of passes over ordinary experiments (`Runner::passes`): the results of one determine the rows
//! of the next. [`controller`] decides on the passes, and does nothing itself: what trains, measures and plays are the
//! steps of those experiments, so that a search resumes, shares its work and runs on a cluster as any experiment does.

pub mod candidates;
mod comparison;
mod controller;
mod estimate;
mod finals;
mod prediction;
mod rounds;
mod table;

pub use candidates::{Candidate, CandidateKeys, ChangeKind, NetworkFindings};
pub(super) use controller::Halt;
pub use estimate::SearchEstimate;
pub(super) use table::check_search;
pub use table::{Search, SearchTerms};
