//! Reads games: the file is cut at the zeros that end games, and each game decoded by itself on all cores.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;
use shakmaty::Role;

use super::recovery::{CHECKED_BYTES, extension_length, next_game, nibble_order};
use super::{CASTLING, EN_PASSANT, MAX_GAME_BYTES, PAIR_BYTES, PROMOTION};
use crate::chess::{PackedMove, Square};
use crate::data::formats::binpack::{BitInstructions, BitTask, Position, dispatch};
use crate::data::formats::block_queue::{self, BLOCK_SAMPLES, BlockSender};
use crate::data::formats::packed_position::{
    self, NibbleOrder, PackedPosition, PackedPositionError, result_for, score_for,
};
use crate::data::formats::skipped::SkippedSample;
use crate::data::{DataError, Record};

/// Bytes that are cut and decoded at once.
const WINDOW_BYTES: usize = 4 << 20;
/// Games per task, at least.
const TASK_GAMES: usize = 32;

const _: () = assert!(WINDOW_BYTES > 2 * MAX_GAME_BYTES);

/// Sends the samples of a file. Broken games are skipped and counted.
///
/// # Errors
/// When the file cannot be read, holds no game at all, or is compressed and its name does not say so.
pub fn read(reader: Box<dyn Read + Send>, path: &Path, sender: &mut BlockSender) -> Result<(), DataError> {
    let mut reader = block_queue::unpacked_by_name(reader, path, &sender.state).map_err(DataError::read(path))?;
    let mut bytes = Vec::new();
    reader.by_ref().take(WINDOW_BYTES as u64).read_to_end(&mut bytes).map_err(DataError::read(path))?;
    if bytes.is_empty() {
        return Ok(());
    }
    let Some(order) = nibble_order(&bytes) else {
        block_queue::check_not_compressed(&bytes, path, &super::FORMAT)?;
        return Err(DataError::NotGames { path: path.into(), format: super::FORMAT.name });
    };
    let mut games = GameBlocks { order, offset: 0, games: 0, searching: false, block: Vec::new() };
    loop {
        let ended = bytes.len() < WINDOW_BYTES;
        let Some(done) = games.decode(&bytes, ended, sender)? else { return Ok(()) };
        if ended {
            sender.send(games.block)?;
            return Ok(());
        }
        bytes.drain(..done);
        games.offset += done as u64;
        let missing = (WINDOW_BYTES - bytes.len()) as u64;
        reader.by_ref().take(missing).read_to_end(&mut bytes).map_err(DataError::read(path))?;
    }
}

struct GameBlocks {
    order: NibbleOrder,
    /// Offset of the window in the file.
    offset: u64,
    /// Games so far.
    games: u32,
    /// Whether the window begins in the middle of something broken.
    searching: bool,
    block: Vec<Record>,
}

/// The bytes of a game without the zeros at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GameSpan {
    range: Range<usize>,
    /// `None`: it has no end.
    end: Option<usize>,
}

/// Why a game is left out.
#[derive(Debug, PartialEq, Eq)]
enum OmittedGame {
    CutOff,
    Broken(String),
}

