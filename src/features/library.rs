//! Finds definitions: a file by its path; a set by its name, first in the user's `feature_sets` folders, then among the
//! shipped sets that are compiled into the program.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::definition;
use super::error::FeatureError;
use super::syntax;

/// Name and content of the files in `feature_sets/` at build time, sorted by name.
static SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped_sets.rs"));

/// Whether a text is a set's name: letters, digits, hyphens and underscores after a first letter.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// A definition's file, on disk or compiled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionFile {
    File(PathBuf),
    /// Name and content.
    Shipped(&'static str, &'static str),
}

impl DefinitionFile {
    /// # Errors
    /// When the file cannot be read.
    pub fn text(&self) -> Result<Cow<'static, str>, FeatureError> {
        match self {
            DefinitionFile::Shipped(_, text) => Ok(Cow::Borrowed(text)),
            DefinitionFile::File(path) => std::fs::read_to_string(path)
                .map(Cow::Owned)
                .map_err(|error| FeatureError::Unreadable { path: path.clone(), error }),
        }
    }

    /// Name for messages.
    pub fn origin(&self) -> String {
        match self {
            DefinitionFile::File(path) => path.display().to_string(),
            DefinitionFile::Shipped(name, _) => format!("feature_sets/{name} (shipped)"),
        }
    }

    /// Identifies the file, however its path is spelt.
    pub fn key(&self) -> String {
        match self {
            DefinitionFile::File(path) => path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string(),
            DefinitionFile::Shipped(..) => self.origin(),
        }
    }

    /// The file's name without `.toml`.
    pub fn stem(&self) -> &str {
        let path = match self {
            DefinitionFile::File(path) => path,
            DefinitionFile::Shipped(name, _) => Path::new(name),
        };
        path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("definition")
    }

    /// Where the definition's own names are looked up first.
    pub fn siblings(&self) -> Siblings<'_> {
        match self {
            DefinitionFile::File(path) => path.parent().map_or(Siblings::Nothing, Siblings::Folder),
            DefinitionFile::Shipped(..) => Siblings::Shipped,
        }
    }
}

/// The files beside a definition.
#[derive(Clone, Copy, Debug, Default)]
pub enum Siblings<'a> {
    #[default]
    Nothing,
    Folder(&'a Path),
    Shipped,
}

impl Siblings<'_> {
    /// The definition of this name among the files beside.
    pub fn named(self, name: &str) -> Option<DefinitionFile> {
        match self {
            Siblings::Nothing => None,
            Siblings::Folder(folder) => in_folder(folder, name),
            Siblings::Shipped => shipped(name),
        }
    }

    /// The file of this name, if it exists.
    pub fn file(self, name: &str) -> Option<DefinitionFile> {
        match self {
            Siblings::Shipped => shipped_file(name),
            Siblings::Folder(_) | Siblings::Nothing => {
                Some(DefinitionFile::File(self.path(name))).filter(DefinitionFile::is_file)
            }
        }
    }

    /// The path that a file of this name would have.
    pub fn path(self, name: &str) -> PathBuf {
        match self {
            Siblings::Nothing => PathBuf::from(name),
            Siblings::Folder(folder) => folder.join(name),
            Siblings::Shipped => Path::new("feature_sets").join(name),
        }
    }
}

impl DefinitionFile {
    fn is_file(&self) -> bool {
        matches!(self, DefinitionFile::File(path) if path.is_file())
    }
}

/// The definition that a request names: a path, else a name with or without `.toml`.
pub fn find(request: &str) -> Option<DefinitionFile> {
    let path = Path::new(request);
    if request.ends_with(".toml") && path.is_file() {
        return Some(DefinitionFile::File(path.to_owned()));
    }
    let name = request.strip_suffix(".toml").unwrap_or(request);
    if !is_name(name) {
        return None;
    }
    user_folders().iter().find_map(|folder| in_folder(folder, name)).or_else(|| shipped(name))
}

/// A shipped definition; the user's folders are not searched.
pub fn shipped(name: &str) -> Option<DefinitionFile> {
    shipped_file(&format!("{name}.toml"))
}

fn shipped_file(name: &str) -> Option<DefinitionFile> {
    let at = SHIPPED.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    let (name, text) = SHIPPED[at];
    Some(DefinitionFile::Shipped(name, text))
}

