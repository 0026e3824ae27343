//! The help on the keys of an experiment file, as `fsbench run --help` prints it. A test compares it with the keys that
//! the file's reader accepts.

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::text::wrapped;
use crate::train::{EvalLoss, Optimisation, PqrLoss, ShapeOptions, TrainSettings};

/// Help on a table of the file.
pub(super) struct TableHelp {
    /// Its header without the outer brackets.
    pub(super) table: &'static str,
    purpose: &'static str,
    pub(super) keys: Vec<KeyHelp>,
}

pub(super) struct KeyHelp {
    pub(super) key: String,
    /// As TOML or in words; empty if there is none.
    pub(super) default: String,
    meaning: String,
}

/// Every table, in the order of an experiment file.
pub(super) fn key_tables() -> Vec<TableHelp> {
    let written = WRITTEN_TABLES.iter().map(|(table, purpose, keys)| TableHelp {
        table,
        purpose,
        keys: keys.iter().map(|(key, default, meaning)| KeyHelp::new(key, default, meaning)).collect(),
    });
    let mut tables: Vec<TableHelp> = written.collect();
    let runs = tables.iter().position(|help| help.table == "[runs]").unwrap_or(tables.len());
    tables.splice(runs..runs, train_tables());
    tables
}

/// The tables of training settings, whose keys are options of `fsbench train`.
fn train_tables() -> [TableHelp; 5] {
    let train = "settings of all runs; see also `fsbench train --help`";
    let shape = "the network's shape apart from its widths";
    let in_subtables = [
        option_names::<ShapeOptions>(),
        option_names::<Optimisation>(),
        option_names::<EvalLoss>(),
        option_names::<PqrLoss>(),
    ]
    .concat();
    [
        TableHelp { table: "train", purpose: train, keys: keys_of::<TrainSettings>(&in_subtables) },
        TableHelp { table: "train.design", purpose: shape, keys: keys_of::<ShapeOptions>(&[]) },
        TableHelp {
            table: "train.recipe",
            purpose: "how the network is optimised",
            keys: keys_of::<Optimisation>(&[]),
        },
        TableHelp { table: "train.eval_loss", purpose: "the loss of the method eval", keys: keys_of::<EvalLoss>(&[]) },
        TableHelp { table: "train.pqr_loss", purpose: "the loss of the method pqr", keys: keys_of::<PqrLoss>(&[]) },
    ]
}

/// The names of the command line options of a settings struct.
fn option_names<T: Args>() -> Vec<String> {
    let options = T::augment_args(clap::Command::new("table"));
    options.get_arguments().map(|option| option.get_id().to_string()).collect()
}

/// The keys of a settings table, with the help of the options of the same name, except those `in_subtables`.
fn keys_of<T: Args + Serialize + DeserializeOwned + Default>(in_subtables: &[String]) -> Vec<KeyHelp> {
    let options = TrainSettings::augment_args(clap::Command::new("train"));
    let defaults = serde_json::to_value(T::default()).unwrap_or_default();
    let defaults = defaults.as_object().cloned().unwrap_or_default();
    let mut keys = option_names::<T>();
    keys.retain(|key| !in_subtables.contains(key));
    let not_options: Vec<String> = defaults.keys().filter(|key| !keys.contains(key)).cloned().collect();
    keys.extend(not_options);
    let help = |key: &String| {
        let Some(option) = options.get_arguments().find(|option| option.get_id() == key.as_str()) else {
            return KeyHelp::new(key, "", &format!("a table, see [train.{key}]"));
        };
        // The option of this name switches the setting off.
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

    /// Takes the help of a command line option: its first sentence, values and default.
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
        let are_named = names.iter().filter(|name| meaning.contains(**name)).count() >= 2;
        if option.get_action().takes_values() && !names.is_empty() && !are_named {
            meaning += &format!(" ({})", names.join(", "));
        }
        KeyHelp { key: option.get_id().to_string(), default, meaning }
    }
}

