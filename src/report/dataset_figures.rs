//! A data set's statistics as tables and plots.

use super::figures::{Content, Layer, Sketch, Style};
use super::plot::Figure;
use crate::record::{DatasetStats, Histogram};
use crate::statistics::Estimate;

/// The plots there are figures for.
#[must_use]
pub fn dataset_figures(stats: &DatasetStats) -> Vec<Figure> {
    let mut sketches = vec![
        columns("plies", "Plies", "ply", &stats.plies, 1.0),
        columns("pieces", "Pieces on the board", "pieces, kings included", &stats.pieces, 1.0),
        kings(stats),
        mobility(stats),
        legal_moves(stats),
    ];
    if !stats.scores.0.is_empty() {
        let axis = "score, centipawns, side to move's view (mates left out)";
        sketches.push(columns("scores", "Scores", axis, &stats.scores, 10.0));
    }
    if stats.results.count() > 0 {
        sketches.push(results(stats));
    }
    sketches.extend(wdl(stats));
    sketches.into_iter().map(Figure::from).collect()
}

fn sketch(name: &str, title: &str, content: Content) -> Sketch {
    Sketch { name: name.into(), title: title.into(), method: None, content }
}

fn columns(name: &str, title: &str, axis: &str, counts: &Histogram, width: f64) -> Sketch {
    let points = shares(counts);
    let layers = vec![Layer { name: String::new(), style: Style::Columns { width }, points }];
    let content = Content::Plane { x_axis: axis.into(), y_axis: "share of the samples, %".into(), layers };
    sketch(name, title, content)
}

/// Values and their shares in percent.
fn shares(counts: &Histogram) -> Vec<(f64, Estimate)> {
    let all = counts.count().max(1) as f64;
    counts.0.iter().map(|(value, count)| (f64::from(*value), exact(100.0 * *count as f64 / all))).collect()
}

fn exact(mean: f64) -> Estimate {
    Estimate { mean, interval: None, count: 1 }
}

fn results(stats: &DatasetStats) -> Sketch {
    let all = stats.results.count() as f64;
    let group = |name: &str, count: u64| (name.to_owned(), vec![exact(100.0 * count as f64 / all)]);
    let results = stats.results;
    let groups = vec![group("win", results.wins), group("draw", results.draws), group("loss", results.losses)];
    let axis = "share of the samples with a result, %, side to move's view".into();
    sketch("results", "Results", Content::Bars { axis, series: vec!["results"], groups })
}

fn kings(stats: &DatasetStats) -> Sketch {
    let all: u64 = stats.king_squares.iter().sum();
    let shares = stats.king_squares.iter().map(|count| 100.0 * *count as f64 / all.max(1) as f64).collect();
    let content = Content::Squares { axis: "share of kings, %, each seen from its own side".into(), shares };
    sketch("kings", "King squares", content)
}

fn mobility(stats: &DatasetStats) -> Sketch {
    let layer = |mobility: &crate::record::RoleMobility| Layer {
        name: mobility.role.clone(),
        style: Style::Line,
        points: shares(&mobility.moves),
    };
    let layers = stats.mobility.iter().map(layer).collect();
    let (x_axis, y_axis) = ("moves a piece".into(), "share of the role's pieces, %".into());
    sketch("mobility", "Mobility", Content::Plane { x_axis, y_axis, layers })
}

fn legal_moves(stats: &DatasetStats) -> Sketch {
    let band = |name: &str, low: usize, high: usize| Layer {
        name: name.into(),
        style: Style::Band,
        points: stats.legal_moves.iter().map(|at| (f64::from(at.ply), between(at.quantiles, low, high))).collect(),
    };
    let median = stats.legal_moves.iter().map(|at| (f64::from(at.ply), exact(f64::from(at.quantiles[2])))).collect();
    let layers = vec![
        band("5% to 95%", 0, 4),
        band("25% to 75%", 1, 3),
        Layer { name: "median".into(), style: Style::Line, points: median },
    ];
    let content = Content::Plane { x_axis: "ply".into(), y_axis: "legal moves".into(), layers };
    sketch("legal-moves", "Legal moves by ply", content)
}

fn between(quantiles: [i32; 5], low: usize, high: usize) -> Estimate {
    let (low, high) = (f64::from(quantiles[low]), f64::from(quantiles[high]));
    Estimate { mean: f64::midpoint(low, high), interval: Some((high - low) / 2.0), count: 1 }
}

fn wdl(stats: &DatasetStats) -> Option<Sketch> {
    let fitted = stats.wdl.as_ref()?;
    let found = fitted.bins.iter().map(|bin| {
        let interval = Some(bin.plus_minus);
        (f64::from(bin.score), Estimate { mean: bin.mean, interval, count: bin.samples as usize })
    });
    let curve = (-200..=200).map(|step| f64::from(step) * 10.0).map(|score| {
        let expected = 1.0 / (1.0 + (-(score - fitted.a) / fitted.b).exp());
        (score, exact(expected))
    });
    let shown = |point: &(f64, Estimate)| point.0.abs() <= 2000.0;
    let layers = vec![
        Layer {
            name: "mean result and 95% interval".into(),
            style: Style::Dots,
            points: found.filter(shown).collect(),
        },
        Layer {
            name: format!(
                "logistic, a = {:.1} ± {:.1}, b = {:.1} ± {:.1}",
                fitted.a, fitted.a_plus_minus, fitted.b, fitted.b_plus_minus
            ),
            style: Style::Line,
            points: curve.collect(),
        },
    ];
    let x_axis = "score, centipawns, side to move's view".into();
    let content = Content::Plane { x_axis, y_axis: "expected result".into(), layers };
    Some(sketch("wdl", "Results against scores", content))
}
