//! The keys of an experiment file in words, as `fsbench run --help` prints them. A test compares them with what the file's
//! reader takes.

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::train::{EvalLoss, Optimisation, PqrLoss, ShapeOptions, TrainSettings};

/// A table of the file: its header, what it is for, and its keys.
pub(super) struct Section {
    pub(super) table: &'static str,
    about: &'static str,
    pub(super) keys: Vec<KeyHelp>,
}

pub(super) struct KeyHelp {
    pub(super) key: String,
    /// As TOML, or in words.
    pub(super) default: String,
    meaning: String,
}

/// Every table, in the order of an experiment file.
pub(super) fn sections() -> Vec<Section> {
    let written = WRITTEN.iter().map(|(table, about, keys)| Section {
        table,
        about,
        keys: keys.iter().map(|(key, default, meaning)| KeyHelp::new(key, default, meaning)).collect(),
    });
    let mut sections: Vec<Section> = written.collect();
    let place = sections.iter().position(|section| section.table == "[runs]").unwrap_or(sections.len());
    sections.splice(place..place, train_sections());
    sections
}

/// The tables of the training's settings, whose keys are those settings that are options of `fsbench train`.
fn train_sections() -> [Section; 5] {
    let about = "settings of all runs; `fsbench train --help` says more";
    let shape = "the network's shape apart from its widths";
    let in_tables =
        [names::<ShapeOptions>(), names::<Optimisation>(), names::<EvalLoss>(), names::<PqrLoss>()].concat();
    [
        Section { table: "train", about, keys: keys_of::<TrainSettings>(&in_tables) },
        Section { table: "train.design", about: shape, keys: keys_of::<ShapeOptions>(&[]) },
        Section { table: "train.recipe", about: "how steps are taken", keys: keys_of::<Optimisation>(&[]) },
        Section { table: "train.eval_loss", about: "the loss of the method eval", keys: keys_of::<EvalLoss>(&[]) },
        Section { table: "train.pqr_loss", about: "the loss of the method pqr", keys: keys_of::<PqrLoss>(&[]) },
    ]
}

/// The names of the options that give a struct's settings.
fn names<T: Args>() -> Vec<String> {
    let options = T::augment_args(clap::Command::new("table"));
    options.get_arguments().map(|option| option.get_id().to_string()).collect()
}

/// The keys of a table of settings, with the help of the options of the same name. `in_tables` are those of tables in it.
fn keys_of<T: Args + Serialize + DeserializeOwned + Default>(in_tables: &[String]) -> Vec<KeyHelp> {
    let options = TrainSettings::augment_args(clap::Command::new("train"));
    let defaults = serde_json::to_value(T::default()).unwrap_or_default();
    let defaults = defaults.as_object().cloned().unwrap_or_default();
    let mut keys = names::<T>();
    keys.retain(|key| !in_tables.contains(key));
    let not_options: Vec<String> = defaults.keys().filter(|key| !keys.contains(key)).cloned().collect();
    keys.extend(not_options);
    let help = |key: &String| {
        let Some(option) = options.get_arguments().find(|option| option.get_id() == key.as_str()) else {
            return KeyHelp::new(key, "", &format!("a table, see [train.{key}]"));
        };
        // The option switches it off.
        if key == "factor" {
            return KeyHelp::new(key, "true", "Train the factors of sets that have some");
        }
        let help = KeyHelp::of(option);
        let mut without = defaults.clone();
        match (without.remove(key), serde_json::from_value::<T>(without.into())) {
            (Some(value), Err(_)) => KeyHelp { default: format!("required, as in {value}"), ..help },
            (Some(value), Ok(_)) if !value.is_null() => KeyHelp { default: value.to_string(), ..help },
            _ => help,
        }
    };
    keys.iter().map(help).collect()
}

impl KeyHelp {
    fn new(key: &str, default: &str, meaning: &str) -> KeyHelp {
        KeyHelp { key: key.into(), default: default.into(), meaning: meaning.into() }
    }

