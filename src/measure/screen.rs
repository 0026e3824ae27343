//! Screens of definitions before any training. The cheap ones count rows and compare how sets split positions, of many
//! sets at once; the others prove and time.
//!
//! A feature is a column: how often it is active in each of some positions, from each perspective. Sets of equal columns
//! give a network the same inputs, in another order. Columns are compared by hashes; a column that occurs twice counts
//! once, and one that is the same in all positions does not count, because a bias does as much.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::Position;

use super::MeasureError;
use super::importance::norm;
use super::lines::{Line, first_lines};
use super::speed_race::seconds_per_pass;
use super::updates::updates_of_lines;
use crate::chess::{Board, BoardChange, ByPerspective, Chess, Perspective, PieceBoard, random_move};
use crate::cpu::map_tasks;
use crate::features::analysis::{Analysis, Budget, Lossless};
use crate::features::{Composition, Delta, DeltaState, FeatureError, FeatureSet, RowList};
use crate::net::NetFile;
use crate::record::{ScreenRecord, ScreenedCosts};
use crate::settings::{SettingError, check_all};
use crate::text::grouped;
use crate::units::Seed;

/// Bounds of the sets that a search tries
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScreenOptions {
    /// Most features [default: no bound]
    pub max_features: Option<u64>,
    /// Most rows added or subtracted per move and perspective, with a refresh cache [default: no bound]
    pub max_rows: Option<f64>,
    /// Most bytes of a network's feature transformer [default: no bound]
    pub max_bytes: Option<u64>,
}

impl ScreenOptions {
    /// # Errors
    /// If a bound excludes every set.
    pub fn check(&self) -> Result<(), SettingError> {
        check_all(&[
            ("max_features", self.max_features != Some(0), "max_features must be at least 1"),
            ("max_rows", self.max_rows.is_none_or(|rows| rows > 0.0), "max_rows must be above 0"),
            ("max_bytes", self.max_bytes != Some(0), "max_bytes must be at least 1"),
        ])
    }

    /// The bound that a set of so many features exceeds with accumulators of `l1` values, in words.
    #[must_use]
    pub fn exceeded_by(&self, features: u64, l1: usize) -> Option<String> {
        self.exceeded_size(features, weight_bytes(features, l1))
    }

    fn exceeded_size(&self, features: u64, bytes: u64) -> Option<String> {
        let whole = |number: u64| grouped(&number.to_string());
        if let Some(most) = self.max_features.filter(|most| features > *most) {
            return Some(format!("{} features, more than max_features = {}", whole(features), whole(most)));
        }
        if let Some(most) = self.max_bytes.filter(|most| bytes > *most) {
            return Some(format!("{} bytes, more than max_bytes = {}", whole(bytes), whole(most)));
        }
        None
    }

    /// The bound that a set exceeds, in words.
    fn exceeded(&self, record: &ScreenRecord) -> Option<String> {
        if let Some(why) = self.exceeded_size(record.features, record.bytes) {
            return Some(why);
        }
        let rows = record.rows_a_move?;
        let most = self.max_rows.filter(|most| rows > *most)?;
        Some(format!("{rows:.2} rows per move, more than max_rows = {most}"))
    }
}

/// Bytes of the weights of a quantised feature transformer.
const fn weight_bytes(features: u64, l1: usize) -> u64 {
    features.saturating_mul(2 * l1 as u64)
}

/// Random games, their length, and how many of their positions there are for one that is compared.
const RANDOM_GAMES: u64 = 16;
const RANDOM_PLIES: usize = 120;
const RANDOM_STEP: usize = 5;
/// One in so many positions of the games is compared.
const GAME_STEP: usize = 4;

/// The positions on which sets are screened.
#[derive(Debug)]
pub struct ScreenGames {
    /// Real games.
    lines: Vec<Line>,
    /// Positions of the real games and of random ones, on which sets are compared.
    compared: Vec<Board>,
}

