//! Opening books: positions (EPD or FEN, one per line) or games (PGN), plain or compressed; the start positions of
//! Chess960.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use shakmaty::{Chess, Move, Position};
use thiserror::Error;

use super::epd::parse_epd;
use crate::chess::{CHESS960_STARTS, chess960_start, fen_of, key_of, legal_move, parse_fen, uci_move};
use crate::data::{DataError, Input, InputPath, Split, SplitRule, games};
use crate::pipeline::generation::{BookFacts, BookOrder, BookSource};
use crate::units::Seed;

/// Why a book's openings cannot be had.
#[derive(Debug, Error)]
pub enum BookError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("the book {}{}: {reason}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Book { path: PathBuf, line: Option<u64>, reason: String },
    #[error(
        "cannot keep the book's openings in a temporary file in {}: {cause}; make room or set TMPDIR",
        folder.display()
    )]
    TempFile { folder: PathBuf, cause: io::Error },
}

impl BookError {
    /// Whether the request was wrong; otherwise the work failed on the way.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            BookError::Data(error) => error.is_request(),
            BookError::Book { .. } => true,
            BookError::TempFile { .. } => false,
        }
    }
}

/// A part of a book's openings: those that are kept for a last comparison, or the others.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct BookPart {
    /// The share that is kept.
    pub share: f64,
    pub is_kept: bool,
}

impl BookPart {
    /// Whether the opening of this number, from 0, is in the part.
    fn contains(self, number: u32) -> bool {
        SplitRule::new(Seed(0), self.share).contains(number, Split::Validation) == self.is_kept
    }
}

/// The openings of a book.
pub struct Book {
    openings: Openings,
    pub facts: BookFacts,
    /// Moves of the longest opening.
    pub most_plies: usize,
}

enum Openings {
    /// Those of a file, in a temporary file without a name: a book may be larger than the memory.
    Kept {
        file: Mutex<File>,
        /// Where each opening begins in the file; the last entry is the end of the last opening.
        offsets: Vec<u64>,
    },
    Chess960,
    DoubleChess960,
}

/// An opening as the temporary file stores it: `FEN;move move …`, with moves in UCI notation.
fn opening_text(start: &Chess, moves: &[Move]) -> String {
    let moves: Vec<String> = moves.iter().map(|mv| uci_move(*mv)).collect();
    format!("{};{}", fen_of(start), moves.join(" "))
}

fn parse_opening(text: &str) -> Option<(Chess, Vec<Move>)> {
    let (fen, words) = text.split_once(';')?;
    let start = parse_fen(fen).ok()?;
    let mut position = start.clone();
    let mut moves = Vec::new();
    for word in words.split_ascii_whitespace() {
        let mv = legal_move(word, &position)?;
        position.play_unchecked(mv);
        moves.push(mv);
    }
    Some((start, moves))
}

/// Writes openings to the temporary file.
struct OpeningWriter {
    part: Option<BookPart>,
    /// Openings that were read.
    read: u32,
    /// The keys of the positions that they lead to.
    seen: HashSet<u64>,
    /// Openings that lead to the position of an earlier one.
    repeated: u64,
    most_plies: usize,
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    offsets: Vec<u64>,
}

impl OpeningWriter {
    fn new(part: Option<BookPart>) -> Result<OpeningWriter, BookError> {
        let file = BufWriter::new(tempfile::tempfile().map_err(temp_file_error)?);
        Ok(OpeningWriter {
            part,
            read: 0,
            seen: HashSet::new(),
            repeated: 0,
            most_plies: 0,
            file,
            hasher: blake3::Hasher::new(),
            offsets: vec![0],
        })
    }

