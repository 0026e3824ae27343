//! A round: the changes of an incumbent, by their size and cost, by short trainings that begin with its network, and by
//! what the best are worth when they are trained from scratch.

use super::candidates::{ChangeKind, MergedSquares, NetworkFindings, by_king_square};
use super::comparison::{breakdown, log2_speed, loss_difference};
use super::controller::{Controller, Halt, unwritten};
use super::prediction::predicted;
use crate::experiment::runner::PassResults;
use crate::experiment::spec::{ComparisonRow, Experiment, Measures, RowStart, SpeedMeasure};
use crate::experiment::steps::{PlannedScreens, ScreenedFor, ScreenedSet};
use crate::features::FeatureSet;
use crate::record::{
    CandidateStage, LiftedCandidate, OwnFigures, ScreenRecord, SearchCandidate, SearchRound, TimeBreakdown,
};
use crate::text::grouped;
use crate::units::sort_by;

/// Ends the label of the incumbent's own set among the short trainings.
const CONTROL: &str = "control";

/// Layouts that were merged, with what was asked for.
type MergedLayouts = Vec<(MergedSquares, Vec<i32>)>;

impl Controller<'_, '_> {
    /// Tries changes of the incumbent. Returns the row that beat it, or why there is none.
    pub(super) fn round(
        &mut self,
        number: u32,
        incumbent: &ComparisonRow,
    ) -> Result<Result<ComparisonRow, String>, Halt> {
        let before = self.tree.seconds;
        let (findings, refused) = self.findings(incumbent)?;
        let mut found = self.candidates(incumbent, &findings)?;
        found.extend(refused);
        if found.is_empty() {
            return Ok(Err(format!("there is nothing to try with {}", incumbent.label)));
        }
        let label = incumbent.label.clone();
        self.tree.rounds.push(SearchRound { number, incumbent: label, screen: None, candidates: found, seconds: 0.0 });
        let (left, times) = self.screen(incumbent)?;
        let finalists = self.halve(incumbent, left, times)?;
        let rows: Vec<_> = finalists.into_iter().map(|at| (at, self.candidate_row(incumbent, at))).collect();
        let better = self.finals(incumbent, rows)?;
        let seconds = self.tree.seconds - before;
        let round = self.present();
        round.seconds = seconds;
        let has_played = round.candidates.iter().any(|candidate| candidate.played.is_some());
        let outcome = if has_played { "beat" } else { "remained to play" };
        Ok(better.ok_or_else(|| format!("no candidate of round {number} {outcome} {}", incumbent.label)))
    }

    /// The present round.
    pub(super) fn present(&mut self) -> &mut SearchRound {
        self.tree.rounds.last_mut().expect("a round has begun")
    }

    /// Says why a candidate goes no further.
    pub(super) fn drop_candidate(&mut self, at: usize, why: String) {
        self.present().candidates[at].why = why;
    }

    /// What the incumbent's network of the first seed says of its features, as far as candidates are made of that; and
    /// what cannot be found out.
    fn findings(&mut self, incumbent: &ComparisonRow) -> Result<(NetworkFindings, Option<SearchCandidate>), Halt> {
        let importance = self.row_importance(incumbent)?;
        match self.merged_layouts(incumbent)? {
            Ok(layouts) => Ok((NetworkFindings { importance, layouts }, None)),
            Err(refused) => Ok((NetworkFindings { importance, layouts: Vec::new() }, Some(refused))),
        }
    }

    /// Layouts merged from the king squares of a network that begins with the incumbent's, or is the incumbent's. Or
    /// that network's set, if it cannot be trained.
    fn merged_layouts(&mut self, incumbent: &ComparisonRow) -> Result<Result<MergedLayouts, SearchCandidate>, Halt> {
        let merged = self.search.candidates.merged();
        if merged.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let own = self.resolved(incumbent)?;
        let label = format!("{} by king square", incumbent.label);
        let refused = |set: &str, why: String| {
            let change = "king squares, to be merged".to_owned();
            let squares = SearchCandidate::new(label.clone(), set.to_owned(), change, ChangeKind::KingBuckets.name());
            Ok(Err(SearchCandidate { why, ..squares }))
        };
        let set = match by_king_square(own.definition()) {
            Ok(Some(set)) => set,
            Ok(None) => return Ok(Ok(Vec::new())),
            Err(error) => return refused("", error.to_string()),
        };
        let mut rows = vec![incumbent.clone()];
        match FeatureSet::resolve(&set) {
            Ok(by_square) if by_square.identity() == own.identity() => {}
            Ok(by_square) => {
                let features = u64::from(by_square.num_features());
                if let Some(why) = self.search.limits.exceeded_by(features, incumbent.settings.l1) {
                    return refused(&set, why);
                }
                let (name, written) = (label.clone(), unwritten(set.clone()));
                let row = ComparisonRow { name, label: label.clone(), set: written, ..incumbent.clone() };
                let row = ComparisonRow { may_fail: true, ..row };
                rows.push(self.lifted(incumbent, row, self.search.merging_samples()));
            }
            Err(error) => return refused(&set, error.to_string()),
        }
        let last = rows[rows.len() - 1].clone();
        let counts = merged.iter().map(|squares| squares.merged).collect();
        let measure = Measures { king_buckets: Some((last.label.clone(), counts)), ..Measures::default() };
        let experiment = Experiment { measure, ..self.first_seed(self.experiment(rows)) };
        let done = self.trial(&experiment)?;
        if let Some(why) = done.refusal(&last.label) {
            return refused(&set, why);
        }
        let layouts = done.results.king_buckets.into_iter().flat_map(|result| result.record);
        Ok(Ok(merged.into_iter().zip(layouts).collect()))
    }

