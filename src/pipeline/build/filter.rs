//! Which positions of a game become samples: what can be told from the position, its move and its score alone.

use std::ops::ControlFlow;

use shakmaty::{Chess, Move, Position};

use super::drop_reason::{BuildCounts, DropReason, GameDropReason};
use super::options::{BuildOptions, Filter};
use crate::data::{Eval, GameResult, Head, Method, Needs, Record, RecordError, ScoreUnit, Scribe, first_ply};
use crate::units::Ply;

/// The filters that need no other sample.
#[derive(Clone, Debug)]
pub struct SampleFilter {
    options: BuildOptions,
    /// An engine gives the scores later: now a sample needs none, and the scores there are say nothing.
    scores_later: bool,
    unit: ScoreUnit,
}

/// The samples of a game or a part of one, and what became of the rest.
#[derive(Debug, Default)]
pub struct FilteredSamples {
    pub records: Vec<Record>,
    pub tally: BuildCounts,
}

impl SampleFilter {
    pub fn new(options: BuildOptions, scores_later: bool, unit: ScoreUnit) -> SampleFilter {
        SampleFilter { options, scores_later, unit }
    }

    /// Passes a position with the number of its legal moves (0 where nobody asks for it), or says why not.
    fn look(&self, position: &Chess, mv: Option<Move>, ply: u16, score: Option<i16>) -> Result<u16, DropReason> {
        let options = &self.options;
        self.look_at_numbers(ply, score, mv.is_some())?;
        let lively = || position.is_check() || mv.is_some_and(|mv| mv.is_capture() || mv.is_promotion());
        if options.filter == Filter::Quiet && lively() {
            return Err(DropReason::NotQuiet);
        }
        // The move played is legal, so one move needs no count.
        if options.min_moves < 2 && options.min_moves_quantile.is_none() {
            return Ok(0);
        }
        let moves = position.legal_moves().len() as u16;
        match moves < options.min_moves {
            true => Err(DropReason::FewMoves),
            false => Ok(if options.min_moves_quantile.is_some() { moves } else { 0 }),
        }
    }

    fn look_at_numbers(&self, ply: u16, score: Option<i16>, has_move: bool) -> Result<(), DropReason> {
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
        if self.scores_later { Ok(()) } else { self.look_at_score(score) }
    }

    /// What the score alone decides.
    pub fn look_at_score(&self, score: Option<i16>) -> Result<(), DropReason> {
        let needed = matches!(self.options.needs, Needs::Score | Needs::Both);
        if self.options.method == Method::Eval && needed && score.is_none() {
            return Err(DropReason::NoScore);
        }
        let beyond = |cap: u16| score.is_some_and(|score| self.unit.in_centipawns(score).abs() > f32::from(cap));
        if self.options.max_score.is_some_and(beyond) { Err(DropReason::Decided) } else { Ok(()) }
    }

    /// Leaves out the samples that lack what λ asks for, now that the game's result is known.
    fn look_at_results(&self, sifted: &mut FilteredSamples) {
        let options = &self.options;
        let (why, kept): (_, fn(&Record) -> bool) = match options.needs {
            Needs::Result | Needs::Both => (DropReason::NoResult, |record| record.result().is_some()),
            Needs::Any if !self.scores_later => (DropReason::NoLabel, |record| Needs::Any.met_by(record)),
            Needs::Any | Needs::Score => return,
        };
        if options.method == Method::Eval {
            let before = sifted.records.len();
            sifted.records.retain(kept);
            sifted.tally.drop(why, (before - sifted.records.len()) as u64);
        }
    }

    /// What a score found out later decides of a position that is kept.
    fn look_at_kept(&self, score: Option<i16>) -> Result<(), DropReason> {
        if self.scores_later { Ok(()) } else { self.look_at_score(score) }
    }

    /// Whether the position itself must be looked at, not only its numbers.
    fn needs_position(&self) -> bool {
        let options = &self.options;
        options.filter == Filter::Quiet || options.min_moves > 1 || options.min_moves_quantile.is_some()
    }

    /// Passes records of another source.
    ///
    /// # Errors
    /// A record that holds no legal position and move, with its place in `records`.
    pub fn sift(&self, records: &[Record]) -> Result<FilteredSamples, (usize, RecordError)> {
        let mut sifted = FilteredSamples::default();
        sifted.tally.positions = records.len() as u64;
        for (place, record) in records.iter().enumerate() {
            let looked = if self.needs_position() {
                let sample = record.unpack().map_err(|error| (place, error))?;
                self.look(&sample.position, sample.mv, sample.ply.0, sample.score)
            } else {
                self.look_at_numbers(record.ply().0, record.score(), record.has_move()).map(|()| 0)
            };
            match looked {
                Ok(moves) => sifted.records.push(record.with_scratch(moves)),
                Err(why) => sifted.tally.drop(why, 1),
            }
        }
        self.look_at_results(&mut sifted);
        Ok(sifted)
    }
}

