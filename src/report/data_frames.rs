//! The report's numbers as data frames, written as CSV and Parquet.

use polars::prelude::{Column, CsvWriter, DataFrame, NamedFrom, ParquetWriter, PolarsResult, SerWriter, Series};

use super::comparisons::{Difference, PairComparison, PartComparison};
use super::measured::MEASURED_COLUMNS;
use super::scaling::{ScalingSummary, SetCrossing, SetScaling};
use super::summary::{MethodSummary, Summary, SummaryRow};
use super::tables::method_name;
use super::training_data::TrainingData;
use crate::record::{EpochRecord, MatchResult, Method, Results, RunRecord};
use crate::statistics::Estimate;
use crate::statistics::pentanomial::Interval;

/// The data frames, in several levels of detail.
#[derive(Clone, Debug)]
pub struct DataFrames {
    /// One row per feature set and method. An estimate has columns for mean, interval (half-width, 95%) and count.
    pub summary: DataFrame,
    /// One row per training.
    pub runs: DataFrame,
    /// One row per epoch of a training.
    pub epochs: DataFrame,
    /// One row per match.
    pub matches: DataFrame,
    /// One row per pair of sets; `None` without pairs.
    pub pairs: Option<DataFrame>,
    /// One row per set and class of positions; `None` without such comparisons.
    pub parts: Option<DataFrame>,
    /// One row per set with a curve over the amount of data; `None` without curves.
    pub scaling: Option<DataFrame>,
    /// One row per crossing of two such curves; `None` without curves.
    pub crossings: Option<DataFrame>,
}

impl DataFrames {
    /// Makes all frames.
    ///
    /// # Errors
    /// When polars cannot make a frame.
    pub fn of(summary: &Summary, results: &Results) -> PolarsResult<DataFrames> {
        Ok(DataFrames {
            summary: summary_frame(summary)?,
            runs: runs_frame(results)?,
            epochs: epochs_frame(results)?,
            matches: matches_frame(results)?,
            pairs: pairs_frame(summary)?,
            parts: parts_frame(summary)?,
            scaling: scaling_frame(summary)?,
            crossings: crossings_frame(summary)?,
        })
    }

    /// The frames with their file names.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, &DataFrame)> {
        let always =
            [("summary", &self.summary), ("runs", &self.runs), ("epochs", &self.epochs), ("matches", &self.matches)];
        let curves = [("scaling", &self.scaling), ("crossings", &self.crossings)];
        let others = [("pairs", &self.pairs), ("parts", &self.parts)].into_iter().chain(curves);
        let others = others.filter_map(|(name, frame)| Some((name, frame.as_ref()?)));
        always.into_iter().chain(others).collect()
    }
}

/// A frame as CSV.
///
/// # Errors
/// When polars cannot write the frame.
pub(super) fn csv(frame: &DataFrame) -> PolarsResult<Vec<u8>> {
    let mut bytes = Vec::new();
    CsvWriter::new(&mut bytes).finish(&mut frame.clone())?;
    Ok(bytes)
}

/// A frame as Parquet.
///
/// # Errors
/// When polars cannot write the frame.
pub(super) fn parquet(frame: &DataFrame) -> PolarsResult<Vec<u8>> {
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).finish(&mut frame.clone())?;
    Ok(bytes)
}

/// Builds a frame column by column.
struct FrameBuilder<'a, R> {
    rows: Vec<&'a R>,
    columns: Vec<Column>,
}

impl<R> FrameBuilder<'_, R> {
    fn text(&mut self, name: &str, value: &dyn Fn(&R) -> String) {
        let mut values: Vec<String> = Vec::new();
        for row in &self.rows {
            values.push(value(row));
        }
        self.columns.push(Series::new(name.into(), values).into());
    }

    fn count(&mut self, name: &str, value: &dyn Fn(&R) -> Option<u64>) {
        let mut values: Vec<Option<u64>> = Vec::new();
        for row in &self.rows {
            values.push(value(row));
        }
        self.columns.push(Series::new(name.into(), values).into());
    }

    fn number(&mut self, name: &str, value: &dyn Fn(&R) -> Option<f64>) {
        let mut values: Vec<Option<f64>> = Vec::new();
        for row in &self.rows {
            values.push(value(row));
        }
        self.columns.push(Series::new(name.into(), values).into());
    }

    fn estimate(&mut self, name: &str, value: &dyn Fn(&R) -> Option<Estimate>) {
        self.number(name, &|row| Some(value(row)?.mean));
        self.number(&format!("{name}_interval"), &|row| value(row)?.interval);
        self.count(&format!("{name}_count"), &|row| Some(value(row)?.count as u64));
    }

    fn interval(&mut self, name: &str, value: &dyn Fn(&R) -> Interval) {
        self.number(name, &|row| Some(value(row).value));
        self.number(&format!("{name}_low"), &|row| Some(value(row).low));
        self.number(&format!("{name}_high"), &|row| Some(value(row).high));
    }

    fn difference(&mut self, value: &dyn Fn(&R) -> &Difference) {
        self.text("measure", &|row| value(row).measure.name().to_owned());
        self.number("difference", &|row| Some(value(row).difference));
        self.number("low", &|row| Some(value(row).low));
        self.number("high", &|row| Some(value(row).high));
        self.text("statement", &|row| value(row).statement.name().to_owned());
        self.count("seeds", &|row| Some(value(row).seeds as u64));
    }

    fn build(self) -> PolarsResult<DataFrame> {
        DataFrame::new(self.rows.len(), self.columns)
    }
}

