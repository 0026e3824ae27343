//! Series over two numeric axes and the heat map of a board.

use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{Cartesian2d, Circle, DrawingBackend, PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use super::bars::padded;
use super::canvas::{Canvas, Drawn, INK, TEXT_SIZE, TITLE_HEIGHT, WIDTH, color};
use crate::report::figures::{Series, SeriesStyle};
use crate::report::numbers;
use crate::statistics::Estimate;

pub(super) const SERIES_HEIGHT: u32 = 460;
const X_LABELS: i32 = 52;
const SERIES_Y_LABELS: i32 = 72;
const LEGEND: i32 = 28;
/// Height of a label with its line spacing.
pub(super) const LABEL_HEIGHT: i32 = 19;

/// Draws series on top of each other. The y axis begins at zero, unless a value is below.
pub(super) fn draw_series<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    x_axis: &str,
    y_axis: &str,
    series: &[Series],
) -> Drawn<DB> {
    let points = || series.iter().flat_map(|one| &one.points);
    let column_widths =
        series.iter().map(|one| if let SeriesStyle::Columns { width } = one.style { width } else { 0.0 });
    let half = column_widths.fold(0.0, f64::max) / 2.0;
    let (left, right) = padded(points().map(|(x, _)| (x - half, x + half)));
    let (lowest, top) = padded(points().map(|(_, y)| y.bounds()).chain([(0.0, 0.0)]));
    let bottom = if points().any(|(_, y)| y.mean < 0.0) { lowest } else { 0.0 };
    let has_legend = series.iter().any(|one| !one.name.is_empty());
    let mut chart = ChartBuilder::on(&canvas.area)
        .margin_top(canvas.px(TITLE_HEIGHT + if has_legend { LEGEND } else { 0 }))
        .margin_right(canvas.px(28))
        .margin_left(canvas.px(8))
        .x_label_area_size(canvas.px(X_LABELS))
        .y_label_area_size(canvas.px(SERIES_Y_LABELS))
        .build_cartesian_2d(left..right, bottom..top)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(10)
        .x_label_formatter(&tick_label)
        .y_labels(8)
        .y_label_formatter(&tick_label)
        .x_desc(x_axis)
        .y_desc(y_axis);
    canvas.style_mesh(&mut mesh).draw()?;
    for (index, one) in series.iter().enumerate() {
        draw_one_series(canvas, &mut chart, one, canvas.color_of(&one.name, index), bottom..top)?;
    }
    if has_legend {
        let names: Vec<_> = series
            .iter()
            .enumerate()
            .map(|(index, one)| (one.name.as_str(), canvas.color_of(&one.name, index)))
            .collect();
        canvas.legend(&names, canvas.px(14), canvas.px(TITLE_HEIGHT + LEGEND / 2))?;
    }
    Ok(())
}

