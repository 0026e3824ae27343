//! Which plots a report has: data laid out for drawing, without any drawing.

use super::comparison_table as table;
use super::summary::{Curve, MethodSummary, Summary, SummaryRow};
use crate::record::Method;
use crate::statistics::Estimate;

/// A plot to be drawn.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    /// The file's name without ending.
    pub(super) name: String,
    pub(super) title: String,
    /// The method it belongs to; none for what depends on the sets only.
    pub(super) method: Option<Method>,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Dots with intervals, a line a set.
    Dots { axis: String, rows: Vec<(String, Estimate)> },
    /// Lines with bands over epochs.
    Curves { axis: String, curves: Vec<Curve> },
    /// Groups of bars, a group a set and a bar a series.
    Bars { axis: String, series: Vec<&'static str>, groups: Vec<(String, Vec<Estimate>)> },
    /// Points with intervals in y; x on a logarithmic axis.
    Points { x_axis: String, y_axis: String, points: Vec<(String, f64, Estimate)> },
    /// Layers over two numeric axes.
    Plane { x_axis: String, y_axis: String, layers: Vec<Layer> },
    /// A number for each square of the board, a1 first.
    Squares { axis: String, shares: Vec<f64> },
}

/// One of several things drawn into the same plot.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// Empty where the axes say it all.
    pub(super) name: String,
    pub(super) style: Style,
    pub(super) points: Vec<(f64, Estimate)>,
}

#[derive(Copy, Clone, Debug)]
pub(super) enum Style {
    Columns {
        width: f64,
    },
    Line,
    /// Between the bounds.
    Band,
    /// With their intervals.
    Dots,
}

/// Every plot for which there are figures.
pub(super) fn of(summary: &Summary) -> Vec<Sketch> {
    let mut sketches = Vec::new();
    for method in &summary.methods {
        sketches.extend(
            [loss(method), learning(method), trade_off(method), time(method), activity(method)].into_iter().flatten(),
        );
    }
    sketches.extend(rows_a_move(summary));
    sketches.extend(refreshes(summary));
    sketches
}

/// Each set once, from the first method that has it.
fn sets(summary: &Summary) -> Vec<&SummaryRow> {
    let mut rows: Vec<&SummaryRow> = Vec::new();
    for row in summary.methods.iter().flat_map(|method| &method.rows) {
        if !rows.iter().any(|known| known.set == row.set) {
            rows.push(row);
        }
    }
    rows
}

fn sketch(kind: &str, title: &str, method: Method, content: Content) -> Sketch {
    let name = table::name(method);
    Sketch { name: format!("{kind}-{name}"), title: format!("{title} ({name})"), method: Some(method), content }
}

fn loss(summary: &MethodSummary) -> Option<Sketch> {
    let rows: Vec<_> = summary.rows.iter().filter_map(|row| Some((row.set.clone(), row.validation_loss?))).collect();
    let axis = "validation loss (mean and 95% interval over seeds; lower is better)".into();
    let content = Content::Dots { axis, rows };
    some_sets(&summary.rows, |row| row.validation_loss.is_some())
        .then(|| sketch("loss", "Validation loss", summary.method, content))
}

fn learning(summary: &MethodSummary) -> Option<Sketch> {
    let content = Content::Curves { axis: "validation loss".into(), curves: summary.curves.clone() };
    (!summary.curves.is_empty()).then(|| sketch("learning", "Learning curves", summary.method, content))
}

/// Loss against the time of an evaluation; where none was timed, against the rows of the cost model.
fn trade_off(summary: &MethodSummary) -> Option<Sketch> {
    let points = |cost: fn(&SummaryRow) -> Option<f64>| -> Vec<_> {
        let rows = summary.rows.iter();
        rows.filter_map(|row| Some((row.set.clone(), cost(row).filter(|cost| *cost > 0.0)?, row.validation_loss?)))
            .collect()
    };
    let timed = points(|row| Some(1e9 / row.speed?.mean));
    let (x_axis, title, points) = match timed.is_empty() {
        false => ("nanoseconds per evaluation, by the fastest way (logarithmic)", "Loss against time", timed),
        true => (
            "rows touched per move and perspective, with a refresh cache (logarithmic)",
            "Loss against rows",
            points(|row| row.rows_cache),
        ),
    };
    let empty = points.is_empty();
    let content = Content::Points { x_axis: x_axis.into(), y_axis: "validation loss".into(), points };
    (!empty).then(|| sketch("tradeoff", title, summary.method, content))
}

fn time(summary: &MethodSummary) -> Option<Sketch> {
    let group = |row: &SummaryRow| {
        let parts = row.nanoseconds?;
        Some((row.set.clone(), [parts.features, parts.rows, parts.forward].map(exact).to_vec()))
    };
    let groups: Vec<_> = summary.rows.iter().filter_map(group).collect();
    let empty = groups.is_empty();
    let axis = "nanoseconds per evaluation, by each set's fastest way".into();
    let series = vec!["finding features", "adding rows", "forward pass"];
    let content = Content::Bars { axis, series, groups };
    (!empty).then(|| sketch("time", "Where the time goes", summary.method, content))
}

fn activity(summary: &MethodSummary) -> Option<Sketch> {
    let groups: Vec<_> = summary
        .rows
        .iter()
        .filter_map(|row| Some((row.set.clone(), vec![row.l1_active?.scaled(100.0), row.l1_saturated?.scaled(100.0)])))
        .collect();
    let empty = groups.is_empty();
    let axis = "share of accumulator outputs, %".into();
    let content = Content::Bars { axis, series: vec!["above zero", "at the upper bound"], groups };
    (!empty).then(|| sketch("activity", "Neuron activity", summary.method, content))
}

fn rows_a_move(summary: &Summary) -> Option<Sketch> {
    let groups: Vec<_> = sets(summary)
        .into_iter()
        .filter_map(|row| {
            let bars = [row.rows_update?, row.rows_cache?, row.rows_refresh?];
            Some((row.set.clone(), bars.map(exact).to_vec()))
        })
        .collect();
    let series = vec!["updated", "with a refresh cache", "all recomputed"];
    let content = Content::Bars { axis: "rows touched a move and perspective".into(), series, groups };
    cost_sketch("rows", "Accumulator rows a move", content)
}

fn refreshes(summary: &Summary) -> Option<Sketch> {
    let groups: Vec<_> = sets(summary)
        .into_iter()
        .filter_map(|row| Some((row.set.clone(), vec![exact(row.refreshes? * 100.0)])))
        .collect();
    let axis = "moves that refresh an accumulator, % (mean of both perspectives)".into();
    cost_sketch("refreshes", "Refreshes", Content::Bars { axis, series: vec!["refreshes"], groups })
}

fn cost_sketch(name: &str, title: &str, content: Content) -> Option<Sketch> {
    let empty = matches!(&content, Content::Bars { groups, .. } if groups.is_empty());
    (!empty).then(|| Sketch { name: name.into(), title: title.into(), method: None, content })
}

fn some_sets(rows: &[SummaryRow], has: impl Fn(&SummaryRow) -> bool) -> bool {
    rows.iter().any(has)
}

/// A count over fixed data: no interval.
fn exact(mean: f64) -> Estimate {
    Estimate { mean, interval: None, count: 1 }
}
