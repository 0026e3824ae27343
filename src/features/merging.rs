//! Merging: how a network on a set starts from one on a set that is not coarser, because rows merge (a mirror, joined
//! king buckets, fewer axes) or have no counterpart (a dropped block, a selection). On sampled positions every active
//! feature of the old set is credited to the features of the new one that the same binding yields. A row of the new set
//! starts as the average of its credits while it is active; the biases receive the average of what is left. So the
//! accumulators keep their mean over those positions.

mod counterparts;
mod credits;
mod unseen;

use super::lifting::LiftError;
use super::set::FeatureSet;
use super::starting_rows::{RowPart, StartingRows};
use crate::chess::Board;
use counterparts::{Counterpart, counterparts};
use credits::Credits;

/// The rows of `old` from which a network on `new` starts, where [`lifting`](super::lifting) finds no exact ones.
/// `boards` are positions of the training data: how often features are active there weights their rows. A row that is
/// active on none of them starts as the plain average of the rows that it can stand for.
///
/// Blocks correspond when their variables have the same sources; a block of `new` without a counterpart starts at zero.
///
/// ```
/// use fsbench::chess::Board;
/// use fsbench::features::{FeatureSet, merging};
///
/// let new = FeatureSet::resolve("rank(P) for P in pieces if role(P) == king")?;
/// let old = FeatureSet::resolve("square(P) for P in pieces if role(P) == king")?;
/// let rows = merging(&new, &old, &[Board::default()])?;
/// assert_eq!(rows.parts(7).iter().map(|part| (part.row, part.weight)).collect::<Vec<_>>(), [(60, 1.0)]);
/// // No king stands on rank 4: an average of all its squares.
/// assert_eq!(rows.parts(3).iter().map(|part| part.row).collect::<Vec<_>>(), (24..32).collect::<Vec<_>>());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When no block of one set corresponds to a block of the other.
pub fn merging(new: &FeatureSet, old: &FeatureSet, boards: &[Board]) -> Result<StartingRows, LiftError> {
    let pairs = counterparts(new, old);
    if pairs.iter().all(|pair| matches!(pair, Counterpart::None)) {
        return Err(LiftError::NothingInCommon { new: new.name().into(), old: old.name().into() });
    }
    let mut rows: Vec<Vec<RowPart>> = vec![Vec::new(); new.num_features() as usize];
    let mut bias = Vec::new();
    for (block, counterpart) in old.blocks().iter().zip(pairs) {
        let credits = match counterpart {
            Counterpart::Exact(inputs) => {
                for (row, inputs) in rows.iter_mut().zip(inputs) {
                    row.extend(inputs.into_iter().map(|row| RowPart { row, weight: 1.0 }));
                }
                continue;
            }
            Counterpart::Merged(at) => {
                let new_block = new.blocks()[at].spec();
                let credits = Credits::count(Some(new_block), block.spec(), boards);
                unseen::average(new_block, block.spec(), &credits, &mut rows);
                credits
            }
            Counterpart::None => Credits::count(None, block.spec(), boards),
        };
        for credit in credits.of_rows {
            rows[credit.new as usize].push(RowPart { row: credit.old, weight: credit.weight });
        }
        bias.extend(credits.of_bias);
    }
    Ok(StartingRows::new(rows, bias))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{Perspective, random_game};
    use crate::features::lifting;
    use crate::units::Seed;
    use shakmaty::Position;

    fn set(definition: &str) -> FeatureSet {
        let with_key = |expression: &str, key: &str| format!("features = \"{expression}\"\n{key}\n");
        match definition.split_once(';') {
            Some((expression, key)) => FeatureSet::from_definition(&with_key(expression, key)).expect(definition),
            None => FeatureSet::resolve(definition).expect(definition),
        }
    }

    fn boards(games: u64) -> Vec<Board> {
        let game = |game| random_game(&mut Seed(2).stream("merging", game), 80).into_iter();
        (0..games).flat_map(game).map(|(position, _)| position.board().clone()).collect()
    }

    fn parts(rows: &StartingRows, feature: u32) -> Vec<(u32, f32)> {
        rows.parts(feature).iter().map(|part| (part.row, part.weight)).collect()
    }

    /// The sum of random row weights over all positions and perspectives, by the old set and by the rows of the new.
    fn sums(new: &FeatureSet, old: &FeatureSet, rows: &StartingRows, boards: &[Board]) -> [f64; 2] {
        let weight = |row: u32| f64::from(row.wrapping_mul(0x9e37_79b9) >> 16) / 65536.0 - 0.5;
        let summed =
            |parts: &[RowPart]| parts.iter().map(|part| weight(part.row) * f64::from(part.weight)).sum::<f64>();
        let mut sums = [0.0; 2];
        let mut active = Vec::new();
        for board in boards {
            for pov in Perspective::ALL {
                old.encoder().encode(board, pov, &mut active);
                sums[0] += active.iter().map(|row| weight(*row)).sum::<f64>();
                new.encoder().encode(board, pov, &mut active);
                sums[1] += active.iter().map(|row| summed(rows.parts(*row))).sum::<f64>() + summed(rows.bias());
            }
        }
        sums
    }

    #[test]
    fn rows_are_averaged_by_how_often_they_are_active() {
        // The white king on g1, then twice on e1; the black king on e8 throughout.
        let boards = ["4k3/8/8/8/8/8/8/6K1", "4k3/8/8/8/8/8/8/4K3", "4k3/8/8/8/8/8/8/4K3"];
        let boards = boards.map(|board| board.parse::<Board>().expect("a board"));
        let old = set("square(P) for P in pieces if color(P) == own");
        let new = set("rank(P) for P in pieces if color(P) == own");
        let rows = merging(&new, &old, &boards).expect("merged");
        // Black's king is on e1 in its own view, in three of six.
        let [e1, g1] = [5.0 / 6.0, 1.0 / 6.0];
        assert_eq!(parts(&rows, 0), [(4, e1), (6, g1)]);
        assert_eq!(parts(&rows, 5).len(), 8, "no own piece was there: an average of all squares");
        assert!(parts(&rows, 5).iter().all(|(_, weight)| *weight == 0.125));
        assert!(rows.bias().is_empty());
        // Without their block, the rows are in the biases.
        let other = set("role(P) for P in pieces + square(P) for P in pieces if color(P) == own");
        let rows = merging(&set("role(P) for P in pieces"), &other, &boards).expect("merged");
        assert_eq!(parts(&rows, 5), [(5, 1.0)]);
        assert_eq!(rows.bias().iter().map(|part| (part.row, part.weight)).collect::<Vec<_>>(), [(10, e1), (12, g1)]);
    }

    #[test]
    fn a_mirror_averages_a_row_with_its_mirror_image() {
        let boards = boards(40);
        let rows = merging(&set("chess768-mirrored"), &set("chess768"), &boards).expect("merged");
        for feature in 0..768 {
            let found = parts(&rows, feature);
            let whole: f32 = found.iter().map(|(_, weight)| weight).sum();
            assert!((found.is_empty() || (whole - 1.0).abs() < 1e-5), "{feature}: {found:?}");
            assert!(found.iter().all(|(row, _)| *row == feature || *row == feature ^ 7), "{feature}: {found:?}");
        }
        // An own pawn on e4 was seen from both halves.
        assert_eq!(parts(&rows, 28).len(), 2);
    }

    /// A layout of king buckets and no buckets: whether they were seen or not, every row gets its own back.
    #[test]
    fn a_split_and_its_merge_give_the_rows_back() {
        let [coarse, fine] = [
            set("chess768-mirrored"),
            set("bucket(K, zones) * color(P) * role(P) * square(P) for P in \
            pieces;mirror = \"king-left\"\n[buckets]\nzones = [0,0,1,1,0,0,1,1,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]"),
        ];
        let split = lifting(&fine, &coarse).expect("finer");
        let merged = merging(&coarse, &fine, &boards(10)).expect("merged");
        for feature in 0..coarse.num_features() {
            let found = merged.parts(feature);
            assert!(found.iter().all(|part| split.inputs(part.row).iter().all(|row| *row == feature)));
            let whole: f32 =
                found.iter().filter(|part| !split.inputs(part.row).is_empty()).map(|part| part.weight).sum();
            // Own kings are always on a–d, no pawn is on an end rank.
            let is_dead = (320..384).contains(&feature) && feature % 8 > 3
                || [0, 6].contains(&(feature / 64)) && [0, 7].contains(&(feature / 8 % 8));
            assert!(is_dead || (whole - 1.0).abs() < 1e-4, "{feature}: {found:?}");
        }
    }

    #[test]
    fn the_mean_of_the_accumulators_stays() {
        let boards = boards(12);
        let check = |new: &str, old: &str| {
            let [new, old] = [set(new), set(old)];
            let rows = merging(&new, &old, &boards).expect("merged");
            let [before, after] = sums(&new, &old, &rows, &boards);
            assert!((before - after).abs() < 1e-3 * before.abs().max(1.0), "{}: {before} {after}", new.name());
        };
        check("chess768-mirrored", "chess768");
        // Refined by buckets and merged by the mirror at once.
        check("chess768-kb4-hm", "chess768");
        check("chess768-kb2-hm", "chess768-kb4-hm");
        check("piece", "half-ka-v2-hm");
        check("compact", "piece + mobility-bitset");
        check("mobility-count + axis-v", "mobility-count + axis-h + axis-v");
        check(
            "square(T) * role(P) for P in pieces, T in targets(P)",
            "square(T) * role(T) * role(P) for P in pieces, T in targets(P)",
        );
        check(
            "rank(P)*role(P)*color(P)*role(Q)*color(Q) for P in pieces, Q in next(P, east);mirror = \"king-left\"",
            "pairs-h",
        );
        check("role(P) for P in pieces;multiplicity = \"bag\"", "square(P) * role(P) for P in pieces");
    }

    /// The pairs of a file's neighbours are the same pairs on a mirrored board, in the other order.
    #[test]
    fn neighbours_are_found_in_the_mirror() {
        let mirrored =
            "rank(P)*role(P)*color(P)*role(Q)*color(Q) for P in pieces, Q in next(P, east);mirror = \"king-left\"";
        let rows = merging(&set(mirrored), &set("pairs-h"), &boards(20)).expect("merged");
        assert!(rows.bias().is_empty(), "{:?}", rows.bias());
    }

    #[test]
    fn a_selection_keeps_the_rows_that_it_names() {
        let old = set("piece + axis-h");
        let kept: Vec<u32> = (800..864).chain(100..200).collect();
        let new = old.select(&kept).expect("selected");
        let rows = merging(&new, &old, &boards(10)).expect("merged");
        for (feature, row) in kept.iter().enumerate() {
            assert_eq!(parts(&rows, feature as u32), [(*row, 1.0)]);
        }
        assert!(rows.bias().iter().all(|part| !kept.contains(&part.row)) && !rows.bias().is_empty());
    }

    #[test]
    fn sets_without_a_common_block_are_refused() {
        let error = merging(&set("square(M) for P in pieces, M in moves(P)"), &set("piece"), &boards(1));
        let message = error.expect_err("nothing in common").to_string();
        assert!(message.contains("no block"), "{message}");
    }
}
