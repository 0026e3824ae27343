//! Reads lines of play from a file of any format: the games of PGN, or consecutive samples of one game. A sample
//! without a successor is a line of its own, with its move if it has one.

use std::borrow::Cow;
use std::path::Path;

use rayon::prelude::*;
use shakmaty::Position;

use super::MeasureError;
use crate::chess::{Board, BoardChange, Chess, Color, Move};
use crate::data::formats::{Format, SampleReader, SkippedSamples, detect};
use crate::data::{DataError, Fsd, Games, PgnGame, Record, SkippedGames, games};
use crate::engine::Evaluator;

/// A position and the moves played from it.
#[derive(Clone, Debug)]
pub struct Line {
    pub start: Chess,
    pub moves: Vec<Move>,
    /// Whether the position after the last move counts too: it comes from a sample without a move.
    pub includes_end: bool,
}

/// A move of a line.
pub struct LineMove<'a> {
    pub before: &'a Chess,
    pub mv: Move,
    pub change: &'a BoardChange,
    pub after: &'a Board,
}

impl Line {
    /// Visits the moves in order.
    pub fn for_each_move(&self, mut visit: impl FnMut(&LineMove<'_>)) {
        let mut position = self.start.clone();
        for mv in &self.moves {
            let change = BoardChange::of(*mv, position.turn());
            let after = change.applied_to(position.board());
            visit(&LineMove { before: &position, mv: *mv, change: &change, after: &after });
            position.play_unchecked(*mv);
        }
    }

    /// Visits the positions of the line ([`Line::len`]), each with its side to move and the move that led to it.
    pub fn for_each_position(&self, mut visit: impl FnMut(&Board, Color, Option<&LineMove<'_>>)) {
        let mut remaining = self.len();
        if remaining > 0 {
            visit(self.start.board(), self.start.turn(), None);
        }
        self.for_each_move(|played| {
            remaining -= 1;
            if remaining > 0 {
                visit(played.after, played.before.turn().other(), Some(played));
            }
        });
    }

    /// The number of positions that a move was played from, plus the last position if it counts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.moves.len() + usize::from(self.includes_end)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `positions` of the line.
    fn truncated(mut self, positions: usize) -> Line {
        self.includes_end &= self.len() <= positions;
        self.moves.truncate(positions);
        self
    }
}

/// Brings an evaluator to the next position of [`Line::for_each_position`].
pub(super) fn advance(evaluator: &mut Evaluator<'_>, board: &Board, played: Option<&LineMove<'_>>) {
    match played {
        None => evaluator.set(board),
        Some(played) => evaluator.play(played.change),
    }
}

/// The numbers of games read and skipped.
#[derive(Clone, Debug, Default)]
pub struct ReadSummary {
    pub games: u64,
    /// Broken games.
    pub skipped: SkippedGames,
    /// Broken samples, in formats of samples.
    pub skipped_samples: SkippedSamples,
}

impl ReadSummary {
    /// Broken games and samples together.
    #[must_use]
    pub fn skipped_total(&self) -> u64 {
        self.skipped.total() + self.skipped_samples.total()
    }
}

/// Folds all lines of a file in parallel: `add` is called once per line, and `merge` must not depend on the order.
///
/// # Errors
/// When the file cannot be read, is damaged, or holds no position.
pub(super) fn fold_lines<T: Send>(
    path: &Path,
    limit: Option<u64>,
    empty: impl Fn() -> T + Sync,
    add: impl Fn(&mut T, &Line) + Sync,
    merge: impl Fn(T, T) -> T + Sync,
) -> Result<(T, ReadSummary), MeasureError> {
    let mut reader = LineReader::open(path, limit.unwrap_or(u64::MAX))?;
    let mut total = empty();
    let mut is_empty = true;
    loop {
        let batch = reader.next_batch()?;
        if batch.is_empty() {
            break;
        }
        is_empty = false;
        let fold = |mut sum: T, game: PackedGame<'_>| {
            game.lines(path)?.iter().for_each(|line| add(&mut sum, line));
            Ok::<T, MeasureError>(sum)
        };
        let sums = batch.into_par_iter().with_min_len(8).try_fold(&empty, fold);
        let sum = sums.try_reduce(&empty, |a, b| Ok(merge(a, b)))?;
        total = merge(total, sum);
    }
    let summary = reader.finish();
    if is_empty {
        Err(MeasureError::NoPositions { path: path.into(), skipped: summary.skipped_total() })
    } else {
        Ok((total, summary))
    }
}

/// The first lines of a file, in order, with `positions` positions in all.
///
/// # Errors
/// As [`fold_lines`].
pub(super) fn first_lines(path: &Path, positions: u64) -> Result<(Vec<Line>, ReadSummary), MeasureError> {
    first_lines_and_next(path, [positions, 0]).map(|([lines, _], summary)| (lines, summary))
}

/// The first lines of a file, with `positions[0]` positions in all, and the lines of the next games, with
/// `positions[1]`. No game is in both lists.
///
/// # Errors
/// As [`fold_lines`].
pub(super) fn first_lines_and_next(
    path: &Path,
    positions: [u64; 2],
) -> Result<([Vec<Line>; 2], ReadSummary), MeasureError> {
    let mut reader = LineReader::open(path, u64::MAX)?;
    let mut lists = [Vec::new(), Vec::new()];
    let mut remaining = positions.map(|positions| positions as usize);
    while remaining != [0, 0] {
        let batch = reader.next_batch()?;
        if batch.is_empty() {
            break;
        }
        for game in batch {
            let list = usize::from(remaining[0] == 0);
            if remaining[list] == 0 {
                break;
            }
            for line in game.lines(path)? {
                let line = line.truncated(remaining[list]);
                if !line.is_empty() {
                    remaining[list] -= line.len();
                    lists[list].push(line);
                }
            }
        }
    }
    let summary = reader.finish();
    if lists[0].is_empty() {
        Err(MeasureError::NoPositions { path: path.into(), skipped: summary.skipped_total() })
    } else {
        Ok((lists, summary))
    }
}

/// Games per batch.
const BATCH: usize = 1024;

/// Records of a mapped file that are released at once.
const RELEASED_RECORDS: usize = 1 << 18;

/// Reads the games of a file in batches.
struct LineReader {
    format: GameFormat,
    /// Games still to read.
    remaining: u64,
    games: u64,
}

enum GameFormat {
    Games(Games),
    /// The records before `released` are no longer in memory.
    Records {
        file: Fsd,
        next: usize,
        released: usize,
    },
    Samples(SampleGames),
}

/// A game whose positions are not yet unpacked.
enum PackedGame<'a> {
    Game(PgnGame),
    /// `first`: the number of the first record in the file.
    Records {
        first: usize,
        records: Cow<'a, [Record]>,
    },
}

