//! The report's tables: one row per feature set, one table per method, in sections. The terminal, Markdown and HTML
//! reports all print these.

use super::measured::MEASURED_COLUMNS;
use super::numbers::{self, MISSING};
use super::summary::{MethodSummary, SummaryRow};
use crate::record::{Method, RunRecord};
use crate::statistics::Estimate;

/// A part of the table that is printed on its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// The report's first table: the few columns that decide.
    Overview,
    Strength,
    Training,
    Time,
    Cost,
    Network,
}

impl Section {
    pub(super) const ALL: [Section; 6] =
        [Section::Overview, Section::Strength, Section::Training, Section::Time, Section::Cost, Section::Network];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Section::Overview => "At a glance",
            Section::Strength => "Playing strength",
            Section::Training => "Training",
            Section::Time => "Time per evaluation",
            Section::Cost => "Cost of the feature sets",
            Section::Network => "Neurons and quantisation",
        }
    }
}

/// A column, with one cell per feature set.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) section: Section,
    pub(super) heading: &'static str,
    /// Explanation of the column in words.
    pub(super) meaning: String,
    pub(super) cells: Vec<Cell>,
    /// Whether the cells are phrases, which begin at the left.
    pub(super) is_prose: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    /// The number to sort by; `None` if nothing was measured.
    pub(super) value: Option<f64>,
}

/// The comparison of feature sets by one method.
#[derive(Clone, Debug)]
pub(super) struct ComparisonTable {
    pub(super) title: String,
    pub(super) sets: Vec<String>,
    /// Columns in which at least one cell has a value.
    pub(super) columns: Vec<Column>,
}

impl ComparisonTable {
    pub(super) fn of(summary: &MethodSummary) -> ComparisonTable {
        let mut columns = ColumnBuilder { rows: &summary.rows, section: Section::Overview, columns: Vec::new() };
        columns.add_overview(&summary.reference);
        if let Some(reference) = &summary.match_reference {
            columns.add_strength(reference);
        }
        columns.add_training();
        columns.add_time();
        columns.add_cost();
        columns.add_network();
        ComparisonTable {
            title: title(summary),
            sets: summary.rows.iter().map(|row| row.name.clone()).collect(),
            columns: columns.columns,
        }
    }

    /// The columns of a section, in order.
    pub(super) fn section(&self, section: Section) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |column| column.section == section)
    }
}

/// Appends columns to the current section.
struct ColumnBuilder<'a> {
    rows: &'a [SummaryRow],
    section: Section,
    columns: Vec<Column>,
}

