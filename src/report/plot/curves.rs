//! Learning curves and the trade-off of loss against cost.

use plotters::chart::ChartBuilder;
use plotters::prelude::{BindKeyPoints, Circle, DrawingBackend, IntoLogRange, PathElement, Polygon};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::bars::padded;
use super::canvas::{Canvas, Drawn, TEXT_SIZE, TITLE_HEIGHT, WIDTH, color};
use crate::report::summary::Curve;
use crate::statistics::Estimate;

pub(super) const HEIGHT: u32 = 480;
const X_LABELS: i32 = 52;
const Y_LABELS: i32 = 92;
/// Marks of the logarithmic axis.
const TICKS: [f64; 32] = [
    0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 70.0, 100.0, 150.0, 200.0, 300.0, 500.0, 700.0, 1e3,
    1.5e3, 2e3, 3e3, 5e3, 7e3, 1e4, 1.5e4, 2e4, 3e4, 5e4, 7e4, 1e5, 1e6,
];
/// Height of a label, with room.
const LABEL: i32 = 19;

/// Mean validation loss by epoch with the 95% band over the seeds; each line's name stands at its end.
pub(super) fn curves<DB: DrawingBackend>(canvas: &Canvas<DB>, axis: &str, curves: &[Curve]) -> Drawn<DB> {
    let widest = curves.iter().map(|curve| canvas.width_of(&curve.set, TEXT_SIZE)).max().unwrap_or_default();
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let last = points().map(|point| point.epoch).max().unwrap_or(1).max(2);
    let (low, high) = padded(points().map(|point| point.validation_loss.bounds()));
    let mut chart = ChartBuilder::on(&canvas.area)
        .margin_top(canvas.px(TITLE_HEIGHT))
        .margin_right(widest + canvas.px(54))
        .margin_left(canvas.px(8))
        .x_label_area_size(canvas.px(X_LABELS))
        .y_label_area_size(canvas.px(Y_LABELS))
        .build_cartesian_2d(1.0..f64::from(last), low..high)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(last.min(12) as usize)
        .x_label_formatter(&|epoch| if epoch.fract().abs() < 1e-9 { format!("{epoch:.0}") } else { String::new() })
        .y_labels(8)
        .x_desc("epoch")
        .y_desc(format!("{axis} (mean and 95% band over seeds)"));
    canvas.dress(&mut mesh).draw()?;
    let mut ends = Vec::new();
    for (index, curve) in curves.iter().enumerate() {
        let at = |value: &dyn Fn(Estimate) -> f64| {
            curve.points.iter().map(|p| (f64::from(p.epoch), value(p.validation_loss))).collect::<Vec<_>>()
        };
        let (lower, upper) = (at(&|estimate| estimate.bounds().0), at(&|estimate| estimate.bounds().1));
        let band: Vec<_> = lower.into_iter().chain(upper.into_iter().rev()).collect();
        chart.draw_series([Polygon::new(band, color(index).mix(0.16))])?;
        let line = at(&|estimate| estimate.mean);
        chart.draw_series(line.iter().map(|point| Circle::new(*point, canvas.px(3), color(index).filled())))?;
        ends.extend(line.last().map(|end| (index, chart.backend_coord(end))));
        chart.draw_series([PathElement::new(line, canvas.stroke(color(index), 2.0))])?;
    }
    let left = canvas.px(WIDTH as i32) - widest - canvas.px(50);
    let bottom = canvas.px(HEIGHT as i32 - X_LABELS);
    let places = spread(ends.iter().map(|(_, (_, y))| *y).collect(), canvas.px(LABEL), bottom);
    for ((index, end), y) in ends.into_iter().zip(places) {
        let stroke = canvas.stroke(color(index), 1.0);
        canvas.line([end, (left + canvas.px(20), y)], canvas.stroke(color(index).mix(0.45), 1.0))?;
        canvas.line([(left + canvas.px(20), y), (left + canvas.px(30), y)], stroke)?;
        canvas.label(&curves[index].set, (left + canvas.px(35), y), TEXT_SIZE, HPos::Left)?;
    }
    Ok(())
}

/// Heights near the wanted ones, at least `apart` from each other and none below `bottom`.
fn spread(wanted: Vec<i32>, apart: i32, bottom: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&index| wanted[index]);
    let mut places = wanted;
    for pair in 1..order.len() {
        let (above, below) = (order[pair - 1], order[pair]);
        places[below] = places[below].max(places[above] + apart);
    }
    let mut limit = bottom;
    for &index in order.iter().rev() {
        places[index] = places[index].min(limit);
        limit = places[index] - apart;
    }
    places
}

