//! Identifies the search: a digest of fixed searches of a fixed network. It changes when the search would play other
//! moves.

use std::sync::OnceLock;

use rand::RngExt;

use super::bench::parse_fen;
use super::{BENCH_FENS, Game, Limits, Searcher};
use crate::engine::{BackEnd, Model};
use crate::features::FeatureSet;
use crate::net::{Dense, FloatNet, Scheme, Shape, quantise};
use crate::units::Seed;

/// Nodes of each search: enough for every rule of the search to apply.
const NODES: u64 = 20_000;
/// Every so many of the bench's positions is searched.
const STEP: usize = 5;

/// The digest, 16 hexadecimal digits: the same on every machine. The first call takes some tenths of a second.
#[must_use]
pub fn search_digest() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| compute().unwrap_or_else(|| "unknown".into()))
}

fn compute() -> Option<String> {
    let set = FeatureSet::shipped("piece").ok()?;
    let net = quantise(&network(set.num_features()), &Scheme::stockfish()).ok()?;
    let model = Model::new(&net);
    let mut searcher = Searcher::new(&set, &model, BackEnd::best(), 1).ok()?;
    let mut hasher = blake3::Hasher::new();
    for fen in BENCH_FENS.iter().step_by(STEP) {
        searcher.clear();
        let game = Game::new(parse_fen(fen)?);
        let found = searcher.search(&game, &Limits { nodes: Some(NODES), ..Limits::default() }, |_| ());
        hasher.update(format!("{:?} {:?} {}\n", found.best, found.score, found.depth).as_bytes());
    }
    Some(hasher.finalize().to_hex()[..16].to_owned())
}

/// A small network with fixed random weights.
fn network(features: u32) -> FloatNet {
    let shape = Shape::plain(features, 8, vec![4]);
    let mut rng = Seed(0).stream("search digest", 0);
    let mut uniform = |count: usize| -> Vec<f32> { (0..count).map(|_| rng.random_range(-0.5..0.5)).collect() };
    let (ft_weights, ft_biases) = (uniform(features as usize * shape.l1), uniform(shape.l1));
    let layer =
        |(inputs, outputs)| Dense { inputs, outputs, weights: uniform(inputs * outputs), biases: uniform(outputs) };
    let stacks = vec![shape.layer_sizes().into_iter().map(layer).collect()];
    FloatNet { shape, ft_weights, ft_biases, stacks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_all_searches() {
        let digest = compute().expect("the network fits its set");
        assert_eq!(digest, search_digest(), "the same every time");
        assert_eq!(digest.len(), 16);
        assert_ne!(digest, blake3::hash(b"").to_hex()[..16]);
    }
}
