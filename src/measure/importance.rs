//! The worth of each block, each value of an axis and each row of a network's feature transformer.
//!
//! A group of rows is worth the rise of the loss when all of them are replaced by their mean: the network still sees
//! that some feature of the group is active, but not which (mean ablation).

use std::collections::HashMap;
use std::path::Path;

use super::MeasureError;
use super::loss::LossOptions;
use super::tally::{LossTally, Mean};
use crate::chess::{Board, Color, Perspective};
use crate::cpu::map_tasks;
use crate::data::formats::{SampleReader, SkippedSamples, UnitConversion, convert_score};
use crate::data::{GameResult, Record, ScoreUnit};
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::features::FeatureSet;
use crate::net::{BucketChooser, NetFile, QuantNet, forward_integer};
use crate::record::{AxisImportance, BlockImportance, Cluster, ImportanceRecord, LossData, Rise, RowCounts, RowGroup};

/// Options of [`importance`].
#[derive(Clone, Debug, Default)]
pub struct ImportanceOptions {
    /// `limit` is the number of samples to use, evenly spread over the data.
    pub loss: LossOptions,
    /// Largest change of a score that counts as none, in centipawns.
    pub epsilon: f64,
}

/// Samples that are used unless a limit is given.
pub const DEFAULT_SAMPLES: u64 = 20_000;

/// A result of [`importance`].
#[derive(Clone, Debug)]
pub struct Importance {
    pub record: ImportanceRecord,
    /// The rows that the data cannot do without, ascending: a list for the `select` key of a definition.
    pub kept: Vec<u32>,
    pub skipped: SkippedSamples,
}

/// Measures the worth of a network's rows on samples. `progress` gets the number of groups and rows that are done, and
/// of all. The number of threads does not change the result.
///
/// # Errors
/// When the data cannot be read, contain a damaged sample or no sample with a target, or the feature set cannot be
/// rebuilt.
pub fn importance(
    file: &NetFile,
    data: &Path,
    options: &ImportanceOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Importance, MeasureError> {
    let set = file.origin.feature_set()?;
    let (samples, facts, skipped) = Samples::read(data, &options.loss)?;
    let uses = samples.uses(&set);
    let base = samples.losses(&set, &file.net, options)?;
    let groups = groups(&set);
    let total = groups.iter().map(BlockGroups::count).sum::<usize>() as u64 + 1;
    let mut done = 0;
    let perspectives = 2.0 * samples.positions.len() as f64;
    let mut measured = |value: &str, rows: &[u32]| -> Result<RowGroup, MeasureError> {
        progress(done, total);
        done += 1;
        let active: u64 = rows.iter().map(|row| uses[*row as usize]).sum();
        let rise = if rows.len() > 1 && active > 0 {
            Some(samples.rise(&base, &samples.losses(&set, &with_mean_row(&file.net, rows, &uses), options)?))
        } else {
            None
        };
        Ok(RowGroup {
            value: value.to_owned(),
            rows: rows.len() as u64,
            active: active as f64 / perspectives,
            norm: norm(&file.net, rows),
            rise,
        })
    };
    let mut blocks = Vec::new();
    for BlockGroups { block, rows, axes } in &groups {
        let whole = measured("", rows)?;
        let axis = |(axis, values): &(String, Vec<ValueRows>)| {
            let values =
                values.iter().map(|(value, rows)| measured(value, rows)).collect::<Result<_, MeasureError>>()?;
            Ok(AxisImportance { axis: axis.clone(), values })
        };
        let axes = axes.iter().map(axis).collect::<Result<_, MeasureError>>()?;
        blocks.push(BlockImportance { block: block.clone(), whole, axes });
    }
    progress(total - 1, total);
    let buckets = BucketChooser::new(&file.net.shape.buckets, &set)?;
    let effects = samples.removal_effects(&set, &file.net, &buckets);
    let has_effect = |row: &u32| effects[*row as usize] > options.epsilon;
    let kept: Vec<u32> = (0..set.num_features()).filter(has_effect).collect();
    let never_active = uses.iter().filter(|uses| **uses == 0).count() as u32;
    let rows = RowCounts {
        total: set.num_features(),
        never_active,
        without_effect: set.num_features() - kept.len() as u32 - never_active,
        epsilon: options.epsilon,
    };
    let all: f64 = base.iter().sum();
    let record = ImportanceRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        clusters: if facts.games.is_some() { Cluster::Game } else { Cluster::Sample },
        data: facts,
        function: options.loss.loss,
        loss: all / base.len() as f64,
        blocks,
        rows,
    };
    Ok(Importance { record, kept, skipped })
}

