//! Definition files: TOML → expression, orientation, buckets; names → other definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::chess::{BlackOrientation, Mirror, Orientation};

use super::buckets::{self, BucketTable};
use super::error::{ExpressionText, FeatureError, SourceText};
use super::library::{self, Beside, Found, Unknown};
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
    black: Option<Spanned<BlackOrientation>>,
    mirror: Option<Spanned<Mirror>>,
    multiplicity: Option<Spanned<Multiplicity>>,
    #[serde(default)]
    buckets: BTreeMap<String, Spanned<BucketTable>>,
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
    black: BlackOrientation,
    #[serde(default)]
    mirror: Mirror,
    #[serde(default)]
    multiplicity: Multiplicity,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    buckets: BTreeMap<String, Vec<i32>>,
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
    /// What is legal in the files and has less effect than it seems.
    pub remarks: Vec<String>,
    /// The comment at the top of the file, on one line.
    pub comment: Option<String>,
}

/// Finds the definition a request names: the path of a TOML file, a bare name, or an expression.
///
/// # Errors
/// When nothing has that name, the file cannot be read, or the definition is wrong.
pub fn load(request: &str) -> Result<Definition, FeatureError> {
    let mut loader = Loader::default();
    let loaded = if let Some(found) = library::find(request) {
        loader.file(&found)?
    } else if library::is_name(request) || request.ends_with(".toml") {
        let Unknown { nearest, searched } = library::unknown(request, Beside::Nothing);
        let name = request.strip_suffix(".toml").unwrap_or(request).to_owned();
        return Err(FeatureError::UnknownSet { name, nearest, searched });
    } else {
        loader.expression(request)?
    };
    Ok(loaded.into_definition())
}

/// The shipped definition of that name, whatever a folder `feature_sets` of the user's holds.
///
/// # Errors
/// When none of that name is shipped.
pub fn shipped(name: &str) -> Result<Definition, FeatureError> {
    match library::shipped(name) {
        Some(found) => Loader::default().file(&found).map(Loaded::into_definition),
        None => Err(FeatureError::UnknownSet { name: name.to_owned(), nearest: None, searched: Vec::new() }),
    }
}

/// Reads a definition's text.
///
/// # Errors
/// When the text is no definition.
pub fn parse(text: &str) -> Result<Definition, FeatureError> {
    let source = SourceText::new("definition", text);
    Loader::default().text(&source, Beside::Nothing, "definition", false).map(Loaded::into_definition)
}

/// A definition and the self-contained form of its text.
struct Loaded {
    name: String,
    blocks: Vec<BlockSpec>,
    size: u32,
    carried: Carried,
    remarks: Vec<String>,
    comment: Option<String>,
}

impl Loaded {
    fn into_definition(self) -> Definition {
        let text = toml::to_string(&self.carried).expect("strings, numbers and tables are always TOML");
        let Loaded { name, blocks, size, carried, remarks, comment } = self;
        Definition { name, about: carried.about, blocks, size, text, remarks, comment }
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
    beside: Beside<'a>,
}

impl Loader {
    fn file(&mut self, file: &Found) -> Result<Loaded, FeatureError> {
        let source = SourceText::new(file.origin(), &*file.text()?);
        self.text(&source, file.beside(), file.stem(), true)
    }

