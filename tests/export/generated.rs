//! Definitions of the property tests' generator, which uses the complete language, and selections of them.

use fsbench::features::FeatureSet;
use fsbench::units::Seed;
use rand::RngExt;
use rayon::prelude::*;

use super::compiled::{Program, c_program, check, expected, rust_programs};
use super::generator::{self, Limits};
use super::{has_all, positions};

/// Definitions by the generator; `scripts` of the maintainer raise the number.
const DEFINITIONS: u64 = 48;

/// Each definition, every third as a selection of some of its features in random order.
fn sets() -> Vec<FeatureSet> {
    let set = |number: u64| {
        let generated = generator::definition(&mut Seed(31).stream("export", number), Limits::FULL);
        let set = FeatureSet::from_definition(&generated.text()).unwrap();
        let size = set.num_features();
        if number % 3 != 0 || !(2..=1 << 16).contains(&size) {
            return set;
        }
        let mut rng = Seed(31).stream("selection", number);
        let mut kept: Vec<u32> = (0..size).filter(|_| rng.random_bool(0.7)).collect();
        kept.push(0);
        kept.sort_unstable();
        kept.dedup();
        if number % 2 == 0 {
            for at in (1..kept.len()).rev() {
                kept.swap(at, rng.random_range(0..=at));
            }
        }
        set.select(&kept).unwrap()
    };
    let count = std::env::var("FSBENCH_DEFINITIONS").ok().and_then(|count| count.parse().ok());
    (0..count.unwrap_or(DEFINITIONS)).map(set).collect()
}

#[test]
fn generated_definitions_agree_with_the_encoder() {
    if !has_all(&["rustc", "gcc"]) {
        return;
    }
    let sets = sets();
    let folder = tempfile::tempdir().unwrap();
    let steps = positions::random("generated", 0, 150);
    let (rust, c) = rayon::join(
        || rust_programs(&sets, folder.path()),
        || -> Vec<Program> {
            sets.par_iter()
                .enumerate()
                .map(|(at, set)| c_program(set, &folder.path().join(at.to_string()), &[]))
                .collect()
        },
    );
    sets.par_iter().zip(&rust).zip(&c).for_each(|((set, rust), c)| {
        let expected = expected(set, &steps);
        check(set, rust, &steps, &expected, "Rust");
        check(set, c, &steps, &expected, "C");
    });
}