fn summary_frame(summary: &Summary) -> PolarsResult<DataFrame> {
    let mut methods: Vec<&'static str> = Vec::new();
    let mut rows: Vec<&SummaryRow> = Vec::new();
    for method in &summary.methods {
        for row in &method.rows {
            methods.push(method_name(method.method));
            rows.push(row);
        }
    }
    let has_figures = rows.iter().any(|row| !row.own.is_empty());
    let mut columns = FrameBuilder { rows, columns: vec![Series::new("method".into(), methods).into()] };
    columns.text("set", &|row| row.set.clone());
    columns.count("seeds_done", &|row| Some(row.seeds_done as u64));
    columns.count("seeds_planned", &|row| Some(row.seeds_planned as u64));
    columns.count("features", &|row| row.features.map(u64::from));
    columns.count("parameters", &|row| row.parameters);
    columns.text("about", &|row| row.about.clone().unwrap_or_default());
    columns.count("l1", &|row| row.l1);
    columns.count("training_samples", &|row| Some(row.training_data.as_ref()?.samples));
    columns.number("samples_per_parameter", &|row| Some(row.training_data.as_ref()?.samples_per_parameter));
    columns
        .text("best_epoch", &|row| row.training_data.as_ref().map(TrainingData::best_epoch_text).unwrap_or_default());
    columns.number("active_mean", &|row| row.active_mean);
    columns.count("active_max", &|row| row.active_max);
    columns.number("density", &|row| row.density);
    columns.number("rows_update", &|row| row.rows_update);
    columns.number("rows_cache", &|row| row.rows_cache);
    columns.number("rows_refresh", &|row| row.rows_refresh);
    columns.number("refreshes", &|row| row.refreshes);
    columns.estimate("validation_loss", &|row| row.validation_loss);
    columns.estimate("baseline_loss", &|row| row.baseline_loss);
    columns.estimate("relative_loss", &|row| row.relative_loss);
    columns.estimate("difference", &|row| row.difference);
    columns.estimate("accuracy", &|row| row.accuracy);
    columns.number("tolerance", &|row| row.tolerance);
    for column in &MEASURED_COLUMNS {
        columns.estimate(column.name, &|row| row.measured.get(column.name));
    }
    columns.estimate("speed", &|row| row.speed);
    columns.text("speed_strategy", &|row| {
        row.speed_way.as_ref().map(|fastest| fastest.strategy.clone()).unwrap_or_default()
    });
    columns.number("speed_spread", &|row| row.speed_spread);
    columns.text("speed_noisy", &|row| row.speed_noisy.to_string());
    columns.number("features_ns", &|row| Some(row.nanoseconds?.features));
    columns.number("rows_ns", &|row| Some(row.nanoseconds?.rows));
    columns.number("forward_ns", &|row| Some(row.nanoseconds?.forward));
    columns.number("bookkeeping_ns", &|row| row.nanoseconds?.bookkeeping);
    columns.estimate("speed_arranged", &|row| row.speed_arranged);
    columns.estimate("speed_incremental", &|row| row.speed_incremental);
    columns.estimate("speed_refresh", &|row| row.speed_refresh);
    columns.number("features_share", &|row| Some(row.nanoseconds?.features_share()));
    columns.text("encoder", &|row| row.encoder.map(|encoder| encoder.name().to_owned()).unwrap_or_default());
    if has_figures {
        columns.number("own_features_ns", &|row| row.own.features_ns);
        columns.number("own_node_cost", &|row| row.own.node_cost);
        columns.number("speed_by_figures", &|row| row.speed_by_figures);
    }
    columns.text("back_end", &|row| row.back_end.clone().unwrap_or_default());
    columns.estimate("elo_equal_nodes", &|row| row.strength.as_ref()?.elo_equal_nodes);
    columns.estimate("elo_equal_cost", &|row| row.strength.as_ref()?.elo_equal_cost);
    columns.estimate("elo_by_cost", &|row| row.strength.as_ref()?.elo_by_cost);
    columns.count("games_equal_nodes", &|row| Some(row.strength.as_ref()?.games[0]));
    columns.count("games_equal_cost", &|row| Some(row.strength.as_ref()?.games[1]));
    columns.number("nodes_equal_cost", &|row| row.strength.as_ref()?.nodes);
    columns.number("search_nps", &|row| Some(row.strength.as_ref()?.nps));
    columns.build()
}

