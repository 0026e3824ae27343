//! Scatter plots: named points with intervals in both directions. No label lies on a point or an interval.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{BindKeyPoints, Cartesian2d, Circle, DrawingBackend, IntoLogRange, PathElement};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::bars::padded;
use super::canvas::{Canvas, Drawn, INK, TEXT_SIZE, TITLE_HEIGHT};
use super::xy::{LABEL_HEIGHT, tick_label};
use crate::report::figures::{AxisScale, ScatterPoint};
use crate::report::numbers;
use crate::statistics::Estimate;

pub(super) const HEIGHT: u32 = 480;
const X_LABELS: i32 = 52;
const Y_LABELS: i32 = 92;
/// A label farther from its point is joined to it by a line.
const NEAR: i32 = 26;
/// On a logarithmic axis, an interval is drawn down to this share of its value at most.
const LOWEST_SHARE: f64 = 0.2;

/// Draws named points with intervals in both directions.
pub(super) fn draw_scatter<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    (x_axis, x_scale): (&str, AxisScale),
    y_axis: &str,
    points: &[ScatterPoint],
) -> Drawn<DB> {
    let (low, high) = padded(points.iter().map(|point| point.y.bounds()));
    let (left, right) = points
        .iter()
        .map(|point| bounds(point.x, x_scale))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (a, b)| (low.min(a), high.max(b)));
    let mut builder = ChartBuilder::on(&canvas.area);
    builder
        .margin_top(canvas.px(TITLE_HEIGHT))
        .margin_right(canvas.px(30))
        .margin_left(canvas.px(8))
        .x_label_area_size(canvas.px(X_LABELS))
        .y_label_area_size(canvas.px(Y_LABELS));
    match x_scale {
        AxisScale::Logarithmic => {
            let from = left / 1.25;
            let to = right * 1.25;
            let ticks = ticks(from, to);
            let axis = (from..to).log_scale().with_key_points(ticks.clone());
            let mut chart = builder.build_cartesian_2d(axis, low..high)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_labels(ticks.len()).x_label_formatter(&short_tick).y_labels(8).x_desc(x_axis).y_desc(y_axis);
            canvas.style_mesh(&mut mesh).draw()?;
            draw_points(canvas, &mut chart, points, x_scale)
        }
        AxisScale::Linear => {
            let room = ((right - left) * 0.12).max(right.abs() * 1e-3).max(1e-9);
            let mut chart = builder.build_cartesian_2d(left - room..right + room, low..high)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_labels(8).x_label_formatter(&tick_label).y_labels(8).x_desc(x_axis).y_desc(y_axis);
            canvas.style_mesh(&mut mesh).draw()?;
            draw_points(canvas, &mut chart, points, x_scale)
        }
    }
}

/// An interval's bounds that the axis can show.
fn bounds(x: Estimate, scale: AxisScale) -> (f64, f64) {
    let (low, high) = x.bounds();
    match scale {
        AxisScale::Linear => (low, high),
        AxisScale::Logarithmic => (low.max(LOWEST_SHARE * x.mean), high),
    }
}

/// Round numbers on a logarithmic axis, at most about ten.
fn ticks(from: f64, to: f64) -> Vec<f64> {
    const STEPS: [&[f64]; 4] = [&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0], &[1.0, 2.0, 3.0, 5.0], &[1.0, 3.0], &[1.0]];
    const MOST: usize = 9;
    let powers = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let ticks = |steps: &[f64]| -> Vec<f64> {
        let all = powers.clone().flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(|tick| (from..=to).contains(tick)).collect()
    };
    let fewest = ticks(STEPS[STEPS.len() - 1]);
    STEPS.into_iter().map(ticks).find(|ticks| ticks.len() <= MOST).unwrap_or(fewest)
}

/// `0.5`, `700`, `15k`, `2M`
fn short_tick(tick: &f64) -> String {
    match *tick {
        tick if tick >= 999_999.0 => format!("{}M", tick_label(&(tick / 1e6))),
        tick if tick >= 9_999.0 => format!("{}k", tick_label(&(tick / 1e3))),
        tick => tick_label(&tick),
    }
}

