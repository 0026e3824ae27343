//! Chess diagrams with highlighted squares, as SVG.

use std::fmt::Write as _;

use super::html::escape;

/// What happened to the feature that a highlight shows; it decides the colour.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HighlightKind {
    /// Active before and after the move.
    Unchanged,
    Removed,
    Added,
}

/// The squares of one feature: the first is circled, and arrows lead to the others in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Highlight {
    /// Squares as numbers, a1 = 0 … h8 = 63.
    pub squares: Vec<u8>,
    pub kind: HighlightKind,
    /// Shown when the pointer rests on the highlight.
    pub tooltip: String,
}

/// A board with a heading.
#[derive(Clone, Debug)]
pub struct Diagram {
    pub title: String,
    /// Smaller lines under the title.
    pub notes: Vec<String>,
    /// The piece on each square, by its FEN letter.
    pub pieces: [Option<char>; 64],
    pub highlights: Vec<Highlight>,
}

const SQUARE: usize = 44;
const BOARD: usize = 8 * SQUARE;
const MARGIN: usize = 24;
const LINE: usize = 16;

impl HighlightKind {
    const ALL: [HighlightKind; 3] = [HighlightKind::Unchanged, HighlightKind::Removed, HighlightKind::Added];

    const fn color(self) -> &'static str {
        match self {
            HighlightKind::Unchanged => "#4c72b0",
            HighlightKind::Removed => "#c0392b",
            HighlightKind::Added => "#1e8449",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            HighlightKind::Unchanged => "active",
            HighlightKind::Removed => "removed",
            HighlightKind::Added => "added",
        }
    }
}

/// Draws diagrams in rows, White below, with a legend of the highlight kinds that occur.
#[must_use]
pub fn diagrams_svg(rows: &[Vec<Diagram>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = columns * (BOARD + MARGIN) + MARGIN;
    let heights: Vec<usize> = rows.iter().map(|row| row.iter().map(height).max().unwrap_or(0)).collect();
    let legend = 2 * LINE;
    let total = heights.iter().map(|height| height + MARGIN).sum::<usize>() + MARGIN + legend;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{total}\" viewBox=\"0 0 {width} \
         {total}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<defs>\n"
    );
    for kind in HighlightKind::ALL {
        let color = kind.color();
        append(
            &mut out,
            format_args!(
                "<marker id=\"head{}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"5\" markerHeight=\"5\" \
                 orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"{color}\"/></marker>\n",
                kind as u8
            ),
        );
    }
    out += "</defs>\n";
    let mut top = MARGIN;
    for (row, height) in rows.iter().zip(heights) {
        for (column, diagram) in row.iter().enumerate() {
            draw(&mut out, diagram, MARGIN + column * (BOARD + MARGIN), top);
        }
        top += height + MARGIN;
    }
    draw_legend(&mut out, rows, top);
    out + "</svg>\n"
}

fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

fn height(diagram: &Diagram) -> usize {
    (diagram.notes.len() + 1) * LINE + BOARD
}