    /// The book of the openings; it was read from `path`, where so many were skipped beside the repeated ones.
    fn finish(self, path: &Path, skipped: u64) -> Result<Book, BookError> {
        let OpeningWriter { repeated, most_plies, file, hasher, offsets, .. } = self;
        let openings = offsets.len() as u64 - 1;
        let skipped = skipped + repeated;
        if openings == 0 {
            let reason = format!("it holds no playable opening ({skipped} were skipped)");
            return Err(BookError::Book { path: path.into(), line: None, reason });
        }
        let file = Mutex::new(file.into_inner().map_err(|error| temp_file_error(error.into_error()))?);
        let facts = BookFacts { openings, skipped, repeated, blake3: hasher.finalize().to_hex().to_string() };
        Ok(Book { openings: Openings::Kept { file, offsets }, facts, most_plies })
    }

    /// Adds the opening of these moves, which lead to `position`. One that leads to the position of an earlier one, in
    /// whatever part, is skipped: its games would be the same again.
    fn add(&mut self, start: &Chess, moves: &[Move], position: &Chess) -> io::Result<()> {
        let number = self.read;
        self.read += 1;
        if !self.seen.insert(key_of(position)) {
            self.repeated += 1;
            return Ok(());
        }
        if self.part.is_some_and(|part| !part.contains(number)) {
            return Ok(());
        }
        self.most_plies = self.most_plies.max(moves.len());
        let text = opening_text(start, moves);
        self.file.write_all(text.as_bytes())?;
        self.hasher.update(text.as_bytes()).update(b"\n");
        let end = self.offsets.last().copied().unwrap_or(0) + text.len() as u64;
        self.offsets.push(end);
        Ok(())
    }
}

impl Book {
    /// Reads a book. `plies`: cut the openings of a PGN file after so many. `part`: leave out the file's other openings.
    /// Of the openings that lead to one position, the first is kept.
    ///
    /// # Errors
    /// When the file cannot be read, a line is not a playable position, or there is no opening.
    pub fn open(source: &BookSource, plies: Option<u16>, part: Option<BookPart>) -> Result<Book, BookError> {
        let starts = |openings: Openings, count: u32| {
            let blake3 = blake3::hash(source.to_string().as_bytes()).to_hex().to_string();
            let facts = BookFacts { openings: u64::from(count), skipped: 0, repeated: 0, blake3 };
            Ok(Book { openings, facts, most_plies: 0 })
        };
        match source {
            BookSource::File(path) => Book::read(path, plies, part),
            BookSource::Chess960 => starts(Openings::Chess960, CHESS960_STARTS),
            BookSource::DoubleChess960 => starts(Openings::DoubleChess960, CHESS960_STARTS * CHESS960_STARTS),
        }
    }

    fn read(path: &Path, plies: Option<u16>, part: Option<BookPart>) -> Result<Book, BookError> {
        let mut writer = OpeningWriter::new(part)?;
        let skipped = if holds_positions(path)? {
            if plies.is_some() {
                let reason = "it holds positions, not games: leave the number of plies out".into();
                return Err(BookError::Book { path: path.into(), line: None, reason });
            }
            read_positions(path, &mut writer)?
        } else {
            read_games(path, plies, &mut writer)?
        };
        writer.finish(path, skipped)
    }

    /// A book of positions that the program `origin` made. Those in which the game is over are skipped.
    ///
    /// # Errors
    /// When there is no playable position, or the temporary file cannot be written.
    pub fn of_positions(origin: &Path, positions: &[Chess]) -> Result<Book, BookError> {
        let mut writer = OpeningWriter::new(None)?;
        let mut skipped = 0;
        for start in positions {
            if is_playable(start) {
                writer.add(start, &[], start).map_err(temp_file_error)?;
            } else {
                skipped += 1;
            }
        }
        writer.finish(origin, skipped)
    }

    /// The opening of an encounter: a start position and the moves from there. They do not end the game.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub fn opening(&self, encounter: u64, order: BookOrder, seed: Seed) -> Result<(Chess, Vec<Move>), BookError> {
        let openings = self.facts.openings;
        let index = match order {
            BookOrder::Sequential => encounter % openings,
            BookOrder::Random => shuffled(encounter % openings, openings, encounter / openings, seed),
        };
        let start = |white: u64, black: u64| {
            let start = chess960_start(white as u32, black as u32);
            // Numbers below the count always have a position.
            Ok((start.unwrap_or_default(), Vec::new()))
        };
        let starts = u64::from(CHESS960_STARTS);
        match &self.openings {
            Openings::Kept { file, offsets } => kept_opening(file, &offsets[index as usize..]),
            Openings::Chess960 => start(index, index),
            Openings::DoubleChess960 => start(index / starts, index % starts),
        }
    }
}

