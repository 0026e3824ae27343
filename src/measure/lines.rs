//! Lines of play in a file of any format: the games of PGN, or samples that follow on each other. A sample that nothing
//! follows on is a line of its own, with its move where it has one.

use std::borrow::Cow;
use std::path::Path;

use rayon::prelude::*;
use shakmaty::Position;

use super::MeasureError;
use crate::chess::{Board, BoardChange, Chess, Color, Move};
use crate::data::formats::{Format, SampleReader, SkippedSamples, detect};
use crate::data::{DataError, Fsd, Game, Games, Record, Skipped, games};
use crate::engine::Evaluator;

/// A position and moves played from it.
#[derive(Clone, Debug)]
pub struct Line {
    pub start: Chess,
    pub moves: Vec<Move>,
    /// Whether the position after the last move counts, too: a record without a move.
    pub last: bool,
}

/// A move on the board.
pub struct Step<'a> {
    pub before: &'a Chess,
    pub mv: Move,
    pub change: &'a BoardChange,
    pub after: &'a Board,
}

impl Line {
    /// Visits the moves in order.
    pub fn walk(&self, mut visit: impl FnMut(&Step<'_>)) {
        let mut position = self.start.clone();
        for mv in &self.moves {
            let change = BoardChange::of(*mv, position.turn());
            let after = change.applied_to(position.board());
            visit(&Step { before: &position, mv: *mv, change: &change, after: &after });
            position.play_unchecked(*mv);
        }
    }

    /// Visits the positions a move was played from (and the last where it counts), each with the move that led to it.
    pub fn positions(&self, mut visit: impl FnMut(&Board, Color, Option<&Step<'_>>)) {
        let mut left = self.len();
        if left > 0 {
            visit(self.start.board(), self.start.turn(), None);
        }
        self.walk(|step| {
            left -= 1;
            if left > 0 {
                visit(step.after, step.before.turn().other(), Some(step));
            }
        });
    }

    /// How many positions [`Line::positions`] visits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.moves.len() + usize::from(self.last)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The line cut to its first `positions`.
    fn truncated(mut self, positions: usize) -> Line {
        self.last &= self.len() <= positions;
        self.moves.truncate(positions);
        self
    }
}

/// Brings an evaluator to the position [`Line::positions`] visits.
pub(super) fn follow(evaluator: &mut Evaluator<'_>, board: &Board, step: Option<&Step<'_>>) {
    match step {
        None => evaluator.set(board),
        Some(step) => evaluator.play(step.before.board(), step.change, step.after),
    }
}

/// How the reading went.
#[derive(Clone, Debug, Default)]
pub struct ReadSummary {
    pub games: u64,
    /// Broken games that were passed over.
    pub skipped: Skipped,
    /// Broken samples, of formats without games.
    pub skipped_samples: SkippedSamples,
}

impl ReadSummary {
    /// What was passed over.
    #[must_use]
    pub fn skipped_total(&self) -> u64 {
        self.skipped.total() + self.skipped_samples.total()
    }
}

/// Folds every line of a file with all cores; `work` sees each line once, `merge` must not care about order.
///
/// # Errors
/// When the file cannot be read, is damaged, or holds no position.
pub(super) fn fold<T: Send>(
    path: &Path,
    limit: Option<u64>,
    empty: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, &Line) + Sync,
    merge: impl Fn(T, T) -> T + Sync,
) -> Result<(T, ReadSummary), MeasureError> {
    let mut source = Source::open(path, limit.unwrap_or(u64::MAX))?;
    let mut total = empty();
    let mut lines_seen = false;
    loop {
        let batch = source.batch()?;
        if batch.is_empty() {
            break;
        }
        lines_seen = true;
        let fold = |mut sum: T, item: Item<'_>| {
            item.lines(path)?.iter().for_each(|line| work(&mut sum, line));
            Ok::<T, MeasureError>(sum)
        };
        let sums = batch.into_par_iter().with_min_len(8).try_fold(&empty, fold);
        let sum = sums.try_reduce(&empty, |a, b| Ok(merge(a, b)))?;
        total = merge(total, sum);
    }
    let reading = source.reading();
    match lines_seen {
        true => Ok((total, reading)),
        false => Err(MeasureError::Nothing { path: path.into(), skipped: reading.skipped_total() }),
    }
}

/// The first lines of a file, in order, until they hold `positions` positions.
///
/// # Errors
/// As [`fold`].
pub(super) fn first(path: &Path, positions: u64) -> Result<(Vec<Line>, ReadSummary), MeasureError> {
    first_two(path, [positions, 0]).map(|([lines, _], reading)| (lines, reading))
}