/// The rows of a block, of each value of each of its axes.
struct BlockGroups {
    block: String,
    rows: Vec<u32>,
    axes: Vec<(String, Vec<ValueRows>)>,
}

/// The name of an axis's value, and its rows.
type ValueRows = (String, Vec<u32>);

impl BlockGroups {
    fn count(&self) -> usize {
        1 + self.axes.iter().map(|(_, values)| values.len()).sum::<usize>()
    }
}

fn groups(set: &FeatureSet) -> Vec<BlockGroups> {
    let of_block = |block: &crate::features::Block| {
        let mut axes: Vec<(String, Vec<ValueRows>)> = Vec::new();
        let mut places: HashMap<(String, String), (usize, usize)> = HashMap::new();
        for (index, coordinates) in block.coordinates() {
            for coordinate in coordinates {
                let place = places.entry((coordinate.axis, coordinate.value));
                let (name, value) = place.key().clone();
                let (axis, value) = *place.or_insert_with(|| {
                    let axis = axes.iter().position(|(own, _)| *own == name).unwrap_or_else(|| {
                        axes.push((name, Vec::new()));
                        axes.len() - 1
                    });
                    axes[axis].1.push((value, Vec::new()));
                    (axis, axes[axis].1.len() - 1)
                });
                axes[axis].1[value].1.push(index);
            }
        }
        BlockGroups { block: block.name.clone(), rows: block.indices().collect(), axes }
    };
    set.blocks().iter().map(of_block).collect()
}

/// The network with some rows replaced by their mean, weighted by use.
fn with_mean_row(net: &QuantNet, rows: &[u32], uses: &[u64]) -> QuantNet {
    let mut net = net.clone();
    let l1 = net.shape.l1;
    let buckets = if net.shape.psqt { net.shape.buckets.count } else { 0 };
    let weight: f64 = rows.iter().map(|row| uses[*row as usize] as f64).sum();
    let mut mean = vec![0.0; l1];
    let mut psqt = vec![0.0; buckets];
    for row in rows {
        let row = *row as usize;
        let share = uses[row] as f64 / weight;
        mean.iter_mut().zip(&net.ft_weights[row * l1..]).for_each(|(sum, weight)| *sum += share * f64::from(*weight));
        psqt.iter_mut()
            .zip(&net.psqt_weights[row * buckets..])
            .for_each(|(sum, weight)| *sum += share * f64::from(*weight));
    }
    for row in rows.iter().map(|row| *row as usize) {
        let own = net.ft_weights[row * l1..][..l1].iter_mut();
        own.zip(&mean).for_each(|(weight, mean)| *weight = mean.round() as i16);
        let own = net.psqt_weights[row * buckets..][..buckets].iter_mut();
        own.zip(&psqt).for_each(|(weight, mean)| *weight = mean.round() as i32);
    }
    net
}

/// Root mean square of rows' norms, in units of an activation's upper bound.
pub(super) fn norm(net: &QuantNet, rows: &[u32]) -> f64 {
    let l1 = net.shape.l1;
    let square = |row: &u32| -> f64 {
        net.ft_weights[*row as usize * l1..][..l1].iter().map(|weight| f64::from(*weight).powi(2)).sum()
    };
    let mean = rows.iter().map(square).sum::<f64>() / rows.len().max(1) as f64;
    mean.sqrt() / net.scheme.feature_transformer_scale()
}

/// A position to evaluate, with its target.
struct PositionWithTarget {
    board: Board,
    turn: Color,
    target: f64,
    cluster: u64,
}

struct Samples {
    positions: Vec<PositionWithTarget>,
}

/// Positions per parallel task.
const CHUNK: usize = 1024;

