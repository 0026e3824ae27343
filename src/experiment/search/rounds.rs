//! A round: the changes of an incumbent, by their size and cost, by short trainings that begin with its network, and by
//! what the best are worth when they are trained from scratch.

use super::comparison::{breakdown, log2_speed, loss_difference};
use super::controller::{Controller, Halt, unwritten};
use super::prediction::predicted;
use crate::experiment::runner::PassResults;
use crate::experiment::spec::{ComparisonRow, Experiment, Measures, RowStart, SpeedMeasure};
use crate::experiment::steps::PlannedScreen;
use crate::record::{
    CandidateStage, LiftedCandidate, OwnFigures, ScreenRecord, SearchCandidate, SearchRound, TimeBreakdown,
};
use crate::text::grouped;
use crate::units::sort_by;

/// Ends the label of the incumbent's own set among the short trainings.
const CONTROL: &str = "control";

impl Controller<'_, '_> {
    /// Tries changes of the incumbent. Returns the row that beat it, or why there is none.
    pub(super) fn round(
        &mut self,
        number: u32,
        incumbent: &ComparisonRow,
    ) -> Result<Result<ComparisonRow, String>, Halt> {
        let importance = self.row_importance(incumbent)?;
        let found = self.candidates(incumbent, importance.as_deref())?;
        if found.is_empty() {
            return Ok(Err(format!("there is nothing to try with {}", incumbent.label)));
        }
        let before = self.tree.seconds;
        let label = incumbent.label.clone();
        self.tree.rounds.push(SearchRound { number, incumbent: label, screen: None, candidates: found, seconds: 0.0 });
        let (left, times) = self.screen(incumbent)?;
        let finalists = self.halve(incumbent, left, times)?;
        let rows = finalists.into_iter().map(|at| (at, self.candidate_row(incumbent, at))).collect();
        let better = self.finals(incumbent, rows)?;
        let seconds = self.tree.seconds - before;
        self.present().seconds = seconds;
        Ok(better.ok_or_else(|| format!("no candidate of round {number} beat {}", incumbent.label)))
    }

    /// The present round.
    pub(super) fn present(&mut self) -> &mut SearchRound {
        self.tree.rounds.last_mut().expect("a round has begun")
    }

    /// Says why a candidate goes no further.
    pub(super) fn drop_candidate(&mut self, at: usize, why: String) {
        self.present().candidates[at].why = why;
    }

    /// How much each row of the incumbent's network of the first seed matters, if candidates are selected by it.
    fn row_importance(&mut self, incumbent: &ComparisonRow) -> Result<Option<Vec<f64>>, Halt> {
        if self.search.candidates.select.is_empty() {
            return Ok(None);
        }
        let measure = Measures { rows: true, ..Measures::default() };
        let experiment = Experiment { measure, ..self.first_seed(self.experiment(vec![incumbent.clone()])) };
        let done = self.trial(&experiment)?;
        Ok(done.results.row_importance.into_iter().next().map(|result| result.record))
    }

    /// The sets to try, each with a label of its own.
    fn candidates(&self, incumbent: &ComparisonRow, importance: Option<&[f64]>) -> Result<Vec<SearchCandidate>, Halt> {
        let request = self.request(incumbent)?;
        let listed = self.search.candidates(self.base, &request, importance)?;
        // A width of equal speed is not the candidates'.
        let width = format!(", l1 {}", incumbent.settings.l1);
        let base = incumbent.label.strip_suffix(&width).unwrap_or(&incumbent.label);
        let mut found: Vec<SearchCandidate> = Vec::with_capacity(listed.len());
        for candidate in listed {
            let name = format!("{base} {}", candidate.change);
            let same = found.iter().filter(|other| other.change == candidate.change).count();
            let label = if same == 0 { name } else { format!("{name} ({})", same + 1) };
            found.push(SearchCandidate::new(label, candidate.set, candidate.change, candidate.kind.name()));
        }
        Ok(found)
    }