/// The first lines of a file, in order, until they hold so many positions, and then those of the games behind until they
/// hold so many: no game is in both parts.
///
/// # Errors
/// As [`fold`].
pub(super) fn first_two(path: &Path, positions: [u64; 2]) -> Result<([Vec<Line>; 2], ReadSummary), MeasureError> {
    let mut source = Source::open(path, u64::MAX)?;
    let mut parts = [Vec::new(), Vec::new()];
    let mut left = positions.map(|positions| positions as usize);
    while left != [0, 0] {
        let batch = source.batch()?;
        if batch.is_empty() {
            break;
        }
        for item in batch {
            let part = usize::from(left[0] == 0);
            if left[part] == 0 {
                break;
            }
            for line in item.lines(path)? {
                let line = line.truncated(left[part]);
                if !line.is_empty() {
                    left[part] -= line.len();
                    parts[part].push(line);
                }
            }
        }
    }
    let reading = source.reading();
    match parts[0].is_empty() {
        true => Err(MeasureError::Nothing { path: path.into(), skipped: reading.skipped_total() }),
        false => Ok((parts, reading)),
    }
}

/// Games taken at once.
const BATCH: usize = 1024;

struct Source {
    content: Content,
    /// Games still wanted.
    left: u64,
    games: u64,
}

enum Content {
    Games(Games),
    Records { file: Fsd, next: usize },
    Samples(Samples),
}

/// One game, not yet unpacked.
enum Item<'a> {
    Game(Game),
    Records { first: usize, records: Cow<'a, [Record]> },
}

impl Source {
    fn open(path: &Path, limit: u64) -> Result<Source, MeasureError> {
        let content = match detect(path)? {
            Format::Fsd => Content::Records { file: Fsd::open(path)?, next: 0 },
            Format::Pgn => Content::Games(games(path)?),
            format => Content::Samples(Samples::open(path, format)?),
        };
        Ok(Source { content, left: limit, games: 0 })
    }

    /// The next games that hold positions; none at the end.
    fn batch(&mut self) -> Result<Vec<Item<'_>>, MeasureError> {
        let wanted = (BATCH as u64).min(self.left) as usize;
        let mut batch = Vec::with_capacity(wanted);
        match &mut self.content {
            Content::Games(games) => {
                while batch.len() < wanted {
                    match games.next().transpose()? {
                        Some(game) if game.moves.is_empty() => {}
                        Some(game) => batch.push(Item::Game(game)),
                        None => break,
                    }
                }
            }
            Content::Records { file, next } => {
                let records = file.records();
                while batch.len() < wanted && *next < records.len() {
                    let rest = &records[*next..];
                    let game = rest[0].game();
                    let count = rest.iter().position(|record| record.game() != game).unwrap_or(rest.len());
                    batch.push(Item::Records { first: *next, records: Cow::Borrowed(&rest[..count]) });
                    *next += count;
                }
            }
            Content::Samples(samples) => {
                while batch.len() < wanted
                    && let Some((first, records)) = samples.game()?
                {
                    batch.push(Item::Records { first, records: Cow::Owned(records) });
                }
            }
        }
        self.left -= batch.len() as u64;
        self.games += batch.len() as u64;
        Ok(batch)
    }

    fn reading(self) -> ReadSummary {
        let (skipped, skipped_samples) = match self.content {
            Content::Games(games) => (games.skipped().clone(), SkippedSamples::default()),
            Content::Records { .. } => Default::default(),
            Content::Samples(samples) => (Skipped::default(), samples.reader.skipped()),
        };
        ReadSummary { games: self.games, skipped, skipped_samples }
    }
}

/// Samples of a format that is read block by block.
struct Samples {
    reader: SampleReader,
    block: Vec<Record>,
    /// Of the block's records, the first that was not handed out; and its number in the file.
    next: usize,
    number: usize,
}

impl Samples {
    fn open(path: &Path, format: Format) -> Result<Samples, DataError> {
        let reader = SampleReader::open(path, Some(format), None)?;
        Ok(Samples { reader, block: Vec::new(), next: 0, number: 0 })
    }

    /// The next game's records with the number of the first; none at the end.
    fn game(&mut self) -> Result<Option<(usize, Vec<Record>)>, DataError> {
        let (first, mut records) = (self.number, Vec::new());
        loop {
            if self.next == self.block.len() {
                let Some(block) = self.reader.next_block()? else { break };
                (self.block, self.next) = (block, 0);
            }
            let rest = &self.block[self.next..];
            let game = records.first().unwrap_or(&rest[0]).game();
            let count = rest.iter().position(|record| record.game() != game).unwrap_or(rest.len());
            records.extend_from_slice(&rest[..count]);
            (self.next, self.number) = (self.next + count, self.number + count);
            // A game may go on in the next block.
            if self.next < self.block.len() {
                break;
            }
        }
        Ok((!records.is_empty()).then_some((first, records)))
    }
}

