//! Checks of an experiment file that need neither the data nor the feature sets. The training settings check themselves
//! ([`TrainSettings::validate`](crate::train::TrainSettings::validate)).

use toml::Spanned;

use super::spec::{ComparisonRow, Dataset, DatasetOptions, NetMeasure, SetMeasure, SpeedMeasure};
use super::toml_file::MeasureTables;
use crate::data::Method;
use crate::record::Published;
use crate::units::Seed;

/// A mistake in the file, at a byte of its text.
pub(super) struct Problem {
    pub(super) byte: usize,
    pub(super) message: String,
}

impl Problem {
    pub(super) fn at<T>(value: &Spanned<T>, message: String) -> Problem {
        Problem { byte: value.span().start, message }
    }
}

/// The name becomes the name of a folder.
pub(super) fn check_name(name: &Spanned<String>) -> Result<(), Problem> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let text = name.get_ref();
    if text.is_empty() || !text.chars().all(is_allowed) {
        let message =
            format!("the name '{text}' must consist of letters, digits, '-' and '_', because it names a folder");
        return Err(Problem::at(name, message));
    }
    Ok(())
}

pub(super) fn check_data(written: &Spanned<Vec<Spanned<String>>>) -> Result<(), Problem> {
    match written.get_ref().is_empty() {
        true => Err(Problem::at(written, "data lists no file".into())),
        false => Ok(()),
    }
}

pub(super) fn check_seeds(written: &Spanned<Vec<Seed>>) -> Result<(), Problem> {
    let seeds = written.get_ref();
    if seeds.is_empty() {
        return Err(Problem::at(written, "no seeds; write for example seeds = [1, 2, 3]".into()));
    }
    match seeds.iter().enumerate().find(|(index, seed)| seeds[..*index].contains(seed)) {
        Some((_, seed)) => Err(Problem::at(written, format!("the seed {} appears twice", seed.0))),
        None => Ok(()),
    }
}

pub(super) fn check_dataset(written: &Spanned<Dataset>) -> Result<(), Problem> {
    let Dataset { eval, pqr } = written.get_ref();
    [eval, pqr].into_iter().try_for_each(check_dataset_options).map_err(|message| Problem::at(written, message))
}

pub(super) fn check_dataset_options(options: &DatasetOptions) -> Result<(), String> {
    match options {
        DatasetOptions { per_game: Some(0), .. } => {
            Err("per_game must be at least 1 (leave it out for all samples)".into())
        }
        DatasetOptions { min_moves_quantile: Some(quantile), .. } if !(0.0..1.0).contains(quantile) => {
            Err(format!("min_moves_quantile must lie between 0 and 1, 1 excluded, not {quantile}"))
        }
        _ => Ok(()),
    }
}

/// Checks the numbers of every measure, and that it names only sets, methods and seeds of the experiment.
pub(super) fn check_measures(
    measures: &MeasureTables,
    rows: &[ComparisonRow],
    all_seeds: &[Seed],
) -> Result<(), Problem> {
    if let Some(updates) = &measures.updates {
        let SetMeasure { sets, games } = updates.get_ref();
        check_games(*games)
            .and_then(|()| check_selection(sets, &None, &None, rows, all_seeds))
            .map_err(|message| Problem::at(updates, message))?;
    }
    for measure in [&measures.activity, &measures.error].into_iter().flatten() {
        let NetMeasure { sets, methods, seeds, games } = measure.get_ref();
        check_games(*games)
            .and_then(|()| check_selection(sets, methods, seeds, rows, all_seeds))
            .map_err(|message| Problem::at(measure, message))?;
    }
    if let Some(speed) = &measures.speed {
        let SpeedMeasure { sets, methods, seeds, positions, repetitions, seconds } = speed.get_ref();
        check_timing(*positions, *repetitions, *seconds)
            .and_then(|()| check_selection(sets, methods, seeds, rows, all_seeds))
            .map_err(|message| Problem::at(speed, message))?;
    }
    Ok(())
}

/// Checks that published results are finite and belong to rows.
pub(super) fn check_published(written: &Spanned<Published>, rows: &[ComparisonRow]) -> Result<(), Problem> {
    let Published { loss, elo, .. } = written.get_ref();
    let problem = |message: String| Err(Problem::at(written, message));
    for (set, numbers) in loss.iter().chain(elo) {
        if !rows.iter().any(|row| row.is_called(set)) {
            return problem(format!("[published] has results of '{set}', which is none of the experiment's sets"));
        }
        if numbers.iter().any(|number| !number.is_finite()) || numbers[1] < 0.0 {
            return problem(format!(
                "[published]: '{set}' needs a number and its uncertainty, as in [0.0031, 0.00001]"
            ));
        }
    }
    match loss.iter().find(|(_, [loss, _])| *loss <= 0.0) {
        Some((set, _)) => problem(format!("[published]: the loss of '{set}' must be above 0")),
        None => Ok(()),
    }
}

fn check_games(games: Option<u64>) -> Result<(), String> {
    match games {
        Some(0) => Err("games must be at least 1 (leave it out for all)".into()),
        _ => Ok(()),
    }
}

pub(super) fn check_timing(
    positions: Option<u64>,
    repetitions: Option<u32>,
    seconds: Option<f64>,
) -> Result<(), String> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let checks = [
        (positions != Some(0), "positions must be at least 1"),
        (repetitions.is_none_or(|count| count >= 2), "repetitions must be at least 2: a single one gives no interval"),
        (
            seconds.is_none_or(|seconds| (0.0..=SECONDS_PER_DAY).contains(&seconds)),
            "seconds must lie between 0 and 86400",
        ),
    ];
    checks.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, message)| Err((*message).to_owned()))
}

/// Checks that every set, method and seed that a measure names belongs to a run.
pub(super) fn check_selection(
    sets: &Option<Vec<String>>,
    methods: &Option<Vec<Method>>,
    seeds: &Option<Vec<Seed>>,
    rows: &[ComparisonRow],
    all_seeds: &[Seed],
) -> Result<(), String> {
    let is_used = |set: &String| rows.iter().any(|row| row.is_called(set));
    if let Some(set) = sets.iter().flatten().find(|set| !is_used(set)) {
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        return Err(format!("no run uses the set '{set}'; the experiment has {}", labels.join(", ")));
    }
    if let Some(method) = methods.iter().flatten().find(|method| !rows.iter().any(|row| row.method == **method)) {
        return Err(format!("no run has the method {}", method.name()));
    }
    match seeds.iter().flatten().find(|seed| !all_seeds.contains(seed)) {
        Some(seed) => Err(format!("no run has the seed {}", seed.0)),
        None => Ok(()),
    }
}
