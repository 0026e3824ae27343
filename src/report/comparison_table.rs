//! The comparison as a table of texts, the same for the terminal, Markdown and HTML.

use super::numbers::{self, MISSING};
use super::summary::{MethodSummary, SummaryRow};
use crate::record::Method;
use crate::statistics::Estimate;

/// Which question a column answers; narrow outputs show one part after the other.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The few columns that decide.
    Overview,
    Learning,
    Time,
    Cost,
    Network,
}

impl Part {
    pub(super) const ALL: [Part; 5] = [Part::Overview, Part::Learning, Part::Time, Part::Cost, Part::Network];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Part::Overview => "At a glance",
            Part::Learning => "What the network learns",
            Part::Time => "Where the time goes",
            Part::Cost => "What the set costs",
            Part::Network => "What the network is like",
        }
    }
}

/// A column: heading, what it means in words, and a text and a sorting number a row.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) part: Part,
    pub(super) heading: &'static str,
    pub(super) meaning: String,
    pub(super) cells: Vec<Cell>,
}

#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    /// None where nothing was measured.
    pub(super) value: Option<f64>,
}

/// One method's comparison.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) sets: Vec<String>,
    /// Only columns with something in them.
    pub(super) columns: Vec<Column>,
}

impl Table {
    pub(super) fn of(summary: &MethodSummary) -> Table {
        let mut table = Table {
            title: title(summary.method).to_owned(),
            sets: summary.rows.iter().map(|row| row.set.clone()).collect(),
            columns: Vec::new(),
        };
        table.add_learning(summary);
        table.add_speed(&summary.rows);
        table.add_cost(&summary.rows);
        table.add_network(&summary.rows);
        table
    }

