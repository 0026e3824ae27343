//! Deltas of pairs and counts against the reference.

use super::super::tests::check_followed;
use crate::features::FeatureSet;
use crate::features::lower::delta;
use crate::features::set::Block;

/// That the deltas of all shipped sets are right, another test checks.
#[test]
fn no_block_of_a_shipped_set_is_left_to_the_caller() {
    for name in [
        "threats-v10",
        "threats-v11",
        "threats-v12",
        "threats-v16",
        "threats-distinct",
        "threat-roles",
        "sfnnv10",
        "sfnnv16",
        "piece-move",
        "attackers",
        "chess768-mirrored-attackers",
        "mobility-bitset",
        "all-mb",
        "mobility-count",
        "all-mc",
    ] {
        let set = FeatureSet::shipped(name).expect("shipped");
        let blocks: Vec<&Block> = set.blocks().iter().collect();
        assert_eq!(delta(&blocks).compared, [0usize; 0], "{name}");
    }
}

#[test]
fn pairs_with_rows_of_their_own() {
    for source in ["targets(P)", "attacks(P)", "moves(P)"] {
        let check = |features: &str| check_followed(&features.replace("source", source));
        check("square(P) * square(Q) for P in pieces, Q in source");
        check("square(P) * role(P) * square(Q) for P in pieces, Q in source if square(P) < square(Q)");
        check(
            "square(P) * (role(P, pawn..rook) + color(P)) * square(Q) for P in pieces, Q in source if role(P) != king",
        );
        check("file(K) * square(P) * color(P) * square(Q) for P in pieces, Q in source if file(Q) >= file(E)");
        check(
            "square(P) * square(Q) * (file(P) - file(Q)) for P in pieces, Q in source if rank(Q) > rank(P) - rank(K)",
        );
    }
    check_followed("square(P) * square(Q) * role(Q) for P in pieces, Q in targets(P) if color(P) != color(Q)");
    check_followed("square(P) * square(Q) * (role(P) - role(Q)) for P in pieces, Q in targets(P)");
    check_followed("square(P) * square(Q) * color(Q) for P in pieces, Q in targets(P) if role(P) > role(Q)");
}

#[test]
fn rows_of_all_pieces_of_a_code() {
    check_followed("role(P) * square(M) for P in pieces, M in attacks(P)");
    check_followed("color(P) * rank(M) for P in pieces, M in moves(P) if role(P) != pawn");
    check_followed("role(P) * color(P) * role(T) * color(T) for P in pieces, T in targets(P)");
    check_followed("role(P, pawn..queen) * square(T) * color(T) * role(T) for P in pieces, T in targets(P)");
    check_followed("role(P) * square(T) * role(T) * color(T) for P in pieces, T in targets(P) if color(P) == own");
}

#[test]
fn counts_of_reached_squares_and_pieces() {
    for count in [
        "count(8 for P in pieces, M in moves(P) if role(P) == pawn and color(P) == own)",
        "count(20 for P in pieces, M in attacks(P) if role(P) == queen and rank(M) >= 3)",
        "count(9 for P in pieces, M in moves(P) if rank(P) == 1 and role(P) != king)",
        "count(9 for P in pieces, T in targets(P) if color(P) == own and color(T) == their and role(T) != pawn)",
        "count(5 for P in pieces if role(P) == pawn) * rank(K)",
        "count(5 for P in pieces, T in targets(P) if role(P) == knight) * count(9 for P in pieces, M in moves(P))",
    ] {
        check_followed(count);
    }
}

#[test]
fn pairs_of_any_pieces() {
    check_followed("square(P) * square(Q) * role(Q) for P in pieces, Q in pieces");
    check_followed(
        "square(P) * square(Q) for P in pieces, Q in pieces if square(P) < square(Q) and role(P) == role(Q)",
    );
    check_followed("square(P) * square(Q) for P in pieces, Q in pieces if role(P) == pawn and file(P) < file(Q)");
}
