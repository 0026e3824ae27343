//! How often a network's evaluation has the other sign than the score of a position.

use std::collections::HashSet;

use super::MeasureError;
use crate::cpu::map_tasks;
use crate::data::{Fsd, Record, Split, SplitRule};
use crate::engine::{BackEnd, LineEvaluator, Model, PositionList};
use crate::net::NetFile;
use crate::record::WrongSignRecord;
use crate::train::{TrainConfig, TrainError};

/// Positions of a parallel task.
const CHUNK: usize = 2048;

/// Counts the positions in which the integer network's evaluation has the other sign than the score, or is 0. The
/// positions are the samples of the run's validation games, in its `.fsd` file, whose score is not 0; of the first
/// `limit` of these games in the order of the file. Evaluation and score are in the side to move's view, the evaluation as
/// a whole number of the scheme's internal units. The number of threads does not change the result.
///
/// # Errors
/// When the network's feature set cannot be rebuilt, or the data are several files, cannot be read or hold a damaged
/// sample.
pub fn wrong_sign(file: &NetFile, run: &TrainConfig, limit: Option<u64>) -> Result<WrongSignRecord, MeasureError> {
    let several = || TrainError::Config("signs cannot be compared over several data files".into());
    let data = Fsd::open(run.data.only().ok_or_else(several)?)?;
    let split = SplitRule::new(run.settings.split_seed, run.settings.validation);
    let mut games = HashSet::new();
    let mut scored: Vec<usize> = Vec::new();
    let mut left_out = 0;
    for (number, record) in data.records().iter().enumerate() {
        let game = record.game();
        if !split.contains(game, Split::Validation) {
            continue;
        }
        if limit.is_some_and(|limit| games.len() as u64 >= limit) && !games.contains(&game) {
            continue;
        }
        games.insert(game);
        match record.score() {
            Some(score) if score != 0 => scored.push(number),
            _ => left_out += 1,
        }
    }
    let set = file.origin.feature_set()?;
    let model = Model::new(&file.net);
    let evaluator = LineEvaluator::new(&set, &model, BackEnd::best())?;
    let chunks: Vec<&[usize]> = scored.chunks(CHUNK).collect();
    let counts = map_tasks(chunks.len(), &|chunk| {
        let mut positions = PositionList::default();
        let mut scores = Vec::new();
        for &number in chunks[chunk] {
            let record: &Record = &data.records()[number];
            record.board().check().map_err(|reason| MeasureError::Record {
                path: data.path().into(),
                number: number as u64,
                reason: reason.into(),
            })?;
            positions.push(record.board(), record.turn());
            scores.push(record.score().unwrap_or_default());
        }
        let mut wrong = 0;
        let mut scores = scores.into_iter();
        evaluator.clone().evaluate(positions.line(), |raw| {
            let score = i32::from(scores.next().unwrap_or_default());
            wrong += u64::from(model.scheme().score(raw).signum() != score.signum());
        });
        Ok(wrong)
    });
    let wrong: Result<Vec<u64>, MeasureError> = counts.into_iter().collect();
    Ok(WrongSignRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        positions: scored.len() as u64,
        left_out,
        wrong: wrong?.into_iter().sum(),
    })
}