    /// How much each row of the incumbent's network matters, if candidates are selected by it.
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
    fn candidates(&self, incumbent: &ComparisonRow, findings: &NetworkFindings) -> Result<Vec<SearchCandidate>, Halt> {
        let request = self.request(incumbent)?;
        let listed = self.search.candidates(self.base, &request, Some(findings))?;
        // A width of equal speed is not the candidates'.
        let width = format!(", l1 {}", incumbent.settings.l1);
        let base = incumbent.label.strip_suffix(&width).unwrap_or(&incumbent.label);
        let mut found: Vec<SearchCandidate> = Vec::with_capacity(listed.len());
        for candidate in listed {
            let name = format!("{base} {}", candidate.change);
            let same = found.iter().filter(|other| other.change == candidate.change).count();
            let label = if same == 0 { name } else { format!("{name} ({})", same + 1) };
            let why = candidate.refused.unwrap_or_default();
            let new = SearchCandidate::new(label, candidate.set, candidate.change, candidate.kind.name());
            found.push(SearchCandidate { why, ..new });
        }
        Ok(found)
    }

    /// Measures sizes, and the costs of those within the limits. Returns these candidates, and where the time of an
    /// evaluation goes with the incumbent's network.
    fn screen(&mut self, incumbent: &ComparisonRow) -> Result<(Vec<usize>, Option<TimeBreakdown>), Halt> {
        let own =
            ScreenedSet { label: incumbent.label.clone(), request: self.resolved(incumbent)?.definition().to_string() };
        let set_of = |candidate: &SearchCandidate| ScreenedSet {
            label: candidate.label.clone(),
            request: candidate.set.clone(),
        };
        let options = self.base.measure.speed.as_ref().map(|speed| speed.options).unwrap_or_default();
        let speed = SpeedMeasure { options, ..SpeedMeasure::default() };
        let measure = Measures { speed: Some(speed), ..Measures::default() };
        let alone = self.first_seed(self.experiment(vec![incumbent.clone()]));

        let what = ScreenedFor::Size { limits: self.search.limits, l1: incumbent.settings.l1 };
        let known = self.present().candidates.iter().filter(|candidate| candidate.why.is_empty());
        let sets = std::iter::once(own.clone()).chain(known.map(set_of)).collect();
        let screens = Some(PlannedScreens { sets, what });
        let done = self.trial(&Experiment { screens, measure, ..alone.clone() })?;
        let sizes = &done.results.screens;
        let screen_of = |label: &str| sizes.iter().find(|result| result.set == label).map(|result| &result.record);
        let split_of = |screen: Option<&ScreenRecord>| screen.and_then(|screen| screen.split.clone());
        let mut splits = vec![(split_of(screen_of(&incumbent.label)), incumbent.label.clone())];
        let round = self.present();
        round.screen = screen_of(&incumbent.label).cloned();
        let mut left = Vec::new();
        for (at, candidate) in round.candidates.iter_mut().enumerate().filter(|(_, one)| one.why.is_empty()) {
            candidate.screen = screen_of(&candidate.label).cloned();
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

        let within = left.iter().map(|at| set_of(&round.candidates[*at]));
        let sets = std::iter::once(own).chain(within).collect();
        let screens = Some(PlannedScreens { sets, what: ScreenedFor::Cost });
        let costs = self.trial(&Experiment { screens, ..alone })?.results.screened_costs;
        let round = self.present();
        let screens = round.candidates.iter_mut().map(|candidate| (&candidate.label, &mut candidate.screen));
        for (label, screen) in std::iter::once((&incumbent.label, &mut round.screen)).chain(screens) {
            let known = costs.iter().find(|result| result.set == *label);
            if let (Some(screen), Some(known)) = (screen, known) {
                screen.costs = Some(known.record.clone());
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
            if left.is_empty() {
                break;
            }
            let done = self.lift(incumbent, &left, samples)?;
            let mut ranked = Vec::with_capacity(left.len());
            for at in left {
                let refusal = done.refusal(&self.present().candidates[at].label);
                match (refusal, self.note_lifting(incumbent, &done, at, samples, times)) {
                    (Some(why), _) => self.drop_candidate(at, why),
                    (None, Some(elo)) => ranked.push((at, elo)),
                    (None, None) => self.drop_candidate(at, "its validation has no loss to compare".into()),
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
        let label = control_of(incumbent);
        let mut rows = vec![incumbent.clone()];
        let control = ComparisonRow { name: label.clone(), label, ..incumbent.clone() };
        rows.push(self.lifted(incumbent, control, samples));
        rows.extend(left.iter().map(|at| self.lifted(incumbent, self.candidate_row(incumbent, *at), samples)));
        let experiment = self.first_seed(self.experiment(rows));
        self.trial(&experiment)
    }

    /// A row as a short training that begins with the incumbent's network.
    fn lifted(&self, incumbent: &ComparisonRow, row: ComparisonRow, samples: u64) -> ComparisonRow {
        ComparisonRow {
            start: Some(RowStart::Row {
                written: unwritten(incumbent.label.clone()),
                label: incumbent.label.clone(),
                method: incumbent.method,
            }),
            settings: self.search.lifting_settings(&row, samples),
            ..row
        }
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
            may_fail: true,
            ..incumbent.clone()
        }
    }
}

fn control_of(incumbent: &ComparisonRow) -> String {
    format!("{}, {CONTROL}", incumbent.label)
}
