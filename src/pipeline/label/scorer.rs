//! Who scores positions: a UCI engine in processes of its own, or a network in this one.

use std::fmt::Debug;
use std::sync::Arc;

use shakmaty::Chess;

use super::LabelSettings;
use crate::data::Record;
use crate::pipeline::NetworkIdentity;
use crate::pipeline::uci::{Answer, SearchLimit, Workers};

/// Who scores the samples.
#[derive(Clone, Debug)]
pub enum LabelScorer {
    /// A UCI engine.
    Engine { settings: LabelSettings, workers: Workers },
    /// A network, on the threads of rayon's current pool.
    Network(Arc<dyn NetworkScorer>),
}

/// Evaluates records statically: appends the score of each, in centipawns of the side to move, or `None` where the record
/// holds no position with one king on each side.
pub type EvaluateRecords<'a> = Box<dyn FnMut(&[Record], &mut Vec<Option<i16>>) + Send + 'a>;

/// Searches a position, with nothing left of earlier searches; `None` where the game is over.
pub type SearchPosition<'a> = Box<dyn FnMut(&Chess) -> Option<Answer> + Send + 'a>;

/// A network that scores positions in this process. Its scores depend on its identity, the limit and the position only.
pub trait NetworkScorer: Debug + Send + Sync {
    fn identity(&self) -> NetworkIdentity;
    /// The limit of each search; `None` for static evaluations.
    fn limit(&self) -> Option<SearchLimit>;
    /// Evaluates for one thread.
    ///
    /// # Errors
    /// When the network does not fit its feature set, as a sentence.
    fn evaluate(&self) -> Result<EvaluateRecords<'_>, String>;
    /// Searches for one thread.
    ///
    /// # Errors
    /// As [`NetworkScorer::evaluate`], or when the limit cannot be repeated.
    fn search(&self) -> Result<SearchPosition<'_>, String>;
}
