//! Finds records with equal positions, so that no position is searched twice.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::data::Record;

/// The index of the first record with the same [`Record::search_key`], for each record. Takes at most 2^32 − 2 records;
/// needs 9 bytes of memory per record, and 4 for the result.
pub fn first_occurrences(records: &[Record]) -> Vec<u32> {
    // Open addressing, at most four fifths full. The keys themselves are compared, not only their hashes, so different
    // positions are never taken for equal.
    let mut table = vec![EMPTY; records.len() + records.len() / 4 + 1];
    let mut firsts = Vec::with_capacity(records.len());
    for (record, number) in records.iter().zip(0u32..) {
        let key = record.search_key();
        let mut slot = ((u128::from(hash(&key)) * table.len() as u128) >> 64) as usize;
        firsts.push(loop {
            match table[slot] {
                EMPTY => {
                    table[slot] = number;
                    break number;
                }
                other if records[other as usize].search_key() == key => break other,
                _ => slot = (slot + 1) % table.len(),
            }
        });
    }
    firsts
}

const EMPTY: u32 = u32::MAX;

fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Sample;
    use crate::units::Ply;
    use shakmaty::fen::Fen;
    use shakmaty::{CastlingMode, Chess};

    #[test]
    fn positions_that_differ_in_move_number_only_are_equal() {
        let record = |fen: &str| {
            let position: Chess = fen.parse::<Fen>().unwrap().into_position(CastlingMode::Standard).unwrap();
            let sample = Sample { position, game: 0, ply: Ply(7), mv: None, score: Some(3), result: None };
            Record::pack(&sample).unwrap()
        };
        let records = [
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K2R w KQk - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 30",
            "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 9",
            "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
            "4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 40",
        ]
        .map(record);
        assert_eq!(first_occurrences(&records), [0, 1, 0, 3, 4, 5, 6, 4]);
        assert!(first_occurrences(&[]).is_empty());
    }
}
