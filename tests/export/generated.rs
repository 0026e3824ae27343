//! Definitions of the property tests' generator, which uses the complete language, and selections of them.

use fsbench::export::{Export, Language};
use fsbench::features::FeatureSet;
use fsbench::units::Seed;
use rand::RngExt;
use rayon::prelude::*;

use super::compiled::{Program, c_program, check, expected, rust_programs};
use super::generator::{self, Limits};
use super::{has_all, positions};

/// Definitions by the generator; `FSBENCH_DEFINITIONS` may ask for more.
const DEFINITIONS: u64 = 64;

/// Each definition, every third as a selection of some of its features in random order.
fn sets() -> Vec<FeatureSet> {
    let set = |number: u64| {
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
    };
    // King squares without features: a move there changes everything, whatever the bucket.
    let nowhere = ["0", "-1, 1"].map(|other| {
        let table =
            (0..64).map(|square| if square % 3 == 0 { "-1" } else { other.split(", ").nth(square % 2).unwrap_or("0") });
        let table = table.collect::<Vec<_>>().join(", ");
        let text = format!(
            "features = \"bucket(K, b) * role(P) * square(P) * color(P) for P in pieces\"\n[buckets]\nb = [{table}]\n"
        );
        FeatureSet::from_definition(&text).unwrap()
    });
    let count = std::env::var("FSBENCH_DEFINITIONS").ok().and_then(|count| count.parse().ok());
    let has_small_tables =
        |set: &FeatureSet| Export::new(set, Language::C).features().is_ok_and(|text| text.len() < 1 << 20);
    let count = count.unwrap_or(DEFINITIONS);
    let sets: Vec<FeatureSet> = nowhere.into_iter().chain((0..count).map(set)).filter(has_small_tables).collect();
    assert!(sets.len() as u64 > count / 2, "{}", sets.len());
    sets
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