impl LineReader {
    fn open(path: &Path, limit: u64) -> Result<LineReader, MeasureError> {
        let format = match detect(path)? {
            Format::Fsd => GameFormat::Records { file: Fsd::open(path)?, next: 0, released: 0 },
            Format::Pgn => GameFormat::Games(games(path)?),
            format => GameFormat::Samples(SampleGames::open(path, format)?),
        };
        Ok(LineReader { format, remaining: limit, games: 0 })
    }

    /// The next games that hold positions; empty at the end.
    fn next_batch(&mut self) -> Result<Vec<PackedGame<'_>>, MeasureError> {
        let size = (BATCH as u64).min(self.remaining) as usize;
        let mut batch = Vec::with_capacity(size);
        match &mut self.format {
            GameFormat::Games(games) => {
                while batch.len() < size {
                    match games.next().transpose()? {
                        Some(game) if game.moves.is_empty() => {}
                        Some(game) => batch.push(PackedGame::Game(game)),
                        None => break,
                    }
                }
            }
            GameFormat::Records { file, next, released } => {
                if *next - *released >= RELEASED_RECORDS {
                    file.release(*released..*next);
                    *released = *next;
                }
                let records = file.records();
                while batch.len() < size && *next < records.len() {
                    let rest = &records[*next..];
                    let game = rest[0].game();
                    let count = rest.iter().position(|record| record.game() != game).unwrap_or(rest.len());
                    batch.push(PackedGame::Records { first: *next, records: Cow::Borrowed(&rest[..count]) });
                    *next += count;
                }
            }
            GameFormat::Samples(samples) => {
                while batch.len() < size
                    && let Some((first, records)) = samples.next_game()?
                {
                    batch.push(PackedGame::Records { first, records: Cow::Owned(records) });
                }
            }
        }
        self.remaining -= batch.len() as u64;
        self.games += batch.len() as u64;
        Ok(batch)
    }

    fn finish(self) -> ReadSummary {
        let (skipped, skipped_samples) = match self.format {
            GameFormat::Games(games) => (games.skipped().clone(), SkippedSamples::default()),
            GameFormat::Records { .. } => Default::default(),
            GameFormat::Samples(samples) => (SkippedGames::default(), samples.reader.skipped()),
        };
        ReadSummary { games: self.games, skipped, skipped_samples }
    }
}

/// Reads the games of a sample format, which is read block by block.
struct SampleGames {
    reader: SampleReader,
    block: Vec<Record>,
    /// The next record, as an index into the block.
    next: usize,
    /// The next record's number in the file.
    number: usize,
}

