//! Whether a set of one block has exactly one active feature in every position, as output buckets by an expression need.

use shakmaty::{CastlingMode, Color, Position, Role, Setup, Square};

use crate::chess::{Board, Chess, Perspective, PieceBoard, fen_of, too_close};
use crate::features::{FeatureSet, RowList};

use super::positions::random_game;

/// Random games in which a counterexample is searched for.
const GAMES: u64 = 24;

/// The answer, for the side to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneActive {
    Proved,
    /// A position in which another number of features is active.
    Counterexample {
        fen: String,
        active: usize,
    },
    /// Neither a proof nor a counterexample was found.
    Unknown,
}

impl OneActive {
    /// Counts give one element each, whatever the position. So without binders, and without counts in the condition,
    /// the number of active features depends on the kings alone, and positions of two kings are a proof.
    pub fn of(set: &FeatureSet) -> OneActive {
        let mut active = RowList::default();
        let mut counterexample = |position: &Chess| {
            let board = PieceBoard::of(position.board());
            set.encoder().encode_board(&board, Perspective::of(position.turn()), &mut active);
            let active = active.len();
            (active != 1).then(|| OneActive::Counterexample { fen: fen_of(position), active })
        };
        let is_of_kings = |spec: &crate::features::BlockSpec| spec.binders.is_empty() && spec.guards.is_empty();
        if set.blocks().iter().all(|block| is_of_kings(block.spec())) {
            return kings().find_map(|position| counterexample(&position)).unwrap_or(OneActive::Proved);
        }
        let mut games = (0..GAMES).flat_map(random_game).chain(kings());
        games.find_map(|position| counterexample(&position)).unwrap_or(OneActive::Unknown)
    }
}

/// All positions of two kings, with either side to move.
fn kings() -> impl Iterator<Item = Chess> {
    let squares = || Square::ALL.into_iter();
    let pairs = squares().flat_map(move |white| squares().map(move |black| (white, black)));
    let sides = pairs.flat_map(|(white, black)| Color::ALL.map(|turn| (white, black, turn)));
    sides.filter_map(|(white, black, turn)| {
        if too_close(white.into(), black.into()) {
            return None;
        }
        let mut board = Board::empty();
        board.set_piece_at(white, Role::King.of(Color::White));
        board.set_piece_at(black, Role::King.of(Color::Black));
        Setup { board, turn, ..Setup::empty() }.position::<Chess>(CastlingMode::Standard).ok()
    })
}
