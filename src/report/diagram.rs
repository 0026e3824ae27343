//! Chess boards with marks on them, as SVG.

use std::fmt::Write as _;

use super::html::escape;

/// How a mark is drawn.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HighlightKind {
    Kept,
    Removed,
    Added,
}

/// Squares that belong together: one is marked, and joined by arrows to the next. Squares are numbered a1 = 0 … h8 = 63.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Highlight {
    pub squares: Vec<u8>,
    pub tone: HighlightKind,
    /// Shown when the pointer rests on it.
    pub title: String,
}

/// A board with a heading.
#[derive(Clone, Debug)]
pub struct Diagram {
    pub title: String,
    /// Smaller lines under the title.
    pub notes: Vec<String>,
    /// Of each square the piece as in a FEN.
    pub pieces: [Option<char>; 64],
    pub marks: Vec<Highlight>,
}

const SQUARE: usize = 44;
const BOARD: usize = 8 * SQUARE;
const MARGIN: usize = 24;
const LINE: usize = 16;

impl HighlightKind {
    const fn color(self) -> &'static str {
        match self {
            HighlightKind::Kept => "#4c72b0",
            HighlightKind::Removed => "#c0392b",
            HighlightKind::Added => "#1e8449",
        }
    }
}

/// Boards in rows, White below, with a legend of the tones that occur.
#[must_use]
pub fn diagrams_svg(rows: &[Vec<Diagram>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = columns * (BOARD + MARGIN) + MARGIN;
    let heights: Vec<usize> = rows.iter().map(|row| row.iter().map(height).max().unwrap_or(0)).collect();
    let legend = 2 * LINE;
    let total = heights.iter().map(|height| height + MARGIN).sum::<usize>() + MARGIN + legend;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{total}\" viewBox=\"0 0 {width} {total}\" \
         font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<defs>\n"
    );
    for tone in [HighlightKind::Kept, HighlightKind::Removed, HighlightKind::Added] {
        let color = tone.color();
        put(
            &mut out,
            format_args!(
                "<marker id=\"head{}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"5\" markerHeight=\"5\" \
                 orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"{color}\"/></marker>\n",
                tone as u8
            ),
        );
    }
    out += "</defs>\n";
    let mut top = MARGIN;
    for (row, height) in rows.iter().zip(heights) {
        for (column, board) in row.iter().enumerate() {
            draw(&mut out, board, MARGIN + column * (BOARD + MARGIN), top);
        }
        top += height + MARGIN;
    }
    draw_legend(&mut out, rows, top);
    out + "</svg>\n"
}

/// Writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

fn height(board: &Diagram) -> usize {
    (board.notes.len() + 1) * LINE + BOARD
}

fn draw_legend(out: &mut String, rows: &[Vec<Diagram>], top: usize) {
    let drawn = rows.iter().flatten().flat_map(|board| &board.marks).filter(|mark| !mark.squares.is_empty());
    let mut tones: Vec<HighlightKind> = drawn.map(|mark| mark.tone).collect();
    tones.sort_unstable();
    tones.dedup();
    for (place, tone) in tones.into_iter().enumerate() {
        let (x, name) = (MARGIN + place * 110, ["active", "removed", "added"][tone as usize]);
        let (circle, text, color) = (x + 6, x + 18, tone.color());
        put(
            out,
            format_args!(
                "<circle cx=\"{circle}\" cy=\"{top}\" r=\"6\" fill=\"{color}\" fill-opacity=\"0.55\"/>\
                 <text x=\"{text}\" y=\"{}\">{name}</text>\n",
                top + 4
            ),
        );
    }
}

fn draw(out: &mut String, board: &Diagram, left: usize, top: usize) {
    put(out, format_args!("<g transform=\"translate({left} {top})\">\n"));
    put(out, format_args!("<text y=\"12\" font-weight=\"bold\">{}</text>\n", escape(&board.title)));
    for (line, note) in board.notes.iter().enumerate() {
        put(
            out,
            format_args!(
                "<text y=\"{}\" font-size=\"10\" fill=\"#444\">{}</text>\n",
                12 + LINE * (line + 1),
                escape(note)
            ),
        );
    }
    put(out, format_args!("<g transform=\"translate(0 {})\">\n", LINE * (board.notes.len() + 1)));
    for square in 0..64u8 {
        let (x, y) = corner(square);
        let fill = if (square / 8 + square % 8) % 2 == 0 { "#d3cbb8" } else { "#f3efe4" };
        put(out, format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\" fill=\"{fill}\"/>\n"));
    }
    for mark in board.marks.iter().filter(|mark| !mark.squares.is_empty()) {
        draw_mark(out, mark);
    }
    for (square, piece) in (0..64u8).zip(&board.pieces) {
        if let Some(piece) = piece {
            let (x, y) = center(square);
            put(
                out,
                format_args!(
                    "<text x=\"{x}\" y=\"{}\" font-size=\"32\" text-anchor=\"middle\" pointer-events=\"none\">{}</text>\n",
                    y + 11,
                    glyph(*piece)
                ),
            );
        }
    }
    out.push_str("</g>\n</g>\n");
}

fn draw_mark(out: &mut String, mark: &Highlight) {
    let (color, title) = (mark.tone.color(), escape(&mark.title));
    let opacity = if mark.tone == HighlightKind::Kept { "0.28" } else { "0.55" };
    put(out, format_args!("<g><title>{title}</title>\n"));
    let (x, y) = center(mark.squares[0]);
    put(out, format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"19\" fill=\"{color}\" fill-opacity=\"{opacity}\"/>\n"));
    for pair in mark.squares.windows(2) {
        let ((x1, y1), (x2, y2)) = (center(pair[0]), center(pair[1]));
        put(
            out,
            format_args!(
                "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{color}\" stroke-width=\"2\" \
                 stroke-opacity=\"{opacity}\" marker-end=\"url(#head{})\"/>\n",
                mark.tone as u8
            ),
        );
    }
    out.push_str("</g>\n");
}

fn corner(square: u8) -> (usize, usize) {
    (usize::from(square % 8) * SQUARE, usize::from(7 - square / 8) * SQUARE)
}

fn center(square: u8) -> (usize, usize) {
    let (x, y) = corner(square);
    (x + SQUARE / 2, y + SQUARE / 2)
}

fn glyph(piece: char) -> char {
    let at = "KQRBNPkqrbnp".find(piece);
    at.and_then(|at| "♔♕♖♗♘♙♚♛♜♝♞♟".chars().nth(at)).unwrap_or(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_arrows_and_pieces_are_drawn() {
        let mut pieces = [None; 64];
        pieces[0] = Some('R');
        let mark = |squares: &[u8], tone| Highlight { squares: squares.into(), tone, title: "a<b".into() };
        let marks = vec![
            mark(&[0, 8, 16], HighlightKind::Added),
            mark(&[], HighlightKind::Kept),
            mark(&[63], HighlightKind::Removed),
        ];
        let board = Diagram { title: "T & U".into(), notes: vec!["note".into()], pieces, marks };
        let svg = diagrams_svg(&[vec![board]]);
        let count = |what: &str| svg.matches(what).count();
        assert_eq!(count("<rect x"), 64);
        assert_eq!((count("<line"), count("<title>a&lt;b</title>"), count("♖")), (2, 2, 1));
        assert_eq!((count("T &amp; U"), count(">added<"), count(">removed<"), count(">active<")), (1, 1, 1, 0));
    }
}
