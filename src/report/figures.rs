//! The figures of a report and the data of each; [`super::plot`] draws them.

use super::learning_loop;
use super::pareto;
use super::scaling::SetScaling;
use super::search;
use super::summary::{Curve, MethodSummary, Summary, SummaryRow};
use super::tables::method_name;
use crate::record::{MatchKind, Method, NeuronWeights, WeightPanel};
use crate::statistics::Estimate;

/// A figure, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Figure {
    pub(super) name: String,
    pub(super) title: String,
    /// Index of the comparison in the summary that is shown.
    pub(super) comparison: Option<usize>,
    /// Whether it stands right under the verdict: strength at equal cost, and loss by speed.
    pub(super) is_decisive: bool,
    pub(super) chart: Chart,
    pub(super) colors: SetColors,
}

/// The sets of a report in order: a set has the same colour in all of its figures.
#[derive(Clone, Debug, Default)]
pub(super) struct SetColors(Vec<String>);

impl SetColors {
    fn of(summary: &Summary) -> SetColors {
        let mut colors = SetColors::default();
        for row in summary.methods.iter().flat_map(|method| &method.rows) {
            if colors.index_of(&row.name).is_none() {
                colors.0.push(row.name.clone());
            }
        }
        colors
    }

    /// The place of a set, whose name may be followed by a comma and settings; `None` for other names.
    pub(super) fn index_of(&self, name: &str) -> Option<usize> {
        let is_own = |set: &String| name.strip_prefix(set.as_str()).is_some_and(|rest| rest.starts_with(", "));
        self.0.iter().position(|set| set == name).or_else(|| self.0.iter().position(is_own))
    }
}

/// The kind of plot, with its data.
#[derive(Clone, Debug)]
pub(super) enum Chart {
    /// One dot with its interval per feature set.
    Dots { axis: String, dots: Vec<(String, Estimate)> },
    /// Loss by epoch, with bands.
    LearningCurves { axis: String, curves: Vec<Curve> },
    /// Loss by the number of training samples; a line marks how many there are.
    DataCurves { x_axis: String, y_axis: String, sets: Vec<SetScaling>, samples: u64 },
    /// One group of bars per feature set.
    Bars { axis: String, bar_names: Vec<&'static str>, groups: Vec<(String, Vec<Estimate>)> },
    /// Named points with intervals in both directions.
    Scatter { x_axis: String, x_scale: AxisScale, y_axis: String, points: Vec<ScatterPoint> },
    /// Several series over the same two axes.
    Series { x_axis: String, y_axis: String, series: Vec<Series> },
    /// A share for each square of the board, a1 first.
    BoardHeatMap { axis: String, shares: Vec<f64> },
    /// Weights, blue below and orange above 0.
    Weights { panels: Vec<WeightPanel>, note: String },
}

/// One of the points of a [`Chart::Scatter`].
#[derive(Clone, Debug)]
pub(super) struct ScatterPoint {
    pub(super) name: String,
    pub(super) x: Estimate,
    pub(super) y: Estimate,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum AxisScale {
    Linear,
    Logarithmic,
}

/// One of the series of a [`Chart::Series`].
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Name in the legend; empty for a lone series.
    pub(super) name: String,
    pub(super) style: SeriesStyle,
    pub(super) points: Vec<(f64, Estimate)>,
}

#[derive(Copy, Clone, Debug)]
pub(super) enum SeriesStyle {
    /// Columns of this width on the x axis.
    Columns {
        width: f64,
    },
    Line,
    /// The area between the intervals' bounds.
    Band,
    /// Dots with their intervals.
    Dots,
}

impl Figure {
    /// The weights of a neuron.
    #[must_use]
    pub fn neuron(network: &str, weights: &NeuronWeights) -> Figure {
        let NeuronWeights { neuron, influence, bias, panels, left_out } = weights;
        let left_out = match left_out {
            0 => String::new(),
            count => format!(" {count} panels with smaller weights are left out."),
        };
        Figure {
            name: format!("neuron-{neuron}"),
            title: format!("{network}: neuron {neuron}"),
            comparison: None,
            is_decisive: false,
            colors: SetColors::default(),
            chart: Chart::Weights {
                panels: panels.clone(),
                note: format!("Influence {influence:.0}, bias {bias:+.2}.{left_out}"),
            },
        }
    }

