//! Added and removed features, refreshes and rows per move.

use std::collections::{BTreeSet, HashMap};

use fsbench::chess::{Board, Chess, Move, Perspective};
use fsbench::data::Method;
use fsbench::features::FeatureSet;
use fsbench::measure::updates;
use fsbench::pipeline::{BuildJob, BuildOptions, WeightedInput, build};
use fsbench::record::MoveCounts;
use shakmaty::Position;

use super::{GAMES, common, games, write_pgn};

/// The measures computed by definition, from the reference encoder: sets of (feature, occurrence).
#[derive(Default)]
struct Direct {
    moves: f64,
    active: f64,
    active_max: usize,
    sides: [[f64; 6]; 2],
    legal_moves: f64,
    legal: [[f64; 6]; 2],
}

type Active = BTreeSet<(u32, usize)>;
/// Keyed by perspective, block and context.
type Cache = HashMap<(usize, usize, Option<u32>), Active>;

/// The active features of a block; repeated features of a bag are numbered.
fn block_set(set: &FeatureSet, block: usize, board: &Board, pov: Perspective) -> Active {
    let block = &set.blocks()[block];
    let inside: BTreeSet<u32> = block.indices().collect();
    let mut occurrences: HashMap<u32, usize> = HashMap::new();
    let features = set.reference(board, pov).into_iter().filter(|feature| inside.contains(feature));
    features
        .map(|feature| {
            let count = occurrences.entry(feature).or_default();
            *count += 1;
            (feature, *count)
        })
        .collect()
}

impl Direct {
    fn game(&mut self, set: &FeatureSet, moves: &[Move], legal: bool) {
        let mut position = Chess::default();
        let mut cache = Cache::new();
        let blocks = 0..set.blocks().len();
        for pov in Perspective::ALL {
            for block in blocks.clone() {
                let key = (pov.index(), block, set.encoder().context(block, position.board(), pov));
                cache.insert(key, block_set(set, block, position.board(), pov));
            }
        }
        for mv in moves {
            for pov in Perspective::ALL {
                let active = set.reference(position.board(), pov).len();
                self.active += active as f64;
                self.active_max = self.active_max.max(active);
            }
            if legal {
                for mv in position.legal_moves() {
                    self.legal_moves += 1.0;
                    let after = position.clone().play(mv).unwrap();
                    for pov in Perspective::ALL {
                        let counts = compare(set, &position, &after, pov, &mut cache.clone());
                        let side = &mut self.legal[usize::from(pov.own() != position.turn())];
                        side.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                    }
                }
            }
            let after = position.clone().play(*mv).unwrap();
            self.moves += 1.0;
            for pov in Perspective::ALL {
                let counts = compare(set, &position, &after, pov, &mut cache);
                let side = &mut self.sides[usize::from(pov.own() != position.turn())];
                side.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            position = after;
        }
    }
}

/// Returns added, removed, refreshes, rows_update, rows_refresh, rows_cache.
fn compare(set: &FeatureSet, before: &Chess, after: &Chess, pov: Perspective, cache: &mut Cache) -> [f64; 6] {
    let mut counts = [0.0; 6];
    for block in 0..set.blocks().len() {
        let a = block_set(set, block, before.board(), pov);
        let b = block_set(set, block, after.board(), pov);
        let delta = a.symmetric_difference(&b).count() as f64;
        let context = set.encoder().context(block, after.board(), pov);
        let changed = set.encoder().context(block, before.board(), pov) != context;
        counts[0] += b.difference(&a).count() as f64;
        counts[1] += a.difference(&b).count() as f64;
        counts[2] = if changed { 1.0 } else { counts[2] };
        counts[3] += if changed { b.len() as f64 } else { delta };
        counts[4] += b.len() as f64;
        counts[5] += if changed {
            let cached = cache.insert((pov.index(), block, context), b.clone());
            let all = b.len();
            cached.map_or(all, |cached| cached.symmetric_difference(&b).count().min(all)) as f64
        } else {
            delta
        };
    }
    counts
}

fn assert_counts(found: &MoveCounts, sums: &[f64], moves: f64, what: &str) {
    let found = [found.added, found.removed, found.refreshes, found.rows_update, found.rows_refresh, found.rows_cache];
    for (n, sum) in sums.iter().enumerate() {
        assert!((found[n] - sum / moves).abs() < 1e-9, "{what}, column {n}: {} against {}", found[n], sum / moves);
    }
}

#[test]
fn updates_equal_a_direct_count() {
    let folder = tempfile::tempdir().unwrap();
    let games = games();
    let path = write_pgn(folder.path(), &games);
    let fsd = folder.path().join("games.fsd");
    let options = BuildOptions { min_moves: Some(0), ..BuildOptions::new(Method::Pqr) };
    let inputs = [WeightedInput::file(&path)];
    build(&BuildJob::new(&inputs, &fsd, &options), &mut |_| {}).unwrap();
    for (n, set) in common::sets().iter().enumerate() {
        // All legal moves are slow with the reference encoder: only for some sets and games.
        let legal = n % 3 == 0;
        let count = if legal { 3 } else { GAMES as usize };
        let (record, reading) = updates(set, &path, Some(count as u64), legal).unwrap();
        let mut direct = Direct::default();
        games[..count].iter().for_each(|moves| direct.game(set, moves, legal));
        let name = set.name();
        assert_eq!((record.games, reading.skipped.total()), (count as u64, 0));
        assert_eq!((record.positions as f64, record.moves as f64), (direct.moves, direct.moves));
        assert!((record.active_mean - direct.active / 2.0 / direct.moves).abs() < 1e-9, "{name}");
        assert_eq!(record.active_max, direct.active_max as u64, "{name}");
        assert!((record.density - record.active_mean / f64::from(set.num_features())).abs() < 1e-15);
        assert_counts(&record.mover, &direct.sides[0], direct.moves, name);
        assert_counts(&record.other, &direct.sides[1], direct.moves, name);
        let both: Vec<f64> = direct.sides[0].iter().zip(direct.sides[1]).map(|(a, b)| (a + b) / 2.0).collect();
        assert_counts(&record.mean, &both, direct.moves, name);
        assert_eq!(record.legal.is_some(), legal);
        if let Some(found) = &record.legal {
            assert_eq!(found.moves as f64, direct.legal_moves);
            assert_counts(&found.mover, &direct.legal[0], direct.legal_moves, name);
            assert_counts(&found.other, &direct.legal[1], direct.legal_moves, name);
        }
        let (from_records, _) = updates(set, &fsd, Some(count as u64), legal).unwrap();
        assert_eq!(from_records, record, "{name}");
    }
}

#[test]
fn only_sets_that_read_the_king_refresh() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let check = |set: &str, looks: bool| {
        let set = FeatureSet::resolve(set).unwrap();
        let (record, _) = updates(&set, &path, None, false).unwrap();
        assert_eq!(record.mover.refreshes > 0.0, looks, "{}", set.name());
        assert_eq!(record.other.refreshes, 0.0, "{}", set.name());
        assert!(
            record.mean.rows_cache <= record.mean.rows_update && record.mean.rows_update < record.mean.rows_refresh
        );
    };
    check("piece", false);
    check("compact", false);
    check("king-piece", true);
    check("relative-king-hv", true);
}

#[test]
fn data_without_moves_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &[vec![]]);
    let set = FeatureSet::resolve("piece").unwrap();
    let refused = updates(&set, &path, None, false).unwrap_err();
    assert!(refused.to_string().contains("holds no position to measure"), "{refused}");
    assert!(updates(&set, &folder.path().join("missing"), None, false).is_err());
}