/// A game while it is read.
pub struct Page {
    sifted: FilteredSamples,
    ply: u16,
    /// White's view of the current position.
    eval: Option<Eval>,
    newest: Newest,
}

/// What became of the newest move's position, as far as a score could still change it.
enum Newest {
    Settled,
    /// The last record, which has no score.
    Kept,
    /// It would pass with a score, perhaps.
    Unscored(Box<(Chess, Move, u16)>),
}

impl Page {
    /// Nothing more is said of the newest move.
    fn settle(&mut self) {
        if let Newest::Unscored(_) = std::mem::replace(&mut self.newest, Newest::Settled) {
            self.sifted.tally.drop(DropReason::NoScore, 1);
        }
    }

    /// Keeps a position that passed, or counts why it did not.
    fn keep(
        &mut self,
        before: &Chess,
        mv: Move,
        ply: u16,
        score: Option<i16>,
        looked: Result<u16, DropReason>,
    ) -> Newest {
        let packed = looked.and_then(|moves| {
            let record = Record::of(before, 0, Ply(ply), Some(mv), score, None);
            record.map(|record| record.with_scratch(moves)).map_err(|_| DropReason::TooManyPieces)
        });
        match packed {
            Ok(record) => {
                self.sifted.records.push(record);
                if score.is_none() { Newest::Kept } else { Newest::Settled }
            }
            Err(why) => {
                self.sifted.tally.drop(why, 1);
                Newest::Settled
            }
        }
    }
}

impl Scribe for SampleFilter {
    type Page = Page;
    type Kept = FilteredSamples;

    fn open(&self, head: &Head, length: usize) -> ControlFlow<FilteredSamples, Page> {
        let BuildOptions { min_rating, speeds, .. } = &self.options;
        let rated = |least: u16| [head.ratings.white, head.ratings.black].iter().all(|rating| *rating >= Some(least));
        let why = if min_rating.is_some_and(|least| !rated(least)) {
            GameDropReason::Rating
        } else if !speeds.is_empty() && !head.speed.is_some_and(|speed| speeds.contains(&speed)) {
            GameDropReason::TimeControl
        } else {
            // With evaluations a move takes some 28 bytes; longer texts hold more than moves.
            let records = Vec::with_capacity((length / 24).min(500));
            let sifted = FilteredSamples { records, tally: BuildCounts::of_a_game() };
            return ControlFlow::Continue(Page {
                sifted,
                ply: first_ply(&head.start).0,
                eval: None,
                newest: Newest::Settled,
            });
        };
        let mut sifted = FilteredSamples { records: Vec::new(), tally: BuildCounts::of_a_game() };
        sifted.tally.drop_game(why);
        ControlFlow::Break(sifted)
    }

    fn ply(&self, page: &mut Page, before: &Chess, mv: Move) {
        let ply = page.ply;
        page.ply = ply.saturating_add(1);
        page.sifted.tally.positions += 1;
        let turn = before.turn();
        let score = page.eval.take().map(|eval| turn.fold_wb(eval, eval.reversed()).centipawns());
        page.settle();
        page.newest = match self.look(before, Some(mv), ply, score) {
            Err(DropReason::NoScore) => Newest::Unscored(Box::new((before.clone(), mv, ply))),
            looked => page.keep(before, mv, ply, score, looked),
        };
    }

    fn eval(&self, page: &mut Page, eval: Eval) {
        page.eval = Some(eval);
    }

    fn searched(&self, page: &mut Page, eval: Eval) {
        let score = Some(eval.centipawns());
        match std::mem::replace(&mut page.newest, Newest::Settled) {
            Newest::Settled => {}
            Newest::Kept => match (self.look_at_kept(score), page.sifted.records.pop()) {
                (Ok(()), Some(record)) => page.sifted.records.push(record.with_score(score)),
                (Err(why), _) => page.sifted.tally.drop(why, 1),
                (Ok(()), None) => {}
            },
            Newest::Unscored(position) => {
                let (before, mv, ply) = *position;
                let looked = self.look(&before, Some(mv), ply, score);
                page.newest = page.keep(&before, mv, ply, score, looked);
            }
        }
    }

    fn close(&self, mut page: Page, _: Head, result: Option<GameResult>) -> FilteredSamples {
        page.settle();
        let mut sifted = page.sifted;
        if let Some(result) = result {
            for record in &mut sifted.records {
                let own = record.turn().fold_wb(result, result.reversed());
                *record = record.with_result(Some(own));
            }
        }
        self.look_at_results(&mut sifted);
        sifted
    }
}