impl SampleGames {
    fn open(path: &Path, format: Format) -> Result<SampleGames, DataError> {
        let reader = SampleReader::open(path, Some(format), None)?;
        Ok(SampleGames { reader, block: Vec::new(), next: 0, number: 0 })
    }

    /// The records of the next game, with the number of the first; `None` at the end.
    fn next_game(&mut self) -> Result<Option<(usize, Vec<Record>)>, DataError> {
        let first = self.number;
        let mut records = Vec::new();
        loop {
            if self.next == self.block.len() {
                let Some(block) = self.reader.next_block()? else { break };
                self.block = block;
                self.next = 0;
            }
            let rest = &self.block[self.next..];
            let game = records.first().unwrap_or(&rest[0]).game();
            let count = rest.iter().position(|record| record.game() != game).unwrap_or(rest.len());
            records.extend_from_slice(&rest[..count]);
            self.next += count;
            self.number += count;
            // A game may continue in the next block.
            if self.next < self.block.len() {
                break;
            }
        }
        Ok((!records.is_empty()).then_some((first, records)))
    }
}

impl PackedGame<'_> {
    fn lines(self, path: &Path) -> Result<Vec<Line>, MeasureError> {
        match self {
            PackedGame::Game(game) => {
                let moves = game.moves.iter().map(|played| played.mv).collect();
                Ok(vec![Line { start: game.start, moves, includes_end: false }])
            }
            PackedGame::Records { first, records } => lines_of_records(path, first, &records),
        }
    }
}

/// Joins the records of a game into lines. A line continues while a record's move leads to the next record's position;
/// after a missing sample a new line starts.
fn lines_of_records(path: &Path, first: usize, records: &[Record]) -> Result<Vec<Line>, MeasureError> {
    let mut lines: Vec<Line> = Vec::new();
    let mut after_move: Option<Chess> = None;
    for (offset, record) in records.iter().enumerate() {
        let at = |reason| MeasureError::Record { path: path.into(), number: (first + offset) as u64, reason };
        let sample = record.unpack().map_err(at)?;
        let is_here =
            |position: &Chess| position.board() == sample.position.board() && position.turn() == sample.position.turn();
        if !after_move.as_ref().is_some_and(is_here) {
            lines.push(Line { start: sample.position.clone(), moves: Vec::new(), includes_end: false });
        }
        if let Some(line) = lines.last_mut() {
            match sample.mv {
                Some(mv) => line.moves.push(mv),
                None => line.includes_end = true,
            }
        }
        after_move = sample.mv.map(|mv| {
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

    /// Records of `moves` from the initial position. `kept` gives for each whether it has its move; `None` omits it.
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
    fn consecutive_records_make_a_line() {
        let check = |kept: [Option<bool>; 5], expected: &[(usize, bool)]| {
            let lines =
                lines_of_records(Path::new("file"), 0, &records("e2e4 e7e5 e1e2 d8h4 a2a3", &kept)).expect("sound");
            let actual: Vec<_> = lines.iter().map(|line| (line.moves.len(), line.includes_end)).collect();
            assert_eq!(actual, expected, "{kept:?}");
            for line in &lines {
                let mut visited = 0;
                line.for_each_position(|_, _, played| {
                    assert_eq!(played.is_none(), visited == 0);
                    visited += 1;
                });
                assert_eq!(visited, line.len());
            }
            assert_eq!(lines.iter().map(Line::len).sum::<usize>(), kept.iter().flatten().count());
        };
        let yes = Some(true);
        let bare = Some(false);
        let out = None;
        check([yes, yes, yes, yes, yes], &[(5, false)]);
        check([yes, yes, out, yes, yes], &[(2, false), (2, false)]);
        check([out, yes, out, yes, out], &[(1, false), (1, false)]);
        check([yes, yes, bare, yes, out], &[(2, true), (1, false)]);
        check([bare, out, out, out, bare], &[(0, true), (0, true)]);
    }

    #[test]
    fn lines_are_truncated_to_a_number_of_positions() {
        let kept = [Some(true), Some(true), Some(false)];
        let lines = lines_of_records(Path::new("file"), 0, &records("e2e4 e7e5 e1e2", &kept)).expect("sound");
        let lengths = |positions| lines[0].clone().truncated(positions).len();
        assert_eq!([0, 1, 2, 3, 9].map(lengths), [0, 1, 2, 3, 3]);
    }

    #[test]
    fn errors_name_the_damaged_record() {
        let mut damaged = records("e2e4", &[Some(true)]);
        bytemuck::cast_slice_mut::<Record, u8>(&mut damaged)[37] = 9;
        let error = lines_of_records(Path::new("file"), 41, &damaged).expect_err("damaged");
        assert_eq!(error.to_string(), "record 41 of file: byte 37 of the record is 9, which is not a valid value");
    }
}
