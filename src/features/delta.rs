//! Which features of a board become active and which cease to be.

use super::code::RowList;

/// The change of one perspective's active features between two boards. Indices ascend, unless a method says otherwise.
///
/// ```
/// use fsbench::chess::{BoardChange, Chess, Perspective};
/// use fsbench::features::{Delta, FeatureSet};
/// use shakmaty::{Position, uci::UciMove};
///
/// let set = FeatureSet::resolve("square(P) for P in pieces")?;
/// let start = Chess::default();
/// let mv = "g1f3".parse::<UciMove>().unwrap().to_move(&start).unwrap();
/// let change = BoardChange::of(mv, start.turn());
/// let after = change.applied_to(start.board());
/// let mut delta = Delta::default();
/// set.encoder().diff(start.board(), &change, &after, Perspective::White, &mut delta);
/// assert_eq!(delta, Delta { added: vec![21].into(), removed: vec![6].into(), refresh: false });
/// # Ok::<(), fsbench::features::FeatureError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Active after and not before; under `bag` once per binding added.
    pub added: RowList,
    /// Active before and not after.
    pub removed: RowList,
    /// Whether some block's context changed.
    pub refresh: bool,
}

impl Delta {
    /// The number of changed rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        (self.added.len() + self.removed.len()) as u64
    }

    /// Writes only what is to be changed: where little is done besides, stores are what takes time.
    #[inline(always)]
    pub(super) fn forget_refresh(&mut self) {
        if self.refresh {
            self.refresh = false;
        }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
        self.refresh = false;
    }
}
