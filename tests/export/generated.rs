//! Definitions of the property tests' generator, which uses the complete language, and selections of them.

use fsbench::export::{Export, Language};
use fsbench::features::FeatureSet;
use fsbench::units::Seed;
use rand::RngExt;
use rayon::prelude::*;

use super::compiled::{Program, Step, c_program, check, expected, rust_programs};
use super::generator::{self, Limits};
use super::{has_all, positions};

/// Number of generated definitions; see [`generator::wanted`].
const DEFINITIONS: u64 = 64;
/// Definitions that are compiled as one Rust program.
const CHUNK: usize = 64;

/// A generated definition; every third as a selection of some of its features in random order.
fn generated_set(number: u64) -> FeatureSet {
    let generated = generator::definition(&mut Seed(31).stream("export", number), Limits::FULL);
    let set = FeatureSet::from_definition(&generated.text()).unwrap();
    let size = set.num_features();
    if !number.is_multiple_of(3) || !(2..=1 << 16).contains(&size) {
        return set;
    }
    let mut rng = Seed(31).stream("selection", number);
    let mut kept: Vec<u32> = (0..size).filter(|_| rng.random_bool(0.7)).collect();
    kept.push(0);
    kept.sort_unstable();
    kept.dedup();
    if number.is_multiple_of(2) {
        for at in (1..kept.len()).rev() {
            kept.swap(at, rng.random_range(0..=at));
        }
    }
    set.select(&kept).unwrap()
}

/// Sets with king squares without features: a move there changes everything, whatever the bucket.
fn sets_without_some_squares() -> Vec<FeatureSet> {
    let set = |other: &str| {
        let table =
            (0..64).map(|square| if square % 3 == 0 { "-1" } else { other.split(", ").nth(square % 2).unwrap_or("0") });
        let table = table.collect::<Vec<_>>().join(", ");
        let text = format!(
            "features = \"bucket(K, b) * role(P) * square(P) * color(P) for P in pieces\"\n[buckets]\nb = [{table}]\n"
        );
        FeatureSet::from_definition(&text).unwrap()
    };
    vec![set("0"), set("-1, 1")]
}

fn has_small_tables(set: &FeatureSet) -> bool {
    Export::new(set, Language::C).features().is_ok_and(|text| text.len() < 1 << 20)
}

fn sources_agree_with_the_encoder(sets: &[FeatureSet], steps: &[Step]) {
    let folder = tempfile::tempdir().unwrap();
    let (rust, c) = rayon::join(
        || rust_programs(sets, folder.path()),
        || -> Vec<Program> {
            sets.par_iter()
                .enumerate()
                .map(|(at, set)| c_program(set, &folder.path().join(at.to_string()), &[]))
                .collect()
        },
    );
    sets.par_iter().zip(&rust).zip(&c).for_each(|((set, rust), c)| {
        let expected = expected(set, steps);
        check(set, rust, steps, &expected, "Rust");
        check(set, c, steps, &expected, "C");
    });
}

#[test]
fn generated_definitions_agree_with_the_encoder() {
    if !has_all(&["rustc", "gcc"]) {
        return;
    }
    sources_agree_with_the_encoder(&sets_without_some_squares(), &positions::random("generated", 0, 150));
    let numbers: Vec<u64> = generator::wanted(0..DEFINITIONS).collect();
    let mut compared = 0;
    for (at, chunk) in numbers.chunks(CHUNK).enumerate() {
        let sets: Vec<FeatureSet> =
            chunk.iter().map(|number| generated_set(*number)).filter(has_small_tables).collect();
        sources_agree_with_the_encoder(&sets, &positions::random("generated", at as u64, 150));
        compared += sets.len();
        println!("{compared} of {} definitions agree", at * CHUNK + chunk.len());
    }
    assert!(2 * compared > numbers.len(), "{compared}");
}