/// The opening of the temporary file that lies between the first two offsets.
fn kept_opening(file: &Mutex<File>, offsets: &[u64]) -> Result<(Chess, Vec<Move>), BookError> {
    let mut text = String::new();
    let mut read = || {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offsets[0]))?;
        (&*file).take(offsets[1] - offsets[0]).read_to_string(&mut text)
    };
    read().map_err(temp_file_error)?;
    parse_opening(&text).ok_or_else(|| temp_file_error(io::Error::other("an opening in it has changed")))
}

fn temp_file_error(cause: io::Error) -> BookError {
    BookError::TempFile { folder: std::env::temp_dir(), cause }
}

const LONGEST_LINE: usize = 4096;

/// Whether the first line that is neither empty nor a comment begins with a FEN's board.
fn holds_positions(path: &Path) -> Result<bool, DataError> {
    let mut input = Input::open(&InputPath::File(path.into()))?;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.line(LONGEST_LINE, &mut line).map_err(DataError::read(path))? == 0 {
            return Ok(true);
        }
        let text = String::from_utf8_lossy(&line);
        if has_content(&text) {
            let board = text.split_ascii_whitespace().next().unwrap_or_default();
            return Ok(board.matches('/').count() == 7);
        }
    }
}

fn has_content(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim();
    !(line.is_empty() || line.starts_with('#'))
}

/// Reads the openings of a book of positions; returns the number of positions skipped, in which the game is over.
fn read_positions(path: &Path, writer: &mut OpeningWriter) -> Result<u64, BookError> {
    let mut input = Input::open(&InputPath::File(path.into()))?;
    let mut line = Vec::new();
    let mut number = 0;
    let mut skipped = 0;
    loop {
        line.clear();
        let read = input.line(LONGEST_LINE, &mut line).map_err(DataError::read(path))?;
        if read == 0 {
            return Ok(skipped);
        }
        number += 1;
        let bad = |reason: String| BookError::Book { path: path.into(), line: Some(number), reason };
        let text = std::str::from_utf8(&line).map_err(|error| bad(error.to_string()))?;
        if read == LONGEST_LINE {
            return Err(bad(format!("it is longer than {LONGEST_LINE} bytes")));
        }
        if has_content(text) {
            let start = parse_epd(text.trim_start_matches('\u{feff}')).map_err(bad)?;
            if is_playable(&start) {
                writer.add(&start, &[], &start).map_err(temp_file_error)?;
            } else {
                skipped += 1;
            }
        }
    }
}

/// Reads the openings of a PGN book; returns the number of games skipped.
fn read_games(path: &Path, plies: Option<u16>, writer: &mut OpeningWriter) -> Result<u64, BookError> {
    let mut skipped = 0;
    let mut book = games(path)?;
    for game in book.by_ref() {
        let game = game?;
        let plies = plies.map_or(usize::MAX, usize::from).min(game.moves.len());
        let moves: Vec<Move> = game.moves[..plies].iter().map(|played| played.mv).collect();
        let mut position = game.start.clone();
        moves.iter().for_each(|mv| position.play_unchecked(*mv));
        if is_playable(&position) && !has_repetition(&game.start, &moves) {
            writer.add(&game.start, &moves, &position).map_err(temp_file_error)?;
        } else {
            skipped += 1;
        }
    }
    Ok(book.skipped().total() + skipped)
}

/// Whether a game can continue from this position, and a record can hold it.
fn is_playable(position: &Chess) -> bool {
    !position.is_game_over() && position.halfmoves() < 100 && position.board().occupied().count() <= 32
}

/// Whether a position occurs twice: the game could then soon end by threefold repetition.
fn has_repetition(start: &Chess, moves: &[Move]) -> bool {
    let mut position = start.clone();
    let mut seen = HashSet::from([key_of(&position)]);
    moves.iter().any(|mv| {
        position.play_unchecked(*mv);
        !seen.insert(key_of(&position))
    })
}