    /// All figures of a report for which there are data.
    #[must_use]
    pub fn all(summary: &Summary) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (index, method) in summary.methods.iter().enumerate() {
            let of_method = [
                (decisive_strength(method), true),
                (trade_off(method), true),
                (loss(method), false),
                (strength(method), false),
                (loss_and_strength(method), false),
                (data_curves(method), false),
                (learning_curves(method), false),
                (time(method), false),
                (neuron_activity(method), false),
            ];
            for (figure, is_decisive) in of_method {
                figures.extend(figure.map(|figure| Figure { comparison: Some(index), is_decisive, ..figure }));
            }
        }
        figures.extend([Method::Eval, Method::Pqr].into_iter().filter_map(|method| pareto::figure(summary, method)));
        figures.extend(rows_per_move(summary));
        figures.extend(refreshes(summary));
        figures.extend(summary.search.as_ref().and_then(search::figure));
        figures.extend(summary.learning_loop.iter().flat_map(learning_loop::figures));
        let colors = SetColors::of(summary);
        figures.iter_mut().for_each(|figure| figure.colors = colors.clone());
        figures
    }

    /// The file name without extension.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Index into [`Summary::methods`] of the comparison that is shown; `None` if the figure is of several, or of the
    /// feature sets alone.
    #[must_use]
    pub fn comparison(&self) -> Option<usize> {
        self.comparison
    }
}

fn method_figure(kind: &str, title: &str, summary: &MethodSummary, chart: Chart) -> Figure {
    let method = method_name(summary.method);
    let mut name = format!("{kind}-{method}");
    let mut title = format!("{title} ({method})");
    if let Some(group) = &summary.group {
        let in_file_name = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        name += &format!("-{}", group.replace(", ", "-").chars().map(in_file_name).collect::<String>());
        title += &format!(", {group}");
    }
    Figure { name, title, comparison: None, is_decisive: false, colors: SetColors::default(), chart }
}

fn loss(summary: &MethodSummary) -> Option<Figure> {
    let dots: Vec<_> = summary.rows.iter().filter_map(|row| Some((row.name.clone(), row.validation_loss?))).collect();
    let is_empty = dots.is_empty();
    let axis = "validation loss (mean and 95% interval over seeds; lower is better)".into();
    (!is_empty).then(|| method_figure("loss", "Validation loss", summary, Chart::Dots { axis, dots }))
}

/// The kind of match that decides: at equal cost if any set played so.
fn decisive_kind(summary: &MethodSummary) -> Option<MatchKind> {
    let kinds = [MatchKind::EqualCost, MatchKind::EqualNodes].into_iter();
    let has_played = |kind: &MatchKind| summary.rows.iter().any(|row| elo(row, *kind).is_some());
    kinds.into_iter().find(has_played)
}

fn elo(row: &SummaryRow, kind: MatchKind) -> Option<Estimate> {
    row.strength.as_ref()?.elo(kind)
}

/// Elo by set at equal cost, or at equal nodes without such matches. The reference has exactly 0.
fn decisive_strength(summary: &MethodSummary) -> Option<Figure> {
    let reference = summary.match_reference.as_ref()?;
    let kind = decisive_kind(summary)?;
    let elo = |row: &SummaryRow| {
        if row.set == *reference { Some(exact(0.0)) } else { Some(summary.judged_elo(row, kind)?.estimate) }
    };
    let dots = summary.rows.iter().filter_map(|row| Some((row.name.clone(), elo(row)?))).collect();
    let axis =
        format!("Elo against {reference} at {} (intervals hold together with 95%; higher is better)", kind.name());
    let (file, title) = match kind {
        MatchKind::EqualCost => ("elo-equal-cost", "Playing strength at equal cost"),
        MatchKind::EqualNodes => ("elo-equal-nodes", "Playing strength at equal nodes"),
    };
    Some(method_figure(file, title, summary, Chart::Dots { axis, dots }))
}

/// Elo of every set, at equal nodes and at equal cost, if both were played.
fn strength(summary: &MethodSummary) -> Option<Figure> {
    let reference = summary.match_reference.as_ref()?;
    let of_kind = |kind: MatchKind| summary.rows.iter().any(|row| elo(row, kind).is_some());
    let mut dots = Vec::new();
    for row in &summary.rows {
        for kind in MatchKind::ALL {
            if let Some(elo) = elo(row, kind) {
                dots.push((format!("{}, {}", row.name, kind.name()), elo));
            }
        }
    }
    let axis = format!("Elo against {reference} (with 95% interval; higher is better)");
    let is_both = MatchKind::ALL.into_iter().all(of_kind);
    is_both.then(|| method_figure("elo", "Playing strength", summary, Chart::Dots { axis, dots }))
}

