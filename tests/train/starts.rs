//! Runs that start from a network on another set.

use std::fs;

use fsbench::data::Method;
use fsbench::train::{Silent, TrainConfig, TrainSettings, run_dir};
use fsbench::units::Seed;

use super::common::planted;
use super::fixture::{Workspace, games, with};

/// A run that moves nothing has the loss with which its network starts.
fn starting_loss(workspace: &Workspace, config: &TrainConfig, name: &str) -> f64 {
    let still = with(config, |settings| {
        settings.learning_rate = 1e-30;
        settings.epochs = 1;
    });
    workspace.run(&still, name, false, &mut Silent).expect("trained").validation_loss
}

/// Rows that merge start as their averages: nearly as good as the network before, where random ones know nothing.
#[test]
fn a_coarser_set_starts_near_the_network_of_a_finer_one() {
    let workspace = Workspace::new();
    fs::write(workspace.path("games.pgn"), games(250)).expect("written");
    let config = with(&workspace.config(Method::Eval), |settings| {
        settings.epochs = 10;
        settings.epoch_samples = None;
    });
    let check = |old: &str, new: &str, name: &str| {
        let old = TrainConfig { set: old.into(), ..config.clone() };
        let trained = workspace.run(&old, name, false, &mut Silent).expect("trained").validation_loss;
        let random = TrainConfig { set: new.into(), ..config.clone() };
        let merged = TrainConfig { start: Some(workspace.path(name).join(run_dir::BEST)), ..random.clone() };
        let merged = starting_loss(&workspace, &merged, &format!("{name}-merged"));
        let random = starting_loss(&workspace, &random, &format!("{name}-random"));
        assert!(merged - trained < 0.3 * (random - trained), "{name}: {trained} {merged} {random}");
    };
    check("chess768", "chess768-mirrored", "mirror");
    check("chess768-kb4-hm", "chess768-kb2-hm", "buckets");
    check("piece + axis-h", "piece", "dropped");
}

/// Short trainings from the incumbent's network find the block that the scores depend on, among forty.
#[test]
fn the_planted_block_is_ranked_first() {
    // The roles of attackers and attacked pieces; files that pieces move to; neighbours on a rank.
    for (seed, planted_block) in (1..).zip([0, 8, 29]) {
        let workspace = Workspace::new();
        let data = workspace.path("planted.fsd");
        let blocks = planted::blocks();
        let right = &blocks[planted_block];
        planted::write(&data, right, 500, seed);
        let settings = TrainSettings {
            epochs: 4,
            batch_size: 512,
            learning_rate: 5e-3,
            decay: 0.6,
            epoch_samples: None,
            ..workspace.config(Method::Eval).settings
        };
        let config =
            TrainConfig { seed: Seed(seed), ..TrainConfig::new(planted::INCUMBENT, &*data, Method::Eval, settings) };
        workspace.run(&config, "incumbent", false, &mut Silent).expect("trained");
        let candidate = |(number, block): (usize, &String)| {
            let short = with(&config, |settings| settings.epochs = 1);
            let start = Some(workspace.path("incumbent").join(run_dir::BEST));
            let candidate = TrainConfig { set: format!("{} + {block}", planted::INCUMBENT), start, ..short };
            workspace.run(&candidate, &number.to_string(), false, &mut Silent).expect("trained").validation_loss
        };
        let losses: Vec<f64> = blocks.iter().enumerate().map(candidate).collect();
        let best = (0..blocks.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b])).expect("forty blocks");
        assert_eq!(&blocks[best], right, "seed {seed}: {losses:?}");
    }
}
