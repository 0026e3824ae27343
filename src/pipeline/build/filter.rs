//! Which positions of a game become samples, as far as a position, its move, its score and its game decide.

use std::ops::ControlFlow;

use shakmaty::{Chess, Move, Position};

use super::drop_reason::{BuildCounts, DropReason, GameDropReason};
use super::options::{BuildOptions, Filter};
use crate::data::{
    Eval, GameHeader, GameResult, GameVisitor, Method, Needs, Record, RecordError, ScoreUnit, first_ply,
};
use crate::units::Ply;

/// The filters that need no other sample. As a [`GameVisitor`] it filters the positions of a PGN game while it is read.
#[derive(Clone, Debug)]
pub struct SampleFilter {
    options: BuildOptions,
    /// An engine will score the samples later, so a sample needs no score yet and the present score is ignored.
    scores_later: bool,
    unit: ScoreUnit,
}

/// The samples of a game or of a part of it, and the counts of dropped positions.
#[derive(Debug, Default)]
pub struct FilteredSamples {
    pub records: Vec<Record>,
    pub counts: BuildCounts,
}

impl SampleFilter {
    /// `unit` is the unit of the scores.
    pub fn new(options: BuildOptions, scores_later: bool, unit: ScoreUnit) -> SampleFilter {
        SampleFilter { options, scores_later, unit }
    }

    /// Checks a position.
    fn check(&self, position: &Chess, mv: Option<Move>, ply: u16, score: Option<i16>) -> Result<(), DropReason> {
        let options = &self.options;
        self.check_fields(ply, score, mv.is_some())?;
        let is_quiet = || !position.is_check() && !mv.is_some_and(|mv| mv.is_capture() || mv.is_promotion());
        if options.filter == Filter::Quiet && !is_quiet() {
            return Err(DropReason::NotQuiet);
        }
        // The move played is legal.
        let known = u16::from(mv.is_some());
        if options.min_moves() > known && position.legal_moves().len() < usize::from(options.min_moves()) {
            return Err(DropReason::FewMoves);
        }
        Ok(())
    }

    /// The checks that do not need the position itself.
    fn check_fields(&self, ply: u16, score: Option<i16>, has_move: bool) -> Result<(), DropReason> {
        let options = &self.options;
        if ply < options.min_ply {
            return Err(DropReason::Early);
        }
        if options.max_ply.is_some_and(|last| ply > last) {
            return Err(DropReason::Late);
        }
        if options.method == Method::Pqr && !has_move {
            return Err(DropReason::NoMove);
        }
        if self.scores_later { Ok(()) } else { self.check_score(score) }
    }

    /// The checks of the score.
    pub fn check_score(&self, score: Option<i16>) -> Result<(), DropReason> {
        let needs_score = matches!(self.options.needs, Needs::Score | Needs::Both);
        if self.options.method == Method::Eval && needs_score && score.is_none() {
            return Err(DropReason::NoScore);
        }
        let exceeds = |cap: u16| score.is_some_and(|score| self.unit.in_centipawns(score).abs() > f32::from(cap));
        if self.options.max_score.is_some_and(exceeds) { Err(DropReason::Decided) } else { Ok(()) }
    }

    /// The checks of a score that is read after its position was kept.
    fn check_late_score(&self, score: Option<i16>) -> Result<(), DropReason> {
        if self.scores_later { Ok(()) } else { self.check_score(score) }
    }

    /// Drops the samples without the result or score that `needs` asks for; called when the game's result is known.
    fn drop_unlabelled(&self, filtered: &mut FilteredSamples) {
        let options = &self.options;
        let (reason, is_labelled): (_, fn(&Record) -> bool) = match options.needs {
            Needs::Result | Needs::Both => (DropReason::NoResult, |record| record.result().is_some()),
            Needs::Any if !self.scores_later => (DropReason::NoLabel, |record| Needs::Any.met_by(record)),
            Needs::Any | Needs::Score => return,
        };
        if options.method == Method::Eval {
            let before = filtered.records.len();
            filtered.records.retain(is_labelled);
            filtered.counts.drop(reason, (before - filtered.records.len()) as u64);
        }
    }

    /// Whether some filter needs the position itself of a record with or without a move.
    fn needs_position(&self, has_move: bool) -> bool {
        let options = &self.options;
        options.filter == Filter::Quiet || options.min_moves() > u16::from(has_move)
    }

    /// Filters records of a format other than PGN.
    ///
    /// # Errors
    /// When a record holds no legal position and move; the error comes with its index in `records`.
    pub fn filter(&self, records: &[Record]) -> Result<FilteredSamples, (usize, RecordError)> {
        let mut filtered = FilteredSamples::default();
        filtered.counts.positions = records.len() as u64;
        for (index, record) in records.iter().enumerate() {
            let checked = if self.needs_position(record.has_move()) {
                let sample = record.unpack().map_err(|error| (index, error))?;
                self.check(&sample.position, sample.mv, sample.ply.0, sample.score)
            } else {
                self.check_fields(record.ply().0, record.score(), record.has_move())
            };
            match checked {
                Ok(()) => filtered.records.push(*record),
                Err(reason) => filtered.counts.drop(reason, 1),
            }
        }
        self.drop_unlabelled(&mut filtered);
        Ok(filtered)
    }
}

/// The samples of the game being read.
pub struct UnfinishedGame {
    filtered: FilteredSamples,
    ply: u16,
    /// White's view of the current position.
    eval: Option<Eval>,
    newest: NewestMove,
}

