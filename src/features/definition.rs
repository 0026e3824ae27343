//! Definition files: TOML → expression, orientation, buckets; names → other definitions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::chess::{BlackView, Mirror, Orientation};

use super::error::{ExpressionText, FeatureError, SourceText};
use super::resolve::{self, MAX_FEATURES, Surroundings};
use super::spec::{BlockSpec, Bucket, Multiplicity};
use super::syntax::{self, BlockExpr, Span, SyntaxError};

/// Names that may nest inside one another before it is called a mistake.
const MAX_NESTING: usize = 32;
/// Blocks of a whole set, named ones expanded.
const MAX_BLOCKS: usize = 4096;

/// A definition file, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    about: Option<String>,
    features: Spanned<String>,
    #[serde(default)]
    black: BlackView,
    #[serde(default)]
    mirror: Mirror,
    #[serde(default)]
    multiplicity: Multiplicity,
    #[serde(default)]
    buckets: BTreeMap<String, Spanned<Vec<i64>>>,
    /// Definitions this one names, carried along so that the text stands on its own.
    #[serde(default)]
    definitions: BTreeMap<String, Carried>,
}

/// A definition with everything it names: what networks and checkpoints store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Carried {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    features: String,
    #[serde(default)]
    black: BlackView,
    #[serde(default)]
    mirror: Mirror,
    #[serde(default)]
    multiplicity: Multiplicity,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    buckets: BTreeMap<String, Vec<i64>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    definitions: BTreeMap<String, Carried>,
}

/// A definition, resolved.
pub struct Definition {
    pub name: String,
    pub about: Option<String>,
    pub blocks: Vec<BlockSpec>,
    /// TOML that needs no other file.
    pub text: String,
}

/// Finds the definition a request names: the path of a TOML file, a bare name, or an expression.
///
/// # Errors
/// When nothing has that name, the file cannot be read, or the definition is wrong.
pub fn load(request: &str) -> Result<Definition, FeatureError> {
    let mut loader = Loader::default();
    let loaded = if let Some(path) = find_file(request) {
        loader.file(&path)?
    } else if is_name(request) || request.ends_with(".toml") {
        return Err(unknown_set(request, None));
    } else {
        loader.expression(request)?
    };
    Ok(loaded.into_definition())
}

/// Reads a definition's text.
///
/// # Errors
/// When the text is no definition.
pub fn parse(text: &str) -> Result<Definition, FeatureError> {
    let source = SourceText::new("definition", text);
    Loader::default().text(&source, None, "definition").map(Loaded::into_definition)
}

/// A bare name: letters, digits and hyphens.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// The file a request means: as a path, then with and without its ending in the folders of shipped sets.
fn find_file(request: &str) -> Option<PathBuf> {
    let path = Path::new(request);
    if request.ends_with(".toml") && path.is_file() {
        return Some(path.to_owned());
    }
    let name = request.strip_suffix(".toml").unwrap_or(request);
    if is_name(name) { shipped_folders().iter().find_map(|folder| in_folder(folder, name)) } else { None }
}

fn in_folder(folder: &Path, name: &str) -> Option<PathBuf> {
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

fn unknown_set(request: &str, beside: Option<&Path>) -> FeatureError {
    let mut searched: Vec<PathBuf> = beside.map(Path::to_owned).into_iter().collect();
    searched.extend(shipped_folders().into_iter().filter(|folder| folder.is_dir()));
    let known = names_in(&searched);
    let name = request.strip_suffix(".toml").unwrap_or(request);
    let nearest = syntax::nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    FeatureError::UnknownSet { name: name.to_owned(), nearest, searched }
}

/// A definition and the self-contained form of its text.
struct Loaded {
    name: String,
    blocks: Vec<BlockSpec>,
    carried: Carried,
}

impl Loaded {
    fn into_definition(self) -> Definition {
        let text = toml::to_string(&self.carried).expect("strings, numbers and tables are always TOML");
        Definition { name: self.name, about: self.carried.about, blocks: self.blocks, text }
    }
}

/// Reads definitions and those they name, minding circles.
#[derive(Default)]
struct Loader {
    /// What is being read, outermost first.
    open: Vec<String>,
}

/// Where a definition's names are looked up before `feature_sets/`.
#[derive(Clone, Copy, Default)]
struct Neighbours<'a> {
    carried: Option<&'a BTreeMap<String, Carried>>,
    folder: Option<&'a Path>,
}

