//! Lifting: which rows of a coarser set stand for each feature of a finer one, so that a network on the finer set can
//! start with the scores of a network on the coarser.

use shakmaty::{Chess, Position};
use thiserror::Error;

use super::analysis::{BindingSearch, Budget};
use super::factor::{Factors, MAX_STEPS, Undetermined, inputs};
use super::set::{Block, FeatureSet};
use super::spec::{BlockSpec, ENEMY_KING, OWN_KING};
use crate::chess::{Board, Perspective, random_move};
use crate::units::Seed;

/// Why a set's rows cannot start another set's.
#[derive(Debug, Error)]
pub enum LiftError {
    #[error(
        "`{fine}` has no block over the same pieces as `{block}` of `{coarse}`: variables, condition, orientation and \
         multiplicity must be equal"
    )]
    NoBlock { coarse: String, fine: String, block: String },
    #[error("`{block}` of `{coarse}` has counts, which a feature of another set does not determine")]
    Counts { coarse: String, block: String },
    #[error("the selection of `{fine}` leaves out features of `{block}` of `{coarse}`")]
    Selected { coarse: String, fine: String, block: String },
    #[error("a feature of `{fine}` does not determine which feature of `{coarse}` is active with it: {why}")]
    Undetermined { coarse: String, fine: String, why: String },
    #[error("the features of `{fine}` stand for other features of `{coarse}` than are active on the board {board}")]
    Differs { coarse: String, fine: String, board: String },
    #[error("no block of `{new}` is over the same pieces and squares as a block of `{old}`")]
    NothingInCommon { new: String, old: String },
}

/// Random games whose positions are compared, and positions per game.
const GAMES: u64 = 30;
const PLIES: usize = 80;

/// The features of `coarse` that each feature of `fine` stands for, as factors: in every position the active features
/// of `fine` together stand for the active features of `coarse`. A network on `fine` whose rows are the sums of these
/// rows has the scores of the network on `coarse`.
///
/// Each block of `coarse` needs a block of `fine` over the same variables; blocks of `fine` beyond that stand for
/// nothing. That the result is right is also checked on positions of random games.
///
/// ```
/// use fsbench::features::{FeatureSet, lifting};
///
/// let fine = FeatureSet::resolve("file(K) * square(P) for P in pieces")?;
/// let coarse = FeatureSet::resolve("square(P) for P in pieces")?;
/// assert_eq!(lifting(&fine, &coarse)?.inputs(2 * 64 + 12), [12]);
/// assert!(lifting(&coarse, &fine).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the definitions do not say which row contains which.
pub fn lifting(fine: &FeatureSet, coarse: &FeatureSet) -> Result<Factors, LiftError> {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); fine.num_features() as usize];
    let mut unused: Vec<&Block> = fine.blocks().iter().collect();
    for block in coarse.blocks() {
        let spec = block.spec();
        if let Some(at) = unused.iter().position(|other| same_block(other.spec(), spec)) {
            if !copy_block(unused.remove(at).spec(), spec, &mut rows) {
                return Err(LiftError::Selected {
                    coarse: coarse.name().into(),
                    fine: fine.name().into(),
                    block: spec.as_written.clone(),
                });
            }
            continue;
        }
        if !spec.product.counts().is_empty() {
            return Err(LiftError::Counts { coarse: coarse.name().into(), block: spec.as_written.clone() });
        }
        let Some(at) = unused.iter().position(|other| same_bindings(other.spec(), spec)) else {
            let coarse = coarse.name().into();
            let fine = fine.name().into();
            return Err(LiftError::NoBlock { coarse, fine, block: spec.as_written.clone() });
        };
        let undetermined = |why: &str| LiftError::Undetermined {
            coarse: coarse.name().into(),
            fine: fine.name().into(),
            why: why.to_owned(),
        };
        lift_block(unused.remove(at).spec(), spec, MAX_STEPS, &mut rows).map_err(|error| match error {
            Undetermined::Ambiguous(why) => undetermined(&why),
            Undetermined::OutOfSteps => undetermined("the block has too many bindings to tell"),
        })?;
    }
    let lifted = Factors::from_rows(coarse.num_features(), rows);
    match differing_board(fine, coarse, &lifted) {
        None => Ok(lifted),
        Some(board) => {
            Err(LiftError::Differs { coarse: coarse.name().into(), fine: fine.name().into(), board: board.to_string() })
        }
    }
}

