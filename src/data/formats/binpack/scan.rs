//! Scans a binpack: finds its segments, and counts its broken parts.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::chunks::{ChunkSpan, StoredBytes, chunk_at};
use super::parallel_read::count_damage;
use super::recovery::{ChainLog, ChainSpan};
use super::{ChunkDecoder, HEADER_BYTES, Segment, UsableSamples};
use crate::data::formats::game_numbers::GameNumbers;
use crate::data::formats::skipped::SkippedSamples;
use crate::data::{DataError, Record};
use crate::system;

/// Number of samples after which the next game begins a new segment.
const SEGMENT_SAMPLES: usize = 4_096;

/// Called with the bytes scanned so far and the file's length.
pub type ScanProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub segments: Vec<Segment>,
    /// Broken chunks and chains.
    pub skipped: SkippedSamples,
}

/// Scans the whole file on `threads` threads.
pub fn scan_file(
    path: &Path,
    file: &File,
    filter: UsableSamples,
    threads: usize,
    progress: ScanProgress<'_>,
) -> Result<Scan, DataError> {
    let spans = chunk_spans(file).map_err(DataError::read(path))?;
    let mut all = Scan::default();
    for (span, scanned) in spans.iter().zip(scan_chunks(file, path, filter, &spans, threads, progress)) {
        let (segments, log) = scanned?;
        all.segments.extend(segments);
        count_damage(span.offset, span.damage.as_ref(), &log.broken, &mut all.skipped);
    }
    Ok(all)
}

/// Locates the chunks.
fn chunk_spans(file: &File) -> std::io::Result<Vec<ChunkSpan>> {
    let mut bytes = StoredBytes::new(file, file.metadata()?.len());
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(span) = chunk_at(&mut bytes, at)? {
        at = span.next;
        spans.push(span);
    }
    Ok(spans)
}

type ScanResult = Result<(Vec<Segment>, ChainLog), DataError>;

/// Scans every chunk on `threads` threads, each of which holds one chunk in memory.
fn scan_chunks(
    file: &File,
    path: &Path,
    filter: UsableSamples,
    spans: &[ChunkSpan],
    threads: usize,
    progress: ScanProgress<'_>,
) -> Vec<ScanResult> {
    // Relaxed: one gives each chunk to one thread, the other is for progress; the threads' ends publish the results.
    let next = AtomicUsize::new(0);
    let done = AtomicU64::new(0);
    let bytes = |span: &ChunkSpan| span.next - span.offset;
    let total = spans.iter().map(bytes).sum();
    let results: Vec<Mutex<Option<ScanResult>>> = spans.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, spans.len().max(1)) {
            scope.spawn(|| {
                let mut scratch = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(span), Some(slot)) = (spans.get(number), results.get(number)) else { break };
                    let scanned = scan_chunk(file, filter, span, &mut scratch).map_err(DataError::read(path));
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(scanned);
                    progress(done.fetch_add(bytes(span), Ordering::Relaxed) + bytes(span), total);
                }
            });
        }
    });
    results.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn scan_chunk(
    file: &File,
    filter: UsableSamples,
    span: &ChunkSpan,
    records: &mut Vec<Record>,
) -> std::io::Result<(Vec<Segment>, ChainLog)> {
    let start = span.offset + HEADER_BYTES as u64;
    let mut bytes = vec![0; span.bytes as usize];
    if !bytes.is_empty() {
        system::read_exact_at(file, &mut bytes, start)?;
    }
    let mut decoder = ChunkDecoder::new(bytes);
    let mut segments: Vec<Segment> = Vec::new();
    let mut games = GameNumbers::default();
    let mut log = ChainLog::default();
    loop {
        records.clear();
        if decoder.read_sound(SEGMENT_SAMPLES, records, &mut log) == 0 {
            return Ok((segments, log));
        }
        let mut left = records.as_slice();
        for ChainSpan { at, end, samples } in log.chains.iter().copied() {
            let (chain, rest) = left.split_at(samples);
            left = rest;
            let begins = chain.first().is_some_and(|record| games.begins_game(record));
            if let Some(last) = chain.last() {
                games.begins_game(last);
            }
            let offset = start + at as u64;
            let is_full = segments.last().is_none_or(|segment| {
                let follows = segment.offset + u64::from(segment.bytes) == offset;
                !follows || segment.samples as usize >= SEGMENT_SAMPLES && begins
            });
            if is_full {
                segments.push(Segment { offset, bytes: 0, samples: 0, usable: 0 });
            }
            if let Some(segment) = segments.last_mut() {
                segment.bytes += (end - at) as u32;
                segment.samples += samples as u32;
                segment.usable += chain.iter().filter(|record| filter.accepts(record)).count() as u32;
            }
        }
    }
}
