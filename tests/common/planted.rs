//! Planted data: positions of random games whose scores depend on one known block of forty, so that a search over these
//! blocks has one right answer.
#![allow(dead_code, reason = "each test uses only some of these")]

use std::path::Path;

use fsbench::chess::Perspective;
use fsbench::data::{FsdWriter, Provenance, Purpose, Record, Sample, ScoreUnit};
use fsbench::features::FeatureSet;
use fsbench::units::{Ply, Seed};
use rand::RngExt;
use shakmaty::{Chess, Position};

/// What the search starts with; scores depend on its features, too.
pub const INCUMBENT: &str = "piece";

/// Forty blocks to try. None contains another but those of single pieces, which add nothing to `piece`.
pub fn blocks() -> Vec<String> {
    let mut blocks: Vec<String> = [
        "role(P) * color(P) * role(T) * color(T) for P in pieces, T in targets(P)",
        "square(T) * color(P) for P in pieces, T in targets(P)",
        "file(T) * color(P) * color(T) for P in pieces, T in targets(P)",
        "rank(T) * color(P) * color(T) for P in pieces, T in targets(P)",
        "square(A) * color(P) for P in pieces, A in attacks(P)",
        "file(A) * role(P) * color(P) for P in pieces, A in attacks(P)",
        "rank(A) * role(P) * color(P) for P in pieces, A in attacks(P)",
        "square(M) * color(P) for P in pieces, M in moves(P)",
        "file(M) * role(P) * color(P) for P in pieces, M in moves(P)",
        "rank(M) * role(P) * color(P) for P in pieces, M in moves(P)",
        "role(P) * color(P) * count(8 for M in moves(P)) for P in pieces",
        "role(P) * color(P) for P in pieces",
        "square(P) * color(P) for P in pieces",
        "square(K) * role(P) * color(P) for P in pieces",
        "file(K) * file(P) * color(P) for P in pieces",
        "rank(K) * rank(P) * color(P) for P in pieces",
    ]
    .map(String::from)
    .into();
    for axis in ["file", "rank", "diagonal", "antidiagonal"] {
        blocks.push(format!("{axis}(P) * role(P) * color(P) for P in pieces"));
    }
    for axis in ["file", "rank"] {
        for king in ["K", "E"] {
            blocks.push(format!("({axis}({king}) - {axis}(P)) * role(P) * color(P) for P in pieces"));
            blocks.push(format!("{axis}({king}) * role(P) * color(P) for P in pieces"));
        }
    }
    for direction in ["east", "north", "northeast", "northwest"] {
        for product in ["role(P) * color(P) * role(Q) * color(Q)", "file(P) * color(P) * role(Q)", "rank(P) * role(Q)"]
        {
            blocks.push(format!("{product} for P in pieces, Q in next(P, {direction})"));
        }
    }
    assert_eq!(blocks.len(), 40);
    blocks
}

/// Writes samples of `games` random games: their scores are sums of random weights of the active features of
/// [`INCUMBENT`] and of the block `planted`, the mover's less the opponent's, and noise.
pub fn write(path: &Path, planted: &str, games: u32, seed: u64) {
    let terms = [(INCUMBENT, 25.0), (planted, 40.0)].map(|(definition, spread)| {
        let set = FeatureSet::resolve(definition).unwrap();
        let mut rng = Seed(seed).stream("planted weights", set.num_features().into());
        let weights: Vec<f64> = (0..set.num_features()).map(|_| rng.random_range(-spread..spread)).collect();
        (set, weights)
    });
    write_scored(path, games, seed, &|position| terms.iter().map(|term| value(position, term)).sum());
}

/// Writes samples of `games` random games with the side to move's `score`, and noise.
pub fn write_scored(path: &Path, games: u32, seed: u64, score: &dyn Fn(&Chess) -> f64) {
    let mut writer = FsdWriter::create(path).unwrap();
    for game in 0..games {
        let mut noise = Seed(seed).stream("planted noise", game.into());
        let mut position = Chess::default();
        for (ply, mv) in super::random_game(1_000_000 * seed + u64::from(game), 100).into_iter().enumerate() {
            if ply >= 10 {
                let score = noise.random_range(-60.0..60.0) + score(&position);
                let sample = Sample {
                    position: position.clone(),
                    game,
                    ply: Ply(ply as u16),
                    mv: Some(mv),
                    score: Some(score.round() as i16),
                    result: None,
                };
                writer.push(&Record::pack(&sample).unwrap()).unwrap();
            }
            position.play_unchecked(mv);
        }
    }
    let provenance = Provenance {
        purpose: Purpose::Eval,
        score_unit: ScoreUnit::Centipawns,
        seed: Seed(seed),
        games,
        sources: [0; 32],
    };
    writer.seal(provenance).unwrap().persist().unwrap();
}

/// The weights of the mover's active features less those of the opponent's.
fn value(position: &Chess, (set, weights): &(FeatureSet, Vec<f64>)) -> f64 {
    let sum = |pov: Perspective| {
        let mut active = Vec::new();
        set.encoder().encode(position.board(), pov, &mut active);
        active.iter().map(|feature| weights[*feature as usize]).sum::<f64>()
    };
    let mover = Perspective::of(position.turn());
    sum(mover) - sum(mover.other())
}
