//! Plots as SVG and PNG.
//!
//! An SVG names only the family `sans-serif`; for PNG and for measuring text that name stands for DejaVu Sans, which is
//! compiled in, so that pictures are the same on every machine.

mod bars;
mod canvas;
mod curves;
mod xy;

use std::sync::OnceLock;

use plotters::prelude::{BitMapBackend, DrawingBackend, IntoDrawingArea, SVGBackend};
use plotters::style::{FontStyle, register_font};
use thiserror::Error;

use super::figures::{self, Content, Sketch};
use super::summary::Summary;
use crate::record::Method;
use canvas::Canvas;

/// A plot that failed, and why.
#[derive(Clone, Debug, Error)]
#[error("cannot draw the plot '{figure}': {message}")]
pub struct PlotError {
    pub figure: String,
    pub message: String,
}

/// A plot of a report.
#[derive(Clone, Debug)]
pub struct Figure(Sketch);

/// PNG pixels a unit of the layout, for sharp text.
const PNG_SCALE: f64 = 2.0;

impl From<Sketch> for Figure {
    fn from(sketch: Sketch) -> Figure {
        Figure(sketch)
    }
}

impl Figure {
    /// Every plot there are figures for.
    #[must_use]
    pub fn all(summary: &Summary) -> Vec<Figure> {
        figures::of(summary).into_iter().map(Figure).collect()
    }

    /// The file's name without ending.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    #[must_use]
    pub fn title(&self) -> &str {
        &self.0.title
    }

    /// The method it belongs to; none for what depends on the sets only.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        self.0.method
    }

    /// A file of its own, on white.
    ///
    /// # Errors
    /// When plotters cannot draw it.
    pub fn svg(&self) -> Result<String, PlotError> {
        self.vector(true)
    }

    /// For a page: no background, and the page's text colour.
    ///
    /// # Errors
    /// When plotters cannot draw it.
    pub fn inline_svg(&self) -> Result<String, PlotError> {
        let svg = self.vector(false)?.replace(canvas::INK_HEX, "currentColor");
        // On a page the picture shrinks with its column.
        let (width, height) = self.size();
        let fixed = format!("<svg width=\"{width}\" height=\"{height}\"");
        let label = super::html::escape(self.title());
        let fluid = format!("<svg role=\"img\" aria-label=\"{label}\" style=\"max-width:{width}px;width:100%\"");
        Ok(svg.replacen(&fixed, &fluid, 1))
    }

    /// An image of twice the layout's size, on white.
    ///
    /// # Errors
    /// When plotters cannot draw it or the image cannot be encoded.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        let failed = |message: String| PlotError { figure: self.0.name.clone(), message };
        let file = tempfile::Builder::new().suffix(".png").tempfile().map_err(|error| failed(error.to_string()))?;
        let (width, height) = self.size();
        let size = ((f64::from(width) * PNG_SCALE) as u32, (f64::from(height) * PNG_SCALE) as u32);
        self.draw(BitMapBackend::new(file.path(), size), PNG_SCALE, true)?;
        std::fs::read(file.path()).map_err(|error| failed(error.to_string()))
    }

    fn vector(&self, on_white: bool) -> Result<String, PlotError> {
        let mut svg = String::new();
        self.draw(SVGBackend::with_string(&mut svg, self.size()), 1.0, on_white)?;
        Ok(svg)
    }

    fn size(&self) -> (u32, u32) {
        let height = match &self.0.content {
            Content::Dots { rows, .. } => bars::dots_height(rows.len()),
            Content::Bars { groups, series, .. } => bars::bars_height(groups.len(), series.len()),
            Content::Curves { .. } | Content::Points { .. } => curves::HEIGHT,
            Content::Plane { .. } => xy::HEIGHT,
            Content::Squares { .. } => xy::BOARD_HEIGHT,
        };
        (canvas::WIDTH, height)
    }

    fn draw<DB: DrawingBackend>(&self, backend: DB, scale: f64, on_white: bool) -> Result<(), PlotError> {
        let failed = |message: String| PlotError { figure: self.0.name.clone(), message };
        register_fonts().map_err(failed)?;
        let canvas = Canvas { area: backend.into_drawing_area(), scale };
        let drawn = || {
            if on_white {
                canvas.fill_white()?;
            }
            canvas.title(&self.0.title)?;
            match &self.0.content {
                Content::Dots { axis, rows } => bars::dots(&canvas, axis, rows),
                Content::Bars { axis, series, groups } => bars::bars(&canvas, axis, series, groups),
                Content::Curves { axis, curves } => curves::curves(&canvas, axis, curves),
                Content::Points { x_axis, y_axis, points } => curves::points(&canvas, x_axis, y_axis, points),
                Content::Plane { x_axis, y_axis, layers } => xy::series(&canvas, x_axis, y_axis, layers),
                Content::Squares { axis, shares } => xy::squares(&canvas, axis, shares),
            }?;
            canvas.area.present()
        };
        drawn().map_err(|error| failed(error.to_string()))
    }
}

/// Gives plotters the bytes of its one font, once a process.
fn register_fonts() -> Result<(), String> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = *REGISTERED.get_or_init(|| {
        let regular = register_font(canvas::FONT, FontStyle::Normal, dejavu::sans::regular());
        let bold = register_font(canvas::FONT, FontStyle::Bold, dejavu::sans::bold());
        regular.is_ok() && bold.is_ok()
    });
    if registered { Ok(()) } else { Err("the built-in font cannot be read".into()) }
}
