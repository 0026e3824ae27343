//! The inputs of a build: files, globs and standard input, each with a weight.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::data::formats::Format;
use crate::data::{DataError, EvalOptions, InputPath, ScoreUnit};

/// An input and how often its games are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedInput {
    pub origin: InputPath,
    /// How often each game is taken: 0.25 takes a quarter of the games, 2 takes every game twice, 2.5 takes every game
    /// twice and half of them a third time.
    pub weight: f64,
    /// Detected from content and name where it is not given.
    pub format: Option<Format>,
    /// Unit of the scores where the file does not record it; by default the usual unit of its format.
    pub unit: Option<ScoreUnit>,
    /// How scores in PGN comments are read.
    pub evals: EvalOptions,
}

impl WeightedInput {
    /// A file with weight 1.
    #[must_use]
    pub fn file(path: &Path) -> WeightedInput {
        WeightedInput::of(InputPath::of(path), 1.0)
    }

    pub(super) const fn of(origin: InputPath, weight: f64) -> WeightedInput {
        let evals = EvalOptions { eval_unit: None, eval_view: None };
        WeightedInput { origin, weight, format: None, unit: None, evals }
    }
}

/// As it is written: `FILE`, or `FILE@WEIGHT`.
impl fmt::Display for WeightedInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.origin.path().display(), self.weight) {
            (path, 1.0) => path.fmt(f),
            (path, weight) => write!(f, "{path}@{weight}"),
        }
    }
}

/// Parses inputs: `FILE`, `'GLOB*'` or `-`, each optionally followed by `@WEIGHT`. The files of a glob are sorted by
/// name.
///
/// # Errors
/// When a glob is malformed or matches nothing, a weight is out of range, or standard input is given twice.
pub fn inputs(arguments: &[String]) -> Result<Vec<WeightedInput>, DataError> {
    let mut inputs = Vec::new();
    for argument in arguments {
        let is_name = Path::new(argument).exists();
        let (name, weight) = if is_name { (argument.as_str(), 1.0) } else { split_weight(argument)? };
        let path = Path::new(name);
        let bad = |reason: String| DataError::Input { input: name.into(), reason };
        if path.is_dir() {
            return Err(bad(format!("it is a folder: name the files in it, as in '{name}/*.pgn.zst'")));
        }
        if name == "-" || path.exists() || !name.contains(['*', '?', '[']) {
            inputs.push(WeightedInput::of(InputPath::of(path), weight));
            continue;
        }
        let paths = glob::glob(name).map_err(|error| bad(format!("the pattern is malformed: {error}")))?;
        let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(|error| bad(error.to_string()))?;
        paths.retain(|path| !path.is_dir());
        if paths.is_empty() {
            return Err(bad("no file matches".into()));
        }
        paths.sort();
        inputs.extend(paths.into_iter().map(|path| WeightedInput::of(InputPath::File(path), weight)));
    }
    match inputs.iter().filter(|input| input.origin == InputPath::Stdin).count() {
        0 | 1 => Ok(inputs),
        _ => Err(DataError::Input { input: "-".into(), reason: "standard input can be read only once".into() }),
    }
}

/// The name and the weight of an input written `NAME@WEIGHT`; without a weight, 1.
///
/// # Errors
/// When the weight is out of range.
pub fn split_weight(argument: &str) -> Result<(&str, f64), DataError> {
    match argument.rsplit_once('@').map(|(name, weight)| (name, weight.parse::<f64>())) {
        Some((name, Ok(weight))) if !name.is_empty() => {
            if weight > 0.0 && weight <= 1000.0 {
                Ok((name, weight))
            } else {
                let reason = format!("the weight {weight} must be above 0 and at most 1000");
                Err(DataError::Input { input: argument.into(), reason })
            }
        }
        _ => Ok((argument, 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_globs_and_weights() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b.pgn", "a.pgn", "odd@2", "x[1].pgn"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        let check = |argument: &str, expected: &[(&str, f64)]| {
            let argument = if argument == "-" { argument.to_owned() } else { at(argument) };
            let found = inputs(&[argument]).map_err(|error| error.to_string()).expect("sound");
            let found: Vec<_> = found.iter().map(|input| (input.origin.path(), input.weight)).collect();
            let path = |name: &str| if name.contains(' ') { PathBuf::from(name) } else { folder.path().join(name) };
            let expected: Vec<_> = expected.iter().map(|(name, weight)| (path(name), *weight)).collect();
            assert_eq!(found, expected);
        };
        check("b.pgn", &[("b.pgn", 1.0)]);
        check("b.pgn@0.5", &[("b.pgn", 0.5)]);
        check("?.pgn@3", &[("a.pgn", 3.0), ("b.pgn", 3.0)]);
        check("odd@2", &[("odd@2", 1.0)]);
        check("x[1].pgn", &[("x[1].pgn", 1.0)]);
        check("missing.pgn", &[("missing.pgn", 1.0)]);
        check("-", &[("standard input", 1.0)]);
        let refused = |arguments: &[String]| inputs(arguments).expect_err("refused").to_string();
        assert!(refused(&[at("*.zst")]).contains("no file matches"));
        assert!(refused(&[at("b.pgn@0")]).contains("weight"));
        assert!(refused(&["-".into(), "-".into()]).contains("only once"));
    }
}