/// Loss with its interval against cost on a logarithmic axis; each point's name stands beside it.
pub(super) fn points<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    x_axis: &str,
    y_axis: &str,
    points: &[(String, f64, Estimate)],
) -> Drawn<DB> {
    let (left, right) =
        points.iter().fold((f64::INFINITY, 0.0f64), |(low, high), (_, cost, _)| (low.min(*cost), high.max(*cost)));
    let (low, high) = padded(points.iter().map(|(_, _, loss)| loss.bounds()));
    let (from, to) = (left / 1.35, right * 1.6);
    let ticks: Vec<f64> = TICKS.into_iter().filter(|tick| (from..=to).contains(tick)).collect();
    let mut chart = ChartBuilder::on(&canvas.area)
        .margin_top(canvas.px(TITLE_HEIGHT))
        .margin_right(canvas.px(30))
        .margin_left(canvas.px(8))
        .x_label_area_size(canvas.px(X_LABELS))
        .y_label_area_size(canvas.px(Y_LABELS))
        .build_cartesian_2d((from..to).log_scale().with_key_points(ticks.clone()), low..high)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(ticks.len()).x_label_formatter(&|rows| format!("{rows}")).y_labels(8).x_desc(x_axis).y_desc(y_axis);
    canvas.dress(&mut mesh).draw()?;
    let mut taken = Vec::new();
    for (index, (_, cost, loss)) in points.iter().enumerate() {
        let (from, to) = loss.bounds();
        let whisker = PathElement::new(vec![(*cost, from), (*cost, to)], canvas.stroke(color(index), 2.0));
        chart.draw_series([whisker])?;
        chart.draw_series([Circle::new((*cost, loss.mean), canvas.px(6), color(index).filled())])?;
        let (x, top) = chart.backend_coord(&(*cost, to));
        let (_, bottom) = chart.backend_coord(&(*cost, from));
        let (_, middle) = chart.backend_coord(&(*cost, loss.mean));
        taken.push(Area { x: (x - canvas.px(8), x + canvas.px(8)), y: (middle - canvas.px(8), middle + canvas.px(8)) });
        taken.push(Area { x: (x - canvas.px(2), x + canvas.px(2)), y: (top, bottom) });
    }
    for (name, cost, loss) in points {
        let dot = chart.backend_coord(&(*cost, loss.mean));
        let (place, horizontal) = label_place(canvas, name, dot, &taken);
        taken.push(place);
        let x = if matches!(horizontal, HPos::Left) { place.x.0 } else { place.x.1 };
        canvas.label(name, (x, i32::midpoint(place.y.0, place.y.1)), TEXT_SIZE, horizontal)?;
    }
    Ok(())
}

/// A rectangle in pixels.
#[derive(Copy, Clone)]
struct Area {
    x: (i32, i32),
    y: (i32, i32),
}

impl Area {
    fn meets(self, other: Area) -> bool {
        self.x.0 < other.x.1 && other.x.0 < self.x.1 && self.y.0 < other.y.1 && other.y.0 < self.y.1
    }
}

/// The first place beside a dot that is free and on the picture; right, left, then a little higher and lower.
fn label_place<DB: DrawingBackend>(
    canvas: &Canvas<DB>,
    name: &str,
    (x, y): (i32, i32),
    taken: &[Area],
) -> (Area, HPos) {
    let (width, half, gap) = (canvas.width_of(name, TEXT_SIZE), canvas.px(LABEL) / 2, canvas.px(11));
    let edge = (canvas.px(Y_LABELS + 8), canvas.px(WIDTH as i32 - 6));
    let at = |shift: i32, to_right: bool| {
        let x = if to_right { (x + gap, x + gap + width) } else { (x - gap - width, x - gap) };
        Area { x, y: (y + shift - half, y + shift + half) }
    };
    for step in 0..12 {
        for shift in [-step, step] {
            for to_right in [true, false] {
                let place = at(shift * canvas.px(4), to_right);
                let fits = place.x.0 >= edge.0 && place.x.1 <= edge.1;
                if fits && !taken.iter().any(|area| area.meets(place)) {
                    return (place, if to_right { HPos::Left } else { HPos::Right });
                }
            }
        }
    }
    (at(0, true), HPos::Left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_on_the_picture() {
        assert_eq!(spread(vec![10, 12, 50], 20, 100), [10, 30, 50]);
        assert_eq!(spread(vec![95, 99, 90], 20, 100), [80, 100, 60]);
        assert_eq!(spread(vec![], 20, 100), Vec::<i32>::new());
    }
}