impl Item<'_> {
    fn lines(self, path: &Path) -> Result<Vec<Line>, MeasureError> {
        match self {
            Item::Game(game) => {
                let moves = game.moves.iter().map(|played| played.mv).collect();
                Ok(vec![Line { start: game.start, moves, last: false }])
            }
            Item::Records { first, records } => chain(path, first, &records),
        }
    }
}

/// Lines of one game's records: a line goes on while a record's move leads to the next record's position. Where samples
/// were left out a new line begins, counted as a game's start is.
fn chain(path: &Path, first: usize, records: &[Record]) -> Result<Vec<Line>, MeasureError> {
    let mut lines: Vec<Line> = Vec::new();
    let mut reached: Option<Chess> = None;
    for (offset, record) in records.iter().enumerate() {
        let at = |reason| MeasureError::Record { path: path.into(), number: (first + offset) as u64, reason };
        let sample = record.unpack().map_err(at)?;
        let follows =
            |position: &Chess| position.board() == sample.position.board() && position.turn() == sample.position.turn();
        if !reached.as_ref().is_some_and(follows) {
            lines.push(Line { start: sample.position.clone(), moves: Vec::new(), last: false });
        }
        if let Some(line) = lines.last_mut() {
            match sample.mv {
                Some(mv) => line.moves.push(mv),
                None => line.last = true,
            }
        }
        reached = sample.mv.map(|mv| {
            let mut after = sample.position;
            after.play_unchecked(mv);
            after
        });
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Sample;
    use crate::units::Ply;
    use shakmaty::uci::UciMove;

    /// Records of `moves` from the initial position; `kept` says which stand in the file, and with their move or not.
    fn records(moves: &str, kept: &[Option<bool>]) -> Vec<Record> {
        let mut position = Chess::default();
        let mut records = Vec::new();
        for (ply, (text, keep)) in moves.split(' ').zip(kept).enumerate() {
            let uci: UciMove = text.parse().expect("UCI");
            let mv = uci.to_move(&position).expect("legal");
            if let Some(with_move) = *keep {
                let mv = with_move.then_some(mv);
                let ply = Ply(ply as u16);
                let sample = Sample { position: position.clone(), game: 0, ply, mv, score: None, result: None };
                records.push(Record::pack(&sample).expect("fits"));
            }
            position.play_unchecked(mv);
        }
        records
    }

    #[test]
    fn records_that_follow_on_each_other_make_a_line() {
        let check = |kept: [Option<bool>; 5], expected: &[(usize, bool)]| {
            let lines = chain(Path::new("file"), 0, &records("e2e4 e7e5 e1e2 d8h4 a2a3", &kept)).expect("sound");
            let found: Vec<_> = lines.iter().map(|line| (line.moves.len(), line.last)).collect();
            assert_eq!(found, expected, "{kept:?}");
            for line in &lines {
                let mut visited = 0;
                line.positions(|_, _, step| {
                    assert_eq!(step.is_none(), visited == 0);
                    visited += 1;
                });
                assert_eq!(visited, line.len());
            }
            assert_eq!(lines.iter().map(Line::len).sum::<usize>(), kept.iter().flatten().count());
        };
        let (yes, bare, out) = (Some(true), Some(false), None);
        check([yes, yes, yes, yes, yes], &[(5, false)]);
        check([yes, yes, out, yes, yes], &[(2, false), (2, false)]);
        check([out, yes, out, yes, out], &[(1, false), (1, false)]);
        check([yes, yes, bare, yes, out], &[(2, true), (1, false)]);
        check([bare, out, out, out, bare], &[(0, true), (0, true)]);
    }

    #[test]
    fn lines_are_cut_to_a_number_of_positions() {
        let kept = [Some(true), Some(true), Some(false)];
        let lines = chain(Path::new("file"), 0, &records("e2e4 e7e5 e1e2", &kept)).expect("sound");
        let lengths = |positions| lines[0].clone().truncated(positions).len();
        assert_eq!([0, 1, 2, 3, 9].map(lengths), [0, 1, 2, 3, 3]);
    }

    #[test]
    fn a_damaged_record_is_named() {
        let mut damaged = records("e2e4", &[Some(true)]);
        bytemuck::cast_slice_mut::<Record, u8>(&mut damaged)[37] = 9;
        let error = chain(Path::new("file"), 41, &damaged).expect_err("damaged");
        assert_eq!(error.to_string(), "record 41 of file: byte 37 of the record is 9, which stands for nothing");
    }
}