/// Whether both blocks have the same bindings in every position, whose features count alike.
pub(super) fn same_bindings(one: &BlockSpec, other: &BlockSpec) -> bool {
    let sources = |spec: &BlockSpec| spec.binders.iter().map(|binder| (binder.slot, binder.source)).collect::<Vec<_>>();
    // The text for debugging contains the tables of buckets.
    let condition = |spec: &BlockSpec| format!("{:?} {:?}", spec.condition, spec.guards);
    (one.orientation, one.multiplicity, &one.variables) == (other.orientation, other.multiplicity, &other.variables)
        && sources(one) == sources(other)
        && condition(one) == condition(other)
}

/// Whether both blocks have the same elements in every position.
pub(super) fn same_block(one: &BlockSpec, other: &BlockSpec) -> bool {
    let tables = |spec: &BlockSpec| spec.buckets().into_iter().cloned().collect::<Vec<_>>();
    (one.orientation, one.multiplicity, &one.canonical) == (other.orientation, other.multiplicity, &other.canonical)
        && tables(one) == tables(other)
}

/// Adds the elements of a block of both sets to the rows, as indices of the sets. False: `new` lacks some of them.
pub(super) fn copy_block(new: &BlockSpec, old: &BlockSpec, rows: &mut [Vec<u32>]) -> bool {
    (0..old.product.size).all(|element| match (new.index_of(element), old.index_of(element)) {
        (Some(new), Some(old)) => {
            rows[new as usize].push(old);
            true
        }
        (_, old) => old.is_none(),
    })
}

/// Finds the elements of `coarse` for every element of `fine`, as indices of the sets.
pub(super) fn lift_block(
    fine: &BlockSpec,
    coarse: &BlockSpec,
    mut steps: u64,
    rows: &mut [Vec<u32>],
) -> Result<(), Undetermined> {
    let search = BindingSearch::new(fine, Budget::THOROUGH);
    // A variable that nothing of the finer block reads is not bound.
    if let Some(slot) = (0..fine.variables.len()).find(|slot| coarse.product.reads(*slot) && !search.reads(*slot)) {
        let letter = match slot {
            OWN_KING => 'K',
            ENEMY_KING => 'E',
            _ => fine.binders.iter().find(|binder| binder.slot == slot).map_or('?', |binder| binder.letter),
        };
        return Err(Undetermined::Ambiguous(format!("no feature of the block says where {letter} stands")));
    }
    for element in 0..fine.product.size {
        let Some(index) = fine.index_of(element) else { continue };
        let elements = inputs(&search, &coarse.product, element, &mut steps)?;
        rows[index as usize].extend(elements.into_iter().filter_map(|element| coarse.index_of(element)));
    }
    Ok(())
}

