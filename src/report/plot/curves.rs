//! Learning curves: validation loss by epoch.

use plotters::chart::ChartBuilder;
use plotters::prelude::{Circle, DrawingBackend, PathElement, Polygon};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use super::bars::padded;
use super::canvas::{Canvas, Drawn, TEXT_SIZE, TITLE_HEIGHT, WIDTH};
use super::xy::LABEL_HEIGHT;
use crate::report::numbers;
use crate::report::summary::Curve;
use crate::statistics::Estimate;
use crate::units::sort_by_key;

pub(super) const HEIGHT: u32 = 480;
/// Draws the mean validation loss by epoch with the 95% band over the seeds. Each line's name is at its right end.
pub(super) fn draw_curves<DB: DrawingBackend>(canvas: &Canvas<'_, DB>, axis: &str, curves: &[Curve]) -> Drawn<DB> {
    let widest = curves.iter().map(|curve| canvas.width_of(&curve.set, TEXT_SIZE)).max().unwrap_or_default();
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let last = points().map(|point| point.epoch).max().unwrap_or(1).max(2);
    let (low, high) = padded(points().map(|point| point.validation_loss.bounds()));
    let mut chart = frame(canvas, widest).build_cartesian_2d(1.0..f64::from(last), low..high)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(last.min(12) as usize)
        .x_label_formatter(&|epoch| if epoch.fract().abs() < 1e-9 { format!("{epoch:.0}") } else { String::new() })
        .y_labels(8)
        .x_desc("epoch")
        .y_desc(format!("{axis} (mean and 95% band over seeds)"));
    canvas.style_mesh(&mut mesh).draw()?;
    let mut ends = Vec::new();
    let all: Vec<Estimate> = points().map(|point| point.validation_loss).collect();
    let decimals = numbers::decimals(&all);
    for (index, curve) in curves.iter().enumerate() {
        let color = canvas.color_of(&curve.set, index);
        let points_of = |value: &dyn Fn(Estimate) -> f64| {
            curve.points.iter().map(|p| (f64::from(p.epoch), value(p.validation_loss))).collect::<Vec<_>>()
        };
        let bounds = [points_of(&|estimate| estimate.bounds().0), points_of(&|estimate| estimate.bounds().1)];
        chart.draw_series([Polygon::new(band(bounds), color.mix(0.16))])?;
        let line = points_of(&|estimate| estimate.mean);
        chart.draw_series(line.iter().map(|point| Circle::new(*point, canvas.px(3), color.filled())))?;
        for (at, point) in line.iter().zip(&curve.points) {
            let loss = numbers::estimate(point.validation_loss, decimals, false);
            let text = format!("{}, epoch {}: {loss}", curve.set, point.epoch);
            canvas.point_out(chart.backend_coord(at), 8, text);
        }
        ends.extend(line.last().map(|end| LineEnd { name: &curve.set, color, at: chart.backend_coord(end) }));
        chart.draw_series([PathElement::new(line, canvas.stroke(color, 2.0))])?;
    }
    name_ends(canvas, widest, &ends)
}

const X_LABELS: i32 = 52;
const Y_LABELS: i32 = 92;

/// A chart with room for the axes' labels and, on the right, for lines' names of this width at most.
pub(super) fn frame<'a, 'b, DB: DrawingBackend>(canvas: &'a Canvas<'_, DB>, widest: i32) -> ChartBuilder<'a, 'b, DB> {
    let mut chart = ChartBuilder::on(&canvas.area);
    chart
        .margin_top(canvas.px(TITLE_HEIGHT))
        .margin_right(widest + canvas.px(54))
        .margin_left(canvas.px(8))
        .x_label_area_size(canvas.px(X_LABELS))
        .y_label_area_size(canvas.px(Y_LABELS));
    chart
}

/// The outline of a band between its lower and its upper bounds.
pub(super) fn band([lower, upper]: [Vec<(f64, f64)>; 2]) -> Vec<(f64, f64)> {
    lower.into_iter().chain(upper.into_iter().rev()).collect()
}

/// Where a line ends on the canvas.
pub(super) struct LineEnd<'a> {
    pub(super) name: &'a str,
    pub(super) color: RGBColor,
    pub(super) at: (i32, i32),
}

/// Writes the lines' names beside the plot. `widest`: their greatest width.
pub(super) fn name_ends<DB: DrawingBackend>(canvas: &Canvas<'_, DB>, widest: i32, ends: &[LineEnd<'_>]) -> Drawn<DB> {
    let left = canvas.px(WIDTH as i32) - widest - canvas.px(50);
    let bottom = canvas.px(HEIGHT as i32 - X_LABELS);
    let label_heights = spread(ends.iter().map(|end| end.at.1).collect(), canvas.px(LABEL_HEIGHT), bottom);
    for (LineEnd { name, color, at }, y) in ends.iter().zip(label_heights) {
        canvas.line([*at, (left + canvas.px(20), y)], canvas.stroke(color.mix(0.45), 1.0))?;
        canvas.line([(left + canvas.px(20), y), (left + canvas.px(30), y)], canvas.stroke(*color, 1.0))?;
        canvas.label(name, (left + canvas.px(35), y), TEXT_SIZE, HPos::Left)?;
    }
    Ok(())
}

/// Moves heights apart until they differ by at least `distance`, within `bottom`.
fn spread(heights: Vec<i32>, distance: i32, bottom: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    sort_by_key(&mut order, &|&index| heights[index]);
    let mut spread = heights;
    for pair in 1..order.len() {
        let above = order[pair - 1];
        let below = order[pair];
        spread[below] = spread[below].max(spread[above] + distance);
    }
    let mut limit = bottom;
    for &index in order.iter().rev() {
        spread[index] = spread[index].min(limit);
        limit = spread[index] - distance;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance_within_the_plot() {
        assert_eq!(spread(vec![10, 12, 50], 20, 100), [10, 30, 50]);
        assert_eq!(spread(vec![95, 99, 90], 20, 100), [80, 100, 60]);
        assert_eq!(spread(vec![], 20, 100), Vec::<i32>::new());
    }
}
