//! Counts over samples. All counts are integers, so parts can be merged in any order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Board, Color, Position, Role};

use super::histogram::Histogram;
use super::logistic::{ResultCounts, ResultsByScore, clamped_centipawns};
use super::{DatasetStats, Duplicates};
use crate::chess::mobility;
use crate::data::formats::SampleReader;
use crate::data::{Eval, GameResult, Record, RecordError, ScoreUnit};
use crate::units::SortedMap;

/// Mobility of the pieces of a role, counted as `moves(P)` counts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoleMobility {
    /// The kind of piece.
    pub role: String,
    /// Number of pieces.
    pub pieces: u64,
    /// Mean moves per piece.
    pub mean: f64,
    pub moves: Histogram,
}

/// Numbers of legal moves at a ply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegalMovesAtPly {
    /// Plies since the start of the game.
    pub ply: u16,
    /// Positions at this ply.
    pub positions: u64,
    /// Mean number of legal moves.
    pub mean: f64,
    /// The 5%, 25%, 50%, 75% and 95% quantiles.
    pub quantiles: [i32; 5],
}

const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
/// A bound on the squares that a piece can reach.
const MOBILITY_BOUND: usize = 32;

/// Counts over a part of the samples. Small tables are counted by every part; the large `histograms` are filled when
/// parts are merged.
pub struct SampleCounts {
    with_move: u64,
    chess960: u64,
    pieces: [u64; 33],
    kings: [u64; 64],
    mates: [u64; 2],
    /// Sum of the scores in whole centipawns, without mates.
    score_sum: i64,
    mobility: [[u64; MOBILITY_BOUND]; 6],
    facts: Vec<SampleFacts>,
    histograms: Histograms,
}

/// The facts about a sample that the histograms count.
struct SampleFacts {
    ply: u16,
    legal_moves: u16,
    /// Centipawns, clamped; `None` for mate scores and without a score.
    score: Option<i32>,
    has_score: bool,
    result: Option<GameResult>,
}

#[derive(Default)]
struct Histograms {
    with_score: u64,
    results: ResultCounts,
    plies: Histogram,
    scores: Histogram,
    legal_moves_by_ply: Vec<Histogram>,
    results_by_score: ResultsByScore,
}

impl Default for SampleCounts {
    fn default() -> SampleCounts {
        SampleCounts {
            with_move: 0,
            chess960: 0,
            pieces: [0; 33],
            kings: [0; 64],
            mates: [0; 2],
            score_sum: 0,
            mobility: [[0; MOBILITY_BOUND]; 6],
            facts: Vec::new(),
            histograms: Histograms::default(),
        }
    }
}

impl SampleCounts {
    /// # Errors
    /// When the record holds no legal position.
    pub fn add(&mut self, record: &Record, unit: ScoreUnit) -> Result<(), RecordError> {
        let position = record.position()?;
        let board = position.board();
        self.with_move += u64::from(record.has_move());
        self.chess960 += u64::from(record.has_chess960_rights());
        self.pieces[record.board().count() as usize] += 1;
        for color in Color::ALL {
            let own_view = board.king_of(color).map(|king| color.fold_wb(king, king.flip_vertical()));
            own_view.into_iter().for_each(|king| self.kings[usize::from(king)] += 1);
        }
        self.add_mobility(board);
        let mut score = None;
        match record.score() {
            Some(stored) if i32::from(stored) > Eval::LARGEST => self.mates[0] += 1,
            Some(stored) if i32::from(stored) < -Eval::LARGEST => self.mates[1] += 1,
            Some(stored) => {
                score = clamped_centipawns(stored, unit);
                self.score_sum += unit.in_centipawns(stored).round() as i64;
            }
            None => {}
        }
        self.facts.push(SampleFacts {
            ply: record.ply().0,
            legal_moves: position.legal_moves().len() as u16,
            score,
            has_score: record.score().is_some(),
            result: record.result(),
        });
        Ok(())
    }

    fn add_mobility(&mut self, board: &Board) {
        for (square, piece) in board {
            let moves = mobility(board, square, piece).count();
            self.mobility[piece.role as usize - Role::Pawn as usize][moves.min(MOBILITY_BOUND - 1)] += 1;
        }
    }

    pub fn merge(&mut self, other: &SampleCounts) {
        let add = |sums: &mut [u64], counts: &[u64]| sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        self.with_move += other.with_move;
        self.chess960 += other.chess960;
        add(&mut self.pieces, &other.pieces);
        add(&mut self.kings, &other.kings);
        add(&mut self.mates, &other.mates);
        self.score_sum += other.score_sum;
        add(self.mobility.as_flattened_mut(), other.mobility.as_flattened());
        other.facts.iter().for_each(|facts| self.histograms.add(facts));
    }

    /// The statistics of all `samples` samples, which came from `reader`.
    pub fn finish(self, reader: &SampleReader, samples: u64, duplicates: Duplicates) -> DatasetStats {
        let histograms = self.histograms;
        let legal_moves = histograms.legal_moves_by_ply.iter().enumerate().filter(|(_, moves)| !moves.0.is_empty());
        let legal_moves = legal_moves.map(|(ply, moves)| LegalMovesAtPly {
            ply: ply as u16,
            positions: moves.count(),
            mean: moves.mean(),
            quantiles: QUANTILES.map(|q| moves.quantile(q).unwrap_or(0)),
        });
        let mobility = Role::ALL.into_iter().zip(self.mobility).map(|(role, counts)| {
            let moves = histogram(&counts);
            RoleMobility { role: role_name(role), pieces: moves.count(), mean: moves.mean(), moves }
        });
        let scored = histograms.scores.count();
        DatasetStats {
            path: reader.path().display().to_string(),
            format: reader.format(),
            samples,
            games: reader.games(),
            with_score: histograms.with_score,
            with_result: histograms.results.count(),
            with_move: self.with_move,
            chess960: self.chess960,
            skipped: reader.skipped(),
            left_out: SortedMap::new(),
            score_unit: reader.score_unit(),
            unit_said_by: reader.unit().origin,
            notes: reader.notes(),
            results: histograms.results,
            plies: histograms.plies,
            pieces: histogram(&self.pieces),
            mean_score: (scored > 0).then(|| self.score_sum as f64 / scored as f64),
            scores: histograms.scores,
            mates: self.mates,
            king_squares: self.kings.to_vec(),
            mobility: mobility.filter(|mobility| mobility.pieces > 0).collect(),
            legal_moves: legal_moves.collect(),
            duplicates,
            wdl: histograms.results_by_score.fit(),
        }
    }
}

impl Histograms {
    fn add(&mut self, facts: &SampleFacts) {
        let SampleFacts { ply, legal_moves, score, has_score, result } = *facts;
        self.plies.add(i32::from(ply), 1);
        if self.legal_moves_by_ply.len() <= usize::from(ply) {
            self.legal_moves_by_ply.resize_with(usize::from(ply) + 1, Histogram::default);
        }
        self.legal_moves_by_ply[usize::from(ply)].add(i32::from(legal_moves), 1);
        self.with_score += u64::from(has_score);
        if let Some(result) = result {
            self.results.add(result);
        }
        if let Some(score) = score {
            self.scores.add((f64::from(score) / 10.0).round() as i32 * 10, 1);
            if let Some(result) = result {
                self.results_by_score.add(score, result);
            }
        }
    }
}

fn histogram(counts: &[u64]) -> Histogram {
    Histogram((0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect())
}

fn role_name(role: Role) -> String {
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
