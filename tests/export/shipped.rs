//! Every shipped set, in both languages, over 10,000 moves of random play and of games.

use std::sync::Mutex;

use fsbench::features::{FeatureSet, available_names};
use rayon::prelude::*;

use super::compiled::{Program, c_program, check, expected, rust_programs};
use super::{has_all, positions};

/// Moves per set, half of them random.
const MOVES: usize = 10_000;

#[test]
fn shipped_sets_agree_with_the_encoder() {
    if !has_all(&["rustc", "gcc"]) {
        return;
    }
    let sets: Vec<FeatureSet> = available_names().iter().map(|name| FeatureSet::resolve(name).unwrap()).collect();
    let mut steps = positions::random("shipped", 0, MOVES / 2);
    steps.extend(positions::real(MOVES / 2));
    assert_eq!(steps.len(), MOVES);
    let folder = tempfile::tempdir().unwrap();
    let (rust, c) = rayon::join(
        || rust_programs(&sets, folder.path()),
        || -> Vec<Program> {
            sets.par_iter()
                .enumerate()
                .map(|(at, set)| c_program(set, &folder.path().join(at.to_string()), &[]))
                .collect()
        },
    );
    let checked = Mutex::new(0);
    sets.par_iter().zip(&rust).zip(&c).for_each(|((set, rust), c)| {
        let expected = expected(set, &steps);
        check(set, rust, &steps, &expected, "Rust");
        check(set, c, &steps, &expected, "C");
        *checked.lock().unwrap() += 1;
    });
    assert!(*checked.lock().unwrap() > 40);
}

/// The address and undefined-behaviour sanitizers find nothing.
#[test]
fn sanitizers_find_nothing() {
    if !has_all(&["gcc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let steps = positions::random("sanitized", 0, 400);
    let names = [
        "piece",
        "compact",
        "half-ka-v2-hm",
        "half-kp",
        "chess768-buckets",
        "sfnnv16",
        "threats-v10",
        "threat-roles",
        "piece-move",
        "mobility-bitset",
        "mobility-count",
        "pairs-d1",
        "top-pp",
        "relative-king-hv",
    ];
    names.par_iter().for_each(|name| {
        let set = FeatureSet::resolve(name).unwrap();
        let flags = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let program = c_program(&set, &folder.path().join(name), &flags);
        check(&set, &program, &steps, &expected(&set, &steps), "sanitized C");
    });
}