impl GameBlocks {
    /// Decodes the games of a window and returns the number of bytes done; `None` when the reader was dropped.
    fn decode(&mut self, bytes: &[u8], ended: bool, sender: &mut BlockSender) -> Result<Option<usize>, DataError> {
        let mut at = 0;
        if self.searching {
            let Some(found) = self.search(bytes, 0, ended) else { return Ok(Some(searched(bytes, ended))) };
            at = found;
        }
        'cut: loop {
            let (spans, done) = cut(bytes, at, ended);
            let order = self.order;
            let decode = |span: &GameSpan| decode_game(bytes, span, order);
            let decoded: Vec<Result<Vec<Record>, OmittedGame>> =
                sender.decoders.install(|| spans.par_iter().with_min_len(TASK_GAMES).map(decode).collect());
            let mut resumed = at;
            for (span, game) in spans.iter().zip(decoded) {
                if span.range.start < resumed {
                    continue;
                }
                match game {
                    Ok(records) => {
                        if !self.add(&records, sender)? {
                            return Ok(None);
                        }
                    }
                    Err(error) => {
                        match &error {
                            OmittedGame::Broken(message) => self.skip(span, "broken game", message, sender),
                            _ => self.skip(span, "cut-off game", "the file ends before the game does", sender),
                        }
                        let Some(next) = self.search(bytes, span.range.start + 1, ended) else {
                            return Ok(Some(searched(bytes, ended)));
                        };
                        if spans.binary_search_by_key(&next, |span| span.range.start).is_err() && next != done {
                            at = next;
                            continue 'cut;
                        }
                        resumed = next;
                    }
                }
            }
            return Ok(Some(done));
        }
    }

    /// Where the next game begins, from `from` on.
    fn search(&mut self, bytes: &[u8], from: usize, ended: bool) -> Option<usize> {
        let found = next_game(bytes, from, self.order);
        self.searching = found.is_none() && !ended;
        found
    }

    /// Adds a game's records; false when the reader was dropped.
    fn add(&mut self, records: &[Record], sender: &mut BlockSender) -> Result<bool, DataError> {
        if records.is_empty() {
            return Ok(true);
        }
        let game = self.games;
        self.games = game.checked_add(1).ok_or_else(|| DataError::TooManyGames { path: sender.path.clone() })?;
        self.block.extend(records.iter().map(|record| record.with_game(game)));
        while self.block.len() >= BLOCK_SAMPLES {
            let rest = self.block.split_off(BLOCK_SAMPLES);
            if !sender.send(std::mem::replace(&mut self.block, rest))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn skip(&self, span: &GameSpan, reason: &str, message: &str, sender: &BlockSender) {
        let location = format!("game at byte {}", self.offset + span.range.start as u64);
        sender.skip(reason, SkippedSample { location, message: message.into() });
    }
}

/// The bytes in which no game begins, but for the last, which may hold the beginning of one.
const fn searched(bytes: &[u8], ended: bool) -> usize {
    if ended { bytes.len() } else { bytes.len() - CHECKED_BYTES }
}

/// The games from `at` on, and the end of the last one. Only the last game of a file may have no end.
fn cut(bytes: &[u8], mut at: usize, ended: bool) -> (Vec<GameSpan>, usize) {
    let mut spans = Vec::new();
    while at < bytes.len() {
        let rest = &bytes[at..];
        let complete = ended || rest.len() >= MAX_GAME_BYTES;
        if rest.starts_with(&[0; 8])
            && let Some(length) = extension_length(rest)
        {
            at += length;
            continue;
        }
        let pairs = rest.get(packed_position::BYTES..).unwrap_or_default().as_chunks::<PAIR_BYTES>().0;
        let pairs = &pairs[..pairs.len().min(MAX_GAME_BYTES / PAIR_BYTES)];
        let moves = pairs.iter().position(|pair| *pair == [0; PAIR_BYTES]);
        match moves {
            Some(moves) => {
                let end = at + packed_position::BYTES + PAIR_BYTES * moves;
                spans.push(GameSpan { range: at..end, end: Some(end + PAIR_BYTES) });
                at = end + PAIR_BYTES;
            }
            None if complete => {
                let end = if ended { bytes.len() } else { at + MAX_GAME_BYTES };
                spans.push(GameSpan { range: at..end, end: None });
                at = end;
            }
            None => break,
        }
    }
    (spans, at)
}

fn decode_game(bytes: &[u8], span: &GameSpan, order: NibbleOrder) -> Result<Vec<Record>, OmittedGame> {
    let broken = |message: String| Err(OmittedGame::Broken(message));
    let Some((board, moves)) = bytes[span.range.clone()].split_first_chunk() else { return Err(OmittedGame::CutOff) };
    let pairs = moves.as_chunks::<PAIR_BYTES>().0;
    let position = PackedPosition::read(board, order).and_then(|packed| Ok((packed.position()?, packed)));
    let (position, packed) = match position {
        Ok(found) => found,
        Err(PackedPositionError::Malformed(message) | PackedPositionError::Illegal(message)) => {
            return broken(format!("its position is impossible: {message}"));
        }
    };
    if span.end.is_none() {
        return Err(OmittedGame::CutOff);
    }
    if usize::from(packed.ply.0) + pairs.len() > usize::from(u16::MAX) {
        return broken(format!("it goes beyond ply {}", u16::MAX));
    }
    let Ok(start) = Position::new(&position, packed.ply) else { return broken("more than 32 pieces".into()) };
    let mut records = Vec::with_capacity(pairs.len());
    match dispatch(DecodeMoves { position: start, packed: &packed, pairs, records: &mut records }) {
        None => Ok(records),
        Some(number) => broken(format!("move {} (from 1) is illegal", number + 1)),
    }
}

/// Plays a game's moves and appends their records; gives the number of the first illegal one.
struct DecodeMoves<'a> {
    position: Position,
    packed: &'a PackedPosition,
    pairs: &'a [[u8; PAIR_BYTES]],
    records: &'a mut Vec<Record>,
}

impl BitTask for DecodeMoves<'_> {
    type Output = Option<usize>;
    const PACKS_CODES: bool = true;

    #[inline(always)]
    fn run(self, bits: impl BitInstructions) -> Option<usize> {
        let DecodeMoves { mut position, packed, pairs, records } = self;
        for (number, pair) in pairs.iter().enumerate() {
            let code = u16::from_le_bytes([pair[0], pair[1]]);
            let score = i16::from_le_bytes([pair[2], pair[3]]);
            let Some(mv) = decode_move(&position, code) else { return Some(number) };
            let fields = position.fields(bits);
            let score = Some(score_for(fields.turn, score));
            let result = Some(result_for(fields.turn, packed.result));
            records.push(Record::from_fields(fields, 0, Some(mv), score, result));
            if !position.play(mv) {
                return Some(number);
            }
        }
        None
    }
}

/// The pseudo-legal move that a code stands for in a position.
#[inline(always)]
fn decode_move(position: &Position, code: u16) -> Option<PackedMove> {
    let from = Square::new(u32::from(code & 63));
    let to = Square::new(u32::from(code >> 6 & 63));
    let kind = code >> 14;
    let role = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen][usize::from(code >> 12 & 3)];
    let promotion = (kind == PROMOTION).then_some(role);
    let mv = PackedMove::new(from, to, promotion);
    let sound = position.allows(mv)
        && position.is_castling(mv) == (kind == CASTLING)
        && position.is_en_passant(mv) == (kind == EN_PASSANT)
        && (kind == PROMOTION || role == Role::Knight);
    sound.then_some(mv)
}