fn pairs_frame(summary: &Summary) -> PolarsResult<Option<DataFrame>> {
    type PairRow<'a> = (Method, &'a PairComparison);
    let mut rows: Vec<PairRow<'_>> = Vec::new();
    for method in &summary.methods {
        rows.extend(method.comparisons.pairs.iter().map(|pair| (method.method, pair)));
    }
    let mut columns: FrameBuilder<'_, PairRow<'_>> = FrameBuilder { rows: rows.iter().collect(), columns: Vec::new() };
    columns.text("method", &|(method, _)| method_name(*method).to_owned());
    columns.text("set", &|(_, pair)| pair.set.clone());
    columns.text("against", &|(_, pair)| pair.against.clone());
    columns.difference(&|(_, pair)| &pair.difference);
    columns.count("games", &|(_, pair)| Some(pair.games as u64));
    columns.count("more_seeds", &|(_, pair)| pair.more_seeds);
    columns.count("more_games", &|(_, pair)| pair.more_games);
    if rows.is_empty() { Ok(None) } else { columns.build().map(Some) }
}

fn parts_frame(summary: &Summary) -> PolarsResult<Option<DataFrame>> {
    type PartRow<'a> = (Method, &'a PartComparison);
    let mut rows: Vec<PartRow<'_>> = Vec::new();
    for method in &summary.methods {
        rows.extend(method.comparisons.parts.iter().map(|part| (method.method, part)));
    }
    let mut columns: FrameBuilder<'_, PartRow<'_>> = FrameBuilder { rows: rows.iter().collect(), columns: Vec::new() };
    columns.text("method", &|(method, _)| method_name(*method).to_owned());
    columns.text("by", &|(_, part)| part.by.clone());
    columns.text("part", &|(_, part)| part.part.clone());
    columns.count("samples", &|(_, part)| Some(part.samples));
    columns.text("set", &|(_, part)| part.set.clone());
    columns.text("against", &|(_, part)| part.against.clone());
    columns.difference(&|(_, part)| &part.difference);
    if rows.is_empty() { Ok(None) } else { columns.build().map(Some) }
}

fn runs_frame(results: &Results) -> PolarsResult<DataFrame> {
    let mut columns: FrameBuilder<'_, RunRecord> =
        FrameBuilder { rows: results.runs.iter().collect(), columns: Vec::new() };
    columns.text("method", &|run| method_name(run.key.method).to_owned());
    columns.text("set", &|run| run.key.set.clone());
    columns.count("seed", &|run| Some(run.key.seed.0));
    columns.text("identity", &|run| run.identity.to_string());
    columns.count("features", &|run| Some(u64::from(run.num_features)));
    columns.count("parameters", &|run| Some(run.parameters));
    columns.count("trained_parameters", &|run| run.trained_parameters);
    columns.count("training_samples", &|run| Some(run.training_samples));
    columns.count("best_epoch", &|run| Some(u64::from(run.best_epoch)));
    columns.count("validation_samples", &|run| Some(run.validation_samples));
    columns.number("validation_loss", &|run| Some(run.validation_loss));
    columns.number("baseline_loss", &|run| Some(run.baseline_loss));
    columns.build()
}

fn epochs_frame(results: &Results) -> PolarsResult<DataFrame> {
    type EpochRow<'a> = (&'a RunRecord, &'a EpochRecord);
    let mut rows: Vec<EpochRow<'_>> = Vec::new();
    for run in &results.runs {
        rows.extend(run.epochs.iter().map(|epoch| (run, epoch)));
    }
    let mut columns: FrameBuilder<'_, EpochRow<'_>> = FrameBuilder { rows: rows.iter().collect(), columns: Vec::new() };
    columns.text("method", &|(run, _)| method_name(run.key.method).to_owned());
    columns.text("set", &|(run, _)| run.key.set.clone());
    columns.count("seed", &|(run, _)| Some(run.key.seed.0));
    columns.count("epoch", &|(_, epoch)| Some(u64::from(epoch.epoch)));
    columns.count("samples", &|(_, epoch)| Some(epoch.samples));
    columns.number("learning_rate", &|(_, epoch)| Some(epoch.learning_rate));
    columns.number("train_loss", &|(_, epoch)| Some(epoch.train_loss));
    columns.number("validation_loss", &|(_, epoch)| Some(epoch.validation_loss));
    columns.number("validation_accuracy", &|(_, epoch)| epoch.validation_accuracy);
    columns.build()
}

