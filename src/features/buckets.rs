//! Bucket tables as written in a definition: 64 numbers, eight rows of eight, a board drawn in strings, or 32 numbers
//! for one half of the board.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::Square;

use crate::chess::Mirror;
use crate::settings::Document;
use crate::units::SortedMap;

use super::error::{FeatureError, SourceText};
use super::spec::Bucket;

/// Largest number a table may hold.
const MAX_BUCKET: i64 = 1 << 24;

/// A table in one of its notations.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected 64 numbers, eight rows of eight numbers, eight strings, or 32 numbers of a mirrored set"
)]
pub enum BucketTable {
    /// a1, b1, … h8; in a mirrored set also the 32 squares of the own king's half, in the same order.
    Numbers(Vec<i64>),
    /// Ranks 1 to 8, each from a to h.
    Rows(Vec<Vec<i64>>),
    /// Ranks 8 to 1 as on a diagram, each from a to h: eight digits, or numbers separated by spaces; `.` leaves a
    /// square outside.
    Drawn(Vec<String>),
}

impl BucketTable {
    /// The table as a bucket with a number for every square.
    ///
    /// # Errors
    /// As [`read`]; the message continues "the bucket table …".
    pub fn bucket(&self, name: &str, mirror: Mirror) -> Result<Bucket, String> {
        squares(self, mirror).and_then(|numbers| bucket(name, &numbers))
    }
}

/// The tables of a definition by name, a number for every square.
///
/// # Errors
/// When a table has another length, a number below −1 or above 2^24, or leaves every square outside.
pub fn read(
    tables: &SortedMap<String, BucketTable>,
    mirror: Mirror,
    source: &SourceText,
    document: &Document,
) -> Result<SortedMap<String, Arc<Bucket>>, FeatureError> {
    let mut buckets = SortedMap::new();
    for (name, table) in tables {
        let bucket = table.bucket(name, mirror).map_err(|problem| {
            let span = document.span_of_value(&format!("buckets.{name}"));
            source.error(format!("bucket table `{name}` {problem}"), span, None)
        })?;
        buckets.insert(name.clone(), Arc::new(bucket));
    }
    Ok(buckets)
}

/// A number for every square, a1, b1, … h8.
fn squares(table: &BucketTable, mirror: Mirror) -> Result<Vec<i64>, String> {
    match table {
        BucketTable::Numbers(numbers) if numbers.len() == 32 => expand_half(numbers, mirror),
        BucketTable::Numbers(numbers) if numbers.len() == 64 => Ok(numbers.clone()),
        BucketTable::Numbers(numbers) => Err(format!("has {} numbers; it needs 64", numbers.len())),
        BucketTable::Rows(rows) => {
            if rows.len() != 8 || rows.iter().any(|row| row.len() != 8) {
                let lengths = rows.iter().map(|row| row.len().to_string()).collect::<Vec<_>>().join(", ");
                return Err(format!("has rows of {lengths} numbers; it needs eight rows of eight, rank 1 first"));
            }
            Ok(rows.concat())
        }
        BucketTable::Drawn(ranks) => {
            if ranks.len() != 8 {
                return Err(format!("has {} strings; it needs eight, rank 8 first", ranks.len()));
            }
            let ranks = ranks.iter().rev().map(|rank| read_rank(rank)).collect::<Result<Vec<_>, _>>()?;
            Ok(ranks.concat())
        }
    }
}

/// Expands the own king's half to 64 squares; the other half is outside.
fn expand_half(numbers: &[i64], mirror: Mirror) -> Result<Vec<i64>, String> {
    let first_file = match mirror {
        Mirror::KingLeft => 0,
        Mirror::KingRight => 4,
        Mirror::None => {
            return Err("has 32 numbers; it needs 64: half a board is enough only where `mirror` keeps the own king \
                        on it"
                .into());
        }
    };
    let number =
        |square: usize| (square % 8).checked_sub(first_file).filter(|file| *file < 4).map(|file| square / 8 * 4 + file);
    Ok((0..64).map(|square| number(square).map_or(-1, |index| numbers[index])).collect())
}

/// The eight numbers of a drawn rank.
fn read_rank(rank: &str) -> Result<Vec<i64>, String> {
    let words: Vec<String> = if rank.trim().contains(char::is_whitespace) {
        rank.split_whitespace().map(str::to_owned).collect()
    } else {
        rank.trim().chars().map(String::from).collect()
    };
    let number = |word: &String| match word.as_str() {
        "." => Ok(-1),
        word => {
            word.parse().map_err(|_| format!("has `{word}` in \"{rank}\"; write numbers, `.` for a square outside"))
        }
    };
    match words.len() {
        8 => words.iter().map(number).collect(),
        length => Err(format!(
            "has {length} squares in \"{rank}\"; a rank has eight: write eight digits, or numbers with spaces between"
        )),
    }
}

/// A table of 64 numbers, a1, b1, … h8.
///
/// # Errors
/// When a number is below −1 or above 2^24, or every square is outside.
pub fn bucket(name: &str, numbers: &[i64]) -> Result<Bucket, String> {
    let mut bucket = Bucket { name: name.to_owned(), table: [-1; 64], size: 0 };
    for (slot, (square, number)) in bucket.table.iter_mut().zip(Square::ALL.into_iter().zip(numbers)) {
        if !(-1..=MAX_BUCKET).contains(number) {
            return Err(format!("has {number} for {square}; numbers run from −1 to 2^24"));
        }
        *slot = *number as i32;
        bucket.size = bucket.size.max((number + 1) as u32);
    }
    match bucket.size {
        0 => Err("leaves every square out".into()),
        _ => Ok(bucket),
    }
}
