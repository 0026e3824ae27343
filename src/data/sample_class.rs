//! The classes of samples by which losses are broken down: pieces, ply, material, score, king squares.

use crate::chess::{Color, File, Piece, PieceBoard, PieceCode, Rank, Role, Square};

/// A division of the samples into classes.
#[derive(Copy, Clone, Debug)]
pub struct Breakdown {
    pub heading: &'static str,
    pub classes: &'static [&'static str],
    /// The class of a sample; `None` if its format does not tell.
    pub classify: fn(&SampleContext<'_>) -> Option<usize>,
}

/// The properties that determine a sample's classes.
#[derive(Copy, Clone, Debug)]
pub struct SampleContext<'a> {
    pub board: &'a PieceBoard,
    pub turn: Color,
    /// `None` if the format has no plies.
    pub ply: Option<u16>,
    /// In centipawns; `None` for samples without a score.
    pub score: Option<f32>,
}

impl SampleContext<'_> {
    /// The sample's class in each breakdown, in the order of [`BREAKDOWNS`].
    pub fn classes(&self) -> impl Iterator<Item = Option<usize>> {
        BREAKDOWNS.iter().map(|breakdown| (breakdown.classify)(self))
    }
}

/// In the order of [`LossBreakdown`](crate::record::LossBreakdown).
pub const BREAKDOWNS: [Breakdown; 6] = [
    Breakdown {
        heading: "pieces left",
        classes: &["2-4", "5-8", "9-12", "13-16", "17-20", "21-24", "25-28", "29-32"],
        classify: pieces,
    },
    Breakdown { heading: "ply", classes: &["0-19", "20-39", "40-59", "60-79", "80-119", "120-"], classify: ply },
    Breakdown {
        heading: "material",
        classes: &["-6 and less", "-5 to -3", "-2, -1", "0", "1, 2", "3 to 5", "6 and more"],
        classify: material,
    },
    Breakdown {
        heading: "score",
        classes: &["0-49", "50-99", "100-199", "200-399", "400-799", "800 and more"],
        classify: score,
    },
    Breakdown {
        heading: "king",
        classes: &["a-c, rank 1-2", "d-e, rank 1-2", "f-h, rank 1-2", "rank 3-8"],
        classify: king_region,
    },
    Breakdown { heading: "kings", classes: &["same half", "opposite halves"], classify: king_halves },
];

#[allow(clippy::unnecessary_wraps, reason = "the type of `Breakdown::classify`")]
fn pieces(sample: &SampleContext<'_>) -> Option<usize> {
    Some((sample.board.occupied().count_ones() as usize).saturating_sub(1) / 4)
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
    let code = |color: Color, role: Role| PieceCode::of(Piece { color, role }).index();
    let count = |color: Color, role: Role| sample.board.by_code()[code(color, role)].count_ones() as i32;
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

/// By the score's size, whichever side it favours.
fn score(sample: &SampleContext<'_>) -> Option<usize> {
    let bounds = [50.0, 100.0, 200.0, 400.0, 800.0];
    sample.score.map(|score| bounds.partition_point(|bound| *bound <= score.abs()))
}

fn king_region(sample: &SampleContext<'_>) -> Option<usize> {
    let square = Square::new(sample.board.king_of(sample.turn)?);
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
    let on_left = |square: u32| Square::new(square).file() <= File::D;
    Some(usize::from(on_left(white?) != on_left(black?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Board;

    fn class(heading: &str, ply: Option<u16>, score: Option<f32>) -> Option<&'static str> {
        let context = SampleContext { board: &PieceBoard::of(&Board::default()), turn: Color::White, ply, score };
        let division = BREAKDOWNS.iter().position(|breakdown| breakdown.heading == heading).expect("a heading");
        context.classes().nth(division).flatten().map(|class| BREAKDOWNS[division].classes[class])
    }

    #[test]
    fn scores_and_plies_at_the_bounds() {
        let of_score = |score| class("score", None, Some(score)).expect("a class");
        let found = [0.0, -49.9, 50.0, -99.0, 100.0, 399.0, -400.0, 799.5, 800.0, -32_000.0].map(of_score);
        let expected = [
            "0-49",
            "0-49",
            "50-99",
            "50-99",
            "100-199",
            "200-399",
            "400-799",
            "400-799",
            "800 and more",
            "800 and more",
        ];
        assert_eq!(found, expected);
        assert_eq!([class("score", None, None), class("ply", None, None)], [None, None]);
        let of_ply = |ply| class("ply", Some(ply), None).expect("a class");
        assert_eq!(
            [0, 19, 20, 79, 80, 119, 120].map(of_ply),
            ["0-19", "0-19", "20-39", "60-79", "80-119", "80-119", "120-"]
        );
    }

    #[test]
    fn every_class_of_the_first_position() {
        let named = |heading| class(heading, Some(0), Some(20.0)).expect("a class");
        let found = BREAKDOWNS.map(|breakdown| named(breakdown.heading));
        assert_eq!(found, ["29-32", "0-19", "0", "0-49", "d-e, rank 1-2", "same half"]);
    }
}
