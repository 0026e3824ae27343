//! Plots with a line a feature set: dots with intervals, and bars.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{Cartesian2d, Circle, DrawingBackend, PathElement, Rectangle};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::canvas::{Canvas, Drawn, INK, TEXT_SIZE, TITLE_HEIGHT, color, faint};
use crate::statistics::Estimate;

const DOT_LINE: u32 = 34;
const BAR: u32 = 13;
const GROUP_GAP: u32 = 14;
/// Axis labels and title below the plot.
const BELOW: u32 = 52;
const LEGEND: u32 = 28;
const TOP_MARGIN: u32 = TITLE_HEIGHT as u32;

pub(super) fn dots_height(rows: usize) -> u32 {
    TOP_MARGIN + rows as u32 * DOT_LINE + BELOW
}

pub(super) fn bars_height(groups: usize, series: usize) -> u32 {
    let legend = if series > 1 { LEGEND } else { 0 };
    TOP_MARGIN + legend + groups as u32 * (series as u32 * BAR + GROUP_GAP) + BELOW
}

type Chart<'a, DB> = ChartContext<'a, DB, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A numeric axis below and one line a name; line 0 is on top, its middle at y = names − 0.5.
fn chart<'a, DB: DrawingBackend>(
    canvas: &'a Canvas<DB>,
    axis: &str,
    names: &[&str],
    range: (f64, f64),
    top: u32,
) -> Result<Chart<'a, DB>, plotters::prelude::DrawingAreaErrorKind<DB::ErrorType>> {
    let widest = names.iter().map(|name| canvas.width_of(name, TEXT_SIZE)).max().unwrap_or_default();
    let lines = names.len() as f64;
    let mut chart = ChartBuilder::on(&canvas.area)
        .margin_top(canvas.px(top as i32))
        .margin_right(canvas.px(34))
        .margin_left(canvas.px(12))
        .x_label_area_size(canvas.px(BELOW as i32 - 6))
        .y_label_area_size(widest + canvas.px(14))
        .build_cartesian_2d(range.0..range.1, 0.0..lines)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh().disable_y_axis().y_labels(0).x_labels(8).x_desc(axis);
    canvas.dress(&mut mesh).draw()?;
    for (index, name) in names.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(range.0, lines - index as f64 - 0.5));
        canvas.label(name, (x - canvas.px(10), y), TEXT_SIZE, HPos::Right)?;
    }
    Ok(chart)
}

/// A dot a set with its interval.
pub(super) fn dots<DB: DrawingBackend>(canvas: &Canvas<DB>, axis: &str, rows: &[(String, Estimate)]) -> Drawn<DB> {
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    let range = padded(rows.iter().map(|(_, estimate)| estimate.bounds()));
    let mut chart = chart(canvas, axis, &names, range, TOP_MARGIN)?;
    for (index, (_, estimate)) in rows.iter().enumerate() {
        let y = rows.len() as f64 - index as f64 - 0.5;
        let guide = vec![(range.0, y), (range.1, y)];
        chart.draw_series([PathElement::new(guide, canvas.stroke(faint(), 1.0))])?;
        let (low, high) = estimate.bounds();
        whisker(canvas, &mut chart, (low, high), y, 0.16, color(index))?;
        chart.draw_series([Circle::new((estimate.mean, y), canvas.px(6), color(index).filled())])?;
    }
    Ok(())
}

/// A group of bars a set, with intervals where there are some.
pub(super) fn bars<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    axis: &str,
    series: &[&'static str],
    groups: &[(String, Vec<Estimate>)],
) -> Drawn<DB> {
    let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let largest = groups.iter().flat_map(|(_, bars)| bars.iter().map(|bar| bar.bounds().1)).fold(0.0, f64::max);
    let range = (0.0, if largest > 0.0 { largest * 1.08 } else { 1.0 });
    let legend = series.len() > 1;
    let top = if legend { TOP_MARGIN + LEGEND } else { TOP_MARGIN };
    let mut chart = chart(canvas, axis, &names, range, top)?;
    if legend {
        canvas.legend(series, canvas.px(14), canvas.px((TOP_MARGIN + LEGEND / 2) as i32))?;
    }
    let group = f64::from(series.len() as u32 * BAR + GROUP_GAP);
    let (bar, gap) = (f64::from(BAR) / group, f64::from(GROUP_GAP) / group / 2.0);
    for (index, (_, estimates)) in groups.iter().enumerate() {
        for (place, estimate) in estimates.iter().enumerate() {
            let top = groups.len() as f64 - index as f64 - gap - place as f64 * bar;
            let corners = [(0.0, top), (estimate.mean, top - bar * 0.9)];
            chart.draw_series([Rectangle::new(corners, color(place).filled())])?;
            if estimate.interval.is_some() {
                whisker(canvas, &mut chart, estimate.bounds(), top - bar * 0.45, bar * 0.28, INK)?;
            } else {
                let (x, y) = chart.backend_coord(&(estimate.mean, top - bar * 0.45));
                let text = crate::report::numbers::number(estimate.mean, 1, false);
                canvas.label(&text, (x + canvas.px(4), y), TEXT_SIZE - 3, HPos::Left)?;
            }
        }
    }
    Ok(())
}

/// A horizontal interval with caps at its ends.
fn whisker<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    chart: &mut Chart<'_, DB>,
    (low, high): (f64, f64),
    y: f64,
    cap: f64,
    color: plotters::style::RGBColor,
) -> Drawn<DB> {
    let style = canvas.stroke(color, 2.0);
    let lines =
        [vec![(low, y), (high, y)], vec![(low, y - cap), (low, y + cap)], vec![(high, y - cap), (high, y + cap)]];
    chart.draw_series(lines.into_iter().map(|line| PathElement::new(line, style)))?;
    Ok(())
}

/// The range of all bounds with a little room; never empty.
pub(super) fn padded(bounds: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (low, high) = bounds.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (a, b)| (low.min(a), high.max(b)));
    if !(low.is_finite() && high.is_finite()) {
        return (0.0, 1.0);
    }
    let room = ((high - low) * 0.06).max(high.abs() * 1e-3).max(1e-9);
    (low - room, high + room)
}