impl Loader {
    fn file(&mut self, path: &Path) -> Result<Loaded, FeatureError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| FeatureError::Unreadable { path: path.to_owned(), error })?;
        let source = SourceText::new(path.display().to_string(), text);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("definition");
        self.text(&source, path.parent(), stem)
    }

    fn expression(&mut self, text: &str) -> Result<Loaded, FeatureError> {
        let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let carried = Carried {
            name: Some(name.clone()),
            about: None,
            features: text.to_owned(),
            black: BlackView::default(),
            mirror: Mirror::default(),
            multiplicity: Multiplicity::default(),
            buckets: BTreeMap::new(),
            definitions: BTreeMap::new(),
        };
        let expression = ExpressionText { source: SourceText::new("expression", text), offset: 0 };
        self.blocks(name, carried, &BTreeMap::new(), &expression, Neighbours::default())
    }

    fn text(&mut self, source: &SourceText, folder: Option<&Path>, stem: &str) -> Result<Loaded, FeatureError> {
        let written: Written = toml::from_str(&source.text).map_err(|error| toml_error(source, &error))?;
        let buckets = read_buckets(&written.buckets, source)?;
        let name = written.name.clone().unwrap_or_else(|| stem.to_owned());
        let expression = locate(source, &written.features);
        let carried = Carried {
            name: written.name,
            about: written.about,
            features: written.features.into_inner(),
            black: written.black,
            mirror: written.mirror,
            multiplicity: written.multiplicity,
            buckets: written.buckets.into_iter().map(|(name, table)| (name, table.into_inner())).collect(),
            definitions: BTreeMap::new(),
        };
        let neighbours = Neighbours { carried: Some(&written.definitions), folder };
        self.blocks(name, carried, &buckets, &expression, neighbours)
    }

    fn blocks(
        &mut self,
        name: String,
        mut carried: Carried,
        buckets: &BTreeMap<String, Arc<Bucket>>,
        expression: &ExpressionText,
        neighbours: Neighbours<'_>,
    ) -> Result<Loaded, FeatureError> {
        let surroundings = Surroundings {
            orientation: Orientation { black: carried.black, mirror: carried.mirror },
            multiplicity: carried.multiplicity,
            buckets,
        };
        let terms = syntax::parse(&carried.features).map_err(|error| expression.error(error))?;
        let several = terms.iter().filter(|term| matches!(term, BlockExpr::Written(_))).count() > 1;
        let mut blocks: Vec<BlockSpec> = Vec::new();
        for (at, term) in terms.iter().enumerate() {
            let span = match term {
                BlockExpr::Written(written) => {
                    let label = if several { format!("{name}#{}", at + 1) } else { name.clone() };
                    let block =
                        resolve::block(written, label, &surroundings).map_err(|error| expression.error(error))?;
                    blocks.push(block);
                    &written.span
                }
                BlockExpr::Named { name, span } => {
                    let named = self.named(name, span, expression, neighbours)?;
                    blocks.extend(named.blocks);
                    carried.definitions.insert(name.clone(), named.carried);
                    span
                }
            };
            let total: u64 = blocks.iter().map(|block| u64::from(block.product.size)).sum();
            if total > MAX_FEATURES {
                let message = "with this block the set has more than 2^32 − 1 features; indices have 32 bits";
                return Err(expression.error(SyntaxError::new(message, span.clone())));
            }
            if blocks.len() > MAX_BLOCKS {
                let message = format!("with this the set has more than {MAX_BLOCKS} blocks");
                return Err(expression.error(SyntaxError::new(message, span.clone())));
            }
        }
        Ok(Loaded { name, blocks, carried })
    }

    fn named(
        &mut self,
        name: &str,
        span: &Span,
        expression: &ExpressionText,
        neighbours: Neighbours<'_>,
    ) -> Result<Loaded, FeatureError> {
        if let Some(carried) = neighbours.carried.and_then(|known| known.get(name)) {
            let text = toml::to_string(carried).expect("strings, numbers and tables are always TOML");
            let source = SourceText::new(format!("definition {name}"), text);
            return self.enter(name, span, expression, |loader| loader.text(&source, neighbours.folder, name));
        }
        let beside = neighbours.folder.and_then(|folder| in_folder(folder, name));
        let Some(path) = beside.or_else(|| find_file(name)) else {
            let FeatureError::UnknownSet { nearest, searched, .. } = unknown_set(name, neighbours.folder) else {
                return Err(unknown_set(name, neighbours.folder));
            };
            let folders = searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            let help = match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("names are looked up in {folders}"),
            };
            let error = SyntaxError::new(format!("there is no feature set `{name}`"), span.clone()).with_help(help);
            return Err(expression.error(error));
        };
        let key = path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
        self.enter(&key, span, expression, |loader| loader.file(&path))
    }

    fn enter(
        &mut self,
        key: &str,
        span: &Span,
        expression: &ExpressionText,
        read: impl FnOnce(&mut Self) -> Result<Loaded, FeatureError>,
    ) -> Result<Loaded, FeatureError> {
        if self.open.iter().any(|open| open == key) || self.open.len() >= MAX_NESTING {
            let message = "these definitions name each other in a circle";
            let error = SyntaxError::new(message, span.clone()).with_help(format!("through {}", self.open.join(", ")));
            return Err(expression.error(error));
        }
        self.open.push(key.to_owned());
        let loaded = read(self);
        self.open.pop();
        loaded
    }
}