    /// Measures sizes and costs. Returns the candidates within the limits, and where the time of an evaluation goes
    /// with the incumbent's network.
    fn screen(&mut self, incumbent: &ComparisonRow) -> Result<(Vec<usize>, Option<TimeBreakdown>), Halt> {
        let screen = |label: String, request: String| PlannedScreen {
            label,
            request,
            limits: self.search.limits,
            l1: incumbent.settings.l1,
        };
        let definition = self.resolved(incumbent)?.definition().to_string();
        let mut screens = vec![screen(incumbent.label.clone(), definition)];
        let candidates = self.tree.rounds.last().map(|round| round.candidates.clone()).unwrap_or_default();
        screens.extend(candidates.iter().map(|candidate| screen(candidate.label.clone(), candidate.set.clone())));
        let options = self.base.measure.speed.as_ref().map(|speed| speed.options).unwrap_or_default();
        let speed = SpeedMeasure { options, ..SpeedMeasure::default() };
        let measure = Measures { speed: Some(speed), ..Measures::default() };
        let experiment = Experiment { screens, measure, ..self.first_seed(self.experiment(vec![incumbent.clone()])) };
        let done = self.trial(&experiment)?;
        let screen_of = |label: &str| -> Option<ScreenRecord> {
            done.results.screens.iter().find(|result| result.set == label).map(|result| result.record.clone())
        };
        let own = screen_of(&incumbent.label);
        let split_of = |screen: Option<&ScreenRecord>| screen.and_then(|screen| screen.split.clone());
        let mut splits = vec![(split_of(own.as_ref()), incumbent.label.clone())];
        let round = self.present();
        round.screen = own;
        let mut left = Vec::new();
        for (at, candidate) in round.candidates.iter_mut().enumerate() {
            candidate.screen = screen_of(&candidate.label);
            let split = split_of(candidate.screen.as_ref());
            let same = splits.iter().find(|(other, _)| split.is_some() && *other == split);
            match (candidate.screen.as_ref().and_then(|screen| screen.refused.clone()), same) {
                (Some(why), _) => candidate.why = why,
                (None, Some((_, label))) => candidate.why = format!("tells positions apart as {label} does"),
                (None, None) => {
                    left.push(at);
                    splits.push((split, candidate.label.clone()));
                }
            }
        }
        Ok((left, breakdown(&done)))
    }

    /// The experiment with the first seed alone.
    fn first_seed(&self, experiment: Experiment) -> Experiment {
        Experiment { seeds: self.base.seeds.iter().take(1).copied().collect(), ..experiment }
    }

    /// Trains candidates for a short time, the best of them three times as long, and so on. Returns the finalists.
    fn halve(
        &mut self,
        incumbent: &ComparisonRow,
        mut left: Vec<usize>,
        times: Option<TimeBreakdown>,
    ) -> Result<Vec<usize>, Halt> {
        for (samples, _) in self.search.terms.liftings(left.len()) {
            let done = self.lift(incumbent, &left, samples)?;
            let mut ranked = Vec::with_capacity(left.len());
            for at in left {
                match self.note_lifting(incumbent, &done, at, samples, times) {
                    Some(elo) => ranked.push((at, elo)),
                    None => self.drop_candidate(at, "its validation has no loss to compare".into()),
                }
            }
            sort_by(&mut ranked, &|(_, one), (_, other)| other.total_cmp(one));
            let dropped = ranked.split_off(self.search.terms.left_of(ranked.len()));
            for (at, _) in dropped {
                let samples = grouped(&samples.to_string());
                self.drop_candidate(at, format!("not among the best {} after {samples} samples", ranked.len()));
            }
            left = ranked.into_iter().map(|(at, _)| at).collect();
        }
        Ok(left)
    }

    /// Trains candidates, and the incumbent's own set, on the same samples from the incumbent's network on.
    fn lift(&mut self, incumbent: &ComparisonRow, left: &[usize], samples: u64) -> Result<PassResults, Halt> {
        let from_incumbent = |row: ComparisonRow| ComparisonRow {
            start: Some(RowStart::Row {
                written: unwritten(incumbent.label.clone()),
                label: incumbent.label.clone(),
                method: incumbent.method,
            }),
            settings: self.search.lifting_settings(&row, samples),
            ..row
        };
        let label = control_of(incumbent);
        let mut rows = vec![incumbent.clone()];
        rows.push(from_incumbent(ComparisonRow { name: label.clone(), label, ..incumbent.clone() }));
        rows.extend(left.iter().map(|at| from_incumbent(self.candidate_row(incumbent, *at))));
        let experiment = self.first_seed(self.experiment(rows));
        self.trial(&experiment)
    }

    /// Notes what a short training brought. Returns the Elo that it predicts.
    fn note_lifting(
        &mut self,
        incumbent: &ComparisonRow,
        done: &PassResults,
        at: usize,
        samples: u64,
        times: Option<TimeBreakdown>,
    ) -> Option<f64> {
        let games = self.games_of_choice();
        let prediction = self.tree.prediction;
        let round = self.present();
        let own = round.screen.clone()?;
        let candidate = &mut round.candidates[at];
        let loss = loss_difference(done, &candidate.label, &control_of(incumbent), games)?.loss;
        let log2_speed = log2_speed(times, &own, candidate.screen.as_ref()?);
        let predicted = predicted(&prediction, loss, log2_speed);
        candidate.stage = CandidateStage::Lifted;
        let seconds = done.training_seconds(&candidate.label);
        candidate.liftings.push(LiftedCandidate { samples, loss, log2_speed, predicted, seconds });
        Some(predicted.value)
    }

    /// The row of a candidate of the present round: the incumbent's with another set.
    fn candidate_row(&self, incumbent: &ComparisonRow, at: usize) -> ComparisonRow {
        let candidate = &self.tree.rounds[self.tree.rounds.len() - 1].candidates[at];
        ComparisonRow {
            label: candidate.label.clone(),
            name: candidate.label.clone(),
            set: unwritten(candidate.set.clone()),
            own: OwnFigures::default(),
            ..incumbent.clone()
        }
    }
}

fn control_of(incumbent: &ComparisonRow) -> String {
    format!("{}, {CONTROL}", incumbent.label)
}