impl Samples {
    /// Reads samples with a target, evenly spread over the data: every k-th, where k is a power of 2.
    fn read(data: &Path, options: &LossOptions) -> Result<(Samples, LossData, SkippedSamples), MeasureError> {
        let limit = options.limit.unwrap_or(DEFAULT_SAMPLES).max(1);
        let mut reader = SampleReader::open_with(data, options.format, options.unit, options.evals)?;
        let format = reader.format();
        let score_unit = reader.score_unit();
        let units = UnitConversion { from: score_unit, to: ScoreUnit::Centipawns };
        let mut kept: Vec<(u64, Record, f64)> = Vec::new();
        let mut step: u64 = 1;
        let mut read = 0;
        let mut with_target = 0u64;
        let mut without_target = 0;
        loop {
            let block = reader.next_block()?.unwrap_or_default();
            if block.is_empty() {
                break;
            }
            for record in block {
                let score = record.score().map(|score| f32::from(convert_score(score, units).0));
                match options.loss.target(score, record.result().map(GameResult::points)) {
                    None => without_target += 1,
                    Some(target) => {
                        if with_target.is_multiple_of(step) {
                            kept.push((read, record, f64::from(target)));
                        }
                        with_target += 1;
                        if kept.len() as u64 > limit {
                            step *= 2;
                            let mut index = 0;
                            kept.retain(|_| {
                                index += 1;
                                index % 2 == 1
                            });
                        }
                    }
                }
                read += 1;
            }
        }
        if kept.is_empty() {
            return Err(MeasureError::NoTarget { path: data.into(), samples: read, lambda: options.loss.lambda });
        }
        let sample = |(number, record, target): (u64, Record, f64)| {
            let board = record.board().unpack().map_err(|reason| MeasureError::Record {
                path: data.into(),
                number,
                reason: reason.into(),
            })?;
            let cluster = if format.has_ply() { u64::from(record.game()) } else { number };
            Ok(PositionWithTarget { board, turn: record.turn(), target, cluster })
        };
        let positions = kept.into_iter().map(sample).collect::<Result<Vec<_>, MeasureError>>()?;
        let mut games: Vec<u64> = positions.iter().map(|sample| sample.cluster).collect();
        games.sort_unstable();
        games.dedup();
        let facts = LossData {
            path: data.display().to_string(),
            format: format.name().into(),
            score_unit,
            samples: positions.len() as u64,
            without_target,
            games: format.has_ply().then_some(games.len() as u64),
        };
        Ok((Samples { positions }, facts, reader.skipped()))
    }

    /// How often each row is active, over both perspectives.
    fn uses(&self, set: &FeatureSet) -> Vec<u64> {
        let mut uses = vec![0; set.num_features() as usize];
        let mut active = Vec::new();
        for PositionWithTarget { board, .. } in &self.positions {
            for pov in Perspective::ALL {
                set.encoder().encode(board, pov, &mut active);
                active.iter().for_each(|row| uses[*row as usize] += 1);
            }
        }
        uses
    }

    /// The loss of every sample.
    fn losses(&self, set: &FeatureSet, net: &QuantNet, options: &ImportanceOptions) -> Result<Vec<f64>, MeasureError> {
        let model = Model::new(net);
        let evaluator = Evaluator::new(set, &model, Strategy::EagerCached, BackEnd::best())?;
        let centipawns = 100.0 / f64::from(net.scheme.pawn_value);
        let chunks: Vec<&[PositionWithTarget]> = self.positions.chunks(CHUNK).collect();
        let of_chunk = |chunk: usize| -> Vec<f64> {
            let samples = chunks[chunk];
            let mut evaluator = evaluator.clone();
            let loss = |sample: &PositionWithTarget| {
                evaluator.set(&sample.board);
                options.loss.loss.of(f64::from(evaluator.score(sample.turn)) * centipawns, sample.target)
            };
            samples.iter().map(loss).collect()
        };
        Ok(map_tasks(chunks.len(), &of_chunk).concat())
    }

    /// The rise of the mean loss from one network to another.
    fn rise(&self, from: &[f64], to: &[f64]) -> Rise {
        let mut tally = LossTally::new(2);
        for (sample, (from, to)) in self.positions.iter().zip(from.iter().zip(to)) {
            tally.add(sample.cluster, 0, &[*from, *to]);
        }
        let Mean { mean, interval, .. } = tally.mean(|losses| losses[1] - losses[0]);
        Rise { mean, interval }
    }

