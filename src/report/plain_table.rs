//! Tables of texts beside the comparison table, such as the pairs of sets, for every kind of report.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use super::comparisons::{ComparedMeasure, Comparisons, Difference, PairComparison, PartComparison, Statement};
use super::equal_speed::{EqualSpeed, EqualSpeedRow};
use super::html::folded;
use super::numbers::{self, MISSING, amount};
use super::published::{PublishedComparison, PublishedElo, PublishedLoss};
use super::scaling::{ScalingSummary, SetScaling, between};
use super::summary::MethodSummary;
use crate::record::SpeedRatio;
use crate::statistics::Estimate;
use crate::text::grouped;
use crate::units::sort_by_key;

/// A table of texts. The first column names the rows.
#[derive(Clone, Debug)]
pub(super) struct PlainTable {
    pub(super) title: String,
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Whether a page folds it away.
    pub(super) is_detail: bool,
}

impl PlainTable {
    /// The tables of a method's comparisons, without those that would be empty.
    pub(super) fn of(method: &MethodSummary) -> Vec<PlainTable> {
        let comparisons = &method.comparisons;
        let mut tables: Vec<PlainTable> = method.equal_speed.iter().map(widths).collect();
        tables.extend(method.scaling.iter().map(more_data));
        for measure in [ComparedMeasure::Loss, ComparedMeasure::Accuracy] {
            let matrix = matrix(comparisons, measure);
            let pairs = PlainTable { is_detail: matrix.is_some(), ..pairs(comparisons, measure) };
            tables.extend(matrix);
            tables.push(pairs);
            tables.push(parts(comparisons, measure));
        }
        if let Some(published) = &method.published {
            tables.push(published_losses(published));
            tables.push(published_elo(published));
        }
        tables.retain(|table| !table.rows.is_empty());
        sort_by_key(&mut tables, &|table| table.is_detail);
        tables
    }

    /// Tables of at most `width` characters; columns that do not fit continue in a further one.
    pub(super) fn fitting(&self, preset: &str, width: usize) -> Vec<Table> {
        let mut tables: Vec<(Vec<usize>, Table)> = Vec::new();
        for column in 1..self.headings.len() {
            if let Some((columns, last)) = tables.last_mut() {
                columns.push(column);
                let wider = self.terminal(preset, columns);
                if super::text::width_of(&wider) <= width {
                    *last = wider;
                    continue;
                }
                columns.pop();
            }
            tables.push((vec![column], self.terminal(preset, &[column])));
        }
        tables.into_iter().map(|(_, table)| table).collect()
    }

    fn terminal(&self, preset: &str, columns: &[usize]) -> Table {
        let mut table = Table::new();
        table.load_preset(preset).set_content_arrangement(ContentArrangement::Disabled);
        let cells = |texts: &[String]| {
            let others: Vec<Cell> =
                columns.iter().map(|column| Cell::new(&texts[*column]).set_alignment(CellAlignment::Right)).collect();
            std::iter::once(Cell::new(&texts[0])).chain(others).collect::<Vec<_>>()
        };
        table.set_header(cells(&self.headings));
        for row in &self.rows {
            table.add_row(cells(row));
        }
        table
    }

    pub(super) fn markdown(&self, escape: impl Fn(&str) -> String) -> String {
        let line = |texts: &[String]| {
            format!("| {} |\n", texts.iter().map(|text| escape(text)).collect::<Vec<_>>().join(" | "))
        };
        let mut out = format!("### {}\n\n{}|---|", escape(&self.title), line(&self.headings));
        out += &"---:|".repeat(self.headings.len() - 1);
        out.push('\n');
        self.rows.iter().for_each(|row| out += &line(row));
        out.push('\n');
        out
    }

    pub(super) fn html(&self, escape: impl Fn(&str) -> String) -> String {
        let mut out = "<div class=\"wide\"><table>\n<thead>\n<tr class=\"heads\">".to_owned();
        // Writing to a string cannot fail, here and below.
        for heading in &self.headings {
            let _ = write!(out, "<th scope=\"col\"><button>{}</button></th>", escape(heading));
        }
        out += "</tr>\n</thead>\n<tbody>\n";
        for (index, row) in self.rows.iter().enumerate() {
            let _ = write!(out, "<tr><th scope=\"row\" data-value=\"{index}\">{}</th>", escape(&row[0]));
            for text in &row[1..] {
                let value = leading_number(text).map(|value| format!(" data-value=\"{value}\"")).unwrap_or_default();
                let _ = write!(out, "<td{value}>{}</td>", escape(text));
            }
            out += "</tr>\n";
        }
        out += "</tbody>\n</table></div>\n";
        if self.is_detail { folded(&self.title, &out) } else { format!("<h3>{}</h3>\n{out}", escape(&self.title)) }
    }
}

