//! Draws figures as SVG and PNG.
//!
//! An SVG names the generic font family `sans-serif`. PNG files and text measurements use DejaVu Sans, which is
//! compiled in, so figures are the same on every machine.

mod bars;
mod canvas;
mod curves;
mod scaling;
mod scatter;
mod weights;
mod xy;

use std::cell::RefCell;
use std::sync::OnceLock;

use image::codecs::png::PngEncoder;
use image::{ColorType, ImageEncoder};
use plotters::backend::{PixelFormat, RGBPixel};
use plotters::prelude::{BitMapBackend, DrawingBackend, IntoDrawingArea, SVGBackend};
use plotters::style::{FontStyle, register_font};
use thiserror::Error;

use super::figures::{Chart, Figure};
use canvas::{Canvas, PointedValue};

/// A figure that could not be drawn.
#[derive(Clone, Debug, Error)]
#[error("cannot draw the plot '{figure}': {message}")]
pub struct PlotError {
    pub figure: String,
    pub message: String,
}

/// PNG pixels per layout unit.
const PNG_SCALE: f64 = 2.0;

impl Figure {
    /// A self-contained SVG with a white background.
    ///
    /// # Errors
    /// When plotters cannot draw it.
    pub fn svg(&self) -> Result<String, PlotError> {
        self.draw_svg(true)
    }

    /// An SVG to embed in an HTML page: without background, in the page's text colour.
    ///
    /// # Errors
    /// When plotters cannot draw it.
    pub fn inline_svg(&self) -> Result<String, PlotError> {
        let svg = self.draw_svg(false)?.replace(canvas::INK_HEX, "currentColor");
        // The picture shrinks with its column on the page.
        let (width, height) = self.size();
        let fixed = format!("<svg width=\"{width}\" height=\"{height}\"");
        let label = super::html::escape(self.title());
        let fluid = format!("<svg role=\"img\" aria-label=\"{label}\" style=\"max-width:{width}px;width:100%\"");
        Ok(svg.replacen(&fixed, &fluid, 1))
    }

    /// A PNG with a white background, at two pixels per layout unit.
    ///
    /// # Errors
    /// When plotters cannot draw it or the image cannot be encoded.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        let (width, height) = self.size();
        let width = (f64::from(width) * PNG_SCALE) as u32;
        let height = (f64::from(height) * PNG_SCALE) as u32;
        let mut pixels = vec![0; width as usize * height as usize * RGBPixel::PIXEL_SIZE];
        let _values = self.draw(BitMapBackend::with_buffer(&mut pixels, (width, height)), PNG_SCALE, true)?;
        // Encoded in memory: plotters drops errors that occur when it flushes a file.
        let mut png = Vec::new();
        let encoded = PngEncoder::new(&mut png).write_image(&pixels, width, height, ColorType::Rgb8);
        encoded.map_err(|error| self.error(error.to_string()))?;
        Ok(png)
    }

    fn draw_svg(&self, on_white: bool) -> Result<String, PlotError> {
        let mut svg = String::new();
        let values = self.draw(SVGBackend::with_string(&mut svg, self.size()), 1.0, on_white)?;
        let end = svg.rfind("</svg>").unwrap_or(svg.len());
        svg.insert_str(end, &values.iter().map(invisible_rect).collect::<String>());
        Ok(svg)
    }

    /// Width and height in layout units.
    fn size(&self) -> (u32, u32) {
        let height = match &self.chart {
            Chart::Dots { dots, .. } => bars::dots_height(dots.len()),
            Chart::Bars { groups, bar_names, .. } => bars::bars_height(groups.len(), bar_names.len()),
            Chart::LearningCurves { .. } | Chart::DataCurves { .. } => curves::HEIGHT,
            Chart::Scatter { .. } => scatter::HEIGHT,
            Chart::Series { .. } => xy::SERIES_HEIGHT,
            Chart::BoardHeatMap { .. } => xy::BOARD_HEIGHT,
            Chart::Weights { panels, .. } => weights::height(panels),
        };
        (canvas::WIDTH, height)
    }

    /// Draws the figure, and returns the texts that the pointer shows.
    fn draw<DB: DrawingBackend>(
        &self,
        backend: DB,
        scale: f64,
        on_white: bool,
    ) -> Result<Vec<PointedValue>, PlotError> {
        register_fonts().map_err(|message| self.error(message))?;
        let area = backend.into_drawing_area();
        let values = RefCell::default();
        let canvas = Canvas { area, scale, colors: &self.colors, values };
        let draw = || {
            if on_white {
                canvas.fill_white()?;
            }
            canvas.title(&self.title)?;
            match &self.chart {
                Chart::Dots { axis, dots } => bars::draw_dots(&canvas, axis, dots),
                Chart::Bars { axis, bar_names, groups } => bars::draw_bars(&canvas, axis, bar_names, groups),
                Chart::LearningCurves { axis, curves } => curves::draw_curves(&canvas, axis, curves),
                Chart::DataCurves { x_axis, y_axis, sets, samples } => {
                    scaling::draw_scaling(&canvas, x_axis, y_axis, sets, *samples)
                }
                Chart::Scatter { x_axis, x_scale, y_axis, points } => {
                    scatter::draw_scatter(&canvas, (x_axis, *x_scale), y_axis, points)
                }
                Chart::Series { x_axis, y_axis, series } => xy::draw_series(&canvas, x_axis, y_axis, series),
                Chart::BoardHeatMap { axis, shares } => xy::draw_board(&canvas, axis, shares),
                Chart::Weights { panels, note } => weights::draw(&canvas, panels, note),
            }?;
            canvas.area.present()
        };
        draw().map_err(|error| self.error(error.to_string()))?;
        Ok(canvas.values.take())
    }

    fn error(&self, message: String) -> PlotError {
        PlotError { figure: self.name.clone(), message }
    }
}

/// A rectangle that only the pointer finds, with its text.
fn invisible_rect(PointedValue { pixels: [left, top, right, bottom], text }: &PointedValue) -> String {
    let width = right - left;
    let height = bottom - top;
    let text = super::html::escape(text);
    format!(
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill-opacity=\"0\"><title>{text}</title>\
         </rect>\n"
    )
}

/// Registers the built-in font with plotters, once per process.
fn register_fonts() -> Result<(), String> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = *REGISTERED.get_or_init(|| {
        let regular = register_font(canvas::FONT, FontStyle::Normal, dejavu::sans::regular());
        let bold = register_font(canvas::FONT, FontStyle::Bold, dejavu::sans::bold());
        regular.is_ok() && bold.is_ok()
    });
    if registered { Ok(()) } else { Err("the built-in font cannot be read".into()) }
}
