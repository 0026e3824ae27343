//! The keys of an experiment file in words, as `fsbench run --help` prints them. A test compares them with what the file's
//! reader takes.

/// A table of the file: its header, what it is for, and its keys.
pub(super) struct Section {
    pub(super) table: &'static str,
    about: &'static str,
    /// Key, default (as TOML, or in words), meaning.
    pub(super) keys: &'static [(&'static str, &'static str, &'static str)],
}

/// Every table, in the order of an experiment file.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        table: "",
        about: "above all tables",
        keys: &[
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
    },
    Section {
        table: "dataset.eval",
        about: "which positions of games become samples; [dataset.pqr] likewise",
        keys: &[
            ("min_ply", "20 (pqr: 0)", "the first ply that is used"),
            ("min_moves", "0 (pqr: 2)", "fewest legal moves of a position"),
            ("per_game", "all", "at most so many samples a game"),
            ("filter", "\"none\"", "\"none\" or \"quiet\""),
            ("seed", "0", "of the choice of samples"),
        ],
    },
    Section {
        table: "train",
        about: "settings of all runs; `fsbench train --help` says more",
        keys: &[
            ("l1", "required", "accumulator width a perspective"),
            ("hidden", "required", "widths of hidden layers, none to two, as in [32]"),
            ("batch_size", "required", "samples a step"),
            ("epochs", "required", "passes over the training split"),
            ("epoch_samples", "all", "samples an epoch"),
            ("learning_rate", "required", "of the first epoch"),
            ("decay", "required", "factor on the learning rate after every epoch"),
            ("validation", "required", "share of games kept for validation"),
            ("split_seed", "0", "root of the choice of those games"),
            ("scheme", "\"stockfish\"", "quantisation: \"stockfish\" or \"simple\""),
            ("compact_dead", "false", "leave out rows of features that are proved dead"),
            ("factor", "true", "train the factors of sets that have some"),
            ("threads", "all cores", "threads of the trainer"),
            ("device", "\"auto\"", "\"auto\", \"cpu\" or \"cuda\""),
            ("design", "", "a table, see [train.design]"),
            ("recipe", "", "a table, see [train.recipe]"),
            ("eval_loss", "", "a table, see [train.eval_loss]"),
            ("pqr_loss", "", "a table, see [train.pqr_loss]"),
        ],
    },
    Section {
        table: "train.design",
        about: "what a network has besides its widths",
        keys: &[
            ("activation", "\"crelu\"", "after the accumulators: \"relu\", \"crelu\", \"screlu\", \"pairwise\""),
            ("hidden_activation", "\"crelu\"", "after the first hidden layer: also \"dual\""),
            ("skip", "false", "one more output of the first hidden layer, added to the network's"),
            ("psqt", "false", "a value a feature and bucket, added to the output"),
            ("buckets", "1", "output buckets by number of pieces"),
            ("bucket_rule", "\"stockfish\"", "\"stockfish\" or \"cpw\""),
        ],
    },
    Section {
        table: "train.recipe",
        about: "how steps are taken",
        keys: &[
            ("optimiser", "\"adam\"", "\"adam\", \"adamw\" or \"ranger\""),
            ("weight_decay", "0.01", "adamw, ranger: share of a weight lost a step, times the learning rate"),
            ("schedule", "\"exponential\"", "\"exponential\", \"step\", \"cosine\" or \"one-cycle\""),
            ("step_epochs", "1", "step: epochs between two decays"),
            ("final_share", "0.01", "cosine, one-cycle: where the learning rate ends, as a share of where it began"),
            ("warm_up", "0", "steps over which the learning rate rises"),
            ("gradient_clip", "none", "longest gradient"),
            ("sparsity", "0", "weight of the mean activation in the loss"),
        ],
    },
    Section {
        table: "train.eval_loss",
        about: "the loss of the method eval",
        keys: &[
            ("power", "2.6", "of the error"),
            ("score_scale", "410", "centipawns a unit of the scores' logistic"),
            ("output_scale", "361", "centipawns a unit of the output's logistic"),
            ("lambda", "1", "weight of the score in the target; the rest is the result's"),
            ("lambda_end", "lambda", "its value in the last epoch"),
            ("form", "\"power\"", "\"power\" or \"epsilon\""),
            ("epsilon", "10", "epsilon: tolerance in centipawns"),
        ],
    },
    Section {
        table: "train.pqr_loss",
        about: "the loss of the method pqr",
        keys: &[
            ("kappa", "1", "weight of the terms that make P and Q equal"),
            ("output_scale", "361", "centipawns a unit of the output's logistic"),
        ],
    },
    Section {
        table: "[runs]",
        about: "rows of the comparison; any number of these tables",
        keys: &[
            ("method", "required", "\"eval\" or \"pqr\""),
            ("sets", "required", "names, paths or expressions; files beside the experiment's go first"),
            (
                "label",
                "the set",
                "what results call the row; of several sets with {set} in it, as in \"{set}, l1 128\"",
            ),
            ("train", "", "settings of these rows, in place of the shared ones, as in { l1 = 128 }"),
        ],
    },
    Section {
        table: "measure.updates",
        about: "rows a move, of feature sets",
        keys: &[("sets", "all", "names or labels"), ("games", "all", "the first so many games")],
    },
    Section { table: "measure.activity", about: "how busy neurons are, of networks", keys: NETWORK_MEASURE },
    Section { table: "measure.error", about: "what quantisation costs, of networks", keys: NETWORK_MEASURE },
    Section {
        table: "measure.speed",
        about: "evaluations a second, of networks",
        keys: &[
            ("sets", "all", "names or labels"),
            ("methods", "all", "of which methods"),
            ("seeds", "all", "of which seeds"),
            ("positions", "20000", "positions to run through"),
            ("repetitions", "5", "times each way is measured"),
            ("seconds", "0.6", "a repetition lasts at least so many"),
        ],
    },
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
    for Section { table, about, keys } in SECTIONS {
        out += &match *table {
            "" => format!("\n  {about}\n"),
            table => format!("\n  [{table}]: {about}\n"),
        };
        for (key, default, meaning) in *keys {
            let default = if default.is_empty() { String::new() } else { format!(" [{default}]") };
            out += &format!("    {key:<18}{meaning}{default}\n");
        }
    }
    out
}
