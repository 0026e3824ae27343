//! How likely a game's result is, given a score and the ply: `skip_unlikely` keeps a sample with this probability.

use crate::data::GameResult;
use crate::units::Ply;

/// Probability of `result` for the side to move, when the engine scores its position at `ply` with `centipawns`.
///
/// The win rate model that Stockfish fitted to its own games in 2021 (win = σ((x − a)/b), cubic polynomials a and b of
/// the ply; loss by symmetry, draw the rest), with b multiplied by 1.5, as nnue-pytorch's data loader does to skip
/// positions (`score_result_prob`).
#[must_use]
pub fn result_probability(result: GameResult, centipawns: f64, ply: Ply) -> f64 {
    let m = f64::from(ply.0.min(240)) / 64.0;
    let cubic = |[a, b, c, d]: [f64; 4]| ((a * m + b) * m + c) * m + d;
    let a = cubic([-3.683_893_04, 30.070_659_21, -60.528_787_23, 149.533_785_57]);
    let b = cubic([-2.018_185_70, 15.856_850_38, -29.834_520_23, 47.590_788_27]) * 1.5;
    let x = centipawns.clamp(-2000.0, 2000.0);
    let win = 1.0 / (1.0 + libm::exp((a - x) / b));
    let loss = 1.0 / (1.0 + libm::exp((a + x) / b));
    match result {
        GameResult::Win => win,
        GameResult::Loss => loss,
        GameResult::Draw => (1.0 - win - loss).max(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_plausible_and_symmetric() {
        let check = |result, centipawns, ply, range: std::ops::Range<f64>| {
            let found = result_probability(result, centipawns, Ply(ply));
            assert!(range.contains(&found), "{result:?} at {centipawns} and ply {ply}: {found}");
        };
        check(GameResult::Draw, 0.0, 40, 0.7..1.0);
        check(GameResult::Win, 1000.0, 40, 0.99..1.0001);
        check(GameResult::Loss, 1000.0, 40, 0.0..0.01);
        check(GameResult::Win, -300.0, 100, 0.0..0.05);
        for (centipawns, ply) in [(0.0, 0), (150.0, 60), (-700.0, 400)] {
            let results = [GameResult::Win, GameResult::Draw, GameResult::Loss];
            let sum: f64 = results.iter().map(|result| result_probability(*result, centipawns, Ply(ply))).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
            let mirrored = result_probability(GameResult::Win, centipawns, Ply(ply))
                - result_probability(GameResult::Loss, -centipawns, Ply(ply));
            assert!(mirrored.abs() < 1e-12);
        }
    }
}
