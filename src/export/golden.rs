//! `golden.jsonl`: the values that an engine must reproduce, a line per position: half random play, half games of the
//! sample data.

use serde::Serialize;
use shakmaty::Position;

use super::ExportError;
use crate::chess::{BoardChange, CHESS960_STARTS, Chess, Move, Perspective, chess960_start, fen_of, uci_move};
use crate::data::games;
use crate::features::{Delta, FeatureSet};
use crate::json;
use crate::pipeline::sample_games;
use crate::units::Seed;
use rand::RngExt;

/// Positions of each kind.
const POSITIONS: usize = 1500;
/// Longest random game in plies.
const PLIES: usize = 160;

/// A network's evaluation of a position, from the side to move.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GoldenEval {
    /// In the network's own units.
    pub internal: i32,
    pub cp: i32,
}

/// Evaluates positions with the exported network.
pub type GoldenEvaluator<'a> = dyn Fn(&Chess) -> GoldenEval + 'a;

/// A game as a start and moves.
pub struct GoldenGame {
    start: Chess,
    moves: Vec<Move>,
}

impl GoldenGame {
    /// Every position, the start and the end included.
    pub fn positions(&self) -> impl Iterator<Item = Chess> + '_ {
        let mut position = self.start.clone();
        let after = self.moves.iter().map(move |mv| {
            position.play_unchecked(*mv);
            position.clone()
        });
        std::iter::once(self.start.clone()).chain(after)
    }
}

#[derive(Serialize)]
struct GoldenLine {
    fen: String,
    white: Vec<u32>,
    black: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_internal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_cp: Option<i32>,
    /// The move played in the position, and its changes.
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    mv: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<GoldenDelta>,
}

#[derive(Serialize)]
struct GoldenDelta {
    white: GoldenSide,
    black: GoldenSide,
}

#[derive(Serialize)]
struct GoldenSide {
    added: Vec<u32>,
    removed: Vec<u32>,
    refresh: bool,
}

/// The text of the file.
///
/// # Errors
/// When the sample games cannot be read.
pub fn lines(set: &FeatureSet, evaluator: Option<&GoldenEvaluator<'_>>) -> Result<String, ExportError> {
    let mut out = String::new();
    for kind in [random_lines(), real_lines()?] {
        for line in kind {
            write_line(set, evaluator, &line, &mut out);
        }
    }
    Ok(out)
}

fn write_line(set: &FeatureSet, evaluator: Option<&GoldenEvaluator<'_>>, line: &GoldenGame, out: &mut String) {
    let mut moves = line.moves.iter();
    for position in line.positions() {
        let eval = evaluator.map(|evaluate| evaluate(&position));
        let mv = moves.next();
        let [white, black] = Perspective::ALL.map(|pov| {
            let mut active = Vec::new();
            set.encoder().encode(position.board(), pov, &mut active);
            active.sort_unstable();
            active
        });
        let golden = GoldenLine {
            fen: fen_of(&position),
            white,
            black,
            eval_internal: eval.map(|eval| eval.internal),
            eval_cp: eval.map(|eval| eval.cp),
            mv: mv.map(|mv| uci_move(*mv)),
            after: mv.map(|mv| {
                let mut after = position.clone();
                after.play_unchecked(*mv);
                fen_of(&after)
            }),
            delta: mv.map(|mv| delta(set, &position, *mv)),
        };
        *out += &json::to_text(&golden).expect("numbers and text are JSON");
        out.push('\n');
    }
}

fn delta(set: &FeatureSet, position: &Chess, mv: Move) -> GoldenDelta {
    let change = BoardChange::of(mv, position.turn());
    let after = change.applied_to(position.board());
    let [white, black] = Perspective::ALL.map(|pov| {
        let mut delta = Delta::default();
        set.encoder().diff(position.board(), &change, &after, pov, &mut delta);
        GoldenSide { added: delta.added.into(), removed: delta.removed.into(), refresh: delta.refresh }
    });
    GoldenDelta { white, black }
}

/// Random games that prefer castling, en passant, promotions and captures: of standard chess, and every other one of
/// double Chess960.
pub fn random_lines() -> Vec<GoldenGame> {
    let mut lines = Vec::new();
    let mut left = POSITIONS;
    for game in 0.. {
        let mut rng = Seed(0).stream("golden", game);
        let start = start_of(game, &mut rng);
        let mut position = start.clone();
        let mut moves = Vec::new();
        while moves.len() + 1 < left.min(PLIES) {
            let legal = position.legal_moves();
            let all = |is: fn(Move) -> bool| legal.iter().filter(|mv| is(**mv)).copied().collect::<Vec<Move>>();
            let passing = all(Move::is_en_passant);
            let rare = all(|mv| mv.is_castle() || mv.is_promotion());
            let sharp = all(Move::is_capture);
            let pool = match rng.random_range(0..10) {
                _ if !passing.is_empty() => &passing[..],
                0..5 if !rare.is_empty() => &rare[..],
                0..3 if !sharp.is_empty() => &sharp[..],
                _ => &legal[..],
            };
            if pool.is_empty() {
                break;
            }
            let mv = pool[rng.random_range(0..pool.len())];
            moves.push(mv);
            position.play_unchecked(mv);
        }
        left -= moves.len() + 1;
        lines.push(GoldenGame { start, moves });
        if left == 0 {
            break;
        }
    }
    lines
}

/// The start position of a random game.
fn start_of(game: u64, rng: &mut impl RngExt) -> Chess {
    if game.is_multiple_of(2) {
        return Chess::default();
    }
    let white = rng.random_range(0..CHESS960_STARTS);
    let black = rng.random_range(0..CHESS960_STARTS);
    chess960_start(white, black).unwrap_or_default()
}

/// The first games of the sample data.
fn real_lines() -> Result<Vec<GoldenGame>, ExportError> {
    let mut lines = Vec::new();
    let mut left = POSITIONS;
    for game in games(&sample_games()?)? {
        let game = game?;
        let moves: Vec<Move> = game.moves.iter().map(|played| played.mv).take(left - 1).collect();
        left -= moves.len() + 1;
        lines.push(GoldenGame { start: game.start, moves });
        if left == 0 {
            break;
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::castling_mode;

    #[test]
    fn random_lines_have_all_kinds_of_moves() {
        let lines = random_lines();
        assert_eq!(lines.iter().map(|line| line.moves.len() + 1).sum::<usize>(), POSITIONS);
        let count = |is: fn(Move) -> bool| lines.iter().flat_map(|line| &line.moves).filter(|mv| is(**mv)).count();
        let counts = [count(Move::is_castle), count(Move::is_en_passant), count(Move::is_promotion)];
        assert!(counts.iter().all(|count| *count >= 2), "{counts:?}");
        let castles_in_chess960 = lines
            .iter()
            .any(|line| castling_mode(&line.start).is_chess960() && line.moves.iter().any(|mv| mv.is_castle()));
        assert!(castles_in_chess960);
    }
}
