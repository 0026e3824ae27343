//! Output buckets by an expression of the language: a set of which exactly one feature is active in every position.

use std::cell::Cell;

use super::analysis::OneActive;
use super::code::RowList;
use super::error::{FeatureError, SourceText};
use super::{FeatureSet, definition};
use crate::chess::{PackedBoard, Perspective, PieceBoard};

thread_local! {
    static ACTIVE: Cell<RowList> = Cell::default();
}

/// An expression that gives every position exactly one bucket, as the side to move sees it.
///
/// ```
/// use fsbench::chess::{Chess, Perspective, PieceBoard};
/// use fsbench::features::FeatureSet;
/// use shakmaty::Position;
///
/// let set = FeatureSet::resolve("piece")?;
/// let pieces = set.bucket_expression("count(7 for P in pieces if role(P) != pawn)")?;
/// assert_eq!(pieces.count(), 8);
/// let board = PieceBoard::of(Chess::default().board());
/// assert_eq!(pieces.of(&board, Perspective::White), 7);
/// // A bucket for each piece is no rule.
/// assert!(set.bucket_expression("square(P) for P in pieces").is_err());
/// # Ok::<(), fsbench::features::FeatureError>(())
/// ```
#[derive(Debug)]
pub struct BucketExpression {
    set: FeatureSet,
}

impl FeatureSet {
    /// The buckets by an expression, with the bucket tables of this set and the orientation of its first block.
    ///
    /// # Errors
    /// When the expression has a mistake, or it is not proved that it gives exactly one bucket in every position.
    pub fn bucket_expression(&self, expression: &str) -> Result<BucketExpression, FeatureError> {
        let set = FeatureSet::compile(definition::of_bucket_expression(expression, self.definition())?)?;
        let (message, help) = match OneActive::of(&set) {
            OneActive::Proved => return Ok(BucketExpression { set }),
            OneActive::Counterexample { fen, active: 0 } => (
                format!(
                    "this gives no bucket in the position {fen}; a bucket rule gives exactly one in every position"
                ),
                "domains, bucket tables and `if` must leave no position out",
            ),
            OneActive::Counterexample { fen, active } => (
                format!(
                    "this gives {active} buckets in the position {fen}; a bucket rule gives exactly one in every \
                     position"
                ),
                "use the kings, K and E, and `count(…)`; a `for` outside of `count` gives a bucket for each piece",
            ),
            OneActive::Unknown => (
                "it is not proved that this gives exactly one bucket in every position".into(),
                "use the kings, K and E, and `count(…)`, without `for` or an `if` with counts outside of it",
            ),
        };
        Err(SourceText::new("bucket rule", expression).error(message, 0..expression.len(), Some(help.into())))
    }
}