/// The number that a cell begins with, to sort by.
fn leading_number(text: &str) -> Option<f64> {
    let first = text.split(' ').next()?;
    first.replace(',', "").replace('−', "-").parse().ok()
}

fn name(measure: ComparedMeasure) -> &'static str {
    match measure {
        ComparedMeasure::Loss => "loss, %",
        ComparedMeasure::Accuracy => "accuracy, percentage points",
    }
}

/// As many decimals as the intervals allow.
fn decimals<'a>(differences: impl Iterator<Item = &'a Difference>) -> usize {
    let estimate = |difference: &Difference| Estimate {
        mean: difference.difference,
        interval: Some((difference.high - difference.low) / 2.0),
        count: difference.seeds,
    };
    numbers::decimals(&differences.map(estimate).collect::<Vec<_>>())
}

fn with_bounds(difference: &Difference, decimals: usize) -> String {
    let number = |value| numbers::number(value, decimals, true);
    format!("{} ({} to {})", number(difference.difference), number(difference.low), number(difference.high))
}

fn widths(equal_speed: &EqualSpeed) -> PlainTable {
    let ratio = |speed: SpeedRatio| {
        let number = |value| numbers::number(value, 3, false);
        format!("{} ({} to {})", number(speed.ratio), number(speed.low), number(speed.high))
    };
    let row = |row: &EqualSpeedRow| {
        let [found, trained] = [row.found, row.trained].map(|speed| speed.map_or_else(|| MISSING.to_owned(), ratio));
        vec![row.set.clone(), row.l1.to_string(), found, trained]
    };
    PlainTable {
        title: format!(
            "Widths of equal speed (evaluations per second relative to the reference's at l1 {})",
            equal_speed.reference_l1
        ),
        headings: ["set", "l1", "as found", "as trained"].map(String::from).to_vec(),
        rows: equal_speed.rows.iter().map(row).collect(),
        is_detail: false,
    }
}

/// The curves over the number of training samples.
fn more_data(scaling: &ScalingSummary) -> PlainTable {
    let decimals = scaling.decimals();
    let row = |set: &SetScaling| {
        let passes = scaling.crossings.iter().filter(|crossing| crossing.set == set.set);
        let passes = passes.map(|crossing| {
            format!("{} at {} ({})", crossing.against, amount(crossing.samples.value), crossing.bounds())
        });
        let passes: Vec<String> = passes.collect();
        vec![
            set.set.clone(),
            between(set.floor, decimals),
            between(set.reducible, decimals),
            between(set.tenfold, decimals),
            if passes.is_empty() { MISSING.into() } else { passes.join("; ") },
        ]
    };
    PlainTable {
        title: format!("More data: loss = E + A (positions / 1 M)^(−α), α {}", between(scaling.exponent, 2)),
        headings: ["set", "E", "A", "loss with 10 times the data", "passes"].map(String::from).to_vec(),
        rows: scaling.sets.iter().map(row).collect(),
        is_detail: false,
    }
}

fn published_losses(published: &PublishedComparison) -> PlainTable {
    let places = decimals(published.losses.iter().map(|pair| &pair.here));
    let row = |pair: &PublishedLoss| {
        let there = numbers::number(pair.published, places.max(1), true);
        let names = format!("{} vs {}", pair.set, pair.against);
        vec![names, there, with_bounds(&pair.here, places), pair.agreement.name().into()]
    };
    PlainTable {
        title: "Published and here: difference in loss, %".into(),
        headings: ["pair", "published", "here", "order"].map(String::from).to_vec(),
        rows: published.losses.iter().map(row).collect(),
        is_detail: false,
    }
}

fn published_elo(published: &PublishedComparison) -> PlainTable {
    let of = |elo: Option<Estimate>| match elo {
        None => MISSING.to_owned(),
        Some(Estimate { mean, interval: Some(interval), .. }) => {
            format!("{} ± {}", numbers::number(mean, 0, true), numbers::number(interval, 0, false))
        }
        Some(Estimate { mean, .. }) => numbers::number(mean, 0, true),
    };
    let row = |elo: &PublishedElo| {
        let [value, interval] = elo.published;
        // An interval of 0 stands for an unpublished one.
        let interval = if interval > 0.0 { Some(interval) } else { None };
        let there = Estimate { mean: value, interval, count: 1 };
        vec![elo.set.clone(), of(Some(there)), of(elo.equal_nodes), of(elo.equal_cost)]
    };
    PlainTable {
        title: "Published and here: Elo".into(),
        headings: ["set", "published", "here, equal nodes", "here, equal cost"].map(String::from).to_vec(),
        rows: published.elo.iter().map(row).collect(),
        is_detail: false,
    }
}