impl ScreenGames {
    /// Reads the first positions of a file; some thousands suffice.
    ///
    /// # Errors
    /// When the data cannot be read or hold no moves.
    pub fn read(data: &Path, positions: u64) -> Result<ScreenGames, MeasureError> {
        let (lines, _) = first_lines(data, positions)?;
        if lines.iter().all(|line| line.moves.is_empty()) {
            return Err(MeasureError::NoMoves { path: data.into() });
        }
        let mut boards = Vec::new();
        lines.iter().for_each(|line| line.for_each_position(|board, _, _| boards.push(board.clone())));
        let mut compared: Vec<Board> = boards.into_iter().step_by(GAME_STEP).collect();
        compared.extend((0..RANDOM_GAMES).flat_map(random_boards));
        Ok(ScreenGames { lines, compared })
    }
}

impl ScreenGames {
    /// How much each row of a network's feature transformer matters: its squared norm, as often as its feature is active
    /// per position and perspective.
    ///
    /// # Errors
    /// When the network's feature set cannot be rebuilt.
    pub fn importance(&self, file: &NetFile) -> Result<Vec<f64>, MeasureError> {
        let set = file.origin.feature_set()?;
        let mut counts = vec![0u64; set.num_features() as usize];
        let mut active = Vec::new();
        let mut perspectives = 0u64;
        for line in &self.lines {
            line.for_each_position(|board, _, _| {
                for pov in Perspective::ALL {
                    perspectives += 1;
                    set.encoder().encode(board, pov, &mut active);
                    active.iter().for_each(|feature| counts[*feature as usize] += 1);
                }
            });
        }
        let importance =
            |(row, count): (u32, u64)| count as f64 / perspectives as f64 * norm(&file.net, &[row]).powi(2);
        Ok((0..).zip(counts).map(importance).collect())
    }
}

fn random_boards(game: u64) -> Vec<Board> {
    let mut rng = Seed(0).stream("screen", game);
    let mut position = Chess::default();
    let mut boards = Vec::new();
    for ply in 0..RANDOM_PLIES {
        if ply % RANDOM_STEP == 0 {
            boards.push(position.board().clone());
        }
        let Some(mv) = random_move(&position, &mut rng) else { break };
        position.play_unchecked(mv);
    }
    boards
}

impl ScreenGames {
    /// The cheap screens of sets, each as the command line takes it, with networks of `l1` neurons per perspective; of
    /// as many sets at once as rayon's current pool has threads. A set that cannot be encoded is refused.
    ///
    /// # Errors
    /// When a set is no definition.
    pub fn screen(&self, sets: &[&str], l1: usize, options: &ScreenOptions) -> Result<Vec<ScreenRecord>, FeatureError> {
        map_tasks(sets.len(), &|number| self.screen_one(sets[number], l1, options)).into_iter().collect()
    }

    fn screen_one(&self, set: &str, l1: usize, options: &ScreenOptions) -> Result<ScreenRecord, FeatureError> {
        let features = Composition::load(set)?.size();
        let mut record = ScreenRecord {
            identity: None,
            features,
            bytes: weight_bytes(features, l1),
            active: None,
            rows_a_move: None,
            split: None,
            refused: None,
            costs: None,
        };
        record.refused = options.exceeded(&record);
        if record.refused.is_some() {
            return Ok(record);
        }
        let set = match FeatureSet::resolve(set) {
            Ok(set) => set,
            Err(error @ FeatureError::Definition(_)) => {
                return Ok(ScreenRecord { refused: Some(error.to_string()), ..record });
            }
            Err(other) => return Err(other),
        };
        record.identity = Some(set.identity().clone());
        record.split = Some(split(&set, &self.compared));
        let (active, rows) = updates_of_lines(&set, &self.lines);
        record.active = Some(active);
        record.rows_a_move = Some(rows.rows_cache);
        record.refused = options.exceeded(&record);
        Ok(record)
    }

