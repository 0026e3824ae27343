//! The canvas that all plots share: size, colours, text, and the values that a page shows under the pointer.

use std::cell::RefCell;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::{
    DrawingArea, DrawingAreaErrorKind, DrawingBackend, PathElement, RGBAColor, RGBColor, Rectangle, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, ShapeStyle, TextStyle, WHITE};

use crate::report::figures::SetColors;

/// Width of every plot in layout units (pixels of an SVG).
pub(super) const WIDTH: u32 = 860;
/// Height of the title.
pub(super) const TITLE_HEIGHT: i32 = 40;
/// The font family.
pub(super) const FONT: &str = "sans-serif";
/// Colour of text and lines. An HTML page replaces it by its own text colour.
pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const INK_HEX: &str = "#222222";
pub(super) const TEXT_SIZE: i32 = 15;

/// Okabe and Ito's palette, which colour-blind people can distinguish, without its yellow (too pale on white).
const PALETTE: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x88, 0x88, 0x88),
];

pub(super) type DrawError<DB> = DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>;
pub(super) type Drawn<DB> = Result<(), DrawError<DB>>;

/// A drawing area, its pixels per layout unit, and the report's colours.
pub(super) struct Canvas<'a, DB: DrawingBackend> {
    pub(super) area: DrawingArea<DB, Shift>,
    pub(super) scale: f64,
    pub(super) colors: &'a SetColors,
    /// The text that the pointer shows, and where.
    pub(super) values: RefCell<Vec<PointedValue>>,
}

/// A text to show while the pointer rests on a rectangle.
pub(super) struct PointedValue {
    /// Left, top, right and bottom, in pixels.
    pub(super) pixels: [i32; 4],
    pub(super) text: String,
}

/// The n-th colour of the palette, for series that are no sets.
pub(super) fn color(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// Colour of grid lines.
pub(super) fn faint() -> RGBAColor {
    INK.mix(0.13)
}

impl<DB: DrawingBackend> Canvas<'_, DB> {
    /// The colour of the set called `name`, the n-th of this plot.
    pub(super) fn color_of(&self, name: &str, index: usize) -> RGBColor {
        color(self.colors.index_of(name).unwrap_or(index))
    }

    /// Notes a text to show within `units` of a pixel.
    pub(super) fn point_out(&self, (x, y): (i32, i32), units: i32, text: String) {
        let reach = self.px(units);
        self.point_out_between((x - reach, y - reach), (x + reach, y + reach), text);
    }

    /// Notes a text to show between two pixels.
    pub(super) fn point_out_between(&self, a: (i32, i32), b: (i32, i32), text: String) {
        let pixels = [a.0.min(b.0), a.1.min(b.1), a.0.max(b.0), a.1.max(b.1)];
        self.values.borrow_mut().push(PointedValue { pixels, text });
    }

    /// Converts layout units to pixels.
    pub(super) fn px(&self, units: i32) -> i32 {
        (f64::from(units) * self.scale).round() as i32
    }

    /// A line style of width `units`.
    pub(super) fn stroke(&self, color: impl Color, units: f64) -> ShapeStyle {
        color.stroke_width((units * self.scale).round().max(1.0) as u32)
    }

    pub(super) fn text(&self, size: i32) -> TextStyle<'static> {
        (FONT, f64::from(size) * self.scale).into_font().color(&INK)
    }

    /// Draws a text, centred vertically, with its anchor at a pixel.
    pub(super) fn label(&self, text: &str, (x, y): (i32, i32), size: i32, anchor: HPos) -> Drawn<DB> {
        let style = self.text(size).pos(Pos::new(anchor, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), (x, y + self.centring_shift(size)), style))
    }

    /// Draws a coloured text, centred vertically, with its left end at a pixel.
    pub(super) fn colored_label(&self, text: &str, (x, y): (i32, i32), size: i32, color: RGBColor) -> Drawn<DB> {
        let style = (FONT, f64::from(size) * self.scale).into_font().color(&color);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), (x, y + self.centring_shift(size)), style))
    }

    /// Pixels to lower a text: bitmaps centre it with its descenders, and letters look centred a little lower.
    fn centring_shift(&self, size: i32) -> i32 {
        if self.scale > 1.0 { self.px(size) / 7 } else { 0 }
    }

    /// Applies the text sizes and line styles of axes.
    pub(super) fn style_mesh<'m, 'a, 'b, X: Ranged, Y: Ranged>(
        &self,
        mesh: &'m mut MeshStyle<'a, 'b, X, Y, DB>,
    ) -> &'m mut MeshStyle<'a, 'b, X, Y, DB> {
        mesh.axis_desc_style(self.text(TEXT_SIZE))
            .label_style(self.text(TEXT_SIZE - 1))
            .axis_style(self.stroke(INK.mix(0.5), 1.0))
            .bold_line_style(self.stroke(faint(), 1.0))
            .light_line_style(self.stroke(INK.mix(0.0), 1.0))
    }

    pub(super) fn fill_white(&self) -> Drawn<DB> {
        self.area.fill(&WHITE)
    }

    pub(super) fn title(&self, title: &str) -> Drawn<DB> {
        let font = (FONT, 19.0 * self.scale).into_font().style(FontStyle::Bold).color(&INK);
        let style = font.pos(Pos::new(HPos::Left, VPos::Top));
        self.area.draw(&Text::new(title.to_owned(), (self.px(12), self.px(10)), style))
    }

    /// Width of a text, in pixels.
    pub(super) fn width_of(&self, text: &str, size: i32) -> i32 {
        // If the text cannot be measured, letters are assumed to be 0.55 em wide.
        let fallback = (text.chars().count() as f64 * f64::from(size) * self.scale * 0.55) as u32;
        self.area.estimate_text_size(text, &self.text(size)).map_or(fallback, |(width, _)| width) as i32
    }

    /// Draws the legend, coloured squares with names, from pixel (x, y) to the right.
    pub(super) fn legend(&self, names: &[(&str, RGBColor)], x: i32, y: i32) -> Drawn<DB> {
        let mut left = x;
        for (name, color) in names {
            let side = self.px(11);
            let square = [(left, y - side / 2), (left + side, y + side - side / 2)];
            self.area.draw(&Rectangle::new(square, color.filled()))?;
            left += side + self.px(6);
            self.label(name, (left, y), TEXT_SIZE, HPos::Left)?;
            left += self.width_of(name, TEXT_SIZE) + self.px(22);
        }
        Ok(())
    }

    /// Draws a line between two pixels.
    pub(super) fn line(&self, points: [(i32, i32); 2], style: ShapeStyle) -> Drawn<DB> {
        self.area.draw(&PathElement::new(points.to_vec(), style))
    }
}