    /// Help of the setting that a command line option gives: its first sentence, its values and its default.
    fn of(option: &clap::Arg) -> KeyHelp {
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let (meaning, default) = match help.strip_suffix(']').and_then(|help| help.rsplit_once(" [default: ")) {
            Some((meaning, default)) => (meaning, default.to_owned()),
            None => {
                let default = option.get_default_values().first().map(|value| value.to_string_lossy());
                let quoted = |value: &str| value.parse::<f64>().map_or(format!("\"{value}\""), |_| value.to_owned());
                (help.as_str(), default.map(|value| quoted(&value)).unwrap_or_default())
            }
        };
        let mut meaning = meaning.split_once(". ").map_or(meaning, |(first, _)| first).to_owned();
        let values = option.get_possible_values();
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        if option.get_action().takes_values() && !names.iter().all(|name| meaning.contains(name)) {
            meaning += &format!(" ({})", names.join(", "));
        }
        KeyHelp { key: option.get_id().to_string(), default, meaning }
    }
}

type Written = (&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

/// The other tables: header, purpose and keys, each with its default and meaning.
const WRITTEN: &[Written] = &[
    (
        "",
        "above all tables",
        &[
            ("name", "required", "letters, digits, - and _: names the results folder"),
            ("about", "\"\"", "a line for the report"),
            ("data", "required", "games or samples, beside the experiment's file or from the current folder"),
            ("from_unit", "", "unit of the data's scores where the file does not say it, \"cp\" or \"internal:PAWN\""),
            ("seeds", "required", "every row is trained once for each, as in [1, 2, 3]"),
            ("results", "\"results\"", "the folder that results go to, in one named as the experiment"),
            ("dataset", "", "tables, see [dataset.eval]"),
            ("train", "required", "a table, see [train]"),
            ("runs", "required", "tables, see [[runs]]"),
            ("measure", "", "tables, see [measure.updates]; what has no table is not measured"),
        ],
    ),
    (
        "dataset.eval",
        "which positions of games become samples; [dataset.pqr] likewise",
        &[
            ("min_ply", "20 (pqr: 0)", "the first ply that is used"),
            ("min_moves", "0 (pqr: 2)", "fewest legal moves of a position"),
            ("per_game", "all", "at most so many samples a game"),
            ("filter", "\"none\"", "\"none\" or \"quiet\""),
            ("seed", "0", "of the choice of samples"),
        ],
    ),
    (
        "[runs]",
        "rows of the comparison; any number of these tables",
        &[
            ("method", "required", "\"eval\" or \"pqr\""),
            ("sets", "required", "names, paths or expressions; files beside the experiment's go first"),
            (
                "label",
                "the set",
                "what results call the row; of several sets with {set} in it, as in \"{set}, l1 128\"",
            ),
            ("train", "", "settings of these rows, in place of the shared ones, as in { l1 = 128 }"),
        ],
    ),
    (
        "measure.updates",
        "rows a move, of feature sets",
        &[("sets", "all", "names or labels"), ("games", "all", "the first so many games")],
    ),
    ("measure.activity", "how busy neurons are, of networks", NETWORK_MEASURE),
    ("measure.error", "what quantisation costs, of networks", NETWORK_MEASURE),
    (
        "measure.speed",
        "evaluations a second, of networks",
        &[
            ("sets", "all", "names or labels"),
            ("methods", "all", "of which methods"),
            ("seeds", "all", "of which seeds"),
            ("positions", "20000", "positions to run through"),
            ("repetitions", "5", "times each way is measured"),
            ("seconds", "0.6", "a repetition lasts at least so many"),
        ],
    ),
];

const NETWORK_MEASURE: &[(&str, &str, &str)] = &[
    ("sets", "all", "names or labels"),
    ("methods", "all", "of which methods"),
    ("seeds", "all", "of which seeds"),
    ("games", "all", "the first so many games"),
];

/// All keys, a line each: key, default in brackets, meaning.
#[must_use]
pub fn help() -> String {
    let mut out = String::from("Keys of an experiment file (TOML; experiments/quickstart.toml is an example):\n");
    for Section { table, about, keys } in sections() {
        out += &match table {
            "" => format!("\n  {about}\n"),
            table => format!("\n  [{table}]: {about}\n"),
        };
        for KeyHelp { key, default, meaning } in keys {
            let default = if default.is_empty() { String::new() } else { format!(" [{default}]") };
            out += &format!("    {key:<18}{meaning}{default}\n");
        }
    }
    out
}