    /// The columns of a part, in order.
    pub(super) fn part(&self, part: Part) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |column| column.part == part)
    }

    fn add_learning(&mut self, summary: &MethodSummary) {
        use Part::{Learning, Overview};
        let rows = &summary.rows;
        let seeds = rows.iter().map(|row| {
            let text = match row.seeds_done == row.seeds_planned {
                true => row.seeds_done.to_string(),
                false => format!("{} of {}", row.seeds_done, row.seeds_planned),
            };
            Cell { text, value: Some(row.seeds_done as f64) }
        });
        let meaning = "finished trainings, each from another seed (of so many planned, where some are missing)";
        let seeds = Column { part: Overview, heading: "seeds", meaning: meaning.into(), cells: seeds.collect() };
        self.columns.push(seeds);
        let meaning = "mean loss over the validation games at the best epoch; lower is better";
        self.estimates(Overview, "validation loss", meaning, rows, 1.0, |row| row.validation_loss);
        let meaning = format!(
            "validation loss minus that of {}, paired by seed; an interval that does not reach 0 is a difference that \
             the seeds do not explain",
            summary.reference
        );
        self.differences("Δ to first", meaning, rows);
        let meaning = "validation loss as a share of the loss of the best constant, a network that sees nothing";
        self.estimates(Learning, "of constant %", meaning, rows, 100.0, |row| row.relative_loss);
        let meaning = "share of validation samples where the move played is preferred to the random one";
        self.estimates(Learning, "preferred %", meaning, rows, 100.0, |row| row.accuracy);
        let meaning = "trainable numbers of the network";
        self.counts(Learning, "parameters", meaning, rows, |row| row.parameters);
    }

    fn add_cost(&mut self, rows: &[SummaryRow]) {
        use Part::Cost;
        self.counts(Cost, "features", "inputs a perspective", rows, |row| row.features.map(u64::from));
        let meaning = "features that are 1, mean over positions and perspectives";
        self.plain(Cost, "active", meaning, rows, 2, |row| row.active_mean);
        self.plain(Cost, "density %", "active features as a share of all", rows, 3, |row| Some(row.density? * 100.0));
        let meaning =
            "rows added or subtracted a move and perspective, a block being recomputed when its context changes";
        self.plain(Cost, "rows update", meaning, rows, 2, |row| row.rows_update);
        let meaning = "the same with a refresh cache";
        self.plain(Cost, "rows cache", meaning, rows, 2, |row| row.rows_cache);
        let meaning = "rows a move and perspective when everything is recomputed";
        self.plain(Cost, "rows refresh", meaning, rows, 2, |row| row.rows_refresh);
        let meaning = "share of moves, over both perspectives, that change some block's context";
        self.plain(Cost, "refreshes %", meaning, rows, 2, |row| Some(row.refreshes? * 100.0));
    }

    fn add_network(&mut self, rows: &[SummaryRow]) {
        use Part::Network;
        let meaning = "accumulator outputs above zero";
        self.estimates(Network, "active neurons %", meaning, rows, 100.0, |row| row.l1_active);
        self.estimates(
            Network,
            "never active",
            "accumulator neurons that are zero in every position",
            rows,
            1.0,
            |row| row.l1_never,
        );
        let tolerance = rows.iter().find_map(|row| row.tolerance).unwrap_or_default();
        let meaning = format!(
            "positions whose expected result differs by at most {tolerance} between the float and the integer network"
        );
        self.estimates(Network, "integer agrees %", &meaning, rows, 100.0, |row| row.within_tolerance);
        let meaning = "mean difference of the expected result between the float and the integer network";
        self.estimates(Network, "integer error", meaning, rows, 1.0, |row| row.error_mean);
    }

    fn add_speed(&mut self, rows: &[SummaryRow]) {
        use Part::{Overview, Time};
        let mut seeds: Vec<u64> = rows.iter().flat_map(|row| &row.speed_seeds).map(|seed| seed.0).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let seeds = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let values: Vec<_> = rows.iter().map(|row| row.speed).collect();
        let decimals = numbers::decimals(&values.iter().flatten().copied().collect::<Vec<_>>());
        let cells = rows.iter().zip(&values).map(|(row, value)| match value {
            Some(value) => {
                let noisy = if row.speed_noisy { NOISY } else { "" };
                let text = format!("{}{noisy}", numbers::estimate(*value, decimals, false));
                Cell { text, value: Some(value.mean) }
            }
            None => Cell { text: MISSING.into(), value: None },
        });
        let meaning = format!(
            "evaluations per second of the integer network as trained (seed {seeds}), one thread, by the fastest way;{NOISY}: \
             the repetitions differ too much to rely on, measure again on a quiet machine"
        );
        let cells = cells.collect();
        self.push(Column { part: Overview, heading: "evaluations/s", meaning, cells });
        let mut back_ends: Vec<&str> = rows.iter().filter_map(|row| row.back_end.as_deref()).collect();
        back_ends.dedup();
        let way = |row: &SummaryRow| {
            let way = row.speed_way.as_ref()?;
            Some(if back_ends.len() > 1 { format!("{}, {}", way.strategy, way.back_end) } else { way.strategy.clone() })
        };
        let cells = rows.iter().enumerate().map(|(index, row)| match way(row) {
            Some(text) => Cell { text, value: Some(index as f64) },
            None => Cell { text: MISSING.into(), value: None },
        });
        let cells = cells.collect();
        let meaning = format!(
            "the fastest way to keep the accumulators up to date ({}): refresh recomputes them at every move, eager follows \
             every move, lazy follows when a score is asked for; cache: a refresh starts from the last accumulator of the \
             same context",
            back_ends.join(", ")
        );
        self.push(Column { part: Overview, heading: "fastest way", meaning, cells });

        let total = |row: &SummaryRow| Some(1e9 / row.speed?.mean);
        self.plain(Time, "ns", "nanoseconds per evaluation by the fastest way", rows, 0, total);
        let meaning = "nanoseconds per evaluation to follow the move and find what it makes active and inactive";
        self.plain(Time, "features ns", meaning, rows, 0, |row| Some(row.nanoseconds?.features));
        let meaning = "nanoseconds per evaluation to add and subtract rows of the feature transformer";
        self.plain(Time, "rows ns", meaning, rows, 0, |row| Some(row.nanoseconds?.rows));
        let meaning = "nanoseconds per evaluation from the accumulators to the score";
        self.plain(Time, "forward ns", meaning, rows, 0, |row| Some(row.nanoseconds?.forward));
        let meaning = "evaluations per second by the fastest way that follows the moves";
        self.estimates(Time, "incremental/s", meaning, rows, 1.0, |row| row.speed_incremental);
        let meaning = "evaluations per second when every accumulator is recomputed from scratch";
        self.estimates(Time, "from scratch/s", meaning, rows, 1.0, |row| row.speed_refresh);
        let meaning = "evaluations per second of the same network with its neurons arranged by positions of other games \
            (`net convert --arrange`), by its fastest way; the scores are the same";
        self.estimates(Time, "arranged/s", meaning, rows, 1.0, |row| row.speed_arranged);
    }

    fn estimates(
        &mut self,
        part: Part,
        heading: &'static str,
        meaning: &str,
        rows: &[SummaryRow],
        unit: f64,
        value: impl Fn(&SummaryRow) -> Option<Estimate>,
    ) {
        let values: Vec<_> = rows.iter().map(|row| value(row).map(|estimate| estimate.scaled(unit))).collect();
        let decimals = numbers::decimals(&values.iter().flatten().copied().collect::<Vec<_>>());
        let cells = values.iter().map(|value| match value {
            Some(value) => Cell { text: numbers::estimate(*value, decimals, false), value: Some(value.mean) },
            None => Cell { text: MISSING.into(), value: None },
        });
        let cells = cells.collect();
        self.push(Column { part, heading, meaning: meaning.into(), cells });
    }

    fn differences(&mut self, heading: &'static str, meaning: String, rows: &[SummaryRow]) {
        let values: Vec<_> = rows.iter().map(|row| row.difference).collect();
        let decimals = numbers::decimals(&values.iter().flatten().copied().collect::<Vec<_>>());
        let cells = values.iter().map(|value| match value {
            Some(value) => Cell { text: numbers::estimate(*value, decimals, true), value: Some(value.mean) },
            None => Cell { text: MISSING.into(), value: None },
        });
        let cells = cells.collect();
        self.push(Column { part: Part::Overview, heading, meaning, cells });
    }

    fn plain(
        &mut self,
        part: Part,
        heading: &'static str,
        meaning: &str,
        rows: &[SummaryRow],
        decimals: usize,
        value: impl Fn(&SummaryRow) -> Option<f64>,
    ) {
        let cells = rows.iter().map(|row| match value(row) {
            Some(value) => Cell { text: numbers::number(value, decimals, false), value: Some(value) },
            None => Cell { text: MISSING.into(), value: None },
        });
        let cells = cells.collect();
        self.push(Column { part, heading, meaning: meaning.into(), cells });
    }

    fn counts(
        &mut self,
        part: Part,
        heading: &'static str,
        meaning: &str,
        rows: &[SummaryRow],
        value: impl Fn(&SummaryRow) -> Option<u64>,
    ) {
        self.plain(part, heading, meaning, rows, 0, |row| value(row).map(|count| count as f64));
    }

    fn push(&mut self, column: Column) {
        if column.cells.iter().any(|cell| cell.value.is_some()) {
            self.columns.push(column);
        }
    }
}

/// Every column's heading and meaning, once each, in order.
pub(super) fn meanings(tables: &[Table]) -> Vec<(&'static str, &str)> {
    let mut all: Vec<(&'static str, &str)> = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        if !all.contains(&(column.heading, column.meaning.as_str())) {
            all.push((column.heading, &column.meaning));
        }
    }
    all
}

/// The method in words.
pub(super) const fn title(method: Method) -> &'static str {
    match method {
        Method::Eval => "Trained on evaluations (eval)",
        Method::Pqr => "Trained on chosen moves (pqr)",
    }
}

/// The method's name in file names.
pub(super) const fn name(method: Method) -> &'static str {
    match method {
        Method::Eval => "eval",
        Method::Pqr => "pqr",
    }
}

/// What ± means, said once a document.
pub(super) const INTERVALS: &str = "Figures from training are means over the seeds ± the half-width of the 95% interval \
    (Student's t, seeds − 1 degrees of freedom). A lone speed's interval is over repetitions of the timing.";

/// Stands behind a speed that cannot be relied on.
pub(super) const NOISY: &str = " (noisy)";