/// Draws one series in its style; intervals end where the axis does.
fn draw_one_series<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    chart: &mut ChartContext<'_, DB, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
    one: &Series,
    color: RGBColor,
    axis: Range<f64>,
) -> Drawn<DB> {
    let line = || one.points.iter().map(|(x, y)| (*x, y.mean)).collect::<Vec<_>>();
    match one.style {
        SeriesStyle::Columns { width } => {
            let column = |(x, y): &(f64, Estimate)| {
                Rectangle::new([(x - width * 0.45, 0.0), (x + width * 0.45, y.mean)], color.filled())
            };
            chart.draw_series(one.points.iter().map(column))?;
        }
        SeriesStyle::Line => {
            chart.draw_series([PathElement::new(line(), canvas.stroke(color, 2.0))])?;
        }
        SeriesStyle::Band => {
            let lower = one.points.iter().map(|(x, y)| (*x, y.bounds().0));
            let upper = one.points.iter().rev().map(|(x, y)| (*x, y.bounds().1));
            chart.draw_series([Polygon::new(lower.chain(upper).collect::<Vec<_>>(), color.mix(0.3))])?;
        }
        SeriesStyle::Dots => {
            let whisker = |(x, y): &(f64, Estimate)| {
                let (low, high) = y.bounds();
                PathElement::new(vec![(*x, low.max(axis.start)), (*x, high.min(axis.end))], canvas.stroke(color, 1.0))
            };
            chart.draw_series(one.points.iter().map(whisker))?;
            chart.draw_series(line().into_iter().map(|at| Circle::new(at, canvas.px(3), color.filled())))?;
        }
    }
    // A line or band repeats the data of dots or columns.
    let decimals = numbers::decimals(&one.points.iter().map(|(_, y)| *y).collect::<Vec<_>>());
    for (x, y) in &one.points {
        let name = if one.name.is_empty() { String::new() } else { format!("{}, ", one.name) };
        let text = format!("{name}{}: {}", tick_label(x), numbers::estimate(*y, decimals, false));
        match one.style {
            SeriesStyle::Columns { width } => {
                let [low, high] = [(x - width / 2.0, 0.0), (x + width / 2.0, y.mean)];
                canvas.point_out_between(chart.backend_coord(&low), chart.backend_coord(&high), text);
            }
            SeriesStyle::Dots => canvas.point_out(chart.backend_coord(&(*x, y.mean)), 8, text),
            SeriesStyle::Line | SeriesStyle::Band => {}
        }
    }
    Ok(())
}

/// A tick's number without trailing zeros.
pub(super) fn tick_label(tick: &f64) -> String {
    ((tick * 1e6).round() / 1e6).to_string()
}

const SQUARE: i32 = 72;
pub(super) const BOARD_HEIGHT: u32 = (TITLE_HEIGHT + 8 * SQUARE + 64) as u32;

/// Draws a board with each square's share in percent; larger shares are darker. a1 is at the lower left.
pub(super) fn draw_board<DB: DrawingBackend>(canvas: &Canvas<'_, DB>, axis: &str, shares: &[f64]) -> Drawn<DB> {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let left = (WIDTH as i32 - 8 * SQUARE) / 2;
    let top = TITLE_HEIGHT;
    let at = |file: i32, rank: i32| (canvas.px(left + file * SQUARE), canvas.px(top + (7 - rank) * SQUARE));
    for (square, share) in (0..).zip(shares) {
        let file = square % 8;
        let rank = square / 8;
        let (x, y) = at(file, rank);
        let (right, above) = at(file + 1, rank - 1);
        // The square root distinguishes small shares from zero.
        let depth = if largest > 0.0 { (share / largest).sqrt() } else { 0.0 };
        canvas.area.draw(&Rectangle::new([(x, y), (right, above)], color(0).mix(depth * 0.9).filled()))?;
        canvas.area.draw(&Rectangle::new([(x, y), (right, above)], canvas.stroke(INK.mix(0.3), 1.0)))?;
        let text = if *share >= 0.005 || *share == 0.0 { format!("{share:.2}") } else { "<0.01".to_owned() };
        let ink = if depth > 0.6 { RGBColor(255, 255, 255) } else { INK };
        let middle = (i32::midpoint(x, right) - canvas.width_of(&text, TEXT_SIZE - 2) / 2, i32::midpoint(y, above));
        canvas.colored_label(&text, middle, TEXT_SIZE - 2, ink)?;
    }
    for index in 0..8 {
        let (x, y) = at(index, -1);
        let file = char::from(b'a' + index as u8).to_string();
        canvas.label(&file, (x + canvas.px(SQUARE / 2 - 4), y + canvas.px(12)), TEXT_SIZE - 1, HPos::Left)?;
        let (x, y) = at(0, index);
        let rank = (index + 1).to_string();
        canvas.label(&rank, (x - canvas.px(8), y + canvas.px(SQUARE / 2)), TEXT_SIZE - 1, HPos::Right)?;
    }
    let below = canvas.px(top + 8 * SQUARE + 42);
    canvas.label(axis, (canvas.px(left), below), TEXT_SIZE, HPos::Left)
}
