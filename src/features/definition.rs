//! Definition files: TOML → expression, orientation, buckets; names → other definitions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::chess::{BlackView, Mirror, Orientation};

use super::error::{ExpressionText, FeatureError, SourceText};
use super::library::{self, Unknown};
use super::resolve::{self, MAX_FEATURES, Surroundings};
use super::selection::Selection;
use super::spec::{BlockFactor, BlockSpec, Bucket, Multiplicity};
use super::syntax::{self, BlockExpr, Span, SyntaxError, Written};

/// Names that may nest inside one another before it is called a mistake.
const MAX_NESTING: usize = 32;
/// Blocks of a whole set, named ones expanded.
const MAX_BLOCKS: usize = 4096;

/// A definition file, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
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
    /// One for all written terms, or one for each; "" = none.
    factor: Option<Spanned<Factors>>,
    /// A file of indices.
    select: Option<Spanned<String>>,
    /// The indices themselves, in ranges.
    selected: Option<Spanned<String>>,
    /// Definitions this one names, carried along so that the text stands on its own.
    #[serde(default)]
    definitions: BTreeMap<String, Carried>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Factors {
    One(String),
    Each(Vec<String>),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<Factors>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    definitions: BTreeMap<String, Carried>,
}

/// A definition, resolved.
pub struct Definition {
    pub name: String,
    pub about: Option<String>,
    pub blocks: Vec<BlockSpec>,
    /// Number of features.
    pub size: u32,
    /// TOML that needs no other file.
    pub text: String,
}