/// The state of the newest move's position, as far as a score read later can change it.
enum NewestMove {
    /// It is kept with a score, or dropped.
    Settled,
    /// It is the last record, which has no score.
    KeptUnscored,
    /// It was not kept because it has no score.
    MissesScore(Box<(Chess, Move, u16)>),
}

impl UnfinishedGame {
    /// Ends the newest move: no score of it can follow.
    fn settle(&mut self) {
        if let NewestMove::MissesScore(_) = std::mem::replace(&mut self.newest, NewestMove::Settled) {
            self.filtered.counts.drop(DropReason::NoScore, 1);
        }
    }

    /// Adds a checked position, or counts why it is dropped.
    fn add(
        &mut self,
        before: &Chess,
        mv: Move,
        ply: u16,
        score: Option<i16>,
        checked: Result<(), DropReason>,
    ) -> NewestMove {
        let packed = checked.and_then(|()| {
            Record::of(before, 0, Ply(ply), Some(mv), score, None).map_err(|_| DropReason::TooManyPieces)
        });
        match packed {
            Ok(record) => {
                self.filtered.records.push(record);
                if score.is_none() { NewestMove::KeptUnscored } else { NewestMove::Settled }
            }
            Err(reason) => {
                self.filtered.counts.drop(reason, 1);
                NewestMove::Settled
            }
        }
    }
}

impl GameVisitor for SampleFilter {
    type State = UnfinishedGame;
    type Output = FilteredSamples;

    fn begin_game(&self, head: &GameHeader, length: usize) -> ControlFlow<FilteredSamples, UnfinishedGame> {
        let BuildOptions { min_rating, speeds, .. } = &self.options;
        let rated = |least: u16| [head.ratings.white, head.ratings.black].iter().all(|rating| *rating >= Some(least));
        let reason = if min_rating.is_some_and(|least| !rated(least)) {
            GameDropReason::Rating
        } else if !speeds.is_empty() && !head.speed.is_some_and(|speed| speeds.contains(&speed)) {
            GameDropReason::TimeControl
        } else {
            // A move with its evaluation takes about 28 bytes of text; long texts hold other comments too.
            let records = Vec::with_capacity((length / 24).min(500));
            return ControlFlow::Continue(UnfinishedGame {
                filtered: FilteredSamples { records, counts: BuildCounts::of_one_game() },
                ply: first_ply(&head.start).0,
                eval: None,
                newest: NewestMove::Settled,
            });
        };
        let mut filtered = FilteredSamples { records: Vec::new(), counts: BuildCounts::of_one_game() };
        filtered.counts.drop_game(reason);
        ControlFlow::Break(filtered)
    }

    fn visit_move(&self, game: &mut UnfinishedGame, before: &Chess, mv: Move) {
        let ply = game.ply;
        game.ply = ply.saturating_add(1);
        game.filtered.counts.positions += 1;
        let turn = before.turn();
        let score = game.eval.take().map(|eval| turn.fold_wb(eval, eval.reversed()).centipawns());
        game.settle();
        game.newest = match self.check(before, Some(mv), ply, score) {
            Err(DropReason::NoScore) => NewestMove::MissesScore(Box::new((before.clone(), mv, ply))),
            checked => game.add(before, mv, ply, score, checked),
        };
    }

    fn visit_eval(&self, game: &mut UnfinishedGame, eval: Eval) {
        game.eval = Some(eval);
    }

    fn visit_search_eval(&self, game: &mut UnfinishedGame, eval: Eval) {
        let score = Some(eval.centipawns());
        match std::mem::replace(&mut game.newest, NewestMove::Settled) {
            NewestMove::Settled => {}
            NewestMove::KeptUnscored => match (self.check_late_score(score), game.filtered.records.pop()) {
                (Ok(()), Some(record)) => game.filtered.records.push(record.with_score(score)),
                (Err(reason), _) => game.filtered.counts.drop(reason, 1),
                (Ok(()), None) => {}
            },
            NewestMove::MissesScore(position) => {
                let (before, mv, ply) = *position;
                let checked = self.check(&before, Some(mv), ply, score);
                game.newest = game.add(&before, mv, ply, score, checked);
            }
        }
    }

    fn end_game(&self, mut game: UnfinishedGame, _: GameHeader, result: Option<GameResult>) -> FilteredSamples {
        game.settle();
        let mut filtered = game.filtered;
        if let Some(result) = result {
            for record in &mut filtered.records {
                let own = record.turn().fold_wb(result, result.reversed());
                *record = record.with_result(Some(own));
            }
        }
        self.drop_unlabelled(&mut filtered);
        filtered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::parse_fen;

    /// Of a stalemate and a position with one legal move, neither of which has a move.
    #[test]
    fn one_legal_move_is_counted_where_no_move_is_recorded() {
        let record = |fen: &str| {
            let position = parse_fen(fen).expect("a FEN");
            Record::of(&position, 0, Ply(0), None, Some(0), None).expect("fits")
        };
        let records = ["7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "7k/8/6K1/8/8/8/8/8 b - - 0 1"].map(record);
        let kept = |min_moves: u16| {
            let options = BuildOptions { min_moves: Some(min_moves), ..BuildOptions::new(Method::Eval) };
            let filter = SampleFilter::new(options, false, ScoreUnit::Centipawns);
            filter.filter(&records).expect("legal").records
        };
        assert_eq!(kept(0), records);
        assert_eq!(kept(1), [records[1]]);
        assert!(kept(2).is_empty());
    }
}
