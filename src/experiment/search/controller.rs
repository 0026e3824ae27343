//! The course of a search: which pass comes next, by the results of those before. Nothing here looks at a clock, so that
//! the same results lead to the same choices, in whatever processes and however often interrupted.

use toml::Spanned;

use super::comparison::{GamePart, loss_difference, played};
use super::table::Search;
use crate::experiment::ExperimentError;
use crate::experiment::match_settings::{MatchMeasure, MatchTerms};
use crate::experiment::runner::{PassResults, PlanPass, Runner};
use crate::experiment::runner_options::PassPurpose;
use crate::experiment::spec::{ComparisonRow, Experiment, Measures};
use crate::experiment::store::ResultKey;
use crate::features::FeatureSet;
use crate::play::MatchOptions;
use crate::record::{LastComparison, SearchPrediction, SearchRecord, SearchWinner};
use crate::units::SortedMap;

/// Why a search goes no further.
pub enum Halt {
    /// Steps remain to be done by other processes.
    Incomplete,
    Failed(ExperimentError),
}

impl From<ExperimentError> for Halt {
    fn from(error: ExperimentError) -> Halt {
        Halt::Failed(error)
    }
}

/// A search on its way.
pub(super) struct Controller<'a, 'p> {
    pub(super) search: &'a Search,
    /// The experiment as it is written.
    pub(super) base: &'a Experiment,
    pass: &'a mut PlanPass<'p>,
    /// Time of each result so far.
    seconds: SortedMap<ResultKey, f64>,
    pub(super) tree: SearchRecord,
    /// The rows that became the incumbent, in their order.
    winners: Vec<ComparisonRow>,
}

impl Search {
    /// Runs `pass` over one experiment after the other. Stops after a pass that returns `None`: it is not complete.
    /// Returns the last results.
    ///
    /// # Errors
    /// When the search cannot begin, and errors of `pass`.
    pub(in crate::experiment) fn passes(
        &self,
        base: &Experiment,
        pass: &mut PlanPass<'_>,
    ) -> Result<Option<PassResults>, ExperimentError> {
        let first = base.rows[0].label.clone();
        let controller = Controller {
            search: self,
            base,
            pass,
            seconds: SortedMap::new(),
            tree: SearchRecord {
                first,
                prediction: SearchPrediction::before_matches(cost_weight(base)),
                ..SearchRecord::default()
            },
            winners: Vec::new(),
        };
        match controller.run() {
            Ok(done) => Ok(Some(done)),
            Err(Halt::Incomplete) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
        }
    }
}

impl Controller<'_, '_> {
    fn run(mut self) -> Result<PassResults, Halt> {
        self.search.check_budget(self.base)?;
        self.show(None)?;
        let mut incumbent = self.base.rows[0].clone();
        if let Some(better) = self.compare_given(&incumbent)? {
            incumbent = self.make_incumbent(better)?;
        }
        for number in 1.. {
            self.show(None)?;
            self.tree.stopped = self.reason_to_stop(number);
            if self.tree.stopped.is_some() {
                break;
            }
            match self.round(number, &incumbent)? {
                Ok(better) => incumbent = self.make_incumbent(better)?,
                Err(why) => {
                    self.tree.stopped = Some(why);
                    break;
                }
            }
        }
        self.last_comparison()
    }

    /// Why no round of this number begins.
    fn reason_to_stop(&self, number: u32) -> Option<String> {
        let most = self.search.terms.rounds.filter(|most| number > *most);
        if let Some(most) = most {
            return Some(format!("round {most} was the last"));
        }
        let hours = self.search.terms.hours;
        let is_over = self.tree.seconds >= 3600.0 * hours;
        is_over.then(|| if hours == 1.0 { "the hour is over".into() } else { format!("the {hours} hours are over") })
    }

    /// Makes a row the incumbent.
    fn make_incumbent(&mut self, row: ComparisonRow) -> Result<ComparisonRow, Halt> {
        let definition = self.resolved(&row)?.definition().to_string();
        self.tree.winner = Some(SearchWinner { label: row.label.clone(), definition, last: None });
        // Its network is there.
        let row = ComparisonRow { may_fail: false, ..row };
        self.winners.push(row.clone());
        Ok(row)
    }

    /// The set as the command line takes it.
    pub(super) fn request(&self, row: &ComparisonRow) -> Result<String, Halt> {
        self.base.set_request(row.set.get_ref()).map_err(|error| self.wrong_set(row, &error.to_string()))
    }

    pub(super) fn resolved(&self, row: &ComparisonRow) -> Result<FeatureSet, Halt> {
        let request = self.request(row)?;
        FeatureSet::resolve(&request).map_err(|error| self.wrong_set(row, &error.to_string()))
    }

    fn wrong_set(&self, row: &ComparisonRow, message: &str) -> Halt {
        let at = self.base.location_of(&self.search.place);
        Halt::Failed(ExperimentError::Set { at, set: row.set.get_ref().clone(), message: message.to_owned() })
    }

