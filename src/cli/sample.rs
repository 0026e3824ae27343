//! Files of games and samples on the command line: names, globs, and the option `--data` of commands that fall back on
//! the sample games, and say so.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueHint;

use super::Failure;
use crate::data::formats::Format;
use crate::data::{DataError, DataFiles, EvalOptions, InputPath, ScoreUnit};
use crate::pipeline::{inputs, sample_games};

/// A file of games or samples, or several by a glob, where weights mean nothing (`dataset build` has weights).
#[derive(Clone, Debug)]
pub struct FileArgument(String);

impl FromStr for FileArgument {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<FileArgument, Infallible> {
        Ok(FileArgument(text.to_owned()))
    }
}

impl FileArgument {
    /// The files; a glob gives its files sorted by name, and `-` stays as it is.
    pub fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        for input in inputs(std::slice::from_ref(&self.0)).map_err(Failure::request)? {
            if input.weight != 1.0 {
                return Err(
                    self.refused("a weight counts where data are built (`fsbench dataset build`); leave it out")
                );
            }
            files.push(match input.origin {
                InputPath::File(path) => path,
                InputPath::Stdin => PathBuf::from("-"),
            });
        }
        Ok(files)
    }

    /// The only file.
    pub fn file(&self) -> Result<PathBuf, Failure> {
        let mut files = self.files()?;
        match files.len() {
            1 => Ok(files.remove(0)),
            count => Err(self.refused(&format!("{count} files match, and this command reads one"))),
        }
    }

    fn refused(&self, reason: &str) -> Failure {
        Failure::request(DataError::Input { input: self.0.clone(), reason: reason.into() })
    }
}

/// The files of several arguments, in order.
pub fn all_files(arguments: &[FileArgument]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for argument in arguments {
        files.extend(argument.files()?);
    }
    Ok(files)
}

/// How a file of games or samples is read, where the file does not say it.
#[derive(Copy, Clone, Debug, clap::Args)]
pub struct FileHints {
    /// The input's format, where it cannot be detected from its content and name
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// Unit of the scores where the input does not record it: cp, or internal:PAWN with an engine's units per pawn
    /// [default: internal:208 for a binpack or .plain, else cp]
    #[arg(long, value_name = "UNIT")]
    pub from_unit: Option<ScoreUnit>,
    #[command(flatten)]
    pub evals: EvalOptions,
}

/// Games or samples in any format; without `--data`, the sample games that come with fsbench.
#[derive(Clone, Debug, clap::Args)]
pub struct Data {
    /// Games or samples: PGN (also .zst, .gz, .bz2), .fsd and the other formats; a file, or a 'glob*' in quotes that
    /// matches one [default: the sample games that come with fsbench]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    data: Option<FileArgument>,
}

/// As [`Data`], for several files.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Data")]
pub struct SeveralData {
    /// Games or samples: PGN (also .zst, .gz, .bz2), .fsd and the other formats; files or 'globs*' in quotes; given
    /// several times, the files are read as one, in this order [default: the sample games that come with fsbench]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    data: Vec<FileArgument>,
}

impl SeveralData {
    /// The data files. The file of the sample games is created if it is missing.
    pub fn files(&self) -> Result<DataFiles, Failure> {
        match DataFiles::new(all_files(&self.data)?) {
            Some(files) => Ok(files),
            None => Ok(Data { data: None }.path()?.into()),
        }
    }
}

impl Data {
    /// The data file. The file of the sample games is created if it is missing.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        let failed = |error: DataError| if error.is_request() { Failure::request(error) } else { Failure::work(error) };
        if let Some(data) = &self.data {
            return data.file();
        }
        let games = sample_games().map_err(failed)?;
        note!("without --data: the sample games that come with fsbench, {}", games.display());
        Ok(games)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn globs_are_files_and_weights_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b.pgn", "a.pgn", "odd@2"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        let argument = |name: &str| FileArgument(folder.path().join(name).to_str().expect("UTF-8").to_owned());
        let names = |name: &str| {
            let mut found = Vec::new();
            for path in argument(name).files().expect(name) {
                found.push(path.file_name().unwrap_or_default().to_str().expect("UTF-8").to_owned());
            }
            found
        };
        assert_eq!(names("*.pgn"), ["a.pgn", "b.pgn"]);
        assert_eq!(names("odd@2"), ["odd@2"]);
        assert_eq!(FileArgument("-".into()).file().expect("standard input"), Path::new("-"));
        let refused = |result: Result<PathBuf, Failure>| match result {
            Err(Failure::Request(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(refused(argument("a.pgn@0.5").file()).contains("leave it out"));
        assert!(refused(argument("*.pgn").file()).contains("2 files match"));
        assert!(argument("?.pgn").file().is_err() && argument("a*").file().is_ok());
    }
}