    fn expression(&mut self, text: &str) -> Result<Loaded, FeatureError> {
        let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let carried = Carried {
            name: Some(name.clone()),
            about: None,
            features: text.to_owned(),
            black: BlackOrientation::default(),
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

    /// `written`: by a person, in a file.
    fn text(
        &mut self,
        source: &SourceText,
        beside: Beside<'_>,
        stem: &str,
        written: bool,
    ) -> Result<Loaded, FeatureError> {
        let keys: Keys = toml::from_str(&source.text).map_err(|error| toml_error(source, &error))?;
        let mirror = keys.mirror.as_ref().map(|mirror| *mirror.as_ref()).unwrap_or_default();
        let buckets = buckets::read(&keys.buckets, mirror, source)?;
        let of_blocks = keys.of_blocks();
        let name = keys.name.clone().unwrap_or_else(|| stem.to_owned());
        let expression = locate(source, &keys.features, "features");
        let factors = read_factors(source, keys.factor.as_ref());
        let selection = read_selection(source, &keys, beside)?;
        let carried = Carried {
            name: keys.name,
            about: keys.about,
            features: keys.features.into_inner(),
            black: keys.black.map(Spanned::into_inner).unwrap_or_default(),
            mirror,
            multiplicity: keys.multiplicity.map(Spanned::into_inner).unwrap_or_default(),
            buckets: buckets.iter().map(|(name, bucket)| (name.clone(), bucket.table.to_vec())).collect(),
            factor: keys.factor.map(Spanned::into_inner),
            selected: selection.as_ref().map(Selection::ranges),
            definitions: BTreeMap::new(),
        };
        let neighbours = Neighbours { carried: Some(&keys.definitions), beside };
        let mut loaded = self.blocks(name, carried, &buckets, &expression, &factors, neighbours)?;
        loaded.comment = comment(&source.text);
        // Texts that carry what they name were written by fsbench, every key spelt out.
        if written && keys.definitions.is_empty() {
            remark(source, &of_blocks, &mut loaded)?;
        }
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
        let mut remarks = Vec::new();
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
                    remarks.extend(named.remarks);
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
        remarks.dedup();
        Ok(Loaded { name, blocks, size: size as u32, carried, remarks, comment: None })
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
            return self.enter(&key, span, expression, |loader| loader.text(&source, neighbours.beside, name, false));
        }
        let Some(file) = neighbours.beside.named(name).or_else(|| library::find(name)) else {
            let Unknown { nearest, searched } = library::unknown(name, neighbours.beside);
            let help = match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("names are looked up in {}", library::places(&searched)),
            };
            let error = SyntaxError::new(format!("there is no feature set `{name}`"), span.clone()).with_help(help);
            return Err(expression.error(error));
        };
        self.enter(&file.key(), span, expression, |loader| loader.file(&file))
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

/// A key that holds for the blocks written in its file, and where it stands.
struct KeyOfBlocks {
    name: &'static str,
    span: Span,
}

impl Keys {
    fn of_blocks(&self) -> Vec<KeyOfBlocks> {
        let spans = [
            ("black", self.black.as_ref().map(Spanned::span)),
            ("mirror", self.mirror.as_ref().map(Spanned::span)),
            ("multiplicity", self.multiplicity.as_ref().map(Spanned::span)),
            ("factor", self.factor.as_ref().map(Spanned::span)),
        ];
        spans.into_iter().filter_map(|(name, span)| Some(KeyOfBlocks { name, span: span? })).collect()
    }
}

/// Refuses keys that have no block to hold for, and notes which blocks they leave as they are.
fn remark(source: &SourceText, keys: &[KeyOfBlocks], loaded: &mut Loaded) -> Result<(), FeatureError> {
    let terms = syntax::parse(&loaded.carried.features).unwrap_or_default();
    let named: Vec<&str> = terms
        .iter()
        .filter_map(|term| match term {
            BlockExpr::Named { name, .. } => Some(name.as_str()),
            BlockExpr::Written(_) => None,
        })
        .collect();
    let Some(first) = keys.first().filter(|_| !named.is_empty()) else { return Ok(()) };
    if named.len() == terms.len() {
        let message = format!("`{}` has no effect here: it holds for blocks written in this file", first.name);
        let help = format!(
            "`features` names other definitions alone, and {} keeps its own; write the block out, as in `features = \
             \"square(P) * role(P) * color(P) for P in pieces\"`, or set `{}` in the file of {}",
            listed(&named),
            first.name,
            named[0],
        );
        return Err(source.error(message, first.span.clone(), Some(help)));
    }
    let keys: Vec<&str> = keys.iter().map(|key| key.name).collect();
    loaded.remarks.push(format!(
        "{}: {} for the blocks written in this file and leave{} as {}: {}",
        loaded.name,
        match keys[..] {
            [key] => format!("`{key}` holds"),
            _ => format!("{} hold", keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")),
        },
        if keys.len() == 1 { "s" } else { "" },
        if named.len() == 1 { "it is" } else { "they are" },
        named.join(", "),
    ));
    Ok(())
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The lines before the first key, without their `#`.
fn comment(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    Some(lines.join(" ")).filter(|comment| !comment.is_empty())
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

fn read_selection(source: &SourceText, keys: &Keys, beside: Beside<'_>) -> Result<Option<Selection>, FeatureError> {
    match (&keys.select, &keys.selected) {
        (Some(_), Some(selected)) => {
            Err(source.error("`select` and `selected` exclude each other", selected.span(), None))
        }
        (Some(file), None) => match beside.file(file.as_ref()) {
            Some(found) => Selection::read(&found).map(Some),
            None => {
                let message = format!("there is no file {}", beside.path(file.as_ref()).display());
                let help = "`select` names a file beside this one, with one index a line (fsbench select makes one)";
                Err(source.error(message, file.span(), Some(help.into())))
            }
        },
        (None, Some(ranges)) => Selection::parse(ranges.as_ref(), locate(source, ranges, "selected")).map(Some),
        (None, None) => Ok(None),
    }
}
