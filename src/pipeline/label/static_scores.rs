//! Scores by a network's static evaluation: blocks of records, each evaluated on all threads and then kept in the journal as
//! one line: the block's number and, for each record, four hexadecimal digits of its score in two's complement
//! ([`NO_SCORE`]: none).

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::json;

use super::scorer::{EvaluateRecords, NetworkScorer};
use super::{
    EXAMPLES, EngineLabels, FailReason, FailedPosition, Label, LabelError, LabelProgress, Labelling, RunCounts,
};
use crate::chess::{PackedMove, fen_of};
use crate::cpu::map_tasks;
use crate::data::Record;
use crate::pipeline::ScorerIdentity;
use crate::pipeline::journal::Journal;
use crate::units::SortedMap;

/// Records of a line in the journal.
const BLOCK: usize = 1 << 17;
/// Records that one thread evaluates in a row. The first of them needs a refresh.
const TASK: usize = 2048;
const NO_SCORE: i16 = i16::MIN;

/// Evaluates all records; arguments and errors as [`super::label`]'s.
pub fn evaluate_all(
    records: &[Record],
    scorer: &dyn NetworkScorer,
    journal: &Path,
    fingerprint: &str,
    progress: &mut dyn FnMut(LabelProgress),
) -> Result<EngineLabels, LabelError> {
    let engine = ScorerIdentity::Network(scorer.identity());
    let head = json!({
        "journal": "static scores",
        "version": 1,
        "records": { "number": records.len(), "hash": fingerprint, "block": BLOCK },
        "engine": engine,
    });
    let mut scores = vec![NO_SCORE; records.len()];
    let mut is_done = vec![false; records.len().div_ceil(BLOCK)];
    let mut counts = RunCounts::default();
    let mut journal = Journal::open(journal, "blocks of positions", &head, &mut |_, line| {
        let (block, found) = read_block(line)?;
        let is_whole = scores.chunks(BLOCK).nth(block).is_some_and(|place| place.len() == found.len());
        if !is_whole {
            return Err(format!("there is no block {block} of {} records", found.len()));
        }
        scores[block * BLOCK..][..found.len()].copy_from_slice(&found);
        counts.resumed += if is_done[block] { 0 } else { found.len() as u64 };
        is_done[block] = true;
        Ok(())
    })?;
    let started = Instant::now();
    let mut report = |counts: &RunCounts| {
        let seconds = started.elapsed().as_secs_f64();
        let rate = if seconds > 0.0 { counts.searched as f64 / seconds } else { 0.0 };
        let done = counts.resumed + counts.searched;
        progress(LabelProgress { done, total: records.len() as u64, failed: 0, rate });
    };
    report(&counts);
    // An evaluator holds a cache of accumulators, so threads use those that are there again.
    let idle: Mutex<Vec<EvaluateRecords<'_>>> = Mutex::default();
    for (block, place) in scores.chunks_mut(BLOCK).enumerate().filter(|(block, _)| !is_done[*block]) {
        let records = &records[block * BLOCK..][..place.len()];
        let tasks: Vec<&[Record]> = records.chunks(TASK).collect();
        let found = map_tasks(tasks.len(), &|task| {
            let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut evaluate = taken.map_or_else(|| scorer.evaluate().map_err(LabelError::Network), Ok)?;
            let mut found = Vec::with_capacity(TASK);
            evaluate(tasks[task], &mut found);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(evaluate);
            let found: Vec<i16> = found.into_iter().map(|score| score.unwrap_or(NO_SCORE)).collect();
            let digits = digits_of(&found);
            Ok::<_, LabelError>((found, digits))
        });
        let mut line = format!("{block} ");
        for (place, found) in place.chunks_mut(TASK).zip(found) {
            let (scores, digits) = found?;
            place.copy_from_slice(&scores);
            line.push_str(&digits);
        }
        journal.append(&line)?;
        counts.searched += place.len() as u64;
        report(&counts);
    }
    let failed = (0..).zip(&scores).filter(|(_, score)| **score == NO_SCORE);
    let examples: Vec<_> = failed.clone().take(EXAMPLES).map(|(number, _)| no_position(records, number)).collect();
    let failures = failed.count() as u64;
    let labelling = Labelling {
        reproducible: true,
        engine,
        limit: None,
        positions: records.len() as u64,
        repeated: 0,
        failed: (failures > 0).then_some((FailReason::NotLegal, failures)).into_iter().collect::<SortedMap<_, _>>(),
        examples,
        keep_score: 0.0,
        wdl: None,
    };
    let labels = scores.into_iter().map(|score| Label { score, mv: PackedMove::NONE }).collect();
    Ok(EngineLabels { labelling, counts, first_occurrence: Vec::new(), labels, journal })
}

fn no_position(records: &[Record], number: u32) -> FailedPosition {
    let (fen, message) = match records[number as usize].position() {
        Ok(position) => (fen_of(&position), "the position cannot be evaluated".into()),
        Err(error) => ("?".into(), error.to_string()),
    };
    FailedPosition { record: number, fen, reason: FailReason::NotLegal, message }
}

/// Four digits a score.
fn digits_of(scores: &[i16]) -> String {
    let digit = |bits: u16| b"0123456789abcdef"[usize::from(bits & 15)];
    let mut digits = Vec::with_capacity(4 * scores.len());
    for score in scores {
        let bits = score.cast_unsigned();
        digits.extend_from_slice(&[digit(bits >> 12), digit(bits >> 8), digit(bits >> 4), digit(bits)]);
    }
    String::from_utf8(digits).expect("digits are ASCII")
}

fn read_block(line: &str) -> Result<(usize, Vec<i16>), String> {
    let wrong = || "it is not the number of a block and its scores".to_owned();
    let (block, digits) = line.split_once(' ').ok_or_else(wrong)?;
    let score = |digits: &[u8]| {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).ok_or_else(wrong);
        let bits = digits.iter().map(digit).try_fold(0, |bits, digit| Ok(bits << 4 | digit?));
        bits.map(|bits: u32| (bits as u16).cast_signed())
    };
    let (quads, []) = digits.as_bytes().as_chunks::<4>() else { return Err(wrong()) };
    let scores: Result<_, String> = quads.iter().map(|quad| score(quad)).collect();
    Ok((block.parse().map_err(|_| wrong())?, scores?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip() {
        let scores = [0, 1, -1, 31_999, -31_999, NO_SCORE];
        let line = format!("7 {}", digits_of(&scores));
        assert_eq!(line, "7 00000001ffff7cff83018000");
        assert_eq!(read_block(&line), Ok((7, scores.to_vec())));
        assert_eq!(read_block("0 "), Ok((0, Vec::new())));
        for broken in ["", "7", "x 0000", "7 000", "7 000g", "7 0000 0000"] {
            assert!(read_block(broken).is_err(), "{broken}");
        }
    }
}