/// The image of `index` under permutation number `pass` of `0..count`: a four-round Feistel network permutes the
/// numbers below a power of four, and is applied until the result lies below `count`.
fn shuffled(index: u64, count: u64, pass: u64, seed: Seed) -> u64 {
    let draws = seed.draws("book");
    let half = (64 - (count - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half) - 1;
    let mut value = index;
    loop {
        let mut left = value >> half;
        let mut right = value & mask;
        for round in 0..4 {
            let key = draws.at(pass.wrapping_mul(4).wrapping_add(round));
            (left, right) = (right, left ^ (draws.at(right ^ key) & mask));
        }
        value = left << half | right;
        if value < count {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_play_every_opening_once() {
        for count in [1, 2, 3, 5, 16, 17, 1000] {
            let order = |pass, seed| (0..count).map(|index| shuffled(index, count, pass, seed)).collect::<Vec<_>>();
            let first = order(0, Seed(1));
            let mut sorted = first.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            if count > 10 {
                assert!(first != order(1, Seed(1)) && first != order(0, Seed(2)) && first != sorted, "{count}");
            }
        }
    }

    /// Pieces, side to move, castling rights and en passant tell positions apart; counters do not.
    #[test]
    fn repeated_openings_are_skipped() {
        let check = |positions: &[&str], openings: u64, part: Option<BookPart>| {
            let positions: Vec<Chess> = positions.iter().map(|fen| parse_epd(fen).expect("a position")).collect();
            let mut writer = OpeningWriter::new(part).expect("a file");
            positions.iter().for_each(|start| writer.add(start, &[], start).expect("written"));
            let facts = writer.finish(Path::new("x"), 3).expect("a book").facts;
            let repeated = positions.len() as u64 - openings;
            assert_eq!((facts.openings, facts.skipped, facts.repeated), (openings, 3 + repeated, repeated));
        };
        let castles = ["4k3/8/8/8/8/8/8/R3K3 w Q - 0 1", "4k3/8/8/8/8/8/8/R3K3 w - -", "4k3/8/8/8/8/8/8/R3K3 b - -"];
        check(&castles, 3, None);
        check(&[castles[1], "4k3/8/8/8/8/8/8/R3K3 w - - 7 30", castles[1]], 1, None);
        let passing = ["4k3/8/8/3Pp3/8/8/8/4K3 w - e6 0 1", "4k3/8/8/3Pp3/8/8/8/4K3 w - - 0 1"];
        check(&passing, 2, None);
        // Nobody can take, as nothing stands beside the pawn.
        check(&["4k3/8/8/4p3/8/8/8/4K3 w - e6 0 1", "4k3/8/8/4p3/8/8/8/4K3 w - - 0 1"], 1, None);
        check(&[castles[0]; 50], 1, Some(BookPart { share: 0.0, is_kept: false }));
    }

    #[test]
    fn start_positions_of_chess960_are_books() {
        let book = |source: &BookSource| Book::open(source, None, None).expect("no file is read");
        let single = book(&BookSource::Chess960);
        assert_eq!(single.facts.openings, 960);
        let mut seen = HashSet::new();
        for encounter in 0..960 {
            let (start, moves) = single.opening(encounter, BookOrder::Random, Seed(3)).expect("a start position");
            assert!(moves.is_empty() && seen.insert(fen_of(&start)));
        }
        let double = book(&BookSource::DoubleChess960);
        assert_eq!(double.facts.openings, 921_600);
        assert_ne!(double.facts.blake3, single.facts.blake3);
        let (start, _) = double.opening(519, BookOrder::Sequential, Seed(3)).expect("a start position");
        assert_eq!(fen_of(&start), "rnbqknrb/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFga - 0 1");
        let (start, _) = double.opening(518 * 961, BookOrder::Sequential, Seed(3)).expect("a start position");
        assert_eq!(start, Chess::default());
    }
}