impl BucketExpression {
    /// Number of buckets.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.set.num_features()
    }

    /// The set of which the active feature is the bucket.
    #[must_use]
    pub const fn set(&self) -> &FeatureSet {
        &self.set
    }

    /// The bucket of a board with both kings.
    #[must_use]
    pub fn of(&self, board: &PieceBoard, stm: Perspective) -> u32 {
        let mut active = ACTIVE.take();
        self.set.encoder().encode_board(board, stm, &mut active);
        let bucket = active.first().copied().unwrap_or(0);
        ACTIVE.set(active);
        bucket
    }

    /// [`BucketExpression::of`] a packed board.
    #[must_use]
    pub fn of_packed(&self, board: &PackedBoard, stm: Perspective) -> u32 {
        self.of(&PieceBoard::unpacked(board), stm)
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::random_game;
    use super::*;
    use crate::chess::Board;
    use shakmaty::Position;

    /// A mirrored set with king zones, of which the rule alone makes use.
    const ZONES: &str = "features = \"square(P) * role(P) * color(P) for P in pieces\"\nmirror = \"king-left\"\n\
         [buckets]\nzones = [0,0,1,1,2,2,2,2, 2,2,2,2,2,2,2,2, 2,2,2,2,2,2,2,2, 2,2,2,2,2,2,2,2]\n\
         gap = [-1,0,1,1,2,2,2,2, 2,2,2,2,2,2,2,2, 2,2,2,2,2,2,2,2, 2,2,2,2,2,2,2,2]\n";

    fn zones() -> FeatureSet {
        FeatureSet::from_definition(&format!("name = \"zoned\"\n{ZONES}")).expect("a definition")
    }

    /// The bucket of every position of random games, compared with `expected` and with the reference encoder.
    fn check(set: &FeatureSet, expression: &str, count: u32, expected: impl Fn(&Board, Perspective) -> u32) {
        let rule = set.bucket_expression(expression).expect("a bucket rule");
        assert_eq!(rule.count(), count);
        for position in (0..4).flat_map(random_game) {
            let stm = Perspective::of(position.turn());
            let board = position.board();
            let bucket = rule.of(&PieceBoard::of(board), stm);
            assert_eq!(bucket, expected(board, stm), "{board:?}");
            assert_eq!(rule.set().reference(board, stm), [bucket]);
            let packed = PackedBoard::of(board);
            assert_eq!(rule.of_packed(&packed, stm), bucket);
        }
    }

    #[test]
    fn rules_give_the_bucket_of_every_position() {
        let piece = FeatureSet::resolve("piece").expect("shipped");
        check(&piece, "count(7 for P in pieces if role(P) != pawn)", 8, |board, _| {
            (board.occupied() & !board.pawns()).count().min(7) as u32
        });
        check(&piece, "role(K, king)", 1, |_, _| 0);
        check(&zones(), "bucket(K, zones)", 3, |board, stm| {
            let king = board.king_of(stm.own()).expect("a king");
            let rank = if stm == Perspective::White { king.rank() as u32 } else { 7 - king.rank() as u32 };
            let file = (king.file() as u32).min(7 - king.file() as u32);
            if rank == 0 { file / 2 } else { 2 }
        });
        check(&piece, "color(E) * file(K)", 16, |board, stm| {
            8 + board.king_of(stm.own()).expect("a king").file() as u32
        });
    }

    #[test]
    fn tables_of_named_definitions_and_selections_are_known() {
        let zones = zones();
        let selected = zones.select(&zones.not_dead()).expect("a selection");
        check(&selected, "bucket(K, zones)", 3, |board, stm| {
            zones.bucket_expression("bucket(K, zones)").expect("a rule").of(&PieceBoard::of(board), stm)
        });
    }

    /// A rule cannot say which of two tables of one name it means; a set's own table hides those of what it names.
    #[test]
    fn tables_of_one_name_are_refused() {
        let file = |numbers: &str| {
            format!("features = \"bucket(P, zones) for P in pieces\"\n[NAME.buckets]\nzones = [{numbers}]\n")
        };
        let [halves, thirds] =
            [["0, 0, 0, 0, 1, 1, 1, 1"; 8], ["0, 0, 0, 1, 1, 1, 2, 2"; 8]].map(|rows| rows.join(", "));
        let text = |first: &str, second: &str, own: &str| {
            let of = |name: &str, numbers: &str| {
                format!("[definitions.{name}]\n{}", file(numbers).replace("NAME", &format!("definitions.{name}")))
            };
            format!("name = \"both\"\nfeatures = \"one + two\"\n{own}{}{}", of("one", first), of("two", second))
        };
        let rule = |text: &str| {
            let set = FeatureSet::from_definition(text).expect("a definition");
            set.bucket_expression("bucket(K, zones)").map(|rule| rule.count()).map_err(|error| error.to_string())
        };
        assert_eq!(rule(&text(&halves, &halves, "")), Ok(2));
        assert_eq!(rule(&text(&halves, &thirds, &format!("buckets.zones = [{thirds}]\n"))), Ok(3));
        let error = rule(&text(&halves, &thirds, "")).expect_err("two tables");
        assert!(error.contains("blocks of the set have different bucket tables `zones`"), "{error}");
    }

    #[test]
    fn rules_without_exactly_one_bucket_are_refused() {
        let check = |expression: &str, expected: &str| {
            let error = zones().bucket_expression(expression).expect_err("refused").to_string();
            assert!(error.contains(expected), "{expression}: {error}");
        };
        check(
            "square(P) for P in pieces",
            "gives 32 buckets in the position rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR",
        );
        check("bucket(K, gap)", "gives no bucket in the position");
        check("rank(K) if count(1 for P in pieces) == 1", "it is not proved that this gives exactly one bucket");
        check("rank(K) if count(40 for P in pieces) < 32", "gives no bucket in the position rnbqkbnr/");
        check("rank(K) if rank(K) < 7", "gives no bucket in the position");
        check("file(K) * (rank(K) + role(K, king))", "gives 2 buckets in the position");
        check("file(K) + rank(K)", "a bucket rule is one block, without `+`");
        check("stokfish", "`stokfish` is no bucket rule");
        check("bucket(K, zone)", "zone");
    }
}