    /// The experiment with these rows only, without measures and matches.
    pub(super) fn experiment(&self, rows: Vec<ComparisonRow>) -> Experiment {
        Experiment {
            rows,
            measure: Measures::default(),
            equal_speed: None,
            scaling: None,
            matches: None,
            search: None,
            tree: None,
            published: None,
            book_part: Some(self.search.book_part(false)),
            ..self.base.clone()
        }
    }

    /// The validation games that decide before the last comparison.
    pub(super) fn games_of_choice(&self) -> GamePart {
        GamePart::of(&self.base.rows[0], self.search.terms.kept, false)
    }

    /// Matches at equal cost against the first row, with this share of the pairs.
    pub(super) fn matches(&self, share: f64) -> Option<MatchMeasure> {
        let measure = self.base.matches.as_ref()?;
        let pairs = Some(((share * measure.options.pairs() as f64).ceil() as u64).max(1));
        let MatchTerms { equal_cost, cost_weight, half_width, shard_pairs, .. } = measure.terms.clone();
        // A half of the interval's width takes four times the games.
        let half_width = half_width.map(|width| width / share.sqrt());
        Some(MatchMeasure {
            terms: MatchTerms { equal_cost, cost_weight, half_width, shard_pairs, ..MatchTerms::default() },
            options: MatchOptions { pairs, ..measure.options.clone() },
            ..MatchMeasure::default()
        })
    }

    /// How much cost weighs in the search's matches.
    pub(super) fn cost_weight(&self) -> f64 {
        cost_weight(self.base)
    }

    /// Does all steps of an experiment whose results only decide.
    pub(super) fn trial(&mut self, experiment: &Experiment) -> Result<PassResults, Halt> {
        self.pass(experiment, PassPurpose::Trial)
    }

    fn pass(&mut self, experiment: &Experiment, purpose: PassPurpose) -> Result<PassResults, Halt> {
        let done = (self.pass)(experiment, purpose)?.ok_or(Halt::Incomplete)?;
        self.note(&done);
        Ok(done)
    }

    /// Adds up the time of steps.
    fn note(&mut self, done: &PassResults) {
        self.seconds.extend(done.seconds.iter().map(|(key, (_, seconds))| (key.clone(), *seconds)));
        self.tree.seconds = self.seconds.values().sum();
    }

    /// The experiment's rows with those at equal speed, and their results, which only decide.
    pub(super) fn trial_at_equal_speed(&mut self, experiment: &Experiment) -> Result<(Experiment, PassResults), Halt> {
        let pass = &mut *self.pass;
        let mut of_passes = Vec::new();
        let last = Runner::passes_at_equal_speed(experiment, &mut |experiment, _| {
            let done = pass(experiment, PassPurpose::Trial)?;
            of_passes.extend(done.clone());
            Ok(done)
        })?;
        of_passes.iter().for_each(|done| self.note(done));
        let (last, mut done) = last.ok_or(Halt::Incomplete)?;
        // Rows that were refused in one pass are left out of the next.
        done.refused = of_passes.into_iter().flat_map(|done| done.refused).collect();
        Ok((last, done))
    }

    /// Writes the results as far as they are known: the rows of the experiment, the winners, and the tree.
    fn show(&mut self, matches: Option<MatchMeasure>) -> Result<PassResults, Halt> {
        let mut rows = self.base.rows.clone();
        // A winner may be one of these.
        rows.extend(
            self.winners.iter().filter(|winner| self.base.rows.iter().all(|row| row.label != winner.label)).cloned(),
        );
        let is_last = self.tree.stopped.is_some();
        let shown = Experiment {
            measure: self.base.measure.clone(),
            scaling: self.base.scaling.clone().filter(|_| is_last),
            published: self.base.published.clone(),
            book_part: Some(self.search.book_part(true)),
            tree: Some(self.tree.clone()),
            matches,
            ..self.experiment(rows)
        };
        self.pass(&shown, PassPurpose::Results)
    }

    /// Compares the winner with the first row, on games and openings that no choice saw, and shows everything.
    fn last_comparison(mut self) -> Result<PassResults, Halt> {
        let Some(winner) = self.winners.last().cloned() else { return self.show(None) };
        let mut matches = self.matches(1.0);
        if let Some(measure) = &mut matches {
            measure.choice.sets = Some(vec![winner.label.clone()]);
        }
        let done = self.show(matches.clone())?;
        let part = GamePart::of(&winner, self.search.terms.kept, true);
        let loss = loss_difference(&done, &winner.label, &self.tree.first, part);
        let last = LastComparison {
            loss: loss.map(|found| found.loss),
            games: loss.map_or(0, |found| found.games),
            played: played(&done, &[&winner.label]).pop().flatten(),
        };
        if let Some(winner) = &mut self.tree.winner {
            winner.last = Some(last);
        }
        self.show(matches)
    }
}

fn cost_weight(base: &Experiment) -> f64 {
    base.matches.as_ref().and_then(|measure| measure.terms.cost_weight).unwrap_or(1.0)
}

/// A text that stands nowhere in the file.
pub(super) fn unwritten(text: String) -> Spanned<String> {
    Spanned::new(0..0, text)
}