/// A board of random games on which the lifted features of `fine` differ from the features of `coarse`.
fn differing_board(fine: &FeatureSet, coarse: &FeatureSet, lifted: &Factors) -> Option<Board> {
    let mut active = Vec::new();
    let mut expected = Vec::new();
    let mut differs = |board: &Board| {
        Perspective::ALL.into_iter().any(|pov| {
            fine.encoder().encode(board, pov, &mut active);
            coarse.encoder().encode(board, pov, &mut expected);
            let mut found: Vec<u32> = active.iter().flat_map(|feature| lifted.inputs(*feature)).copied().collect();
            found.sort_unstable();
            expected.sort_unstable();
            found != expected
        })
    };
    for game in 0..GAMES {
        let mut rng = Seed(0).stream("lifting", game);
        let mut position = Chess::default();
        for _ in 0..PLIES {
            if differs(position.board()) {
                return Some(position.board().clone());
            }
            let Some(mv) = random_move(&position, &mut rng) else { break };
            position.play_unchecked(mv);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::random_game;

    fn set(definition: &str) -> FeatureSet {
        FeatureSet::resolve(definition).expect(definition)
    }

    fn error(fine: &str, coarse: &str) -> String {
        lifting(&set(fine), &set(coarse)).expect_err("no lifting").to_string()
    }

    #[test]
    fn king_buckets_are_lifted_from_fewer() {
        let coarse = set("file(K) * role(P) * square(P) for P in pieces");
        let fine = set("square(K) * role(P) * square(P) for P in pieces");
        let lifted = lifting(&fine, &coarse).expect("determined");
        // King on g2, a bishop on c4.
        assert_eq!(lifted.inputs((14 * 6 + 2) * 64 + 26), [(6 * 6 + 2) * 64 + 26]);
        assert_eq!(lifted.size, coarse.num_features());
    }

    #[test]
    fn a_block_beyond_the_coarser_set_stands_for_nothing() {
        let lifted = lifting(&set("piece + compact"), &set("piece")).expect("determined");
        assert_eq!((lifted.inputs(5), lifted.inputs(768)), (&[5][..], &[][..]));
    }

    /// The pairs of shipped sets that can be lifted. Each gives the accumulators of the coarser set on other positions
    /// than those that [`lifting`] compares.
    #[test]
    fn shipped_pairs() {
        let shipped = crate::features::shipped_sets().expect("definitions");
        let sets: Vec<FeatureSet> =
            shipped.iter().map(|shipped| set(&shipped.name)).filter(|set| set.num_features() <= 50_000).collect();
        let weight = |feature: u32| u64::from(feature + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut pairs = Vec::new();
        for (fine, coarse) in sets.iter().flat_map(|fine| sets.iter().map(move |coarse| (fine, coarse))) {
            if fine.identity() == coarse.identity() {
                continue;
            }
            let Ok(lifted) = lifting(fine, coarse) else { continue };
            pairs.push(format!("{} from {}", fine.name(), coarse.name()));
            let row =
                |feature: &u32| lifted.inputs(*feature).iter().fold(0u64, |sum, at| sum.wrapping_add(weight(*at)));
            for game in 0..4 {
                for (position, _) in random_game(&mut Seed(1).stream("shipped pairs", game), 60) {
                    for pov in Perspective::ALL {
                        let mut active = Vec::new();
                        let mut expected = Vec::new();
                        fine.encoder().encode(position.board(), pov, &mut active);
                        coarse.encoder().encode(position.board(), pov, &mut expected);
                        let sum = active.iter().map(row).fold(0, u64::wrapping_add);
                        assert_eq!(sum, expected.iter().map(|at| weight(*at)).fold(0, u64::wrapping_add));
                    }
                }
            }
        }
        pairs.sort();
        insta::assert_snapshot!(pairs.join("\n"));
    }

    #[test]
    fn a_block_of_both_sets_is_copied_whatever_it_holds() {
        let lifted = lifting(&set("axis-v + mobility-count"), &set("mobility-count")).expect("the same block");
        assert!((0..206).all(|count| lifted.inputs(96 + count) == [count]));
        let lifted = lifting(&set("compact + piece"), &set("piece")).expect("the same block");
        assert_eq!((lifted.inputs(0), lifted.inputs(192 + 5)), (&[][..], &[5][..]));
    }

    #[test]
    fn what_a_feature_does_not_determine_is_refused() {
        let refused = |fine: &str, coarse: &str, expected: &str| {
            let message = error(fine, coarse);
            assert!(message.contains(expected), "{message}");
        };
        refused("file(P) for P in pieces", "square(P) for P in pieces", "does not determine");
        refused("square(P) for P in pieces if role(P) == pawn", "square(P) for P in pieces", "no block over the same");
        refused("piece", "piece + compact", "no block over the same");
        // Two pawns are one feature of the coarser set, but two of the finer.
        refused("square(P) * role(P) for P in pieces", "role(P) for P in pieces", "than are active on the board");
    }
}
