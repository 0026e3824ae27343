//! The Pareto front: the networks that no other network beats in both loss and speed.

use super::figures::{Chart, Figure, Series, SeriesStyle, SetColors};
use super::summary::{MethodSummary, Summary, SummaryRow};
use super::tables::method_name;
use crate::record::Method;
use crate::statistics::Estimate;
use crate::units::sort_by;

/// A network's speed and loss.
#[derive(Copy, Clone)]
struct Point {
    /// Evaluations per second.
    speed: f64,
    loss: Estimate,
}

fn point(row: &SummaryRow) -> Option<Point> {
    Some(Point { speed: row.speed?.mean, loss: row.validation_loss? })
}

/// Whether a network is at least as good in both and better in one.
fn dominates(point: Point, other: Point) -> bool {
    let loss = point.loss.mean;
    let others = other.loss.mean;
    point.speed >= other.speed && loss <= others && (point.speed > other.speed || loss < others)
}

/// Marks the rows on their method's front, over all swept settings.
pub(super) fn mark_fronts(methods: &mut [MethodSummary]) {
    for method in [Method::Eval, Method::Pqr] {
        let mut points: Vec<Point> = Vec::new();
        for summary in methods.iter().filter(|summary| summary.method == method) {
            points.extend(summary.rows.iter().filter_map(point));
        }
        if points.len() < 2 {
            continue;
        }
        for summary in methods.iter_mut().filter(|summary| summary.method == method) {
            for row in &mut summary.rows {
                row.on_front = point(row).map(|own| !points.iter().any(|other| dominates(*other, own)));
            }
        }
    }
}

/// Loss by speed over all swept settings of a method, with a series per set and the front as a line; `None` without a
/// sweep.
pub(super) fn figure(summary: &Summary, method: Method) -> Option<Figure> {
    let groups: Vec<&MethodSummary> = summary.methods.iter().filter(|summary| summary.method == method).collect();
    let mut rows: Vec<&SummaryRow> = Vec::new();
    for summary in &groups {
        rows.extend(&summary.rows);
    }
    if groups.len() < 2 || rows.iter().all(|row| row.on_front.is_none()) {
        return None;
    }
    let mut series: Vec<Series> = Vec::new();
    for row in &rows {
        let Some(Point { speed, loss }) = point(row) else { continue };
        match series.iter_mut().find(|series| series.name == row.name) {
            Some(of_set) => of_set.points.push((speed, loss)),
            None => {
                let points = vec![(speed, loss)];
                series.push(Series { name: row.name.clone(), style: SeriesStyle::Dots, points });
            }
        }
    }
    let on_front = rows.iter().filter(|row| row.on_front == Some(true)).filter_map(|row| point(row));
    let mut front: Vec<(f64, Estimate)> = on_front.map(|point| (point.speed, point.loss)).collect();
    sort_by(&mut front, &|a, b| a.0.total_cmp(&b.0));
    series.push(Series { name: "Pareto front".into(), style: SeriesStyle::Line, points: front });
    let x_axis = "evaluations per second".into();
    let y_axis = "validation loss (with 95% interval over seeds)".into();
    Some(Figure {
        name: format!("front-{}", method_name(method)),
        title: format!("Loss by speed over the sweep ({})", method_name(method)),
        comparison: None,
        is_decisive: false,
        colors: SetColors::default(),
        chart: Chart::Series { x_axis, y_axis, series },
    })
}
