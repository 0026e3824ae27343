//! Where definitions lie: files by path, sets by bare name: in a folder `feature_sets` of the user's, else in the program
//! itself, which carries the shipped ones.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::error::FeatureError;
use super::syntax;

/// The files of `feature_sets/` when this program was built: name and content, sorted by name.
static SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped_sets.rs"));

/// A bare name: letters, digits and hyphens.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// A definition's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    File(PathBuf),
    /// Name and content of one that the program carries.
    Shipped(&'static str, &'static str),
}

impl Found {
    /// # Errors
    /// When the file cannot be read.
    pub fn text(&self) -> Result<Cow<'static, str>, FeatureError> {
        match self {
            Found::Shipped(_, text) => Ok(Cow::Borrowed(text)),
            Found::File(path) => std::fs::read_to_string(path)
                .map(Cow::Owned)
                .map_err(|error| FeatureError::Unreadable { path: path.clone(), error }),
        }
    }

    /// What messages call it.
    pub fn origin(&self) -> String {
        match self {
            Found::File(path) => path.display().to_string(),
            Found::Shipped(name, _) => format!("feature_sets/{name} (shipped)"),
        }
    }

    /// The same for every way to write a path.
    pub fn key(&self) -> String {
        match self {
            Found::File(path) => path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string(),
            Found::Shipped(..) => self.origin(),
        }
    }

    /// The file's name without its ending.
    pub fn stem(&self) -> &str {
        let path = match self {
            Found::File(path) => path,
            Found::Shipped(name, _) => Path::new(name),
        };
        path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("definition")
    }

    /// Where the file's own names are looked up first.
    pub fn beside(&self) -> Beside<'_> {
        match self {
            Found::File(path) => path.parent().map_or(Beside::Nothing, Beside::Folder),
            Found::Shipped(..) => Beside::Shipped,
        }
    }
}

/// The neighbours of a definition.
#[derive(Clone, Copy, Debug, Default)]
pub enum Beside<'a> {
    #[default]
    Nothing,
    Folder(&'a Path),
    Shipped,
}

impl Beside<'_> {
    /// The definition of a bare name among the neighbours.
    pub fn named(self, name: &str) -> Option<Found> {
        match self {
            Beside::Nothing => None,
            Beside::Folder(folder) => in_folder(folder, name),
            Beside::Shipped => shipped(name),
        }
    }

    /// A file beside the definition, by name; none where there is no such file.
    pub fn file(self, name: &str) -> Option<Found> {
        match self {
            Beside::Shipped => shipped_file(name),
            Beside::Folder(_) | Beside::Nothing => Some(Found::File(self.path(name))).filter(Found::is_file),
        }
    }

    /// Where a file of that name would stand.
    pub fn path(self, name: &str) -> PathBuf {
        match self {
            Beside::Nothing => PathBuf::from(name),
            Beside::Folder(folder) => folder.join(name),
            Beside::Shipped => Path::new("feature_sets").join(name),
        }
    }
}

impl Found {
    fn is_file(&self) -> bool {
        matches!(self, Found::File(path) if path.is_file())
    }
}

/// The definition a request means: as a path, then with and without its ending by name.
pub fn find(request: &str) -> Option<Found> {
    let path = Path::new(request);
    if request.ends_with(".toml") && path.is_file() {
        return Some(Found::File(path.to_owned()));
    }
    let name = request.strip_suffix(".toml").unwrap_or(request);
    if !is_name(name) {
        return None;
    }
    own_folders().iter().find_map(|folder| in_folder(folder, name)).or_else(|| shipped(name))
}

/// A shipped definition, whatever the user's folders hold.
pub fn shipped(name: &str) -> Option<Found> {
    shipped_file(&format!("{name}.toml"))
}

fn shipped_file(name: &str) -> Option<Found> {
    let at = SHIPPED.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    let (name, text) = SHIPPED[at];
    Some(Found::Shipped(name, text))
}

fn in_folder(folder: &Path, name: &str) -> Option<Found> {
    Some(Found::File(folder.join(format!("{name}.toml")))).filter(Found::is_file)
}

/// The folders `feature_sets` here and above, the nearest first.
fn own_folders() -> Vec<PathBuf> {
    let here = PathBuf::from("feature_sets");
    let above = std::env::current_dir().ok();
    let above = above.iter().flat_map(|current| current.ancestors().skip(1)).map(|folder| folder.join("feature_sets"));
    std::iter::once(here).chain(above).filter(|folder| folder.is_dir()).collect()
}

/// Names of all sets that can be named here: the user's and the shipped ones, sorted.
pub fn shipped_names() -> Vec<String> {
    let mut names = names_in(&own_folders());
    names.sort();
    names.dedup();
    names
}

/// Names in the folders, and the shipped ones.
fn names_in(folders: &[PathBuf]) -> Vec<String> {
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let own = paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let shipped = SHIPPED.iter().filter_map(|(name, _)| name.strip_suffix(".toml")).map(str::to_owned);
    own.chain(shipped).collect()
}

/// What to tell whoever names a set that does not exist; `beside`: another folder that was searched.
pub struct Unknown {
    pub nearest: Option<String>,
    pub searched: Vec<PathBuf>,
}

pub fn unknown(request: &str, beside: Beside<'_>) -> Unknown {
    let mut searched: Vec<PathBuf> = match beside {
        Beside::Folder(folder) if !folder.as_os_str().is_empty() => vec![folder.to_owned()],
        Beside::Folder(_) => vec![PathBuf::from(".")],
        Beside::Shipped | Beside::Nothing => Vec::new(),
    };
    searched.extend(own_folders());
    searched.dedup();
    let known = names_in(&searched);
    let name = request.strip_suffix(".toml").unwrap_or(request);
    let nearest = syntax::nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    Unknown { nearest, searched }
}

/// The places that were searched, in words.
pub fn places(searched: &[PathBuf]) -> String {
    let folders = searched.iter().map(|path| path.display().to_string());
    folders.chain(["the shipped sets".to_owned()]).collect::<Vec<_>>().join(", ")
}