    /// Proofs within [`Budget::QUICK`], of many sets at once, and the time to follow a move, one set after the other.
    ///
    /// # Errors
    /// When a set is no definition.
    pub fn costs(&self, sets: &[&str]) -> Result<Vec<ScreenedCosts>, FeatureError> {
        let prove = |number: usize| {
            let set = FeatureSet::resolve(sets[number])?;
            let dead = Analysis::within(&set, Budget::QUICK, |_, _| ()).tally().dead;
            let dead_share = f64::from(dead) / f64::from(set.num_features());
            let lossless = Lossless::within(&set, Budget::QUICK).word().to_owned();
            Ok((set, ScreenedCosts { ns_a_move: 0.0, dead_share, lossless }))
        };
        let timed = |proved: Result<(FeatureSet, ScreenedCosts), FeatureError>| {
            let (set, costs) = proved?;
            Ok(ScreenedCosts { ns_a_move: nanoseconds_a_move(&set, &self.lines), ..costs })
        };
        map_tasks(sets.len(), &prove).into_iter().map(timed).collect()
    }
}

/// A hash of a set's distinct columns over boards.
fn split(set: &FeatureSet, boards: &[Board]) -> String {
    let mut columns: HashMap<u32, u128> = HashMap::new();
    let mut all = 0u128;
    let mut active = Vec::new();
    for (board, number) in boards.iter().zip(0u64..) {
        for pov in Perspective::ALL {
            let weight = sample_weight(2 * number + pov.index() as u64);
            all = all.wrapping_add(weight);
            set.encoder().encode(board, pov, &mut active);
            for feature in &active {
                let column = columns.entry(*feature).or_default();
                *column = column.wrapping_add(weight);
            }
        }
    }
    let mut sums: Vec<u128> = columns.into_values().collect();
    sums.sort_unstable();
    sums.dedup();
    sums.retain(|sum| *sum != all);
    let mut hasher = blake3::Hasher::new();
    sums.iter().for_each(|sum| {
        hasher.update(&sum.to_le_bytes());
    });
    hasher.finalize().to_hex()[..32].to_owned()
}

/// A number for a position and perspective. Different sets of positions have different sums, but for chance.
fn sample_weight(number: u64) -> u128 {
    let hash = blake3::hash(&number.to_le_bytes());
    let (low, _) = hash.as_bytes().split_at(16);
    low.iter().fold(0, |all, byte| all << 8 | u128::from(*byte))
}

/// Time to find both perspectives' changes of a move, or all their features where a context changes.
fn nanoseconds_a_move(set: &FeatureSet, lines: &[Line]) -> f64 {
    /// Timings of which the shortest counts, and the duration of each.
    const TURNS: usize = 3;
    const DURATION: Duration = Duration::from_millis(30);
    let mut track: Vec<(PieceBoard, Option<BoardChange>)> = Vec::new();
    for line in lines {
        track.push((PieceBoard::of(line.start.board()), None));
        line.for_each_move(|played| track.push((PieceBoard::of(played.after), Some(*played.change))));
    }
    let moves = track.iter().filter(|(_, change)| change.is_some()).count();
    let mut follower = Follower::default();
    let turn = |_| seconds_per_pass(|| follower.follow(set, &track), DURATION);
    let seconds = (0..TURNS).map(turn).fold(f64::INFINITY, f64::min);
    1e9 * seconds / moves as f64
}

/// Finds the changed features of moves.
#[derive(Default)]
struct Follower {
    states: [DeltaState; 2],
    deltas: ByPerspective<Delta>,
    active: RowList,
}

impl Follower {
    fn follow(&mut self, set: &FeatureSet, track: &[(PieceBoard, Option<BoardChange>)]) {
        let mut before = None;
        for (board, change) in track {
            match (before, change) {
                (Some(before), Some(change)) => self.follow_move(set, [before, board], change),
                _ => self.states.iter_mut().for_each(DeltaState::clear),
            }
            before = Some(board);
        }
    }