fn draw_legend(out: &mut String, rows: &[Vec<Diagram>], top: usize) {
    let highlights = rows.iter().flatten().flat_map(|diagram| &diagram.highlights);
    let mut kinds: Vec<HighlightKind> =
        highlights.filter(|highlight| !highlight.squares.is_empty()).map(|highlight| highlight.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for (index, kind) in kinds.into_iter().enumerate() {
        let x = MARGIN + index * 110;
        let name = kind.name();
        let color = kind.color();
        let circle_x = x + 6;
        let text_x = x + 18;
        append(
            out,
            format_args!(
                "<circle cx=\"{circle_x}\" cy=\"{top}\" r=\"6\" fill=\"{color}\" fill-opacity=\"0.55\"/>\
                 <text x=\"{text_x}\" y=\"{}\">{name}</text>\n",
                top + 4
            ),
        );
    }
}

fn draw(out: &mut String, diagram: &Diagram, left: usize, top: usize) {
    append(out, format_args!("<g transform=\"translate({left} {top})\">\n"));
    append(out, format_args!("<text y=\"12\" font-weight=\"bold\">{}</text>\n", escape(&diagram.title)));
    for (line, note) in diagram.notes.iter().enumerate() {
        append(
            out,
            format_args!(
                "<text y=\"{}\" font-size=\"10\" fill=\"#444\">{}</text>\n",
                12 + LINE * (line + 1),
                escape(note)
            ),
        );
    }
    append(out, format_args!("<g transform=\"translate(0 {})\">\n", LINE * (diagram.notes.len() + 1)));
    for square in 0..64u8 {
        let (x, y) = corner(square);
        let fill = if (square / 8 + square % 8) % 2 == 0 { "#d3cbb8" } else { "#f3efe4" };
        append(
            out,
            format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\" fill=\"{fill}\"/>\n"),
        );
    }
    for highlight in diagram.highlights.iter().filter(|highlight| !highlight.squares.is_empty()) {
        draw_highlight(out, highlight);
    }
    for (square, piece) in (0..64u8).zip(&diagram.pieces) {
        if let Some(piece) = piece {
            let (x, y) = center(square);
            append(
                out,
                format_args!(
                    "<text x=\"{x}\" y=\"{}\" font-size=\"32\" text-anchor=\"middle\" \
                     pointer-events=\"none\">{}</text>\n",
                    y + 11,
                    glyph(*piece)
                ),
            );
        }
    }
    out.push_str("</g>\n</g>\n");
}

fn draw_highlight(out: &mut String, highlight: &Highlight) {
    let color = highlight.kind.color();
    let tooltip = escape(&highlight.tooltip);
    let opacity = if highlight.kind == HighlightKind::Unchanged { "0.28" } else { "0.55" };
    append(out, format_args!("<g><title>{tooltip}</title>\n"));
    let (x, y) = center(highlight.squares[0]);
    append(out, format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"19\" fill=\"{color}\" fill-opacity=\"{opacity}\"/>\n"));
    for pair in highlight.squares.windows(2) {
        let (x1, y1) = center(pair[0]);
        let (x2, y2) = center(pair[1]);
        append(
            out,
            format_args!(
                "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{color}\" stroke-width=\"2\" \
                 stroke-opacity=\"{opacity}\" marker-end=\"url(#head{})\"/>\n",
                highlight.kind as u8
            ),
        );
    }
    out.push_str("</g>\n");
}

/// The upper left corner of a square, in pixels.
fn corner(square: u8) -> (usize, usize) {
    (usize::from(square % 8) * SQUARE, usize::from(7 - square / 8) * SQUARE)
}

fn center(square: u8) -> (usize, usize) {
    let (x, y) = corner(square);
    (x + SQUARE / 2, y + SQUARE / 2)
}

/// The chess symbol of a FEN letter.
fn glyph(piece: char) -> char {
    let index = "KQRBNPkqrbnp".find(piece);
    index.and_then(|index| "♔♕♖♗♘♙♚♛♜♝♞♟".chars().nth(index)).unwrap_or(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highlights_arrows_and_pieces_are_drawn() {
        let mut pieces = [None; 64];
        pieces[0] = Some('R');
        let highlight = |squares: &[u8], kind| Highlight { squares: squares.into(), kind, tooltip: "a<b".into() };
        let highlights = vec![
            highlight(&[0, 8, 16], HighlightKind::Added),
            highlight(&[], HighlightKind::Unchanged),
            highlight(&[63], HighlightKind::Removed),
        ];
        let diagram = Diagram { title: "T & U".into(), notes: vec!["note".into()], pieces, highlights };
        let svg = diagrams_svg(&[vec![diagram]]);
        let count = |text: &str| svg.matches(text).count();
        assert_eq!(count("<rect x"), 64);
        assert_eq!((count("<line"), count("<title>a&lt;b</title>"), count("♖")), (2, 2, 1));
        assert_eq!((count("T &amp; U"), count(">added<"), count(">removed<"), count(">active<")), (1, 1, 1, 0));
    }
}