/// Header, purpose, and keys with their defaults and meanings.
type WrittenTable = (&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

/// The tables that are not training settings.
const WRITTEN_TABLES: &[WrittenTable] = &[
    (
        "",
        "above all tables",
        &[
            ("name", "required", "letters, digits, - and _: names the results folder"),
            ("about", "\"\"", "one line for the report"),
            (
                "data",
                "required",
                "file of games or samples, relative to the experiment's folder, the current one or $FSBENCH_DATA; several in a list, \
                 each with a weight if it is not 1: [\"a.binpack\", \"b.binpack@0.5\"] takes half of b's games; measures \
                 read the first",
            ),
            ("from_unit", "", "unit of the scores, for data that do not name it: \"cp\" or \"internal:PAWN\""),
            ("eval_unit", "", "unit of scores in PGN comments: \"cp\" or \"pawns\""),
            ("eval_view", "", "whose view `[%eval …]` in PGN comments is: \"white\" or \"mover\""),
            ("seeds", "required", "every row is trained once per seed, as in [1, 2, 3]"),
            ("results", "\"results\"", "folder of the results, which go to a folder of the experiment's name in it"),
            ("dataset", "", "tables, see [dataset.eval]"),
            ("train", "required", "a table, see [train]"),
            (
                "sweep",
                "",
                "a table of lists with keys as in [train], or method: every combination of their values is run, as in \
                 l1 = [128, 256]",
            ),
            ("runs", "required", "tables, see [[runs]]"),
            ("measure", "", "tables, see [measure.updates]; a missing table takes no measure"),
            (
                "equal_speed",
                "",
                "a table, see [equal_speed]; with it every set is trained once more, at the width at which it is as fast \
                 as the reference",
            ),
            ("match", "", "a table, see [match]; without it no games are played"),
            ("published", "", "a table, see [published]"),
            (
                "scale",
                "",
                "tables [scale.NAME] of keys as in the whole file, which replace the file's own for `--scale NAME`; \
                 results go to the folder of the experiment's name with -NAME",
            ),
        ],
    ),
    (
        "dataset.eval",
        "which positions of the games become samples; [dataset.pqr] has the same keys",
        &[
            ("min_ply", "0", "the first ply whose position is used"),
            ("min_moves", "0 (pqr: 2)", "smallest number of legal moves of a position"),
            (
                "min_moves_quantile",
                "none",
                "leaves out positions with fewer legal moves than this quantile of all positions at the same ply, as 0.25",
            ),
            ("per_game", "all", "largest number of samples per game"),
            ("filter", "\"none\"", "\"none\" or \"quiet\""),
            ("seed", "0", "seed of the choice of samples"),
        ],
    ),
    (
        "[runs]",
        "rows of the comparison; any number of these tables",
        &[
            ("method", "required", "\"eval\" or \"pqr\"; left out if the sweep lists methods"),
            ("sets", "required", "names, paths or expressions; a file beside the experiment's takes precedence"),
            (
                "label",
                "the set",
                "the rows' name in the results; must contain {set} for several sets, as in \"{set}, l1 128\"",
            ),
            ("start", "random weights", "network to begin with, on the set or a coarser one: a file or a run's folder"),
            (
                "start_row",
                "none",
                "an earlier row: each seed's run begins with that row's network; {set} stands for the set's name",
            ),
            (
                "second",
                "none",
                "another method, learned in the same steps, with its weight in the loss: { method = \"pqr\", weight = 0.5 }",
            ),
            ("dataset", "", "keys of [dataset.METHOD] for these rows' samples, as in { min_ply = 30 }"),
            ("train", "", "settings of these rows that override the shared ones, as in { l1 = 128 }"),
        ],
    ),
    (
        "equal_speed",
        "the width, a multiple of 32, at which each set is as fast as the reference; networks of the first seed take turns",
        &[
            ("reference", "the first set", "name or label of the set whose speed the others are to have"),
            ("tolerance", "0.03", "how far from 1 the ratio of speeds may be; without such a width, the closest"),
            ("positions", "5000", "positions to evaluate"),
            ("repetitions", "15", "rounds of turns per width"),
            ("seconds", "0.1", "processor time of a turn"),
        ],
    ),
    (
        "published",
        "results that others measured for the same sets; the report compares them with the experiment's",
        &[
            ("source", "required", "who measured, and how"),
            ("loss", "", "table: set = [mean, standard deviation]"),
            ("elo", "", "table: set = [Elo, half of the 95% interval]"),
        ],
    ),
    (
        "measure.updates",
        "rows updated per move, by feature set",
        &[("sets", "all", "names or labels"), ("games", "all", "largest number of games to use")],
    ),
    ("measure.activity", "share of active neurons, by network", NETWORK_MEASURE),
    ("measure.error", "quantisation error, by network", NETWORK_MEASURE),
    (
        "measure.speed",
        "evaluations per second, by network",
        &[
            ("sets", "all", "names or labels"),
            ("methods", "all", "measure only networks of these methods"),
            ("seeds", "all", "measure only networks of these seeds"),
            ("positions", "20000", "positions to evaluate in each repetition"),
            ("repetitions", "5", "measurements of each strategy"),
            ("seconds", "0.6", "minimum duration of a repetition"),
        ],
    ),
    (
        "match",
        "Elo of every network against the reference set's network of its method and seed; nodes, equal_cost or both",
        &[
            ("reference", "each method's first", "label or name of the set that the others play"),
            (
                "reference_method",
                "the row's own",
                "method of the reference: networks of all methods play those of this one",
            ),
            ("sets", "all", "names or labels"),
            ("methods", "all", "play only networks of these methods"),
            ("seeds", "all", "play only networks of these training seeds"),
            ("nodes", "", "play at equal nodes: so many per move"),
            ("equal_cost", "", "play at equal processor time: so many nodes per move of the reference"),
            ("pairs", "100", "game pairs per match; with half_width the maximum [10000, as far as the openings go]"),
            ("half_width", "", "play until half the 95% interval is at most this, in Elo"),
            (
                "shard_pairs",
                "",
                "play a match in shards of so many pairs, which several processes share (`fsbench work`); the result is \
                 the same",
            ),
            ("openings", "the 2,000 that come with fsbench", "book: EPD or FEN lines, or PGN, plain or compressed"),
            ("opening_plies", "all", "moves taken from each game of a PGN book"),
            ("seed", "0", "seed of the order of openings; the training seed is added"),
            (
                "adjudication",
                "true",
                "end games that both players call decided or level; false: play by the rules alone",
            ),
            ("hash", "16", "a player's hash table in MiB"),
            ("concurrency", "the number of cores", "games at once; the games do not depend on it"),
        ],
    ),
];

const NETWORK_MEASURE: &[(&str, &str, &str)] = &[
    ("sets", "all", "names or labels"),
    ("methods", "all", "measure only networks of these methods"),
    ("seeds", "all", "measure only networks of these seeds"),
    ("games", "all", "largest number of games to use"),
];

/// The width of the help text. Clap would wrap longer lines at the terminal's width, but not indent what follows.
const WIDTH: usize = 80;
/// Spaces before a key.
const INDENT: usize = 4;
/// Width of the column of keys.
const KEY_WIDTH: usize = 18;

/// The help text, one paragraph per key.
#[must_use]
pub fn text() -> String {
    let mut out = String::from("Keys of an experiment file (TOML; experiments/quickstart.toml is an example):\n");
    for TableHelp { table, purpose, keys } in key_tables() {
        let heading = match table {
            "" => purpose.to_owned(),
            table => format!("[{table}]: {purpose}"),
        };
        out += &format!("\n{}\n", wrapped(&heading, INDENT / 2, INDENT, WIDTH).join("\n"));
        for KeyHelp { key, default, meaning } in keys {
            let default = if default.is_empty() { String::new() } else { format!(" [{default}]") };
            let lines = wrapped(&format!("{meaning}{default}"), INDENT + KEY_WIDTH, INDENT + KEY_WIDTH, WIDTH);
            let meaning = lines.join("\n");
            out += &format!("{:INDENT$}{key:<KEY_WIDTH$}{}\n", "", meaning.trim_start());
        }
    }
    out
}
