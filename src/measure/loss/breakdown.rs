//! The parts that samples are told apart by: pieces, ply, material, kings.

use crate::chess::{Board, Color, File, Rank, Role};

/// A division of all samples into parts.
pub(super) struct Division {
    pub parts: &'static [&'static str],
    /// The part a sample is in; none where the format does not say.
    pub of: fn(&Place<'_>) -> Option<usize>,
}

/// What a sample's parts depend on.
pub(super) struct Place<'a> {
    pub board: &'a Board,
    pub turn: Color,
    /// None where the format has no plies.
    pub ply: Option<u16>,
}

/// In the order of [`crate::record::ByPlace`].
pub(super) const DIVISIONS: [Division; 5] = [
    Division { parts: &["2-4", "5-8", "9-12", "13-16", "17-20", "21-24", "25-28", "29-32"], of: pieces },
    Division { parts: &["0-19", "20-39", "40-59", "60-79", "80-119", "120-"], of: ply },
    Division { parts: &["-6 and less", "-5 to -3", "-2, -1", "0", "1, 2", "3 to 5", "6 and more"], of: material },
    Division { parts: &["a-c, rank 1-2", "d-e, rank 1-2", "f-h, rank 1-2", "rank 3-8"], of: king },
    Division { parts: &["same half", "opposite halves"], of: kings },
];

#[allow(clippy::unnecessary_wraps, reason = "one of several")]
fn pieces(place: &Place<'_>) -> Option<usize> {
    Some(place.board.occupied().count().saturating_sub(1) / 4)
}

fn ply(place: &Place<'_>) -> Option<usize> {
    place.ply.map(|ply| match ply {
        0..=79 => usize::from(ply) / 20,
        80..=119 => 4,
        _ => 5,
    })
}

#[allow(clippy::unnecessary_wraps, reason = "one of several")]
fn material(place: &Place<'_>) -> Option<usize> {
    let values = [(Role::Pawn, 1), (Role::Knight, 3), (Role::Bishop, 3), (Role::Rook, 5), (Role::Queen, 9)];
    let count = |color: Color, role: Role| (place.board.by_color(color) & place.board.by_role(role)).count() as i32;
    let balance = |(role, value): (Role, i32)| value * (count(place.turn, role) - count(place.turn.other(), role));
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

fn king(place: &Place<'_>) -> Option<usize> {
    let square = place.board.king_of(place.turn)?;
    let rank = if place.turn.is_white() { square.rank() } else { square.rank().flip_vertical() };
    Some(match square.file() {
        _ if rank > Rank::Second => 3,
        File::A | File::B | File::C => 0,
        File::D | File::E => 1,
        File::F | File::G | File::H => 2,
    })
}

fn kings(place: &Place<'_>) -> Option<usize> {
    let [white, black] = [Color::White, Color::Black].map(|color| place.board.king_of(color));
    let left = |square: crate::chess::Square| square.file() <= File::D;
    Some(usize::from(left(white?) != left(black?)))
}
