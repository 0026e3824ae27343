//! The finals of a round: candidates are trained from scratch, with all seeds, and play the incumbent at equal cost. In
//! the first race each plays a quarter of the pairs; of those that may be better, only the best by loss and games plays
//! the last race, a match of all pairs, which takes over the games of the first.

use super::comparison::{loss_difference, played};
use super::controller::{Controller, Halt};
use super::prediction::{expected, fitted, predicted};
use crate::experiment::equal_speed::{EqualSpeedMeasure, EqualSpeedTerms};
use crate::experiment::runner::PassResults;
use crate::experiment::spec::{ComparisonRow, Experiment};
use crate::record::{CandidateStage, EQUAL_SPEED, PlayedCandidate, SearchCandidate, SearchRound, TrainedCandidate};

/// The share of a match that the first race plays.
const FIRST_RACE: f64 = 0.25;

/// The kind of change of a row that the experiment itself lists.
const GIVEN: &str = "given";

impl Controller<'_, '_> {
    /// Round 0: the experiment's other rows against its first, as if they were finalists.
    pub(super) fn compare_given(&mut self, first: &ComparisonRow) -> Result<Option<ComparisonRow>, Halt> {
        let rows: Vec<ComparisonRow> = self.base.rows[1..].to_vec();
        if rows.is_empty() {
            return Ok(None);
        }
        let candidate = |row: &ComparisonRow| {
            SearchCandidate::new(row.label.clone(), row.set.get_ref().clone(), row.label.clone(), GIVEN)
        };
        let candidates = rows.iter().map(candidate).collect();
        let before = self.tree.seconds;
        let incumbent = first.label.clone();
        self.tree.rounds.push(SearchRound { number: 0, incumbent, screen: None, candidates, seconds: 0.0 });
        let better = self.finals(first, rows.into_iter().enumerate().collect())?;
        let seconds = self.tree.seconds - before;
        self.present().seconds = seconds;
        Ok(better)
    }

    /// Trains and plays these candidates of the present round, and returns the row that beat the incumbent.
    pub(super) fn finals(
        &mut self,
        incumbent: &ComparisonRow,
        finalists: Vec<(usize, ComparisonRow)>,
    ) -> Result<Option<ComparisonRow>, Halt> {
        if finalists.is_empty() {
            return Ok(None);
        }
        let rivals = self.train(incumbent, finalists)?;
        if rivals.is_empty() {
            return self.end_finals(None);
        }
        let first = self.play(incumbent, &rivals, FIRST_RACE)?;
        let labels: Vec<&str> = rivals.iter().map(|(_, row)| row.label.as_str()).collect();
        let is_at_equal_speed = self.base.equal_speed.is_some();
        let mut best: Option<(f64, usize)> = None;
        for (index, ((at, _), games)) in rivals.iter().zip(played(&first, &labels)).enumerate() {
            let Some(games) = games else { continue };
            let elo = games.elo;
            let prediction = self.tree.prediction;
            let candidate = &mut self.present().candidates[*at];
            let lifted = candidate.liftings.last().map(|lifting| lifting.log2_speed);
            // At equal speed the loss is that of another width, whose speed the match knows.
            let log2_speed = lifted.filter(|_| !is_at_equal_speed).or(games.log2_speed);
            let loss = candidate.full.as_ref().map(|full| full.loss);
            let by_loss = loss.map(|loss| predicted(&prediction, loss, log2_speed.unwrap_or_default()));
            candidate.played = Some(games);
            let expected = expected(by_loss, elo);
            if elo.high <= 0.0 {
                self.drop_candidate(*at, format!("no better after the first race: Elo at most {:+.0}", elo.high));
            } else if best.is_none_or(|(other, _)| expected > other) {
                best = Some((expected, index));
            }
        }
        let Some((_, index)) = best else { return self.end_finals(None) };
        let (at, row) = rivals[index].clone();
        for (other, _) in rivals.iter().filter(|(other, _)| *other != at) {
            if self.present().candidates[*other].why.is_empty() {
                let ahead = self.present().candidates[at].label.clone();
                self.drop_candidate(*other, format!("{ahead} was ahead by loss and games"));
            }
        }
        let last = self.play(incumbent, &[(at, row.clone())], 1.0)?;
        // By its own games alone: its rivals have a quarter of them, so their noise is another.
        let games = played(&last, &[labels[index]]).swap_remove(0);
        let beats = games.as_ref().is_some_and(|games| games.elo.low > 0.0);
        let candidate = &mut self.present().candidates[at];
        candidate.why = reason(games.as_ref(), beats);
        candidate.played = games;
        candidate.stage = if beats { CandidateStage::Winner } else { CandidateStage::LastRace };
        self.end_finals(beats.then_some(row))
    }

