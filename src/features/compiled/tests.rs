//! Every strategy against the reference encoder, on a definition that uses it.

use shakmaty::Position;

use super::*;
use crate::chess::{BoardChange, PackedBoard, Perspective, random_game};
use crate::features::{Delta, EncodeScratch, FeatureSet};
use crate::units::Seed;

/// The elements of `of` that are not in `other`, both ascending; repeats count.
fn beyond(of: &[u32], other: &[u32]) -> Vec<u32> {
    let mut other = other.to_vec();
    of.iter().copied().filter(|row| other.binary_search(row).map(|at| other.remove(at)).is_err()).collect()
}

/// Asserts that the blocks of a definition use a strategy, and that encodings, batches and deltas are right.
fn check(features: &str, uses: impl Fn(&CompiledBlock) -> bool) {
    for keys in ["", "black = \"rotate\"\nmirror = \"king-left\"\n"] {
        let set = FeatureSet::from_definition(&format!("features = \"{features}\"\n{keys}")).expect("a definition");
        assert!(set.blocks().iter().all(|block| uses(&block.compiled)), "{features}");
        for game in 0..3 {
            check_game(&set, game);
        }
    }
}

fn check_game(set: &FeatureSet, game: u64) {
    let mut rng = Seed(40).stream("strategies", game);
    let mut active = Vec::new();
    let mut delta = Delta::default();
    let mut between = Delta::default();
    for (position, mv) in random_game(&mut rng, 120) {
        let change = BoardChange::of(mv, position.turn());
        let before = position.board();
        let after = change.applied_to(position.board());
        let mut sides = <[RowBuffer; 2]>::default();
        let packed = PackedBoard::pack(before).expect("32 pieces at most");
        let batch = std::iter::once((&packed, Perspective::White));
        set.encoder().append_batch(batch, &mut sides, &mut EncodeScratch::default());
        for pov in Perspective::ALL {
            let [old, new] = [before, &after].map(|board| set.reference(board, pov));
            set.encoder().encode(before, pov, &mut active);
            for mut rows in [active.clone(), sides[pov.index()].rows().to_vec()] {
                rows.sort_unstable();
                assert_eq!(rows, old, "{}", set.definition());
            }
            set.encoder().diff(before, &change, &after, pov, &mut delta);
            let expected = [beyond(&new, &old), beyond(&old, &new)];
            assert_eq!([&delta.added, &delta.removed], [&expected[0], &expected[1]], "{}", set.definition());
            if !delta.refresh {
                set.encoder().diff_boards(&[0], before, &after, pov, &mut between);
                [&mut between.added, &mut between.removed].into_iter().for_each(|rows| rows.sort_unstable());
                assert_eq!([between.added, between.removed], expected, "{}", set.definition());
                between = Delta::default();
            }
        }
    }
}

#[test]
fn piece_tables() {
    check("square(K) * square(P) * role(P) * color(P) for P in pieces", CompiledBlock::is_piece_table);
    // Its entries are no sums of code and square.
    let no_sums = "(role(P, pawn) * rank(P) + role(P, knight..king) * file(P)) * color(P) * square(P) for P in pieces";
    check(no_sums, CompiledBlock::is_piece_table);
    #[cfg(target_arch = "x86_64")]
    check(no_sums, |block| !block.has_sum_tables());
    // Small enough to sort by bitsets when a king moves.
    let small = "rank(P) * file(P) * (file(K) - file(P)) for P in pieces";
    check(small, |block| block.piece_table.as_ref().is_some_and(|table| table.small));
}

#[test]
fn single_pieces() {
    let pieces = |block: &CompiledBlock| block.form == BindingForm::Piece && !block.is_piece_table();
    check("square(P) * role(P) for P in pieces if file(P) >= file(K) and rank(P) - rank(E) != -1", pieces);
    check("role(P) * color(P) for P in pieces", |block| pieces(block) && block.shares_rows());
}

#[test]
fn pairs() {
    let pairs = |block: &CompiledBlock| block.form == BindingForm::Pair && !block.square_independent;
    let features = "square(P) * square(Q) for P in pieces, Q in pieces if square(P) < square(Q)";
    check(features, |block| pairs(block) && !block.shares_rows());
    let features = "rank(P) * role(P) * role(Q) * color(Q) for P in pieces, Q in next(P, east)";
    check(features, |block| pairs(block) && block.shares_rows());
    check("square(M) for M in moves(K)", pairs);
    check("square(M) * role(P) * color(P) for P in pieces, M in moves(P)", |block| block.square_independent);
}

#[test]
fn counts() {
    let features = "count(8 for P in pieces, M in moves(P) if role(P) == pawn and color(P) == own)";
    check(features, |block| block.form == BindingForm::Counts);
    let features = "square(P) * count(3 for A in pieces, M in attacks(A) if square(M) == square(P)) for P in pieces";
    check(features, |block| block.form == BindingForm::Counted && !block.shares_rows());
}

#[test]
fn searches() {
    let other = |block: &CompiledBlock| block.form == BindingForm::Other;
    check("role(P) * role(Q) * role(T) for P in pieces, Q in targets(P), T in targets(Q)", other);
    check("square(P) for P in pieces if count(2 for Q in targets(P)) == 1", other);
}
