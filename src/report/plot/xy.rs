//! Plots over two numeric axes: columns, lines, bands and dots; and shares on the squares of a board.

use plotters::chart::ChartBuilder;
use plotters::prelude::{Circle, DrawingBackend, PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use super::bars::padded;
use super::canvas::{Canvas, Drawn, INK, TEXT_SIZE, TITLE_HEIGHT, WIDTH, color};
use crate::report::figures::{Layer, Style};
use crate::statistics::Estimate;

pub(super) const HEIGHT: u32 = 460;
const X_LABELS: i32 = 52;
const Y_LABELS: i32 = 72;
const LEGEND: i32 = 28;

/// Layers one above the other; columns and shares begin at zero.
pub(super) fn series<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    x_axis: &str,
    y_axis: &str,
    layers: &[Layer],
) -> Drawn<DB> {
    let points = || layers.iter().flat_map(|layer| &layer.points);
    let width = layers.iter().map(|layer| if let Style::Columns { width } = layer.style { width } else { 0.0 });
    let half = width.fold(0.0, f64::max) / 2.0;
    let (left, right) = padded(points().map(|(x, _)| (x - half, x + half)));
    let (_, top) = padded(points().map(|(_, y)| y.bounds()).chain([(0.0, 0.0)]));
    let named = layers.iter().any(|layer| !layer.name.is_empty());
    let mut chart = ChartBuilder::on(&canvas.area)
        .margin_top(canvas.px(TITLE_HEIGHT + if named { LEGEND } else { 0 }))
        .margin_right(canvas.px(28))
        .margin_left(canvas.px(8))
        .x_label_area_size(canvas.px(X_LABELS))
        .y_label_area_size(canvas.px(Y_LABELS))
        .build_cartesian_2d(left..right, 0.0..top)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(10).x_label_formatter(&plain).y_labels(8).y_label_formatter(&plain).x_desc(x_axis).y_desc(y_axis);
    canvas.dress(&mut mesh).draw()?;
    for (index, layer) in layers.iter().enumerate() {
        let color = color(index);
        let line = || layer.points.iter().map(|(x, y)| (*x, y.mean)).collect::<Vec<_>>();
        match layer.style {
            Style::Columns { width } => {
                let column = |(x, y): &(f64, Estimate)| {
                    Rectangle::new([(x - width * 0.45, 0.0), (x + width * 0.45, y.mean)], color.filled())
                };
                chart.draw_series(layer.points.iter().map(column))?;
            }
            Style::Line => {
                chart.draw_series([PathElement::new(line(), canvas.stroke(color, 2.0))])?;
            }
            Style::Band => {
                let lower = layer.points.iter().map(|(x, y)| (*x, y.bounds().0));
                let upper = layer.points.iter().rev().map(|(x, y)| (*x, y.bounds().1));
                chart.draw_series([Polygon::new(lower.chain(upper).collect::<Vec<_>>(), color.mix(0.3))])?;
            }
            Style::Dots => {
                let whisker = |(x, y): &(f64, Estimate)| {
                    let (low, high) = y.bounds();
                    PathElement::new(vec![(*x, low.max(0.0)), (*x, high.min(top))], canvas.stroke(color, 1.0))
                };
                chart.draw_series(layer.points.iter().map(whisker))?;
                chart.draw_series(line().into_iter().map(|at| Circle::new(at, canvas.px(3), color.filled())))?;
            }
        }
    }
    if named {
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        canvas.legend(&names, canvas.px(14), canvas.px(TITLE_HEIGHT + LEGEND / 2))?;
    }
    Ok(())
}

/// A mark of an axis, without zeros behind it.
fn plain(mark: &f64) -> String {
    ((mark * 1e6).round() / 1e6).to_string()
}

const SQUARE: i32 = 72;
pub(super) const BOARD_HEIGHT: u32 = (TITLE_HEIGHT + 8 * SQUARE + 64) as u32;

/// A board whose squares are the darker the larger their share, with the share in percent; a1 at the lower left.
pub(super) fn squares<DB: DrawingBackend>(canvas: &Canvas<DB>, axis: &str, shares: &[f64]) -> Drawn<DB> {
    let most = shares.iter().copied().fold(0.0, f64::max);
    let (left, top) = ((WIDTH as i32 - 8 * SQUARE) / 2, TITLE_HEIGHT);
    let at = |file: i32, rank: i32| (canvas.px(left + file * SQUARE), canvas.px(top + (7 - rank) * SQUARE));
    for (square, share) in (0..).zip(shares) {
        let (file, rank) = (square % 8, square / 8);
        let ((x, y), (right, above)) = (at(file, rank), at(file + 1, rank - 1));
        // By the root, so that rare squares can be told from empty ones.
        let depth = if most > 0.0 { (share / most).sqrt() } else { 0.0 };
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