/// Finds the definition a request names: the path of a TOML file, a bare name, or an expression.
///
/// # Errors
/// When nothing has that name, the file cannot be read, or the definition is wrong.
pub fn load(request: &str) -> Result<Definition, FeatureError> {
    let mut loader = Loader::default();
    let loaded = if let Some(path) = library::find_file(request) {
        loader.file(&path)?
    } else if library::is_name(request) || request.ends_with(".toml") {
        let Unknown { nearest, searched } = library::unknown(request, None);
        let name = request.strip_suffix(".toml").unwrap_or(request).to_owned();
        return Err(FeatureError::UnknownSet { name, nearest, searched });
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

/// A definition and the self-contained form of its text.
struct Loaded {
    name: String,
    blocks: Vec<BlockSpec>,
    size: u32,
    carried: Carried,
}

impl Loaded {
    fn into_definition(self) -> Definition {
        let text = toml::to_string(&self.carried).expect("strings, numbers and tables are always TOML");
        Definition { name: self.name, about: self.carried.about, blocks: self.blocks, size: self.size, text }
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
            factor: None,
            selected: None,
            definitions: BTreeMap::new(),
        };
        let expression = ExpressionText { source: SourceText::new("expression", text), offset: 0 };
        self.blocks(name, carried, &BTreeMap::new(), &expression, &[], Neighbours::default())
    }

    fn text(&mut self, source: &SourceText, folder: Option<&Path>, stem: &str) -> Result<Loaded, FeatureError> {
        let keys: Keys = toml::from_str(&source.text).map_err(|error| toml_error(source, &error))?;
        let buckets = read_buckets(&keys.buckets, source)?;
        let name = keys.name.clone().unwrap_or_else(|| stem.to_owned());
        let expression = locate(source, &keys.features, "features");
        let factors = read_factors(source, keys.factor.as_ref());
        let selection = read_selection(source, &keys, folder)?;
        let carried = Carried {
            name: keys.name,
            about: keys.about,
            features: keys.features.into_inner(),
            black: keys.black,
            mirror: keys.mirror,
            multiplicity: keys.multiplicity,
            buckets: keys.buckets.into_iter().map(|(name, table)| (name, table.into_inner())).collect(),
            factor: keys.factor.map(Spanned::into_inner),
            selected: selection.as_ref().map(Selection::ranges),
            definitions: BTreeMap::new(),
        };
        let neighbours = Neighbours { carried: Some(&keys.definitions), folder };
        let mut loaded = self.blocks(name, carried, &buckets, &expression, &factors, neighbours)?;
        if let Some(selection) = selection {
            loaded.size = selection.apply(&mut loaded.blocks, u64::from(loaded.size))?;
        }
        Ok(loaded)
    }

    fn blocks(
        &mut self,
        name: String,
        mut carried: Carried,
        buckets: &BTreeMap<String, Arc<Bucket>>,
        expression: &ExpressionText,
        factors: &[FactorText],
        neighbours: Neighbours<'_>,
    ) -> Result<Loaded, FeatureError> {
        let surroundings = Surroundings {
            orientation: Orientation { black: carried.black, mirror: carried.mirror },
            multiplicity: carried.multiplicity,
            buckets,
        };
        let terms = syntax::parse(&carried.features).map_err(|error| expression.error(error))?;
        let written = terms.iter().filter(|term| matches!(term, BlockExpr::Written(_))).count();
        let mut factors = factors_of_terms(factors, matches!(carried.factor, Some(Factors::One(_))), written)?;
        let mut blocks: Vec<BlockSpec> = Vec::new();
        let mut size = 0u64;
        for (at, term) in terms.iter().enumerate() {
            let (mut found, features, span) = match term {
                BlockExpr::Written(term) => {
                    let label = if written > 1 { format!("{name}#{}", at + 1) } else { name.clone() };
                    let mut block = resolve::block(term, label, &surroundings).map_err(|e| expression.error(e))?;
                    if let Some(factor) = factors.next().flatten() {
                        block.factor = Some(factor.resolve(term, &surroundings)?);
                    }
                    let features = block.product.size;
                    (vec![block], features, &term.span)
                }
                BlockExpr::Named { name, span } => {
                    let named = self.named(name, span, expression, neighbours)?;
                    carried.definitions.insert(name.clone(), named.carried);
                    (named.blocks, named.size, span)
                }
            };
            found.iter_mut().for_each(|block| block.offset = block.offset.saturating_add(size as u32));
            size += u64::from(features);
            blocks.append(&mut found);
            if size > MAX_FEATURES {
                let message = "with this block the set has more than 2^32 − 1 features; indices have 32 bits";
                return Err(expression.at(message, span.clone()));
            }
            if blocks.len() > MAX_BLOCKS {
                return Err(expression.at(format!("with this the set has more than {MAX_BLOCKS} blocks"), span.clone()));
            }
        }
        Ok(Loaded { name, blocks, size: size as u32, carried })
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
            // A text holds what it carries: no circle leads through it, however its names repeat.
            let key = format!("{name}, carried {} deep", self.open.len());
            return self.enter(&key, span, expression, |loader| loader.text(&source, neighbours.folder, name));
        }
        let beside = neighbours.folder.and_then(|folder| library::in_folder(folder, name));
        let Some(path) = beside.or_else(|| library::find_file(name)) else {
            let Unknown { nearest, searched } = library::unknown(name, neighbours.folder);
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

/// Where the text of a key begins in its file; when the string has escapes, the text alone is shown.
fn locate(source: &SourceText, value: &Spanned<String>, key: &str) -> ExpressionText {
    locate_in(source, value.span(), value.as_ref(), key)
}

fn locate_in(source: &SourceText, literal: Span, content: &str, key: &str) -> ExpressionText {
    match source.text.get(literal.clone()).and_then(|literal| literal.find(content)) {
        Some(at) => ExpressionText { source: source.clone(), offset: literal.start + at },
        None => {
            let origin = format!("{} ({key})", source.origin);
            ExpressionText { source: SourceText::new(origin, content), offset: 0 }
        }
    }
}

/// A factor as written.
struct FactorText {
    content: String,
    text: ExpressionText,
}

impl FactorText {
    fn resolve(&self, term: &Written, surroundings: &Surroundings<'_>) -> Result<BlockFactor, FeatureError> {
        let product = syntax::parse_product(&self.content);
        let product = product
            .and_then(|product| resolve::factor(term, &product, surroundings))
            .map_err(|error| self.text.error(error))?;
        Ok(BlockFactor { product, content: self.content.clone(), text: self.text.clone() })
    }
}

fn read_factors(source: &SourceText, factors: Option<&Spanned<Factors>>) -> Vec<FactorText> {
    let Some(factors) = factors else { return Vec::new() };
    let contents = match factors.as_ref() {
        Factors::One(content) => std::slice::from_ref(content),
        Factors::Each(contents) => contents,
    };
    let text = |content: &String| FactorText {
        content: content.clone(),
        text: locate_in(source, factors.span(), content, "factor"),
    };
    contents.iter().map(text).collect()
}

/// The factor of each written term in turn; none where there is none.
fn factors_of_terms(
    factors: &[FactorText],
    for_all: bool,
    terms: usize,
) -> Result<impl Iterator<Item = Option<&FactorText>>, FeatureError> {
    let each = match factors {
        [one] if for_all => vec![one; terms],
        [first, ..] if factors.len() != terms => {
            let message =
                format!("{} factors for {terms} written terms; give one for each, \"\" for none", factors.len());
            return Err(first.text.at(message, 0..first.content.len()));
        }
        _ => factors.iter().collect(),
    };
    Ok(each.into_iter().map(|factor| Some(factor).filter(|factor| !factor.content.trim().is_empty())))
}

fn read_selection(source: &SourceText, keys: &Keys, folder: Option<&Path>) -> Result<Option<Selection>, FeatureError> {
    match (&keys.select, &keys.selected) {
        (Some(_), Some(selected)) => {
            Err(source.error("`select` and `selected` exclude each other", selected.span(), None))
        }
        (Some(file), None) => {
            let path = folder.unwrap_or(Path::new("")).join(file.as_ref());
            match path.is_file() {
                true => Selection::read(&path).map(Some),
                false => {
                    let message = format!("there is no file {}", path.display());
                    let help =
                        "`select` names a file beside this one, with one index a line (fsbench select makes one)";
                    Err(source.error(message, file.span(), Some(help.into())))
                }
            }
        }
        (None, Some(ranges)) => Selection::parse(ranges.as_ref(), locate(source, ranges, "selected")).map(Some),
        (None, None) => Ok(None),
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