    /// Fits the prediction to the matches so far.
    fn end_finals(&mut self, better: Option<ComparisonRow>) -> Result<Option<ComparisonRow>, Halt> {
        self.tree.prediction = fitted(&self.tree, self.cost_weight(), self.base.equal_speed.is_some());
        Ok(better)
    }

    /// Trains finalists from scratch, at equal speed if the experiment asks for it. Returns the rows that play, each
    /// with the number of its candidate.
    fn train(
        &mut self,
        incumbent: &ComparisonRow,
        finalists: Vec<(usize, ComparisonRow)>,
    ) -> Result<Vec<(usize, ComparisonRow)>, Halt> {
        let mut rows = vec![incumbent.clone()];
        rows.extend(finalists.iter().map(|(_, row)| row.clone()));
        let equal_speed = self.base.equal_speed.clone();
        let equal_speed = equal_speed.map(|measure| EqualSpeedMeasure { terms: EqualSpeedTerms::default(), ..measure });
        let experiment = Experiment { equal_speed, ..self.experiment(rows) };
        let (last, done) = self.trial_at_equal_speed(&experiment)?;
        let mut rivals = Vec::with_capacity(finalists.len());
        for (at, row) in finalists {
            let repeats = |other: &&ComparisonRow| other.repeats.as_ref().is_some_and(|of| of.label == row.label);
            let found = last.rows.iter().find(repeats).unwrap_or(&row).clone();
            if let Some(why) = done.refusal(&row.label).or_else(|| done.refusal(&found.label)) {
                self.drop_candidate(at, why);
                continue;
            }
            self.note_training(incumbent, &done, at, &found);
            rivals.push((at, settled(found)));
        }
        Ok(rivals)
    }

    fn note_training(&mut self, incumbent: &ComparisonRow, done: &PassResults, at: usize, row: &ComparisonRow) {
        let games = self.games_of_choice();
        let found = loss_difference(done, &row.label, &incumbent.label, games);
        let seconds = done.training_seconds(&row.label);
        let candidate = &mut self.present().candidates[at];
        candidate.stage = CandidateStage::Finalist;
        candidate.full =
            found.map(|found| TrainedCandidate { l1: row.settings.l1, seeds: found.seeds, loss: found.loss, seconds });
    }

    /// Plays rows against the incumbent at equal cost, for a share of the pairs.
    fn play(
        &mut self,
        incumbent: &ComparisonRow,
        rivals: &[(usize, ComparisonRow)],
        share: f64,
    ) -> Result<PassResults, Halt> {
        let mut rows = vec![incumbent.clone()];
        rows.extend(rivals.iter().map(|(_, row)| row.clone()));
        let experiment = Experiment { matches: self.matches(share), ..self.experiment(rows) };
        self.trial(&experiment)
    }
}

/// A row at equal speed as a row of its own.
fn settled(row: ComparisonRow) -> ComparisonRow {
    if row.group != EQUAL_SPEED {
        return row;
    }
    ComparisonRow { label: row.name.clone(), group: String::new(), repeats: None, ..row }
}

fn reason(games: Option<&PlayedCandidate>, beats: bool) -> String {
    match games {
        _ if beats => String::new(),
        Some(games) => format!("not shown to be better: Elo {:+.0} to {:+.0}", games.elo.low, games.elo.high),
        None => "it has played no game".into(),
    }
}
