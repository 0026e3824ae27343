//! The classes by which losses are broken down: pieces, ply, material, king squares.

use crate::chess::{Board, Color, File, Rank, Role};

/// A division of the samples into classes.
pub(super) struct Breakdown {
    pub classes: &'static [&'static str],
    /// The class of a sample; `None` if its format does not tell.
    pub classify: fn(&SampleContext<'_>) -> Option<usize>,
}

/// The properties that determine a sample's classes.
pub(super) struct SampleContext<'a> {
    pub board: &'a Board,
    pub turn: Color,
    /// `None` if the format has no plies.
    pub ply: Option<u16>,
}

/// In the order of [`crate::record::LossBreakdown`].
pub(super) const BREAKDOWNS: [Breakdown; 5] = [
    Breakdown { classes: &["2-4", "5-8", "9-12", "13-16", "17-20", "21-24", "25-28", "29-32"], classify: pieces },
    Breakdown { classes: &["0-19", "20-39", "40-59", "60-79", "80-119", "120-"], classify: ply },
    Breakdown {
        classes: &["-6 and less", "-5 to -3", "-2, -1", "0", "1, 2", "3 to 5", "6 and more"],
        classify: material,
    },
    Breakdown { classes: &["a-c, rank 1-2", "d-e, rank 1-2", "f-h, rank 1-2", "rank 3-8"], classify: king_region },
    Breakdown { classes: &["same half", "opposite halves"], classify: king_halves },
];

#[allow(clippy::unnecessary_wraps, reason = "the type of `Breakdown::classify`")]
fn pieces(sample: &SampleContext<'_>) -> Option<usize> {
    Some(sample.board.occupied().count().saturating_sub(1) / 4)
}

fn ply(sample: &SampleContext<'_>) -> Option<usize> {
    sample.ply.map(|ply| match ply {
        0..=79 => usize::from(ply) / 20,
        80..=119 => 4,
        _ => 5,
    })
}

#[allow(clippy::unnecessary_wraps, reason = "the type of `Breakdown::classify`")]
fn material(sample: &SampleContext<'_>) -> Option<usize> {
    let values = [(Role::Pawn, 1), (Role::Knight, 3), (Role::Bishop, 3), (Role::Rook, 5), (Role::Queen, 9)];
    let count = |color: Color, role: Role| (sample.board.by_color(color) & sample.board.by_role(role)).count() as i32;
    let balance = |(role, value): (Role, i32)| value * (count(sample.turn, role) - count(sample.turn.other(), role));
    Some(match values.into_iter().map(balance).sum() {
        i32::MIN..=-6 => 0,
        -5..=-3 => 1,
        -2..=-1 => 2,
        0 => 3,
        1..=2 => 4,
        3..=5 => 5,
        6.. => 6,
    })
}

fn king_region(sample: &SampleContext<'_>) -> Option<usize> {
    let square = sample.board.king_of(sample.turn)?;
    let rank = if sample.turn.is_white() { square.rank() } else { square.rank().flip_vertical() };
    Some(match square.file() {
        _ if rank > Rank::Second => 3,
        File::A | File::B | File::C => 0,
        File::D | File::E => 1,
        File::F | File::G | File::H => 2,
    })
}

fn king_halves(sample: &SampleContext<'_>) -> Option<usize> {
    let [white, black] = [Color::White, Color::Black].map(|color| sample.board.king_of(color));
    let on_left = |square: crate::chess::Square| square.file() <= File::D;
    Some(usize::from(on_left(white?) != on_left(black?)))
}