/// Elo by validation loss, at equal cost where that was played. The reference has exactly 0.
fn loss_and_strength(summary: &MethodSummary) -> Option<Figure> {
    let reference = summary.match_reference.as_ref()?;
    let kind = decisive_kind(summary)?;
    let elo = |row: &SummaryRow| if row.set == *reference { Some(exact(0.0)) } else { elo(row, kind) };
    let point = |row: &SummaryRow| {
        let x = exact(row.validation_loss?.mean);
        let y = elo(row)?;
        Some(ScatterPoint { name: row.name.clone(), x, y })
    };
    let points: Vec<ScatterPoint> = summary.rows.iter().filter_map(point).collect();
    let is_plot = points.len() > 1;
    let x_axis = "validation loss (mean over seeds; lower is better)".into();
    let y_axis = format!("Elo at {}", kind.name());
    let chart = Chart::Scatter { x_axis, x_scale: AxisScale::Linear, y_axis, points };
    is_plot.then(|| method_figure("loss-elo", "Loss and playing strength", summary, chart))
}

fn data_curves(summary: &MethodSummary) -> Option<Figure> {
    let scaling = summary.scaling.as_ref()?;
    let chart = Chart::DataCurves {
        x_axis: "training samples (logarithmic); the line: those that there are".into(),
        y_axis: "validation loss".into(),
        sets: scaling.sets.clone(),
        samples: scaling.samples,
    };
    Some(method_figure("data", "Loss with more data", summary, chart))
}

fn learning_curves(summary: &MethodSummary) -> Option<Figure> {
    let chart = Chart::LearningCurves { axis: "validation loss".into(), curves: summary.curves.clone() };
    (!summary.curves.is_empty()).then(|| method_figure("learning", "Learning curves", summary, chart))
}

/// Loss by evaluations per second or, if no speed was measured, by rows per move.
fn trade_off(summary: &MethodSummary) -> Option<Figure> {
    let points = |cost: fn(&SummaryRow) -> Option<Estimate>| -> Vec<ScatterPoint> {
        let point = |row: &SummaryRow| {
            let x = cost(row).filter(|cost| cost.mean > 0.0)?;
            let y = row.validation_loss?;
            Some(ScatterPoint { name: row.name.clone(), x, y })
        };
        summary.rows.iter().filter_map(point).collect()
    };
    let by_speed = points(|row| row.speed);
    let (x_axis, title, points) = if by_speed.is_empty() {
        (
            "rows added or subtracted per move and perspective, with a refresh cache (logarithmic)",
            "Loss by rows",
            points(|row| row.rows_cache.map(exact)),
        )
    } else {
        ("evaluations per second with the fastest strategy (logarithmic; right is faster)", "Loss by speed", by_speed)
    };
    let is_empty = points.is_empty();
    let y_axis = "validation loss (lower is better)".into();
    let chart = Chart::Scatter { x_axis: x_axis.into(), x_scale: AxisScale::Logarithmic, y_axis, points };
    (!is_empty).then(|| method_figure("tradeoff", title, summary, chart))
}

fn time(summary: &MethodSummary) -> Option<Figure> {
    // Records from before it was timed have it among the features.
    let knows_bookkeeping =
        summary.rows.iter().filter_map(|row| row.nanoseconds).all(|time| time.bookkeeping.is_some());
    let mut names = vec!["finding features", "adding rows", "forward pass"];
    if knows_bookkeeping {
        names.push("bookkeeping");
    }
    let group = |row: &SummaryRow| {
        let time = row.nanoseconds?;
        let mut parts = vec![exact(time.features), exact(time.rows), exact(time.forward)];
        if knows_bookkeeping {
            parts.extend(time.bookkeeping.map(exact));
        }
        Some((row.name.clone(), parts))
    };
    let chart = bars(
        "nanoseconds per evaluation with each set's fastest strategy",
        names,
        summary.rows.iter().filter_map(group).collect(),
    )?;
    Some(method_figure("time", "Time per evaluation", summary, chart))
}

