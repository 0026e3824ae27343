//! The journal's line for a searched position: record number, score and best move in UCI notation, such as
//! `1234 -31 e2e4` or `7 #2 d1h5`. The score is the side to move's view: centipawns, or `#` and the moves to mate.

use super::Label;
use crate::chess::{legal_move, uci_move};
use crate::data::{Eval, Record};
use crate::pipeline::uci::Answer;

pub fn write(number: u32, answer: &Answer) -> String {
    format!("{number} {} {}", answer.eval.to_word(), uci_move(answer.best))
}

/// The record number and the label, checked against the record.
pub fn read(line: &str, records: &[Record]) -> Result<(u32, Label), String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [number, score, best] = words[..] else { return Err("it does not have three words".into()) };
    let number: u32 = number.parse().map_err(|_| format!("{number:?} is not a record number"))?;
    let record = records.get(number as usize).ok_or_else(|| format!("there is no record {number}"))?;
    let eval = Eval::from_word(score).filter(|eval| *eval != Eval::Mate(0));
    let eval = eval.ok_or_else(|| format!("{score:?} is not a score"))?;
    let position = record.position().map_err(|error| format!("record {number}: {error}"))?;
    let best = legal_move(best, &position);
    let best = best.ok_or_else(|| format!("its move is illegal in the position of record {number}"))?;
    Ok((number, Label::of(&Answer { best, eval })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Sample;
    use crate::units::{Centipawn, Ply};
    use shakmaty::{Chess, Position};

    #[test]
    fn lines_round_trip() {
        let position = Chess::default();
        let sample = Sample { position: position.clone(), game: 0, ply: Ply(0), mv: None, score: None, result: None };
        let records = [Record::pack(&sample).unwrap()];
        let best = position.legal_moves()[3];
        for eval in [Eval::Score(Centipawn(-31)), Eval::Score(Centipawn(30_000)), Eval::Mate(-3), Eval::Mate(999)] {
            let answer = Answer { best, eval };
            let (number, label) = read(&write(0, &answer), &records).unwrap();
            assert_eq!((number, label.eval(), label.best_move(&position)), (0, eval, Some(best)));
        }
        let check = |line: &str, expected: &str| assert_eq!(read(line, &records).unwrap_err(), expected);
        check("0 3", "it does not have three words");
        check("1 3 e2e4", "there is no record 1");
        check("-1 3 e2e4", "\"-1\" is not a record number");
        check("0 x e2e4", "\"x\" is not a score");
        check("0 #0 e2e4", "\"#0\" is not a score");
        check("0 3 e2e5", "its move is illegal in the position of record 0");
    }
}