impl ColumnBuilder<'_> {
    /// The report's first table.
    fn add_overview(&mut self, reference: &str) {
        self.section = Section::Overview;
        let meaning = "finished trainings, one per seed (\"1 of 3\": two planned trainings are missing)";
        self.texts("seeds", meaning.into(), &|row| {
            let text = if row.seeds_done == row.seeds_planned {
                row.seeds_done.to_string()
            } else {
                format!("{} of {}", row.seeds_done, row.seeds_planned)
            };
            Some((text, row.seeds_done as f64))
        });
        let meaning = "mean loss over the validation games at the best epoch; lower is better";
        self.estimates("validation loss", meaning, &|row| row.validation_loss);
        let meaning = format!(
            "validation loss minus that of {reference}, paired by seed; if the interval excludes 0, the spread between \
             seeds does not explain the difference (the intervals of all sets hold together)"
        );
        self.differences("Δ to first", meaning, &|row| row.difference);
        self.add_fastest_strategy();
        self.add_training_data();
    }

    /// The samples that each set's trainings learned from, and their widths.
    fn add_training_data(&mut self) {
        self.counts("l1", "width of the accumulator", &|row| row.l1);
        let meaning = "different samples of a training, at most";
        self.counts("training samples", meaning, &|row| Some(row.training_data.as_ref()?.samples));
        let meaning = format!(
            "training samples per trained parameter: rows of features that a training sample has, times their width, \
             and the dense weights (all parameters in results that lack the number of such rows); below {} a network \
             may learn its samples by heart",
            RunRecord::SAMPLES_PER_PARAMETER
        );
        self.texts("samples/parameter", meaning, &|row| {
            let data = row.training_data.as_ref()?;
            Some((data.samples_per_parameter_text(), data.samples_per_parameter))
        });
        let meaning = "the epoch with the lowest validation loss, whose network was measured; best in the first half \
            of its epochs, a network has begun to learn its samples by heart";
        self.texts("best epoch", meaning.into(), &|row| {
            let data = row.training_data.as_ref()?;
            let mean = data.best_epochs.iter().sum::<u32>() as f64 / data.best_epochs.len() as f64;
            Some((data.best_epoch_text(), mean))
        });
        let sets: Vec<&str> = self.rows.iter().map(|row| row.set.as_str()).collect();
        self.texts("about", "what the set's definition says of it".into(), &|row| {
            let index = sets.iter().position(|set| *set == row.set)?;
            Some((row.about.clone()?, index as f64))
        });
        self.columns.iter_mut().filter(|column| column.heading == "about").for_each(|column| column.is_prose = true);
    }

    /// Speed and name of each set's fastest strategy.
    fn add_fastest_strategy(&mut self) {
        let mut seeds: Vec<u64> = Vec::new();
        for row in self.rows {
            seeds.extend(row.speed_seeds.iter().map(|seed| seed.0));
        }
        seeds.sort_unstable();
        seeds.dedup();
        let seeds = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let speeds: Vec<Estimate> = self.rows.iter().filter_map(|row| row.speed).collect();
        let decimals = numbers::decimals(&speeds);
        let meaning = format!(
            "evaluations per second of the integer network as trained (seed {seeds}), on one thread, with the fastest \
             strategy; of a set after the first, the first's times the ratio of both as timed by turns. After a speed,\
             {NOISY} says that its repetitions differ too much: measure again on an idle machine"
        );
        self.texts("evaluations/s", meaning, &|row| {
            let speed = row.speed?;
            let noisy = if row.speed_noisy { NOISY } else { "" };
            Some((format!("{}{noisy}", numbers::estimate(speed, decimals, false)), speed.mean))
        });
        let meaning = "evaluations per second by your figures: your time of finding features, and the measured time of \
            rows and layers";
        self.numbers("by your figures", meaning, 0, &|row| row.speed_by_figures);
        let mut back_ends: Vec<&str> = self.rows.iter().filter_map(|row| row.back_end.as_deref()).collect();
        back_ends.sort_unstable();
        back_ends.dedup();
        let meaning = format!(
            "the fastest strategy to keep the accumulators up to date ({}): refresh recomputes them at every move, \
             eager updates them at every move, lazy updates them when a score is needed; cache: a refresh starts from \
             the last accumulator of the same context",
            back_ends.join(", ")
        );
        let sets: Vec<&str> = self.rows.iter().map(|row| row.set.as_str()).collect();
        self.texts("strategy", meaning, &|row| {
            let fastest = row.speed_way.as_ref()?;
            let text = if back_ends.len() > 1 {
                format!("{}, {}", fastest.strategy, fastest.back_end)
            } else {
                fastest.strategy.clone()
            };
            let index = sets.iter().position(|set| *set == row.set)?;
            Some((text, index as f64))
        });
    }

    fn add_strength(&mut self, reference: &str) {
        self.section = Section::Strength;
        let together = "each interval holds with 95%, those of the verdict and its picture all together";
        let has_cost =
            self.rows.iter().any(|row| row.strength.as_ref().is_some_and(|own| own.elo_equal_cost.is_some()));
        let note = if has_cost { String::new() } else { format!("; {together}") };
        let meaning = format!("Elo against {reference} of the same seed, both with the same nodes per move{note}");
        self.differences("Elo (equal nodes)", meaning, &|row| row.strength.as_ref()?.elo_equal_nodes);
        let weight = self.rows.iter().find_map(|row| row.strength.as_ref()?.cost_weight);
        let terms = weight.map_or_else(
            || "both with the same processor time per move".to_owned(),
            |weight| format!("nodes per move by (cost of a node)^−{weight}, so that the times differ"),
        );
        let meaning = format!("Elo against {reference} of the same seed, {terms}; {together}");
        self.differences("Elo (equal cost)", meaning, &|row| row.strength.as_ref()?.elo_equal_cost);
        let meaning = "a node's cost by your figures, against the first set's; Elo at equal cost goes by it";
        self.numbers("node cost", meaning, 3, &|row| row.own.node_cost);
        let meaning = "Elo at equal cost minus Elo at equal nodes, seed by seed: what the cost of a set takes, or its \
            speed gives";
        self.differences("cost − nodes", meaning.into(), &|row| row.strength.as_ref()?.elo_by_cost);
        let meaning =
            format!("nodes per move at equal cost; {reference} has the number that the conditions below name");
        self.numbers("nodes", &meaning, 0, &|row| row.strength.as_ref()?.nodes);
        self.numbers("nodes/s", "nodes per second of the search in its games, by the clock; matches run at different times and under different load, so compare only roughly", 0, &|row| {
            Some(row.strength.as_ref()?.nps)
        });
        self.texts("games", "games at equal nodes + at equal cost, over all seeds".into(), &|row| {
            let games = row.strength.as_ref()?.games;
            let played: Vec<String> = games.iter().filter(|games| **games > 0).map(u64::to_string).collect();
            (!played.is_empty()).then(|| (played.join(" + "), games.iter().sum::<u64>() as f64))
        });
    }

    fn add_training(&mut self) {
        self.section = Section::Training;
        let meaning = "validation loss as a share of the loss of the best constant output";
        self.estimates("% of constant", meaning, &|row| percent(row.relative_loss));
        let meaning = "● no other network of the method, at any swept setting, is both faster and of lower loss";
        self.texts("front", meaning.into(), &|row| {
            let on_front = row.on_front?;
            Some((if on_front { "●" } else { "" }.into(), f64::from(u8::from(on_front))))
        });
        let meaning = "share of validation samples in which the network prefers the move played to the random move";
        self.estimates("accuracy %", meaning, &|row| percent(row.accuracy));
        self.counts("parameters", "trainable weights and biases of the network", &|row| row.parameters);
    }

    fn add_time(&mut self) {
        self.section = Section::Time;
        let nanoseconds = |row: &SummaryRow| Some(1e9 / row.speed?.mean);
        self.numbers("ns", "nanoseconds per evaluation with the fastest strategy", 0, &nanoseconds);
        let meaning = "nanoseconds per evaluation to find the features that the move adds and removes";
        self.numbers("features ns", meaning, 0, &|row| Some(row.nanoseconds?.features));
        let meaning = "share of the time in which features are found";
        self.numbers("features %", meaning, 0, &|row| Some(100.0 * row.nanoseconds?.features_share()));
        let meaning = "how features are found: by machine code made for the definition, or by the interpreter, with \
            which the same set costs several times more";
        self.texts("encoder", meaning.into(), &|row| {
            let encoder = row.encoder?;
            Some((encoder.name().to_owned(), f64::from(encoder as u8)))
        });
        let meaning = "nanoseconds a move in which your own engine finds the features, by your figures";
        self.numbers("your features ns", meaning, 0, &|row| row.own.features_ns);
        let meaning = "nanoseconds per evaluation to add and subtract rows of the feature transformer";
        self.numbers("rows ns", meaning, 0, &|row| Some(row.nanoseconds?.rows));
        let meaning = "nanoseconds per evaluation from the accumulators to the score";
        self.numbers("forward ns", meaning, 0, &|row| Some(row.nanoseconds?.forward));
        let meaning = "nanoseconds per evaluation for bookkeeping: copying the board, making the move on it, and what \
            the strategy keeps of positions";
        self.numbers("bookkeeping ns", meaning, 0, &|row| row.nanoseconds?.bookkeeping);
        let meaning = "evaluations per second with the fastest strategy that updates accumulators";
        self.estimates("incremental/s", meaning, &|row| row.speed_incremental);
        let meaning = "evaluations per second when every accumulator is recomputed";
        self.estimates("from scratch/s", meaning, &|row| row.speed_refresh);
        let meaning = "evaluations per second of the same network with its neurons permuted for positions of other \
            games (`net convert --arrange`), with its fastest strategy; the scores are the same";
        self.estimates("arranged/s", meaning, &|row| row.speed_arranged);
    }

    fn add_cost(&mut self) {
        self.section = Section::Cost;
        self.counts("features", "inputs per perspective", &|row| row.features.map(u64::from));
        self.numbers("active", "mean number of active features per perspective", 2, &|row| row.active_mean);
        let density = |row: &SummaryRow| Some(row.density? * 100.0);
        self.numbers("density %", "active features as a share of all features", 3, &density);
        let meaning = "rows of the feature transformer added or subtracted per move and perspective; a block whose \
            context changes is recomputed";
        self.numbers("rows update", meaning, 2, &|row| row.rows_update);
        self.numbers("rows cache", "the same with a refresh cache", 2, &|row| row.rows_cache);
        let meaning = "rows added per move and perspective when every accumulator is recomputed";
        self.numbers("rows refresh", meaning, 2, &|row| row.rows_refresh);
        let meaning = "share of moves, over both perspectives, that change the context of a block";
        self.numbers("refreshes %", meaning, 2, &|row| Some(row.refreshes? * 100.0));
    }

    fn add_network(&mut self) {
        self.section = Section::Network;
        for column in &MEASURED_COLUMNS {
            let Some(heading) = column.heading else { continue };
            let scale = if column.is_share { 100.0 } else { 1.0 };
            let number = |row: &SummaryRow| row.measured.get(column.name).map(|number| number.scaled(scale));
            self.estimates(heading, column.meaning, &number);
        }
    }

    /// Adds a column of estimates with as many decimals as their intervals allow.
    fn estimates(&mut self, heading: &'static str, meaning: &str, value: &dyn Fn(&SummaryRow) -> Option<Estimate>) {
        self.signed_estimates(heading, meaning.into(), false, value);
    }

    /// Adds a column of estimates with a plus sign before positive ones.
    fn differences(&mut self, heading: &'static str, meaning: String, value: &dyn Fn(&SummaryRow) -> Option<Estimate>) {
        self.signed_estimates(heading, meaning, true, value);
    }

    fn signed_estimates(
        &mut self,
        heading: &'static str,
        meaning: String,
        signed: bool,
        value: &dyn Fn(&SummaryRow) -> Option<Estimate>,
    ) {
        let decimals = numbers::decimals(&self.rows.iter().filter_map(value).collect::<Vec<_>>());
        self.texts(heading, meaning, &|row| {
            let estimate = value(row)?;
            Some((numbers::estimate(estimate, decimals, signed), estimate.mean))
        });
    }

    fn counts(&mut self, heading: &'static str, meaning: &str, value: &dyn Fn(&SummaryRow) -> Option<u64>) {
        self.numbers(heading, meaning, 0, &|row| value(row).map(|count| count as f64));
    }

    fn numbers(
        &mut self,
        heading: &'static str,
        meaning: &str,
        decimals: usize,
        value: &dyn Fn(&SummaryRow) -> Option<f64>,
    ) {
        self.texts(heading, meaning.into(), &|row| {
            let value = value(row)?;
            Some((numbers::number(value, decimals, false), value))
        });
    }

    /// Adds a column from each row's text and sorting number, unless all are missing.
    fn texts(&mut self, heading: &'static str, meaning: String, value: &dyn Fn(&SummaryRow) -> Option<(String, f64)>) {
        let cell = |row: &SummaryRow| match value(row) {
            Some((text, value)) => Cell { text, value: Some(value) },
            None => Cell { text: MISSING.into(), value: None },
        };
        let cells: Vec<Cell> = self.rows.iter().map(cell).collect();
        if cells.iter().any(|cell| cell.value.is_some()) {
            self.columns.push(Column { section: self.section, heading, meaning, cells, is_prose: false });
        }
    }
}

