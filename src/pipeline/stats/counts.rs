//! Counting sample by sample. Sums are whole numbers, so the order of the parts does not matter.

use serde::{Deserialize, Serialize};
use shakmaty::{Board, Color, Position, Role};

use super::histogram::Histogram;
use super::logistic::{ResultCounts, fit};
use super::{DatasetStats, Duplicates, SCORE_CUT};
use crate::chess::mobility;
use crate::data::formats::SampleReader;
use crate::data::{Eval, GameResult, Record, RecordError, ScoreUnit};

/// Moves of the pieces of a role, as `moves(P)` counts them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleMobility {
    pub role: String,
    /// Pieces seen.
    pub pieces: u64,
    /// Moves a piece.
    pub mean: f64,
    pub moves: Histogram,
}

/// Legal moves of the positions at a ply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LegalMovesAtPly {
    pub ply: u16,
    pub positions: u64,
    pub mean: f64,
    /// At 5, 25, 50, 75 and 95 percent.
    pub quantiles: [i32; 5],
}

const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
/// More squares than a piece can reach.
const REACH: usize = 32;

/// Counts of a part of the samples.
pub struct SampleCounts {
    with_move: u64,
    pieces: [u64; 33],
    kings: [u64; 64],
    mates: [u64; 2],
    mobility: [[u64; REACH]; 6],
    numbers: Vec<Numbers>,
    totals: Totals,
}

/// What is counted later, in tables too large for every part.
struct Numbers {
    ply: u16,
    moves: u16,
    /// Centipawns, cut; none for mates and where there is no score.
    score: Option<i32>,
    scored: bool,
    result: Option<GameResult>,
}

/// The tables.
#[derive(Default)]
struct Totals {
    with_score: u64,
    results: ResultCounts,
    plies: Histogram,
    scores: Histogram,
    legal: Vec<Histogram>,
    outcomes: std::collections::BTreeMap<i32, ResultCounts>,
}

impl Default for SampleCounts {
    fn default() -> SampleCounts {
        SampleCounts {
            with_move: 0,
            pieces: [0; 33],
            kings: [0; 64],
            mates: [0; 2],
            mobility: [[0; REACH]; 6],
            numbers: Vec::new(),
            totals: Totals::default(),
        }
    }
}

impl SampleCounts {
    /// # Errors
    /// A record that is no legal position.
    pub fn add(&mut self, record: &Record, unit: ScoreUnit) -> Result<(), RecordError> {
        let position = record.position()?;
        let board = position.board();
        self.with_move += u64::from(record.has_move());
        self.pieces[record.board().count() as usize] += 1;
        for color in Color::ALL {
            let seen = board.king_of(color).map(|king| color.fold_wb(king, king.flip_vertical()));
            seen.into_iter().for_each(|king| self.kings[usize::from(king)] += 1);
        }
        self.add_mobility(board);
        let mut score = None;
        match record.score() {
            Some(given) if i32::from(given) > Eval::LARGEST => self.mates[0] += 1,
            Some(given) if i32::from(given) < -Eval::LARGEST => self.mates[1] += 1,
            Some(given) => {
                let centipawns = unit.in_centipawns(given).round() as i32;
                score = Some(centipawns.clamp(-SCORE_CUT, SCORE_CUT));
            }
            None => {}
        }
        self.numbers.push(Numbers {
            ply: record.ply().0,
            moves: position.legal_moves().len() as u16,
            score,
            scored: record.score().is_some(),
            result: record.result(),
        });
        Ok(())
    }

    fn add_mobility(&mut self, board: &Board) {
        for (square, piece) in board {
            let moves = mobility(board, square, piece).count();
            self.mobility[piece.role as usize - Role::Pawn as usize][moves.min(REACH - 1)] += 1;
        }
    }

    pub fn merge(&mut self, other: &SampleCounts) {
        let add = |sums: &mut [u64], counts: &[u64]| sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        self.with_move += other.with_move;
        add(&mut self.pieces, &other.pieces);
        add(&mut self.kings, &other.kings);
        add(&mut self.mates, &other.mates);
        add(self.mobility.as_flattened_mut(), other.mobility.as_flattened());
        other.numbers.iter().for_each(|numbers| self.totals.add(numbers));
    }

    /// `read` samples came from `reader`.
    pub fn finish(self, reader: &SampleReader, read: u64, duplicates: Duplicates) -> DatasetStats {
        let totals = self.totals;
        let legal_moves = totals.legal.iter().enumerate().filter(|(_, moves)| !moves.0.is_empty());
        let legal_moves = legal_moves.map(|(ply, moves)| LegalMovesAtPly {
            ply: ply as u16,
            positions: moves.count(),
            mean: moves.mean(),
            quantiles: QUANTILES.map(|q| moves.quantile(q).unwrap_or(0)),
        });
        let mobility = Role::ALL.into_iter().zip(self.mobility).map(|(role, counts)| {
            let moves = histogram(&counts);
            RoleMobility { role: name(role), pieces: moves.count(), mean: moves.mean(), moves }
        });
        let outcomes: Vec<(i32, ResultCounts)> = totals.outcomes.into_iter().collect();
        DatasetStats {
            path: reader.path().display().to_string(),
            format: reader.format(),
            samples: read,
            games: reader.games(),
            with_score: totals.with_score,
            with_result: totals.results.count(),
            with_move: self.with_move,
            score_unit: reader.score_unit(),
            unit_said_by: Some(reader.unit().said_by),
            results: totals.results,
            plies: totals.plies,
            pieces: histogram(&self.pieces),
            scores: totals.scores,
            mates: self.mates,
            king_squares: self.kings.to_vec(),
            mobility: mobility.filter(|mobility| mobility.pieces > 0).collect(),
            legal_moves: legal_moves.collect(),
            duplicates,
            wdl: fit(&outcomes),
        }
    }
}

impl Totals {
    fn add(&mut self, numbers: &Numbers) {
        let Numbers { ply, moves, score, scored, result } = *numbers;
        self.plies.add(i32::from(ply), 1);
        if self.legal.len() <= usize::from(ply) {
            self.legal.resize_with(usize::from(ply) + 1, Histogram::default);
        }
        self.legal[usize::from(ply)].add(i32::from(moves), 1);
        self.with_score += u64::from(scored);
        if let Some(result) = result {
            self.results.add(result);
        }
        if let Some(score) = score {
            self.scores.add((f64::from(score) / 10.0).round() as i32 * 10, 1);
            if let Some(result) = result {
                self.outcomes.entry(score).or_default().add(result);
            }
        }
    }
}

fn histogram(counts: &[u64]) -> Histogram {
    Histogram((0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect())
}

fn name(role: Role) -> String {
    let name = match role {
        Role::Pawn => "pawn",
        Role::Knight => "knight",
        Role::Bishop => "bishop",
        Role::Rook => "rook",
        Role::Queen => "queen",
        Role::King => "king",
    };
    name.into()
}
