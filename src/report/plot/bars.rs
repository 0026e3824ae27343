//! Plots with one row per feature set: dots with intervals, and horizontal bars.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{Cartesian2d, Circle, DrawingBackend, PathElement, Rectangle};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::canvas::{Canvas, DrawError, Drawn, INK, TEXT_SIZE, TITLE_HEIGHT, color, faint};
use super::xy::tick_label;
use crate::report::numbers;
use crate::statistics::Estimate;

const DOT_ROW: u32 = 34;
const BAR: u32 = 13;
const GROUP_GAP: u32 = 14;
/// Height of axis labels and axis title.
const X_LABELS: u32 = 52;
const LEGEND: u32 = 28;
const TOP_MARGIN: u32 = TITLE_HEIGHT as u32;

pub(super) fn dots_height(dots: usize) -> u32 {
    TOP_MARGIN + dots as u32 * DOT_ROW + X_LABELS
}

pub(super) fn bars_height(groups: usize, bars: usize) -> u32 {
    let legend = if bars > 1 { LEGEND } else { 0 };
    TOP_MARGIN + legend + groups as u32 * (bars as u32 * BAR + GROUP_GAP) + X_LABELS
}

type BarChart<'a, DB> = ChartContext<'a, DB, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A chart with a numeric x axis and one row of height 1 per name. The first row is on top.
fn chart<'a, DB: DrawingBackend>(
    canvas: &'a Canvas<'_, DB>,
    axis: &str,
    names: &[&str],
    range: (f64, f64),
    top: u32,
) -> Result<BarChart<'a, DB>, DrawError<DB>> {
    let widest = names.iter().map(|name| canvas.width_of(name, TEXT_SIZE)).max().unwrap_or_default();
    let rows = names.len() as f64;
    let mut chart = ChartBuilder::on(&canvas.area)
        .margin_top(canvas.px(top as i32))
        .margin_right(canvas.px(34))
        .margin_left(canvas.px(12))
        .x_label_area_size(canvas.px(X_LABELS as i32 - 6))
        .y_label_area_size(widest + canvas.px(14))
        .build_cartesian_2d(range.0..range.1, 0.0..rows)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh().disable_y_axis().y_labels(0).x_labels(8).x_label_formatter(&tick_label).x_desc(axis);
    canvas.style_mesh(&mut mesh).draw()?;
    for (index, name) in names.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(range.0, rows - index as f64 - 0.5));
        canvas.label(name, (x - canvas.px(10), y), TEXT_SIZE, HPos::Right)?;
    }
    Ok(chart)
}

/// Draws one dot with its interval per set.
pub(super) fn draw_dots<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    axis: &str,
    dots: &[(String, Estimate)],
) -> Drawn<DB> {
    let names: Vec<&str> = dots.iter().map(|(name, _)| name.as_str()).collect();
    let range = padded(dots.iter().map(|(_, estimate)| estimate.bounds()));
    let mut chart = chart(canvas, axis, &names, range, TOP_MARGIN)?;
    let decimals = numbers::decimals(&dots.iter().map(|(_, estimate)| *estimate).collect::<Vec<_>>());
    if range.0 < 0.0 && range.1 > 0.0 {
        let zero = vec![(0.0, 0.0), (0.0, dots.len() as f64)];
        chart.draw_series([PathElement::new(zero, canvas.stroke(INK.mix(0.5), 1.0))])?;
    }
    for (index, (name, estimate)) in dots.iter().enumerate() {
        let color = canvas.color_of(name, index);
        let y = dots.len() as f64 - index as f64 - 0.5;
        let guide = vec![(range.0, y), (range.1, y)];
        chart.draw_series([PathElement::new(guide, canvas.stroke(faint(), 1.0))])?;
        let (low, high) = estimate.bounds();
        whisker(canvas, &mut chart, (low, high), y, 0.16, color)?;
        chart.draw_series([Circle::new((estimate.mean, y), canvas.px(6), color.filled())])?;
        let text = format!("{name}: {}", numbers::estimate(*estimate, decimals, false));
        canvas.point_out(chart.backend_coord(&(estimate.mean, y)), 11, text);
    }
    Ok(())
}

/// Draws one group of bars per set, each bar with its interval or its number.
pub(super) fn draw_bars<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    axis: &str,
    bar_names: &[&'static str],
    groups: &[(String, Vec<Estimate>)],
) -> Drawn<DB> {
    let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let mut all: Vec<Estimate> = Vec::new();
    for (_, bars) in groups {
        all.extend_from_slice(bars);
    }
    let largest = all.iter().map(|bar| bar.bounds().1).fold(0.0, f64::max);
    let range = (0.0, if largest > 0.0 { largest * 1.08 } else { 1.0 });
    let has_legend = bar_names.len() > 1;
    let top = if has_legend { TOP_MARGIN + LEGEND } else { TOP_MARGIN };
    let mut chart = chart(canvas, axis, &names, range, top)?;
    if has_legend {
        let names: Vec<_> = bar_names.iter().enumerate().map(|(index, name)| (*name, color(index))).collect();
        canvas.legend(&names, canvas.px(14), canvas.px((TOP_MARGIN + LEGEND / 2) as i32))?;
    }
    let group = f64::from(bar_names.len() as u32 * BAR + GROUP_GAP);
    let bar = f64::from(BAR) / group;
    let gap = f64::from(GROUP_GAP) / group / 2.0;
    let decimals = numbers::decimals(&all);
    for (index, (name, estimates)) in groups.iter().enumerate() {
        for (bar_index, estimate) in estimates.iter().enumerate() {
            let top = groups.len() as f64 - index as f64 - gap - bar_index as f64 * bar;
            let corners = [(0.0, top), (estimate.mean, top - bar * 0.9)];
            chart.draw_series([Rectangle::new(corners, color(bar_index).filled())])?;
            let text = format!("{name}, {}: {}", bar_names[bar_index], numbers::estimate(*estimate, decimals, false));
            canvas.point_out_between(chart.backend_coord(&corners[0]), chart.backend_coord(&corners[1]), text);
            if estimate.interval.is_some() {
                whisker(canvas, &mut chart, estimate.bounds(), top - bar * 0.45, bar * 0.28, INK)?;
            } else {
                let (x, y) = chart.backend_coord(&(estimate.mean, top - bar * 0.45));
                let text = numbers::number(estimate.mean, 1, false);
                canvas.label(&text, (x + canvas.px(4), y), TEXT_SIZE - 3, HPos::Left)?;
            }
        }
    }
    Ok(())
}

/// Draws a horizontal interval with caps at its ends.
fn whisker<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    chart: &mut BarChart<'_, DB>,
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

/// The range of all bounds with some padding; never empty.
pub(super) fn padded(bounds: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (low, high) = bounds.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (a, b)| (low.min(a), high.max(b)));
    if !(low.is_finite() && high.is_finite()) {
        return (0.0, 1.0);
    }
    let padding = ((high - low) * 0.06).max(high.abs() * 1e-3).max(1e-9);
    (low - padding, high + padding)
}
