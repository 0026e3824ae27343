//! What can be proved of a definition: which features no legal position activates, which one does, and whether the
//! features determine where the pieces stand.
//!
//! Everything is argued on the language's meaning ([`search`]) and shown on the reference encoder ([`construct`]); no
//! feature set is known by name here.

mod activity;
mod block;
mod collide;
mod construct;
mod count;
mod domain;
mod index;
mod legal;
mod partial;
mod positions;
mod reach;
mod search;
mod told;
mod values;

use crate::chess::Perspective;

use super::set::FeatureSet;
use block::Settled;

pub(super) use search::{Ended, Frame};

pub use activity::Activity;
pub use legal::Witness;

/// Indices a set may have to be examined one by one; blocks beyond are left unresolved.
const MAX_EXAMINED: u64 = 1 << 24;

/// What is known of a feature.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Proved: no legal position activates it.
    Dead,
    /// A legal position activates it.
    Live,
    /// Neither proved nor shown.
    Unresolved,
}

/// What an analysis is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Purpose {
    /// A witness for every live feature.
    Witnesses,
    /// Only what is dead.
    DeadOnly,
}

/// How many features are dead, live, unresolved.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    pub dead: u32,
    pub live: u32,
    pub unresolved: u32,
}

/// The features of a set, each dead, live or unresolved.
#[derive(Debug)]
pub struct Analysis {
    blocks: Vec<Examined>,
}

#[derive(Debug)]
struct Examined {
    offset: u32,
    size: u32,
    /// None when the set is too large.
    settled: Option<Settled>,
}

impl Analysis {
    /// Examines every feature. `progress` is told a block's number and how many of its features are left.
    pub fn of(set: &FeatureSet, progress: impl FnMut(usize, usize)) -> Analysis {
        Analysis::with(set, Purpose::Witnesses, progress)
    }

    fn with(set: &FeatureSet, purpose: Purpose, mut progress: impl FnMut(usize, usize)) -> Analysis {
        let mut total = 0;
        let examine = |(at, block): (usize, &super::Block)| {
            total += u64::from(block.size);
            let screen = |witness: &Witness, out: &mut Vec<u32>| {
                set.active_block(at, witness.board(), Perspective::White, out);
                out.iter_mut().for_each(|index| *index -= block.offset);
            };
            let settled = (total <= MAX_EXAMINED)
                .then(|| block::settle(block.spec(), purpose, &screen, &mut |left| progress(at, left)));
            Examined { offset: block.offset, size: block.size, settled }
        };
        Analysis { blocks: set.blocks().iter().enumerate().map(examine).collect() }
    }

    pub fn status(&self, index: u32) -> Status {
        let (block, element) = self.locate(index);
        let settled = block.and_then(|block| block.settled.as_ref());
        settled.and_then(|settled| settled.statuses.get(element as usize)).copied().unwrap_or(Status::Unresolved)
    }

    /// A legal position that activates a live feature for White.
    pub fn witness(&self, index: u32) -> Option<&Witness> {
        let (block, element) = self.locate(index);
        block?.settled.as_ref()?.witness(element)
    }

    /// Ascending.
    pub fn dead(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().flat_map(|block| {
            let statuses = block.settled.iter().flat_map(|settled| &settled.statuses);
            statuses.zip(block.offset..).filter(|(status, _)| **status == Status::Dead).map(|(_, index)| index)
        })
    }

    pub fn tally(&self) -> Tally {
        (0..self.blocks.len()).map(|block| self.block_tally(block)).fold(Tally::default(), |sum, block| Tally {
            dead: sum.dead + block.dead,
            live: sum.live + block.live,
            unresolved: sum.unresolved + block.unresolved,
        })
    }

    pub fn block_tally(&self, block: usize) -> Tally {
        let block = &self.blocks[block];
        let count = |wanted: Status| {
            let statuses = block.settled.iter().flat_map(|settled| &settled.statuses);
            statuses.filter(|status| **status == wanted).count() as u32
        };
        let (dead, live) = (count(Status::Dead), count(Status::Live));
        Tally { dead, live, unresolved: block.size - dead - live }
    }

    fn locate(&self, index: u32) -> (Option<&Examined>, u32) {
        let block = self.blocks.iter().rev().find(|block| block.offset <= index);
        (block, block.map_or(0, |block| index - block.offset))
    }
}

/// The features proved dead, ascending: rows that may be dropped without changing any score. Looks for no witnesses
/// beyond what random positions show, so it is quicker than a whole [`Analysis`].
pub fn dead(set: &FeatureSet) -> Vec<u32> {
    Analysis::with(set, Purpose::DeadOnly, |_, _| {}).dead().collect()
}

/// Whether both perspectives' features together determine where the pieces stand.
#[derive(Debug)]
pub enum Lossless {
    /// Proved.
    Yes,
    /// Two legal positions that look the same.
    No(Box<[Witness; 2]>),
    Unknown,
}

impl Lossless {
    pub fn of(set: &FeatureSet) -> Lossless {
        if told::everything(set) {
            return Lossless::Yes;
        }
        collide::pair(set).map_or(Lossless::Unknown, |pair| Lossless::No(Box::new(pair)))
    }

    /// `yes`, `no` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Lossless::Yes => "yes",
            Lossless::No(_) => "no",
            Lossless::Unknown => "unknown",
        }
    }
}