fn in_folder(folder: &Path, name: &str) -> Option<DefinitionFile> {
    Some(DefinitionFile::File(folder.join(format!("{name}.toml")))).filter(DefinitionFile::is_file)
}

/// The folders `feature_sets` in the current directory and above, nearest first.
fn user_folders() -> Vec<PathBuf> {
    let here = PathBuf::from("feature_sets");
    let above = std::env::current_dir().ok();
    let above = above.iter().flat_map(|current| current.ancestors().skip(1)).map(|folder| folder.join("feature_sets"));
    std::iter::once(here).chain(above).filter(|folder| folder.is_dir()).collect()
}

/// Sorted names of all sets that can be requested from the current directory: the user's and the shipped ones.
pub fn available_names() -> Vec<String> {
    let mut names = names_in(&user_folders());
    names.sort();
    names.dedup();
    names
}

/// A set in the list of `define --list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShippedSet {
    /// The name to request it by.
    pub name: String,
    /// Inputs per perspective.
    pub num_features: u32,
    /// What the definition says of the set.
    pub about: Option<String>,
    /// The comment at the top of its file.
    pub source: Option<String>,
}

/// All sets that can be requested from the current directory, by name.
///
/// # Errors
/// When one of the definitions has a mistake.
pub fn shipped_sets() -> Result<Vec<ShippedSet>, FeatureError> {
    let describe = |name: String| {
        let definition = definition::load(&name)?;
        Ok(ShippedSet { name, num_features: definition.size, about: definition.about, source: definition.comment })
    };
    available_names().into_iter().map(describe).collect()
}

/// Names of the shipped sets.
#[must_use]
pub fn shipped_names() -> Vec<&'static str> {
    SHIPPED.iter().filter_map(|(name, _)| name.strip_suffix(".toml")).collect()
}

/// Names of the sets in the folders and of the shipped sets.
fn names_in(folders: &[PathBuf]) -> Vec<String> {
    let of_user = folders.iter().flat_map(|folder| names_of_files(folder));
    of_user.chain(shipped_names().into_iter().map(str::to_owned)).collect()
}

/// Names of the definitions in a folder.
fn names_of_files(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

/// Details for the error about a name that no set has.
pub struct UnknownName {
    /// The closest known name, if one is close.
    pub nearest: Option<String>,
    /// Folders searched.
    pub searched: Vec<PathBuf>,
}

/// Explains why a request was not found; `siblings` were searched too.
pub fn unknown(request: &str, siblings: Siblings<'_>) -> UnknownName {
    let mut searched: Vec<PathBuf> = match siblings {
        Siblings::Folder(folder) if !folder.as_os_str().is_empty() => vec![folder.to_owned()],
        Siblings::Folder(_) => vec![PathBuf::from(".")],
        Siblings::Shipped | Siblings::Nothing => Vec::new(),
    };
    searched.extend(user_folders());
    searched.dedup();
    let known = names_in(&searched);
    let name = request.strip_suffix(".toml").unwrap_or(request);
    let nearest = syntax::nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    UnknownName { nearest, searched }
}

/// Whether a request can only be meant as the path of a file.
pub fn is_path(request: &str) -> bool {
    let is_expression = || request.contains(['(', '"', '#']) || request.contains(char::is_whitespace);
    request.contains(std::path::is_separator) && (request.ends_with(".toml") || !is_expression())
}

/// Explains why there is no definition at a path.
pub fn no_file(request: &str) -> FeatureError {
    let path = PathBuf::from(request);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let beside = names_of_files(folder);
    if path.is_file() {
        return FeatureError::NotToml(path);
    }
    let hint = if !folder.is_dir() {
        format!("there is no folder `{}`", folder.display())
    } else if shipped(stem).is_some() {
        format!("the set that comes with fsbench is asked for by its name alone: `{stem}`")
    } else if let Some(name) = syntax::nearest(stem, beside.iter().map(String::as_str)) {
        format!("did you mean `{}`?", folder.join(format!("{name}.toml")).display())
    } else {
        "`fsbench define --list` lists the sets that have names".to_owned()
    };
    FeatureError::NoFile { path, hint }
}

/// The searched folders and the shipped sets as a list in words.
pub fn searched_places(searched: &[PathBuf]) -> String {
    let folders = searched.iter().map(|path| path.display().to_string());
    folders.chain(["the shipped sets".to_owned()]).collect::<Vec<_>>().join(", ")
}
