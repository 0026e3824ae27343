//! The figures of `dataset stats`.

use super::figures::{Chart, Figure, Series, SeriesStyle, SetColors, exact};
use crate::record::{DatasetStats, Histogram};
use crate::statistics::Estimate;

/// All figures of a data set's statistics for which there are data.
#[must_use]
pub fn dataset_figures(stats: &DatasetStats) -> Vec<Figure> {
    let mut figures = vec![
        columns("plies", "Plies", "ply", &stats.plies, 1.0),
        columns("pieces", "Pieces on the board", "pieces, kings included", &stats.pieces, 1.0),
        king_squares(stats),
        mobility(stats),
        legal_moves(stats),
    ];
    if !stats.scores.0.is_empty() {
        let axis = "score in centipawns, side to move's view (without mate scores)";
        figures.push(columns("scores", "Scores", axis, &stats.scores, 10.0));
    }
    if stats.results.count() > 0 {
        figures.push(results(stats));
    }
    figures.extend(results_by_score(stats));
    figures
}

fn figure(name: &str, title: &str, chart: Chart) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        comparison: None,
        is_decisive: false,
        colors: SetColors::default(),
        chart,
    }
}

fn columns(name: &str, title: &str, axis: &str, counts: &Histogram, width: f64) -> Figure {
    let series = Series { name: String::new(), style: SeriesStyle::Columns { width }, points: percentages(counts) };
    let y_axis = "share of the samples, %".into();
    figure(name, title, Chart::Series { x_axis: axis.into(), y_axis, series: vec![series] })
}

/// Each value with its share in percent.
fn percentages(counts: &Histogram) -> Vec<(f64, Estimate)> {
    let total = counts.count().max(1) as f64;
    counts.0.iter().map(|(value, count)| (f64::from(*value), exact(100.0 * *count as f64 / total))).collect()
}

fn results(stats: &DatasetStats) -> Figure {
    let results = stats.results;
    let total = results.count() as f64;
    let group = |name: &str, count: u64| (name.to_owned(), vec![exact(100.0 * count as f64 / total)]);
    let groups = vec![group("win", results.wins), group("draw", results.draws), group("loss", results.losses)];
    let axis = "share of the samples with a result, %, side to move's view".into();
    figure("results", "Results", Chart::Bars { axis, bar_names: vec!["results"], groups })
}

fn king_squares(stats: &DatasetStats) -> Figure {
    let total: u64 = stats.king_squares.iter().sum();
    let shares = stats.king_squares.iter().map(|count| 100.0 * *count as f64 / total.max(1) as f64).collect();
    let axis = "share of kings, %, each seen from its own side".into();
    figure("kings", "King squares", Chart::BoardHeatMap { axis, shares })
}

fn mobility(stats: &DatasetStats) -> Figure {
    let series = |mobility: &crate::record::RoleMobility| Series {
        name: mobility.role.clone(),
        style: SeriesStyle::Line,
        points: percentages(&mobility.moves),
    };
    let series = stats.mobility.iter().map(series).collect();
    let x_axis = "moves per piece".into();
    let y_axis = "share of the role's pieces, %".into();
    figure("mobility", "Mobility", Chart::Series { x_axis, y_axis, series })
}

fn legal_moves(stats: &DatasetStats) -> Figure {
    let band = |name: &str, low: usize, high: usize| Series {
        name: name.into(),
        style: SeriesStyle::Band,
        points: stats
            .legal_moves
            .iter()
            .map(|at| (f64::from(at.ply), range(at.quantiles[low], at.quantiles[high])))
            .collect(),
    };
    let median = stats.legal_moves.iter().map(|at| (f64::from(at.ply), exact(f64::from(at.quantiles[2])))).collect();
    let series = vec![
        band("5% to 95%", 0, 4),
        band("25% to 75%", 1, 3),
        Series { name: "median".into(), style: SeriesStyle::Line, points: median },
    ];
    let chart = Chart::Series { x_axis: "ply".into(), y_axis: "legal moves".into(), series };
    figure("legal-moves", "Legal moves by ply", chart)
}

/// An estimate whose bounds are `low` and `high`.
fn range(low: i32, high: i32) -> Estimate {
    let low = f64::from(low);
    let high = f64::from(high);
    Estimate { mean: f64::midpoint(low, high), interval: Some((high - low) / 2.0), count: 1 }
}

/// Mean result by score, with the logistic curve fitted to it.
fn results_by_score(stats: &DatasetStats) -> Option<Figure> {
    const LARGEST_SCORE: f64 = 2000.0;
    let fit = stats.wdl.as_ref()?;
    let bins = fit.bins.iter().filter(|bin| f64::from(bin.score).abs() <= LARGEST_SCORE).map(|bin| {
        let interval = Some(bin.plus_minus);
        (f64::from(bin.score), Estimate { mean: bin.mean, interval, count: bin.samples as usize })
    });
    let curve = (-200..=200).map(|step| f64::from(step) * 10.0).map(|score| {
        let expected = 1.0 / (1.0 + (-(score - fit.a) / fit.b).exp());
        (score, exact(expected))
    });
    let curve_name =
        format!("logistic, a = {:.1} ± {:.1}, b = {:.1} ± {:.1}", fit.a, fit.a_plus_minus, fit.b, fit.b_plus_minus);
    let series = vec![
        Series { name: "mean result and 95% interval".into(), style: SeriesStyle::Dots, points: bins.collect() },
        Series { name: curve_name, style: SeriesStyle::Line, points: curve.collect() },
    ];
    let x_axis = "score in centipawns, side to move's view".into();
    let chart = Chart::Series { x_axis, y_axis: "expected result".into(), series };
    Some(figure("wdl", "Results by score", chart))
}
