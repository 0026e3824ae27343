//! One or several data files that are served as one.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The files of a data set, in the order of their samples; at least one. Written as a path, or a list of paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Paths", into = "Paths")]
pub struct DataFiles(Vec<PathBuf>);

/// A path, or a list of paths.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl DataFiles {
    /// The files, in order; `None` without a file.
    #[must_use]
    pub fn new(files: Vec<PathBuf>) -> Option<DataFiles> {
        (!files.is_empty()).then_some(DataFiles(files))
    }

    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.0
    }

    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    /// The file, if there is one only.
    #[must_use]
    pub fn only(&self) -> Option<&Path> {
        if let [file] = &self.0[..] { Some(file) } else { None }
    }
}

impl Default for DataFiles {
    /// A file without a name, which stands for data that do not matter.
    fn default() -> DataFiles {
        DataFiles(vec![PathBuf::new()])
    }
}

impl Display for DataFiles {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (number, file) in self.0.iter().enumerate() {
            write!(f, "{}{}", if number > 0 { ", " } else { "" }, file.display())?;
        }
        Ok(())
    }
}

impl From<Paths> for DataFiles {
    fn from(paths: Paths) -> DataFiles {
        match paths {
            Paths::One(file) => file.into(),
            Paths::Several(files) => DataFiles::new(files).unwrap_or_default(),
        }
    }
}

impl From<DataFiles> for Paths {
    fn from(DataFiles(mut files): DataFiles) -> Paths {
        match files.len() {
            1 => Paths::One(files.remove(0)),
            _ => Paths::Several(files),
        }
    }
}

impl From<PathBuf> for DataFiles {
    fn from(file: PathBuf) -> DataFiles {
        DataFiles(vec![file])
    }
}

impl From<&PathBuf> for DataFiles {
    fn from(file: &PathBuf) -> DataFiles {
        file.clone().into()
    }
}

impl From<&Path> for DataFiles {
    fn from(file: &Path) -> DataFiles {
        file.to_path_buf().into()
    }
}

impl From<&str> for DataFiles {
    fn from(file: &str) -> DataFiles {
        PathBuf::from(file).into()
    }
}

impl From<&DataFiles> for DataFiles {
    fn from(files: &DataFiles) -> DataFiles {
        files.clone()
    }
}

impl From<Vec<PathBuf>> for DataFiles {
    fn from(files: Vec<PathBuf>) -> DataFiles {
        DataFiles::new(files).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn one_file_is_written_as_its_path() {
        let check = |files: DataFiles, json: &str| {
            assert_eq!(json::to_text(&files).expect("JSON"), json);
            assert_eq!(json::from_text::<DataFiles>(json).expect("sound"), files);
        };
        check(DataFiles::from("a.fsd"), "\"a.fsd\"");
        check(vec![PathBuf::from("a"), PathBuf::from("b")].into(), "[\"a\",\"b\"]");
        check(DataFiles::default(), "\"\"");
    }
}
