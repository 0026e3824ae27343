//! Small boards of weights.

use plotters::prelude::{DrawingBackend, Rectangle};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBAColor};

use super::canvas::{Canvas, Drawn, INK, TITLE_HEIGHT, WIDTH, color};
use crate::record::WeightPanel;

/// Width of a panel with its margin.
const PANEL: i32 = 140;
const BOARD: i32 = 120;
const TEXT: i32 = 11;
/// Height of a panel's title.
const HEADING: i32 = 20;
const NOTE: i32 = 30;
const LEFT: i32 = 12;

/// Panels side by side.
const fn per_row() -> usize {
    ((WIDTH as i32 - LEFT) / PANEL) as usize
}

/// Side of a cell: panels with more than 8 columns have smaller ones.
fn cell(panel: &WeightPanel) -> i32 {
    BOARD / (panel.columns.max(rows(panel)).max(8) as i32)
}

fn rows(panel: &WeightPanel) -> usize {
    panel.weights.len().div_ceil(panel.columns.max(1))
}

fn row_heights(panels: &[WeightPanel]) -> Vec<i32> {
    let height = |panel: &WeightPanel| HEADING + rows(panel) as i32 * cell(panel) + 14;
    panels.chunks(per_row()).map(|row| row.iter().map(height).max().unwrap_or_default()).collect()
}

pub(super) fn height(panels: &[WeightPanel]) -> u32 {
    (TITLE_HEIGHT + row_heights(panels).iter().sum::<i32>() + NOTE) as u32
}

/// Draws all panels with one colour scale.
pub(super) fn draw<DB: DrawingBackend>(canvas: &Canvas<'_, DB>, panels: &[WeightPanel], note: &str) -> Drawn<DB> {
    let largest =
        panels.iter().flat_map(|panel| panel.weights.iter().flatten()).fold(0.0, |max: f64, w| max.max(w.abs()));
    let mut top = TITLE_HEIGHT;
    for (row, height) in panels.chunks(per_row()).zip(row_heights(panels)) {
        for (panel, left) in row.iter().zip((0..).map(|index| LEFT + index * PANEL)) {
            draw_panel(canvas, panel, (left, top), largest)?;
        }
        top += height;
    }
    let scale = format!("{note} The strongest colours are ±{largest:.2}: orange above 0, blue below.");
    canvas.label(&scale, (canvas.px(LEFT), canvas.px(top + NOTE / 2)), TEXT, HPos::Left)
}

fn draw_panel<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    panel: &WeightPanel,
    (left, top): (i32, i32),
    largest: f64,
) -> Drawn<DB> {
    const LETTERS: usize = 23;
    let title: String = if panel.title.chars().count() > LETTERS {
        panel.title.chars().take(LETTERS - 1).chain(['…']).collect()
    } else {
        panel.title.clone()
    };
    canvas.label(&title, (canvas.px(left), canvas.px(top + HEADING / 2)), TEXT, HPos::Left)?;
    let side = cell(panel);
    let rows = rows(panel) as i32;
    for (index, weight) in (0..).zip(&panel.weights) {
        let column = index % panel.columns as i32;
        let row = index / panel.columns as i32;
        let [x, y] = [left + column * side, top + HEADING + (rows - 1 - row) * side];
        let square = [(canvas.px(x), canvas.px(y)), (canvas.px(x + side), canvas.px(y + side))];
        if let Some(weight) = weight {
            canvas.area.draw(&Rectangle::new(square, shade(*weight, largest).filled()))?;
            canvas.area.draw(&Rectangle::new(square, canvas.stroke(INK.mix(0.15), 0.5)))?;
        }
    }
    Ok(())
}

/// Blue below 0, orange above, deeper for larger weights.
fn shade(weight: f64, largest: f64) -> RGBAColor {
    let depth = if largest > 0.0 { weight.abs() / largest } else { 0.0 };
    color(usize::from(weight > 0.0)).mix(depth)
}