    fn follow_move(&mut self, set: &FeatureSet, boards: [&PieceBoard; 2], change: &BoardChange) {
        let [old, new] = &mut self.states;
        set.encoder().diff_or_refresh(boards, change, [old, new], &mut self.deltas);
        self.states.swap(0, 1);
        for pov in Perspective::ALL {
            if self.deltas[pov].refresh {
                set.encoder().encode_board(boards[1], pov, &mut self.active);
            }
        }
        std::hint::black_box(&self.deltas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::random_game;
    use crate::measure::updates::difference;
    use crate::net::tests::random_net;
    use crate::net::{Origin, Scheme, Shape, quantise};

    fn boards() -> Vec<Board> {
        (0..8).flat_map(random_boards).collect()
    }

    fn split_of(set: &str, boards: &[Board]) -> String {
        split(&FeatureSet::resolve(set).expect("a definition"), boards)
    }

    /// Sets whose features have other numbers split positions alike; a finer or a coarser set does not.
    #[test]
    fn sets_are_compared_whatever_their_numbers() {
        let boards = boards();
        let piece = split_of("piece", &boards);
        for alike in [
            "chess768",
            "square(P) * color(P) * role(P) for P in pieces if square(P) >= 0",
            "piece + piece",
            "piece + rank(P) * file(P) * role(P) * color(P) for P in pieces",
            "piece + count(1 for P in pieces if role(P) == king)",
        ] {
            assert_eq!(split_of(alike, &boards), piece, "{alike}");
        }
        for other in ["half-kp", "square(P) * role(P) for P in pieces", "chess768-mirrored", "piece + threat-roles"] {
            assert_ne!(split_of(other, &boards), piece, "{other}");
        }
        assert_eq!(split_of("chess768-mirrored", &boards), split_of("chess768-hm", &boards), "mirror images");
    }

    fn random_games() -> ScreenGames {
        let line = |game| {
            let mut rng = Seed(7).stream("screened", game);
            let moves = random_game(&mut rng, 80).into_iter().map(|(_, mv)| mv).collect();
            Line { start: Chess::default(), moves, includes_end: false }
        };
        ScreenGames { lines: (0..6).map(line).collect(), compared: boards() }
    }

    /// Active features and rows of a move by the reference encoder, for a set without contexts.
    #[test]
    fn screens_count_features_and_rows() {
        let games = random_games();
        let name = "piece + threat-roles";
        let set = FeatureSet::resolve(name).expect("shipped");
        let [mut moves, mut active, mut changed] = [0; 3];
        for line in &games.lines {
            line.for_each_move(|played| {
                moves += 2;
                for pov in Perspective::ALL {
                    let [before, after] = [played.before.board(), played.after].map(|board| set.reference(board, pov));
                    active += before.len();
                    changed += difference(&before, &after);
                }
            });
        }
        let screen = |set, bounds: &ScreenOptions| games.screen(&[set], 64, bounds).expect("shipped").remove(0);
        let record = screen(name, &ScreenOptions::default());
        assert_eq!((record.features, record.bytes, &record.refused), (912, 912 * 64 * 2, &None));
        assert_eq!(record.identity.as_ref(), Some(set.identity()));
        assert_eq!(record.active, Some(active as f64 / moves as f64));
        assert_eq!(record.rows_a_move, Some(changed as f64 / moves as f64));
        let sets = [name, "half-kp", name];
        let bounds = ScreenOptions { max_features: Some(1_000), ..ScreenOptions::default() };
        let records = games.screen(&sets, 64, &bounds).expect("shipped");
        let [first, large, again] = &records[..] else { panic!("{records:?}") };
        assert_eq!((first, again), (&record, &record));
        assert_eq!(large.refused.as_deref(), Some("41,024 features, more than max_features = 1,000"));
        assert_eq!((&large.identity, &large.split, large.rows_a_move), (&None, &None, None));
        let slow = ScreenOptions { max_rows: Some(1.0), ..ScreenOptions::default() };
        let refused = screen(name, &slow).refused.expect("refused");
        assert!(refused.ends_with("rows per move, more than max_rows = 1"), "{refused}");
        let pairs = "square(K) * pair(square(P) * role(P) * color(P), square(Q) * role(Q) * color(Q)) for P in pieces, \
                     Q in pieces if square(P) < square(Q)";
        let too_large = screen(pairs, &ScreenOptions::default());
        assert!(
            too_large.refused.is_some_and(|why| why.contains("this product is too large"))
                && too_large.active.is_none()
        );
    }

    #[test]
    fn importance_grows_with_weights_and_activity() {
        const L1: usize = 16;
        let games = random_games();
        let set = FeatureSet::resolve("chess768").expect("shipped");
        let mut net = random_net(&Shape::plain(768, L1, vec![8]), 3);
        // The own pawns on e4 and e2.
        let [advanced, home] = [28, 12];
        net.ft_weights.fill(10.0 / 127.0);
        net.ft_weights[L1 * home..L1 * (home + 1)].fill(20.0 / 127.0);
        net.ft_weights[L1 * 13..L1 * 14].fill(0.0);
        let net = quantise(&net, &Scheme::stockfish()).expect("quantised");
        let importance = games.importance(&NetFile { origin: Origin::of(&set), net }).expect("rebuilt");
        assert_eq!(importance.len(), 768);
        assert_eq!(importance[13], 0.0, "its weights are 0");
        assert_eq!(importance[0], 0.0, "no pawn stands on a1");
        let frequency = |feature: usize| {
            let boards = games.lines.iter().flat_map(|line| {
                let mut boards = Vec::new();
                line.for_each_position(|board, _, _| boards.push(board.clone()));
                boards
            });
            let active = |board: Board| Perspective::ALL.map(|pov| set.reference(&board, pov));
            let lists: Vec<Vec<u32>> = boards.flat_map(active).collect();
            lists.iter().filter(|list| list.contains(&(feature as u32))).count() as f64
        };
        let ratio = importance[home] / importance[advanced];
        let expected = 4.0 * frequency(home) / frequency(advanced);
        assert!((ratio / expected - 1.0).abs() < 1e-9, "{ratio} {expected}");
    }

    #[test]
    fn sets_are_proved_and_timed() {
        let games = random_games();
        let costs = games.costs(&["threat-roles", "chess768"]).expect("shipped");
        let known: Vec<_> = costs.iter().map(|costs| (costs.dead_share, &*costs.lossless)).collect();
        assert_eq!(known[1], (32.0 / 768.0, "yes"));
        assert_eq!(known[0].1, "no");
        assert!(costs.iter().all(|costs| costs.ns_a_move > 0.0 && costs.ns_a_move.is_finite()), "{costs:?}");
    }

    #[test]
    fn bounds_are_said_in_words() {
        let record = |features: u64, rows: Option<f64>| ScreenRecord {
            identity: None,
            features,
            bytes: 256 * features,
            active: None,
            rows_a_move: rows,
            split: None,
            refused: None,
            costs: None,
        };
        let options = ScreenOptions { max_features: Some(5_000), max_rows: Some(6.5), max_bytes: Some(1_000_000) };
        let check = |features, rows, expected: Option<&str>| {
            assert_eq!(options.exceeded(&record(features, rows)).as_deref(), expected);
        };
        check(5_001, None, Some("5,001 features, more than max_features = 5,000"));
        check(4_000, None, Some("1,024,000 bytes, more than max_bytes = 1,000,000"));
        check(3_000, Some(6.754), Some("6.75 rows per move, more than max_rows = 6.5"));
        check(3_000, Some(6.5), None);
        assert!(options.check().is_ok());
        assert_eq!(ScreenOptions { max_rows: Some(0.0), ..options }.check().expect_err("no set").key, "max_rows");
    }
}