fn percent(share: Option<Estimate>) -> Option<Estimate> {
    share.map(|share| share.scaled(100.0))
}

/// The distinct headings and meanings of all columns, in order.
pub(super) fn meanings(tables: &[ComparisonTable]) -> Vec<(&'static str, &str)> {
    let mut all: Vec<(&'static str, &str)> = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        if !all.contains(&(column.heading, column.meaning.as_str())) {
            all.push((column.heading, &column.meaning));
        }
    }
    all
}

fn title(summary: &MethodSummary) -> String {
    let method = match summary.method {
        Method::Eval => "Trained on evaluations (eval)",
        Method::Pqr => "Trained on chosen moves (pqr)",
    };
    summary.group.as_ref().map_or_else(|| method.to_owned(), |group| format!("{method}, {group}"))
}

/// The method's name in file names.
pub(super) const fn method_name(method: Method) -> &'static str {
    match method {
        Method::Eval => "eval",
        Method::Pqr => "pqr",
    }
}

/// Explanation of the sign ±, printed once per report.
pub(super) const INTERVALS: &str = "Training results are means over the seeds ± the half-width of the 95% confidence \
    interval (Student's t, seeds − 1 degrees of freedom). For the speed of a single network, the interval is over \
    repetitions of the timing.";

/// Follows a speed whose repetitions differ too much.
const NOISY: &str = " (noisy)";