/// Draws the points, their intervals and their names.
fn draw_points<DB: DrawingBackend, X: Ranged<ValueType = f64>>(
    canvas: &Canvas<'_, DB>,
    chart: &mut ChartContext<'_, DB, Cartesian2d<X, RangedCoordf64>>,
    points: &[ScatterPoint],
    x_scale: AxisScale,
) -> Drawn<DB> {
    let mut occupied = Vec::new();
    let decimals =
        |axis: fn(&ScatterPoint) -> Estimate| numbers::decimals(&points.iter().map(axis).collect::<Vec<_>>());
    let [x_decimals, y_decimals] = [decimals(|point| point.x), decimals(|point| point.y)];
    for (index, ScatterPoint { name, x, y }) in points.iter().enumerate() {
        let (left, right) = bounds(*x, x_scale);
        let (low, high) = y.bounds();
        let color = canvas.color_of(name, index);
        let whiskers = [vec![(x.mean, low), (x.mean, high)], vec![(left, y.mean), (right, y.mean)]];
        let whiskers = whiskers.into_iter().map(|line| PathElement::new(line, canvas.stroke(color, 2.0)));
        chart.draw_series(whiskers)?;
        chart.draw_series([Circle::new((x.mean, y.mean), canvas.px(6), color.filled())])?;
        let [x_text, y_text] =
            [(*x, x_decimals), (*y, y_decimals)].map(|(e, places)| numbers::estimate(e, places, false));
        let dot = chart.backend_coord(&(x.mean, y.mean));
        canvas.point_out(dot, 11, format!("{name}, {x_text}: {y_text}"));
        let around = |center: i32, units: i32| (center - canvas.px(units), center + canvas.px(units));
        let left = chart.backend_coord(&(left, y.mean)).0;
        let right = chart.backend_coord(&(right, y.mean)).0;
        let top = chart.backend_coord(&(x.mean, high)).1;
        let bottom = chart.backend_coord(&(x.mean, low)).1;
        occupied.push(Rect { x: around(dot.0, 8), y: around(dot.1, 8) });
        let room = canvas.px(5);
        occupied.push(Rect { x: around(dot.0, 2), y: (top - room, bottom + room) });
        occupied.push(Rect { x: (left - room, right + room), y: around(dot.1, 2) });
    }
    let (x_pixels, y_pixels) = chart.plotting_area().get_pixel_range();
    let area = Rect { x: (x_pixels.start, x_pixels.end), y: (y_pixels.start, y_pixels.end) };
    let step = canvas.px(4);
    for ScatterPoint { name, x, y } in points {
        let dot = chart.backend_coord(&(x.mean, y.mean));
        let size = (canvas.width_of(name, TEXT_SIZE), canvas.px(LABEL_HEIGHT));
        // The pointer still shows a name for which there is no room.
        let Some(rect) = free_rect(dot, size, canvas.px(11), step, area, &occupied) else { continue };
        let near = rect.nearest(dot);
        if distance(near, dot) > f64::from(canvas.px(NEAR)) {
            canvas.line([dot, near], canvas.stroke(INK.mix(0.35), 1.0))?;
        }
        occupied.push(rect);
        canvas.label(name, (rect.x.0, i32::midpoint(rect.y.0, rect.y.1)), TEXT_SIZE, HPos::Left)?;
    }
    Ok(())
}

/// A rectangle in pixels.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Rect {
    x: (i32, i32),
    y: (i32, i32),
}

impl Rect {
    fn intersects(self, other: Rect) -> bool {
        self.x.0 < other.x.1 && other.x.0 < self.x.1 && self.y.0 < other.y.1 && other.y.0 < self.y.1
    }

    fn contains(self, other: Rect) -> bool {
        self.x.0 <= other.x.0 && other.x.1 <= self.x.1 && self.y.0 <= other.y.0 && other.y.1 <= self.y.1
    }

    /// The rectangle's pixel that is nearest to another pixel.
    fn nearest(self, (x, y): (i32, i32)) -> (i32, i32) {
        (x.clamp(self.x.0, self.x.1), y.clamp(self.y.0, self.y.1))
    }
}

fn distance(a: (i32, i32), b: (i32, i32)) -> f64 {
    f64::from(a.0 - b.0).hypot(f64::from(a.1 - b.1))
}

/// The place for a dot's label: right of it, left of it, else the nearest within `area` that is free. `gap` is the
/// distance between a dot and a label beside it.
fn free_rect(
    dot: (i32, i32),
    (width, height): (i32, i32),
    gap: i32,
    step: i32,
    area: Rect,
    occupied: &[Rect],
) -> Option<Rect> {
    let at = |left: i32, top: i32| Rect { x: (left, left + width), y: (top, top + height) };
    let is_free = |rect: &Rect| area.contains(*rect) && !occupied.iter().any(|other| other.intersects(*rect));
    let beside = [at(dot.0 + gap, dot.1 - height / 2), at(dot.0 - gap - width, dot.1 - height / 2)];
    if let Some(rect) = beside.into_iter().find(is_free) {
        return Some(rect);
    }
    let along = |(from, to): (i32, i32), size: i32| (from..=(to - size).max(from)).step_by(step.max(1) as usize);
    let everywhere = along(area.x, width).flat_map(|left| along(area.y, height).map(move |top| at(left, top)));
    // Above or below its dot, a label stands best in the middle.
    let cost = |rect: &Rect| {
        let aside = f64::from((i32::midpoint(rect.x.0, rect.x.1) - dot.0).abs());
        distance(rect.nearest(dot), dot) + 0.1 * aside
    };
    everywhere.filter(is_free).min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_off_points_and_each_other() {
        let area = Rect { x: (0, 300), y: (0, 200) };
        let dots = [(150, 100), (152, 101), (149, 99), (150, 104), (290, 100), (292, 6)];
        let mut occupied: Vec<Rect> =
            dots.iter().map(|dot| Rect { x: (dot.0 - 8, dot.0 + 8), y: (dot.1 - 8, dot.1 + 8) }).collect();
        for dot in dots {
            let rect = free_rect(dot, (60, 19), 11, 4, area, &occupied).expect("room");
            assert!(area.contains(rect) && !occupied.iter().any(|other| other.intersects(rect)), "{dot:?}: {rect:?}");
            assert!(distance(rect.nearest(dot), dot) < 60.0, "{dot:?}: {rect:?}");
            occupied.push(rect);
        }
        let full = [area];
        assert_eq!(free_rect((150, 100), (60, 19), 11, 4, area, &full), None);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(0.9, 9.0), [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]);
        assert_eq!(ticks(1.6e5, 9e6), [2e5, 3e5, 5e5, 1e6, 2e6, 3e6, 5e6]);
        assert_eq!(ticks(1e-3, 1e6).len(), 10);
        assert_eq!([0.5, 700.0, 1.5e4, 1e6, 1.5e7].map(|tick| short_tick(&tick)), ["0.5", "700", "15k", "1M", "15M"]);
    }
}