    /// The largest change of a position's score, in centipawns, when a row is removed; below 0 for rows that are never
    /// active.
    fn removal_effects(&self, set: &FeatureSet, net: &QuantNet, buckets: &BucketChooser) -> Vec<f64> {
        let centipawns = 100.0 / f64::from(net.scheme.pawn_value);
        let chunks: Vec<&[PositionWithTarget]> = self.positions.chunks(CHUNK / 4).collect();
        let of_chunk = |chunk: usize| -> Vec<(u32, f64)> {
            let samples = chunks[chunk];
            let mut effects: HashMap<u32, f64> = HashMap::new();
            let mut active = [Vec::new(), Vec::new()];
            let mut without = Vec::new();
            for PositionWithTarget { board, turn, .. } in samples {
                let pov = Perspective::of(*turn);
                set.encoder().encode(board, pov, &mut active[0]);
                set.encoder().encode(board, pov.other(), &mut active[1]);
                let bucket = buckets.of(board, *turn);
                let score = |stm: &[u32], nstm: &[u32]| {
                    f64::from(net.scheme.score(forward_integer(net, bucket, stm, nstm))) * centipawns
                };
                let whole = score(&active[0], &active[1]);
                for (side, at) in (0..2).flat_map(|side| (0..active[side].len()).map(move |at| (side, at))) {
                    let row = active[side][at];
                    without.clear();
                    without.extend(active[side].iter().copied().filter(|other| *other != row));
                    let lessened = if side == 0 { score(&without, &active[1]) } else { score(&active[0], &without) };
                    let effect = effects.entry(row).or_insert(0.0);
                    *effect = effect.max((whole - lessened).abs());
                }
            }
            effects.into_iter().collect()
        };
        let mut effects = vec![-1.0; set.num_features() as usize];
        for (row, effect) in map_tasks(chunks.len(), &of_chunk).concat() {
            effects[row as usize] = f64::max(effects[row as usize], effect);
        }
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{FloatNet, Origin, Scheme, Shape, quantise};

    /// Positions with and without queens, scored by material, in a file of `FEN,score,move` lines.
    fn data(folder: &Path) -> std::path::PathBuf {
        let lines = [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1,0,e2e4",
            "rnb1kbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1,900,e2e4",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNB1KBNR w KQkq - 0 1,-900,e2e4",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNB1KBNR b KQkq - 0 1,900,e7e5",
        ];
        let path = folder.join("positions.txt");
        std::fs::write(&path, lines.join("\n") + "\n").expect("written");
        path
    }

    /// A network that counts queens by PSQT values and nothing else.
    fn queen_counter(set: &FeatureSet) -> NetFile {
        let mut float = FloatNet::zeros(&Shape { psqt: true, ..Shape::plain(set.num_features(), 8, vec![]) });
        for (index, coordinates) in set.blocks()[0].coordinates() {
            let has = |value: &str| coordinates.iter().any(|own| own.value == value);
            if has("queen") {
                float.ft_weights[index as usize * 9 + 8] = if has("own") { 1.5 } else { -1.5 };
            }
        }
        NetFile { origin: Origin::of(set), net: quantise(&float, &Scheme::stockfish()).expect("quantised") }
    }

    #[test]
    fn only_what_the_network_reads_is_worth_something() {
        let folder = tempfile::tempdir().expect("a folder");
        let set = FeatureSet::shipped("piece").expect("shipped");
        let options = ImportanceOptions { epsilon: 1.0, ..ImportanceOptions::default() };
        let found = importance(&queen_counter(&set), &data(folder.path()), &options, &mut |_, _| ()).expect("measured");
        let record = &found.record;
        let axis = |name: &str| record.blocks[0].axes.iter().find(|axis| axis.axis == name).expect("an axis");
        let rise = |axis: &AxisImportance, value: &str| {
            let group = axis.values.iter().find(|group| group.value == value).expect("a value");
            group.rise.map(|rise| rise.mean)
        };
        // Own and their queens become the same.
        assert!(rise(axis("role(P)"), "queen").expect("active") > 0.001, "{record:?}");
        assert_eq!(rise(axis("role(P)"), "rook"), Some(0.0));
        assert_eq!(rise(axis("square(P)"), "e5"), None, "never active");
        assert!(record.blocks[0].whole.rise.expect("active").mean > 0.001);
        assert_eq!(record.blocks[0].whole.active, (32.0 + 3.0 * 31.0) / 4.0);
        // The rows of d1 and d8: own and their queen, as both sides see them.
        let squares = |row: &u32| set.describe(*row).expect("a row").values;
        let kept: Vec<String> = found.kept.iter().map(squares).collect();
        assert!(kept.iter().all(|values| values.contains("queen")) && kept.len() == 2, "{kept:?}");
        let RowCounts { total, never_active, without_effect, .. } = record.rows;
        assert_eq!((total, never_active + without_effect), (768, 766));
        assert_eq!(768 - never_active, 32);
    }

    #[test]
    fn the_mean_row_is_weighted_by_use() {
        let set = FeatureSet::shipped("piece").expect("shipped");
        let mut net = queen_counter(&set).net;
        net.ft_weights[..16].copy_from_slice(&[[10; 8], [40; 8]].concat());
        net.psqt_weights[..2].copy_from_slice(&[-100, 200]);
        let mut uses = vec![0; 768];
        uses[0] = 3;
        uses[1] = 1;
        let mean = with_mean_row(&net, &[0, 1], &uses);
        assert_eq!((&mean.ft_weights[..16], &mean.psqt_weights[..2]), (&[18; 16][..], &[-25, -25][..]));
        assert_eq!(mean.ft_weights[16..], net.ft_weights[16..]);
    }
}