fn toml_error(source: &SourceText, error: &toml::de::Error) -> FeatureError {
    let span = error.span().unwrap_or(0..0);
    source.error(error.message(), span, None)
}

/// Where the expression's first byte stands in its file; when the string has escapes, the expression alone is shown.
fn locate(source: &SourceText, features: &Spanned<String>) -> ExpressionText {
    let literal = features.span();
    let content = features.as_ref();
    match source.text.get(literal.clone()).and_then(|literal| literal.find(content.as_str())) {
        Some(at) => ExpressionText { source: source.clone(), offset: literal.start + at },
        None => {
            let origin = format!("{} (features)", source.origin);
            ExpressionText { source: SourceText::new(origin, content.as_str()), offset: 0 }
        }
    }
}

fn read_buckets(
    tables: &BTreeMap<String, Spanned<Vec<i64>>>,
    source: &SourceText,
) -> Result<BTreeMap<String, Arc<Bucket>>, FeatureError> {
    let read = |(name, table): (&String, &Spanned<Vec<i64>>)| {
        let error = |message: String| source.error(message, table.span(), None);
        let numbers = table.as_ref();
        if numbers.len() != 64 {
            return Err(error(format!("bucket table `{name}` has {} numbers; it needs 64", numbers.len())));
        }
        let mut bucket = Bucket { name: name.clone(), table: [-1; 64], size: 0 };
        for (square, number) in numbers.iter().enumerate() {
            let number = i32::try_from(*number).ok().filter(|number| (-1..1 << 24).contains(number));
            let number = number.ok_or_else(|| {
                let square = shakmaty::Square::new(square as u32);
                error(format!(
                    "bucket table `{name}`: {} for {square} is below −1 or above 2^24",
                    numbers[square as usize]
                ))
            })?;
            bucket.table[square] = number;
            bucket.size = bucket.size.max((number + 1) as u32);
        }
        if bucket.size == 0 {
            return Err(error(format!("bucket table `{name}` leaves every square out")));
        }
        Ok((name.clone(), Arc::new(bucket)))
    };
    tables.iter().map(read).collect()
}
