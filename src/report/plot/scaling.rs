//! Curves of the loss over the number of training samples, with bands, and the losses found.

use plotters::prelude::{Circle, DrawingBackend, PathElement, Polygon};
use plotters::style::Color;

use super::bars::padded;
use super::canvas::{Canvas, Drawn, INK, TEXT_SIZE};
use super::curves::{LineEnd, band, frame, name_ends};
use crate::report::numbers::{self, amount};
use crate::report::scaling::SetScaling;
use crate::statistics::pentanomial::Interval;

/// Draws each set's curve with its 95% band, its name at the right end, and the losses found as dots. A line marks the
/// number of samples that there are.
pub(super) fn draw_scaling<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    x_axis: &str,
    y_axis: &str,
    sets: &[SetScaling],
    samples: u64,
) -> Drawn<DB> {
    let widest = sets.iter().map(|set| canvas.width_of(&set.set, TEXT_SIZE)).max().unwrap_or_default();
    let points = || sets.iter().flat_map(|set| &set.curve);
    let (low, high) = padded(points().map(|(_, loss)| (loss.low, loss.high)));
    let first = points().map(|(at, _)| at.log10()).fold(f64::INFINITY, f64::min);
    let last = points().map(|(at, _)| at.log10()).fold(f64::NEG_INFINITY, f64::max);
    let mut chart = frame(canvas, widest).build_cartesian_2d(first..last.max(first + 1e-9), low..high)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(8)
        .x_label_formatter(&|at| amount(10f64.powf(*at)))
        .y_labels(8)
        .x_desc(x_axis)
        .y_desc(format!("{y_axis} (with 95% band)"));
    canvas.style_mesh(&mut mesh).draw()?;
    let here = (samples as f64).log10();
    chart.draw_series([PathElement::new(vec![(here, low), (here, high)], canvas.stroke(INK.mix(0.4), 1.0))])?;
    let half = |loss: &Interval| (loss.high - loss.low) / 2.0;
    let found = |set: &SetScaling| set.found.iter().map(|found| found.loss).collect::<Vec<_>>();
    let decimals = numbers::decimals(&sets.iter().flat_map(found).collect::<Vec<_>>());
    let mut ends = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let color = canvas.color_of(&set.set, index);
        let points_of = |value: &dyn Fn(&Interval) -> f64| {
            set.curve.iter().map(|(at, loss)| (at.log10(), value(loss))).collect::<Vec<_>>()
        };
        let bounds = [points_of(&|loss| loss.low), points_of(&|loss| loss.high)];
        chart.draw_series([Polygon::new(band(bounds), color.mix(0.16))])?;
        let line = points_of(&|loss| loss.value);
        for (at, (_, loss)) in line.iter().zip(&set.curve) {
            let loss_text = numbers::number(loss.value, decimals, false);
            let text = format!(
                "{}, {}: {loss_text} ± {}",
                set.set,
                amount(10f64.powf(at.0)),
                numbers::number(half(loss), decimals, false)
            );
            canvas.point_out(chart.backend_coord(at), 8, text);
        }
        let dots = set.found.iter().map(|found| ((found.samples as f64).log10(), found.loss.mean));
        chart.draw_series(dots.map(|at| Circle::new(at, canvas.px(3), color.filled())))?;
        ends.extend(line.last().map(|end| LineEnd { name: &set.set, color, at: chart.backend_coord(end) }));
        chart.draw_series([PathElement::new(line, canvas.stroke(color, 2.0))])?;
    }
    name_ends(canvas, widest, &ends)
}
