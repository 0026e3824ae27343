//! What is proved of feature sets: dead features, witnesses, counterexamples.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use fsbench::features::FeatureSet;
use fsbench::features::analysis::{Analysis, Status, Tally};

fn half() -> String {
    let bucket = |square: i32| if square % 8 < 4 { -1 } else { 4 * (7 - square / 8) + (7 - square % 8) };
    format!("[buckets]\nhalf = {:?}\n", (0..64).map(bucket).collect::<Vec<_>>())
}

fn definition(features: &str, rest: &str) -> FeatureSet {
    FeatureSet::from_definition(&format!("features = \"{features}\"\n{rest}")).unwrap_or_else(|error| panic!("{error}"))
}

fn mobility_count() -> String {
    let roles = [("pawn", 8), ("knight", 15), ("bishop", 16), ("rook", 25), ("queen", 25), ("king", 8)];
    let count = |(role, max): (&str, u32), color: &str| {
        format!("count({max} for P in pieces, M in moves(P) if role(P) == {role} and color(P) == {color})")
    };
    let blocks: Vec<String> = roles.iter().flat_map(|role| [count(*role, "own"), count(*role, "their")]).collect();
    blocks.join(" + ")
}

fn known() -> Vec<(&'static str, FeatureSet, u32)> {
    let pairs = |line: &str, direction: &str| {
        definition(
            &format!("{line}(P) * role(P) * color(P) * role(Q) * color(Q) for P in pieces, Q in next(P, {direction})"),
            "",
        )
    };
    let named = |name: &str| FeatureSet::resolve(name).unwrap_or_else(|error| panic!("{error}"));
    let top =
        "square(P)*role(P)*color(P) * square(Q)*role(Q)*color(Q) for P in pieces, Q in pieces if square(P) < square(Q)";
    let ka = "square(K) * (role(P, pawn..queen) * color(P) + role(P, king)) * square(P) for P in pieces";
    let hm = "bucket(K, half) * (role(P, pawn..queen) * color(P) + role(P, king)) * square(P) for P in pieces";
    vec![
        ("piece", named("piece"), 32),
        ("compact", named("compact"), 4),
        ("king-piece", named("king-piece"), 2656),
        ("piece-move", named("piece-move"), 2336),
        ("relative-king-h", named("relative-king-h"), 60),
        ("relative-king-v", named("relative-king-v"), 0),
        ("relative-king-hv", named("relative-king-hv"), 0),
        (
            "half-kp",
            definition(
                "square(K) * (reserved(1) + role(P,pawn..queen)*color(P)*square(P)) for P in pieces",
                "black = \"rotate\"",
            ),
            2720,
        ),
        ("half-ka", definition("square(K)*role(P)*color(P)*square(P) for P in pieces", ""), 0),
        ("half-ka-v2", definition(ka, ""), 0),
        ("half-ka-v2-hm", definition(hm, &format!("mirror = \"king-right\"\n{}", half())), 1538),
        ("king-all", definition("square(K)*square(P)*role(P)*color(P) for P in pieces", ""), 0),
        ("axis-d1", definition("diagonal(P)*role(P)*color(P) for P in pieces", ""), 0),
        ("pairs-h", pairs("rank", "east"), 0),
        ("pairs-v", pairs("file", "north"), 0),
        ("pairs-d1", pairs("diagonal", "northwest"), 0),
        ("pairs-d2", pairs("antidiagonal", "northeast"), 0),
        ("mobility-bitset", definition("square(M)*role(P)*color(P) for P in pieces, M in moves(P)", ""), 32),
        ("mobility-count", definition(&mobility_count(), ""), 0),
        ("top-pp-all", definition(top, ""), 0),
    ]
}

#[test]
fn known_sets() {
    for (name, set, dead) in known() {
        let start = std::time::Instant::now();
        let analysis = Analysis::of(&set, |_, _| {});
        let Tally { dead: found, live, unresolved } = analysis.tally();
        eprintln!(
            "{name}: {} = {found} dead, {live} live, {unresolved} unresolved; {:?}",
            set.num_features(),
            start.elapsed()
        );
        if unresolved > 0 {
            let open: Vec<u32> =
                (0..set.num_features()).filter(|i| analysis.status(*i) == Status::Unresolved).take(20).collect();
            eprintln!("   {open:?}");
        }
        if dead > 0 {
            assert_eq!(found, dead, "{name}");
        }
    }
}
