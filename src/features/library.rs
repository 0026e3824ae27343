//! Where definitions lie: files by path, shipped sets by bare name.

use std::path::{Path, PathBuf};

use super::syntax;

/// A bare name: letters, digits and hyphens.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// The file a request means: as a path, then with and without its ending in the folders of shipped sets.
pub fn find_file(request: &str) -> Option<PathBuf> {
    let path = Path::new(request);
    if request.ends_with(".toml") && path.is_file() {
        return Some(path.to_owned());
    }
    let name = request.strip_suffix(".toml").unwrap_or(request);
    if is_name(name) { shipped_folders().iter().find_map(|folder| in_folder(folder, name)) } else { None }
}

pub fn in_folder(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = folder.join(format!("{name}.toml"));
    path.is_file().then_some(path)
}

/// `feature_sets/` here, then beside or above the executable, then where fsbench was built.
fn shipped_folders() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("feature_sets")];
    let executable = std::env::current_exe().ok();
    let above = executable.iter().flat_map(|path| path.ancestors().skip(1).take(4));
    folders.extend(above.map(|folder| folder.join("feature_sets")).filter(|folder| folder.is_dir()));
    folders.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("feature_sets"));
    folders
}

/// Names of the shipped sets, sorted.
pub fn shipped_names() -> Vec<String> {
    let mut names = names_in(&shipped_folders());
    names.sort();
    names.dedup();
    names
}

fn names_in(folders: &[PathBuf]) -> Vec<String> {
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

/// What to tell whoever names a set that does not exist; `beside`: another folder that was searched.
pub struct Unknown {
    pub nearest: Option<String>,
    pub searched: Vec<PathBuf>,
}

pub fn unknown(request: &str, beside: Option<&Path>) -> Unknown {
    let mut searched: Vec<PathBuf> = beside.map(Path::to_owned).into_iter().collect();
    searched.extend(shipped_folders().into_iter().filter(|folder| folder.is_dir()));
    searched.dedup();
    let known = names_in(&searched);
    let name = request.strip_suffix(".toml").unwrap_or(request);
    let nearest = syntax::nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    Unknown { nearest, searched }
}