fn pairs(comparisons: &Comparisons, measure: ComparedMeasure) -> PlainTable {
    let own: Vec<_> = comparisons.pairs.iter().filter(|pair| pair.difference.measure == measure).collect();
    let decimals = decimals(own.iter().map(|pair| &pair.difference));
    let row = |pair: &&PairComparison| {
        let more = |number: Option<u64>| match (pair.difference.statement, number) {
            (Statement::NotDistinguished, Some(number)) => grouped(&number.to_string()),
            (Statement::NotDistinguished, None) => MISSING.into(),
            _ => String::new(),
        };
        vec![
            format!("{} vs {}", pair.set, pair.against),
            with_bounds(&pair.difference, decimals),
            pair.difference.statement.name().into(),
            more(pair.more_seeds),
            more(pair.more_games),
        ]
    };
    PlainTable {
        title: format!("Pairs: {}", name(measure)),
        headings: ["pair", "difference", "statement", "+seeds", "+games"].map(String::from).to_vec(),
        rows: own.iter().map(row).collect(),
        is_detail: false,
    }
}

/// Every pair in a triangle, the row's set against the column's; `None` for few sets, or if each was compared with the
/// first only.
fn matrix(comparisons: &Comparisons, measure: ComparedMeasure) -> Option<PlainTable> {
    const FEWEST_SETS: usize = 4;
    let own: Vec<&PairComparison> =
        comparisons.pairs.iter().filter(|pair| pair.difference.measure == measure).collect();
    let mut sets: Vec<&str> = own.first().map(|pair| pair.against.as_str()).into_iter().collect();
    for pair in &own {
        if !sets.contains(&pair.set.as_str()) {
            sets.push(&pair.set);
        }
    }
    if sets.len() < FEWEST_SETS || own.len() < sets.len() * (sets.len() - 1) / 2 {
        return None;
    }
    let places = decimals(own.iter().map(|pair| &pair.difference));
    let cell = |set: &str, against: &str| {
        let pair = own.iter().find(|pair| (pair.set.as_str(), pair.against.as_str()) == (set, against));
        pair.map_or_else(String::new, |pair| with_mark(&pair.difference, places))
    };
    let row = |(index, set): (usize, &&str)| {
        let cells = sets[..sets.len() - 1].iter().enumerate();
        let cells = cells.map(|(other, against)| if other < index { cell(set, against) } else { String::new() });
        std::iter::once((*set).to_owned()).chain(cells).collect()
    };
    Some(PlainTable {
        title: format!(
            "All pairs: {}, the row's set against the column's; * marks intervals that exclude 0",
            name(measure)
        ),
        headings: std::iter::once("set").chain(sets[..sets.len() - 1].iter().copied()).map(String::from).collect(),
        rows: sets.iter().enumerate().skip(1).map(row).collect(),
        is_detail: false,
    })
}

/// One row per class, one column per set.
fn parts(comparisons: &Comparisons, measure: ComparedMeasure) -> PlainTable {
    let own: Vec<&PartComparison> =
        comparisons.parts.iter().filter(|part| part.difference.measure == measure).collect();
    let mut sets: Vec<&str> = Vec::new();
    let mut classes: Vec<&PartComparison> = Vec::new();
    for part in &own {
        if !sets.contains(&&part.set[..]) {
            sets.push(&part.set);
        }
        if !classes.iter().any(|class| (&class.by, &class.part) == (&part.by, &part.part)) {
            classes.push(part);
        }
    }
    let places: Vec<usize> = sets
        .iter()
        .map(|set| decimals(own.iter().filter(|part| part.set == **set).map(|part| &part.difference)))
        .collect();
    let row = |class: &&PartComparison| {
        let cell = |(set, places): (&&str, &usize)| {
            let is_own =
                |part: &&&PartComparison| (&part.by, &part.part, &part.set[..]) == (&class.by, &class.part, *set);
            let found = own.iter().find(is_own);
            found.map_or_else(|| MISSING.into(), |part| with_mark(&part.difference, *places))
        };
        let names = [format!("{} {}", class.by, class.part), grouped(&class.samples.to_string())];
        names.into_iter().chain(sets.iter().zip(&places).map(cell)).collect()
    };
    let against = classes.first().map(|class| class.against.clone()).unwrap_or_default();
    PlainTable {
        title: format!("Where a set wins: {} against {against}", name(measure)),
        headings: ["positions", "samples"].into_iter().chain(sets.iter().copied()).map(String::from).collect(),
        rows: classes.iter().map(row).collect(),
        is_detail: true,
    }
}

/// The difference with its interval, and a mark if that excludes 0.
fn with_mark(difference: &Difference, decimals: usize) -> String {
    let mark = match difference.statement {
        Statement::NotDistinguished => "",
        _ => "*",
    };
    numbers::with_interval(difference.difference, [difference.low, difference.high], decimals, mark)
}
