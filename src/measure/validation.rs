//! The losses of a trained network's validation, by game and by class of sample.

use super::MeasureError;
use crate::chess::PieceBoard;
use crate::data::{BREAKDOWNS, Fsd, Method, SampleContext};
use crate::record::{ClassLosses, LossFunction, LossSums, ValidationLosses, ValidationRecord};
use crate::train::{TrainError, TrainingRun, ValidatedSamples};

/// Validates a finished run's network once more ([`TrainingRun::validate_each`]) and sums its losses by game and by
/// class. The run's data must be a `.fsd` file, which knows the samples' games. The number of threads does not change
/// the result.
///
/// # Errors
/// When the run has no network, the data cannot be read or hold a damaged sample, or `stop` returns true.
pub fn validation(run: &TrainingRun<'_>, stop: &dyn Fn() -> bool) -> Result<ValidationRecord, MeasureError> {
    let several = || TrainError::Config("a run over several data files cannot be validated game by game".into());
    let data = Fsd::open(run.config.data.only().ok_or_else(several)?)?;
    let mut tally = GameTally::new();
    let mut problem = None;
    let validated = run.validate_each(stop, &mut |samples| {
        tally.add(&data, samples).map_err(|error| {
            problem = Some(error);
            TrainError::Stopped
        })
    });
    match (problem, validated) {
        (Some(error), _) => return Err(error),
        (None, validated) => validated?,
    }
    let settings = &run.config.settings;
    let function = match run.config.method {
        Method::Eval => LossFunction::Eval(settings.eval_loss),
        Method::Pqr => LossFunction::Pqr(settings.pqr_loss),
    };
    Ok(ValidationRecord::new(function, tally.losses(run.config.method == Method::Pqr)))
}

/// Sums in double precision.
#[derive(Copy, Clone, Default)]
struct GameLossSums {
    samples: u32,
    loss: f64,
    preferred: u32,
}

impl GameLossSums {
    fn add(&mut self, loss: f32, preferred: bool) {
        self.samples += 1;
        self.loss += f64::from(loss);
        self.preferred += u32::from(preferred);
    }

    fn named(self, game: u32) -> LossSums {
        let GameLossSums { samples, loss, preferred } = self;
        LossSums { game, samples, loss: loss as f32, preferred }
    }
}

/// Sums by game, and by class and group of games.
struct GameTally {
    /// In the order of the data, which lists a game's samples together.
    games: Vec<(u32, GameLossSums)>,
    /// [breakdown][class][group]
    classes: Vec<Vec<Vec<GameLossSums>>>,
}

impl GameTally {
    fn new() -> GameTally {
        let groups = || vec![GameLossSums::default(); ClassLosses::GROUPS as usize];
        let classes = |breakdown: &crate::data::Breakdown| breakdown.classes.iter().map(|_| groups()).collect();
        GameTally { games: Vec::new(), classes: BREAKDOWNS.iter().map(classes).collect() }
    }

    fn add(&mut self, data: &Fsd, samples: &ValidatedSamples<'_>) -> Result<(), MeasureError> {
        let unit = data.header().score_unit;
        for (index, (number, loss)) in samples.numbers.iter().zip(samples.losses).enumerate() {
            let path = data.path();
            let records = data.records();
            let Some(record) = records.get(*number as usize) else {
                return Err(MeasureError::OtherData { path: path.into(), sample: *number, samples: records.len() });
            };
            record.board().check().map_err(|reason| MeasureError::Record {
                path: path.into(),
                number: u64::from(*number),
                reason: reason.into(),
            })?;
            let preferred = samples.preferred.get(index).copied().unwrap_or_default();
            let game = record.game();
            match self.games.last_mut() {
                Some((last, sums)) if *last == game => sums.add(*loss, preferred),
                _ => {
                    let mut sums = GameLossSums::default();
                    sums.add(*loss, preferred);
                    self.games.push((game, sums));
                }
            }
            let score = record.score().map(|score| unit.in_centipawns(score));
            let board = PieceBoard::unpacked(record.board());
            let context = SampleContext { board: &board, turn: record.turn(), ply: Some(record.ply().0), score };
            for (classes, class) in self.classes.iter_mut().zip(context.classes()) {
                if let Some(class) = class {
                    classes[class][(game % ClassLosses::GROUPS) as usize].add(*loss, preferred);
                }
            }
        }
        Ok(())
    }

    fn losses(mut self, has_preferred: bool) -> ValidationLosses {
        self.games.sort_by_key(|(game, _)| *game);
        let games = self.games.iter().map(|(game, sums)| sums.named(*game)).collect();
        let mut classes = Vec::new();
        for (breakdown, of_breakdown) in BREAKDOWNS.iter().zip(self.classes) {
            for (part, groups) in breakdown.classes.iter().zip(of_breakdown) {
                let present = (0..).zip(groups).filter(|(_, sums)| sums.samples > 0);
                let groups: Vec<LossSums> = present.map(|(group, sums)| sums.named(group)).collect();
                if !groups.is_empty() {
                    classes.push(ClassLosses { by: breakdown.heading.into(), part: (*part).into(), groups });
                }
            }
        }
        ValidationLosses { has_preferred, games, classes }
    }
}