/// The methods with curves over the amount of data.
fn methods_with_curves(summary: &Summary) -> impl Iterator<Item = (&MethodSummary, &ScalingSummary)> {
    summary.methods.iter().filter_map(|method| Some((method, method.scaling.as_ref()?)))
}

fn scaling_frame(summary: &Summary) -> PolarsResult<Option<DataFrame>> {
    type Row<'a> = (&'a MethodSummary, &'a ScalingSummary, &'a SetScaling);
    let of_method = |(method, scaling)| move |set| (method, scaling, set);
    let rows: Vec<Row<'_>> =
        methods_with_curves(summary).flat_map(|own| own.1.sets.iter().map(of_method(own))).collect();
    let mut columns: FrameBuilder<'_, Row<'_>> = FrameBuilder { rows: rows.iter().collect(), columns: Vec::new() };
    columns.text("method", &|(method, ..)| method_name(method.method).to_owned());
    columns.text("group", &|(method, ..)| method.group.clone().unwrap_or_default());
    columns.text("set", &|(.., set)| set.set.clone());
    columns.count("training_samples", &|(_, scaling, _)| Some(scaling.samples));
    columns.interval("exponent", &|(_, scaling, _)| scaling.exponent);
    columns.interval("floor", &|(.., set)| set.floor);
    columns.interval("reducible_at_a_million", &|(.., set)| set.reducible);
    columns.interval("loss_of_tenfold_data", &|(.., set)| set.tenfold);
    if rows.is_empty() { Ok(None) } else { columns.build().map(Some) }
}

fn crossings_frame(summary: &Summary) -> PolarsResult<Option<DataFrame>> {
    type Row<'a> = (&'a MethodSummary, &'a SetCrossing);
    let of_method = |method| move |crossing| (method, crossing);
    let rows: Vec<Row<'_>> =
        methods_with_curves(summary).flat_map(|own| own.1.crossings.iter().map(of_method(own.0))).collect();
    let mut columns: FrameBuilder<'_, Row<'_>> = FrameBuilder { rows: rows.iter().collect(), columns: Vec::new() };
    columns.text("method", &|(method, _)| method_name(method.method).to_owned());
    columns.text("group", &|(method, _)| method.group.clone().unwrap_or_default());
    columns.text("set", &|(_, crossing)| crossing.set.clone());
    columns.text("against", &|(_, crossing)| crossing.against.clone());
    columns.interval("samples", &|(_, crossing)| crossing.samples);
    if methods_with_curves(summary).next().is_none() { Ok(None) } else { columns.build().map(Some) }
}

fn matches_frame(results: &Results) -> PolarsResult<DataFrame> {
    let mut columns: FrameBuilder<'_, MatchResult> =
        FrameBuilder { rows: results.matches.iter().collect(), columns: Vec::new() };
    columns.text("method", &|played| method_name(played.key.method).to_owned());
    columns.text("set", &|played| played.key.set.clone());
    columns.count("seed", &|played| Some(played.key.seed.0));
    columns.text("reference", &|played| played.reference.clone());
    columns.text("kind", &|played| played.record.kind.name().to_owned());
    columns.number("elo", &|played| Some(played.record.pairs.estimate().elo.value));
    columns.number("elo_low", &|played| Some(played.record.pairs.estimate().elo.low));
    columns.number("elo_high", &|played| Some(played.record.pairs.estimate().elo.high));
    for (index, name) in ["pairs_ll", "pairs_ld", "pairs_wl_dd", "pairs_wd", "pairs_ww"].into_iter().enumerate() {
        columns.count(name, &|played| Some(played.record.pairs.counts()[index]));
    }
    columns.count("wins", &|played| Some(played.record.games.wins));
    columns.count("draws", &|played| Some(played.record.games.draws));
    columns.count("losses", &|played| Some(played.record.games.losses));
    columns.count("adjudicated", &|played| Some(played.record.adjudicated));
    columns.count("nodes", &|played| Some(played.record.player.node_limit));
    columns.count("reference_nodes", &|played| Some(played.record.reference_player.node_limit));
    columns.number("nps", &|played| Some(played.record.player.nps()));
    columns.number("reference_nps", &|played| Some(played.record.reference_player.nps()));
    columns.number("cost_ratio", &|played| Some(played.record.cost.as_ref()?.ratio));
    columns.number("cost_ratio_low", &|played| Some(played.record.cost.as_ref()?.low));
    columns.number("cost_ratio_high", &|played| Some(played.record.cost.as_ref()?.high));
    columns.text("openings", &|played| played.record.conditions.openings.blake3.clone());
    columns.count("opening_seed", &|played| Some(played.record.conditions.seed.0));
    columns.number("half_width", &|played| played.record.conditions.half_width);
    columns.build()
}
