//! What a pass says of two rows: the difference of their losses, paired by validation game, and their games.

use crate::data::{Split, SplitRule};
use crate::experiment::runner::PassResults;
use crate::experiment::spec::ComparisonRow;
use crate::record::{
    LossDifference, MatchKind, MatchResult, NetResult, PlayedCandidate, ScreenRecord, SpeedRecord, TimeBreakdown,
    ValidationRecord,
};
use crate::statistics::pentanomial::Interval;
use crate::statistics::{EloBySeed, Level, PairedDifference, PairedSets, Scale, SeedSums, elo_over_seeds};

/// A part of the validation games.
#[derive(Copy, Clone, Debug)]
pub struct GamePart {
    rule: SplitRule,
    /// Whether these are the games that are kept for the last comparison, or the others.
    is_kept: bool,
}

impl GamePart {
    /// Of the games that are kept for validation, by the same draw: the share `kept` of all games, or the others.
    pub fn of(row: &ComparisonRow, kept: f64, is_kept: bool) -> GamePart {
        GamePart { rule: SplitRule::new(row.settings.split_seed, kept), is_kept }
    }

    fn contains(self, game: u32) -> bool {
        self.rule.contains(game, Split::Validation) == self.is_kept
    }
}

/// A difference of losses, and on what.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PairedLoss {
    pub loss: LossDifference,
    pub seeds: usize,
    pub games: usize,
}

/// The logarithm of the loss of the row `label` minus that of the row `base`, on a part of the validation games. `None`
/// if a row has no losses, or there are fewer than two games.
pub fn loss_difference(done: &PassResults, label: &str, base: &str, part: GamePart) -> Option<PairedLoss> {
    let of = |label: &str| -> Vec<&NetResult<ValidationRecord>> {
        done.results.validation.iter().filter(|result| result.key.set == label).collect()
    };
    let [of_base, of_label] = [of(base), of(label)];
    let is_ours = |game: u32| part.contains(game);
    let standard = &of_base.first()?.record.losses.games;
    let samples: Vec<f64> =
        standard.iter().filter(|sums| is_ours(sums.game)).map(|sums| f64::from(sums.samples)).collect();
    let sums = |runs: &[&NetResult<ValidationRecord>]| -> SeedSums {
        let of_run = |run: &&NetResult<ValidationRecord>| {
            let games = run.record.losses.games.iter().filter(|sums| is_ours(sums.game));
            (run.key.seed.0, games.map(|sums| f64::from(sums.loss)).collect())
        };
        runs.iter().map(of_run).collect()
    };
    let paired = PairedSets::new(&samples, &[sums(&of_base), sums(&of_label)], Scale::Logarithmic)?;
    let found = paired.difference(1, 0)?;
    let loss = LossDifference { value: found.value, half_width: found.half_width(Level::SINGLE) };
    Some(PairedLoss { loss, seeds: found.seeds, games: found.games })
}

/// The games of rows at equal cost, over all seeds; `None` for a row that has played none. They show the noise of seeds
/// together: give rivals that have played as many games.
pub fn played(done: &PassResults, labels: &[&str]) -> Vec<Option<PlayedCandidate>> {
    let of_row = |label: &&str| -> Vec<&MatchResult> {
        let is_own = |result: &&MatchResult| result.key.set == *label && result.record.kind == MatchKind::EqualCost;
        done.results.matches.iter().filter(is_own).collect()
    };
    let matches: Vec<Vec<&MatchResult>> = labels.iter().map(of_row).collect();
    let by_seed = |own: &Vec<&MatchResult>| -> EloBySeed {
        own.iter().map(|result| (result.key.seed.0, result.record.pairs.elo_effect())).collect()
    };
    let elo = elo_over_seeds(&matches.iter().map(by_seed).collect::<Vec<_>>());
    let candidate = |(own, elo): (&Vec<&MatchResult>, Option<PairedDifference>)| {
        let elo = elo?.estimate(Level::SINGLE);
        let (low, high) = elo.bounds();
        let speeds: Vec<f64> =
            own.iter().filter_map(|result| Some(result.record.cost.as_ref()?.ratio.log2())).collect();
        Some(PlayedCandidate {
            games: own.iter().map(|result| result.record.games.total()).sum(),
            elo: Interval { value: elo.mean, low, high },
            log2_speed: (!speeds.is_empty()).then(|| speeds.iter().sum::<f64>() / speeds.len() as f64),
        })
    };
    matches.iter().zip(elo).map(candidate).collect()
}

/// Where the time of an evaluation goes with the incumbent's network, by its fastest strategy.
pub fn breakdown(done: &PassResults) -> Option<TimeBreakdown> {
    let speed: &SpeedRecord = &done.results.speed.first()?.record;
    speed.fastest()?.nanoseconds
}

/// The logarithm to base 2 of a candidate's speed divided by the incumbent's: the incumbent's time of adding rows grows
/// as the rows do, and its time of finding features as that of a move does, or, where that was not timed, as the rows. 0
/// without a timing of the incumbent.
pub fn log2_speed(times: Option<TimeBreakdown>, incumbent: &ScreenRecord, candidate: &ScreenRecord) -> f64 {
    let Some(times) = times else { return 0.0 };
    let growth = |of: fn(&ScreenRecord) -> Option<f64>| {
        let (own, other) = (of(incumbent).filter(|own| *own > 0.0)?, of(candidate)?);
        Some(other / own)
    };
    let rows = growth(|screen| screen.rows_a_move).unwrap_or(1.0);
    let features = growth(|screen| Some(screen.costs.as_ref()?.ns_a_move)).unwrap_or(rows);
    let changed = TimeBreakdown { features: features * times.features, rows: rows * times.rows, ..times };
    (times.total() / changed.total()).log2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ScreenedCosts;

    fn without_figures() -> ScreenRecord {
        serde_json::from_value(serde_json::json!({ "features": 768, "bytes": 98_304 })).expect("a record")
    }

    #[test]
    fn speed_follows_features_and_rows() {
        let times = TimeBreakdown { features: 100.0, bookkeeping: Some(50.0), rows: 200.0, forward: 50.0 };
        let costs = |ns_a_move| ScreenedCosts { ns_a_move, dead_share: 0.0, lossless: "no".into() };
        let screen = |rows: f64, ns_a_move: Option<f64>| ScreenRecord {
            rows_a_move: Some(rows),
            costs: ns_a_move.map(costs),
            ..without_figures()
        };
        let check = |incumbent: ScreenRecord, candidate: ScreenRecord, expected: f64| {
            let found = log2_speed(Some(times), &incumbent, &candidate);
            assert!((found - expected).abs() < 1e-12, "{found}");
        };
        check(screen(4.0, None), screen(4.0, None), 0.0);
        check(screen(4.0, None), screen(8.0, None), (400.0_f64 / 700.0).log2());
        check(screen(4.0, Some(10.0)), screen(8.0, Some(10.0)), (400.0_f64 / 600.0).log2());
        assert_eq!(log2_speed(None, &screen(4.0, None), &screen(8.0, None)), 0.0);
    }
}
