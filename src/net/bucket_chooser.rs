//! Chooses the output bucket of a position.

use std::sync::Arc;

use super::{BucketRule, NetError, OutputBuckets};
use crate::chess::{Board, Color, Perspective, PieceBoard};
use crate::features::{BucketExpression, FeatureSet};

/// The rule of a network's output buckets, ready to be applied to boards.
///
/// ```
/// use fsbench::chess::{Chess, Color};
/// use fsbench::features::FeatureSet;
/// use fsbench::net::{BucketChooser, BucketRule, OutputBuckets};
/// use shakmaty::Position;
///
/// let set = FeatureSet::resolve("piece")?;
/// let buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
/// assert_eq!(BucketChooser::new(&buckets, &set)?.of(Chess::default().board(), Color::White), 7);
/// let files = OutputBuckets { count: 8, rule: BucketRule::from("file(K)".to_owned()) };
/// assert_eq!(BucketChooser::new(&files, &set)?.of(Chess::default().board(), Color::White), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BucketChooser {
    /// The bucket by number of pieces, from 0 to 64.
    by_pieces: [u8; 65],
    /// Of rules by an expression of several values.
    expression: Option<Arc<BucketExpression>>,
}

impl BucketChooser {
    /// The chooser of networks of `set`.
    ///
    /// # Errors
    /// When the rule is an expression that the set has not, or of another number of buckets.
    pub fn new(buckets: &OutputBuckets, set: &FeatureSet) -> Result<BucketChooser, NetError> {
        let by_pieces = std::array::from_fn(|pieces| buckets.of(pieces) as u8);
        let Some(expression) = buckets.rule.expression() else {
            return Ok(BucketChooser { by_pieces, expression: None });
        };
        let compiled = set.bucket_expression(expression).map_err(NetError::BucketRule)?;
        let (given, count) = (buckets.count, compiled.count() as usize);
        if given != count {
            let reason = format!("the bucket rule `{expression}` has {count} output buckets, not {given}");
            return Err(NetError::Shape(reason));
        }
        Ok(BucketChooser { by_pieces, expression: (count > 1).then(|| Arc::new(compiled)) })
    }

    /// The expression that chooses among several buckets, if the rule is one.
    #[must_use]
    pub fn expression(&self) -> Option<&BucketExpression> {
        self.expression.as_deref()
    }

    /// The bucket of a board with `turn` to move.
    #[must_use]
    pub fn of(&self, board: &Board, turn: Color) -> usize {
        match &self.expression {
            None => self.of_count(board.occupied().count()),
            Some(_) => self.of_pieces(&PieceBoard::of(board), turn),
        }
    }

    /// [`BucketChooser::of`] a [`PieceBoard`].
    #[inline]
    #[must_use]
    pub fn of_pieces(&self, board: &PieceBoard, turn: Color) -> usize {
        match &self.expression {
            None => self.of_count(board.occupied().count_ones() as usize),
            Some(expression) => expression.of(board, Perspective::of(turn)) as usize,
        }
    }

    #[inline]
    fn of_count(&self, pieces: usize) -> usize {
        usize::from(self.by_pieces[pieces.min(64)])
    }
}

impl BucketRule {
    /// Whether the rule is the same for networks of two sets: an expression may read bucket tables, which the identities
    /// of the sets do not cover.
    #[must_use]
    pub fn is_same_for(&self, first: &FeatureSet, second: &FeatureSet) -> bool {
        let Some(expression) = self.expression() else { return true };
        let [first, second] = [first, second].map(|set| set.bucket_expression(expression));
        matches!((first, second), (Ok(first), Ok(second)) if first.set().identity() == second.set().identity())
    }
}