fn neuron_activity(summary: &MethodSummary) -> Option<Figure> {
    let group = |row: &SummaryRow| {
        let [active, saturated] = ["l1_active", "l1_saturated"].map(|name| row.measured.get(name));
        Some((row.name.clone(), vec![active?.scaled(100.0), saturated?.scaled(100.0)]))
    };
    let chart = bars(
        "share of accumulator outputs, %",
        vec!["above zero", "at the upper bound"],
        summary.rows.iter().filter_map(group).collect(),
    )?;
    Some(method_figure("activity", "Neuron activity", summary, chart))
}

fn rows_per_move(summary: &Summary) -> Option<Figure> {
    let group = |row: &SummaryRow| {
        let rows = [row.rows_update?, row.rows_cache?, row.rows_refresh?];
        Some((row.name.clone(), rows.map(exact).to_vec()))
    };
    let chart = bars(
        "rows added or subtracted per move and perspective",
        vec!["updates", "updates with a refresh cache", "everything recomputed"],
        distinct_sets(summary).into_iter().filter_map(group).collect(),
    )?;
    Some(Figure {
        name: "rows".into(),
        title: "Accumulator rows per move".into(),
        comparison: None,
        is_decisive: false,
        colors: SetColors::default(),
        chart,
    })
}

fn refreshes(summary: &Summary) -> Option<Figure> {
    let group = |row: &SummaryRow| Some((row.name.clone(), vec![exact(row.refreshes? * 100.0)]));
    let chart = bars(
        "moves that refresh an accumulator, % (mean of both perspectives)",
        vec!["refreshes"],
        distinct_sets(summary).into_iter().filter_map(group).collect(),
    )?;
    Some(Figure {
        name: "refreshes".into(),
        title: "Refreshes".into(),
        comparison: None,
        is_decisive: false,
        colors: SetColors::default(),
        chart,
    })
}

/// A bar chart, unless there are no groups.
fn bars(axis: &str, bar_names: Vec<&'static str>, groups: Vec<(String, Vec<Estimate>)>) -> Option<Chart> {
    (!groups.is_empty()).then(|| Chart::Bars { axis: axis.into(), bar_names, groups })
}

/// One row per feature set, from the first method that has the set.
fn distinct_sets(summary: &Summary) -> Vec<&SummaryRow> {
    let mut distinct: Vec<&SummaryRow> = Vec::new();
    for row in summary.methods.iter().flat_map(|method| &method.rows) {
        if !distinct.iter().any(|other| other.name == row.name) {
            distinct.push(row);
        }
    }
    distinct
}

/// A value without an interval.
pub(super) fn exact(mean: f64) -> Estimate {
    Estimate { mean, interval: None, count: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::test_records;

    #[test]
    fn a_set_has_one_colour_with_and_without_settings() {
        let colors = SetColors(vec!["h".into(), "h-v".into(), "piece, l1 128".into()]);
        assert_eq!(colors.index_of("h-v"), Some(1));
        assert_eq!(colors.index_of("h-v, l1 320"), Some(1));
        assert_eq!(colors.index_of("h, equal nodes"), Some(0));
        assert_eq!(colors.index_of("piece, l1 128"), Some(2));
        assert_eq!(colors.index_of("h-v-d"), None, "another set");
    }

    /// The second method's plots lack the first one's sets; the others keep their colours.
    #[test]
    fn figures_share_colours_and_show_values_under_the_pointer() {
        let results = test_records::results();
        let summary = Summary::of(&results);
        let figures = Figure::all(&summary);
        let named = |name: &str| figures.iter().find(|figure| figure.name() == name).expect("a figure");
        let sets: Vec<&str> = summary.methods[0].rows.iter().map(|row| row.name.as_str()).collect();
        let places = |figure: &Figure| sets.iter().map(|set| figure.colors.index_of(set)).collect::<Vec<_>>();
        assert_eq!(places(named("loss-eval")), places(named("loss-pqr")));
        assert_eq!(places(named("loss-eval")), (0..sets.len()).map(Some).collect::<Vec<_>>());
        for figure in ["loss-eval", "learning-eval"] {
            let svg = named(figure).inline_svg().expect("drawn");
            assert!(svg.contains(&format!("<title>{}", sets[0])) && svg.ends_with("</svg>\n"), "{figure}: {svg}");
        }
    }
}
