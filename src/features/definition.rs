//! Reads definitions: a TOML file or an expression, with the definitions that it names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::chess::{BlackOrientation, Mirror, Orientation};

use super::buckets::{self, BucketTable};
use super::error::{ExpressionText, FeatureError, SourceText};
use super::library::{self, DefinitionFile, Siblings, UnknownName};
use super::resolve::{self, BlockSettings, MAX_FEATURES};
use super::selection::Selection;
use super::spec::{BlockFactor, BlockSpec, Bucket, Multiplicity};
use super::syntax::{self, BlockExpr, ProductBlock, Span, SyntaxError};

/// Deepest nesting of named definitions.
const MAX_NESTING: usize = 32;
/// Most blocks of a set, named definitions expanded.
const MAX_BLOCKS: usize = 4096;

/// The keys of a definition file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefinitionKeys {
    name: Option<String>,
    about: Option<String>,
    features: Spanned<String>,
    black: Option<Spanned<BlackOrientation>>,
    mirror: Option<Spanned<Mirror>>,
    multiplicity: Option<Spanned<Multiplicity>>,
    #[serde(default)]
    buckets: BTreeMap<String, Spanned<BucketTable>>,
    /// One for all blocks written in the file, or a list with one per block; "" = no factor.
    factor: Option<Spanned<FactorKey>>,
    /// Name of a file of indices.
    select: Option<Spanned<String>>,
    /// The indices as ranges; fsbench writes this key.
    selected: Option<Spanned<String>>,
    /// The definitions that `features` names, so that the text needs no other file; fsbench writes this key.
    #[serde(default)]
    definitions: BTreeMap<String, StandaloneDefinition>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum FactorKey {
    ForAll(String),
    PerBlock(Vec<String>),
}

/// A definition together with the definitions it names, as networks and checkpoints store it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StandaloneDefinition {
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
    factor: Option<FactorKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    definitions: BTreeMap<String, StandaloneDefinition>,
}

impl StandaloneDefinition {
    fn to_toml(&self) -> String {
        toml::to_string(self).expect("strings, numbers and tables are always TOML")
    }
}

/// A resolved definition.
pub struct Definition {
    pub name: String,
    pub about: Option<String>,
    pub blocks: Vec<BlockSpec>,
    /// Number of features.
    pub size: u32,
    /// Its TOML, including the definitions it names.
    pub text: String,
    /// Warnings about keys that affect fewer blocks than they seem to.
    pub remarks: Vec<String>,
    /// The comment at the top of the file, joined to one line.
    pub comment: Option<String>,
}

/// Loads the definition that a request names: the path of a TOML file, a set's name, or an expression. A request can
/// also be the text of a self-contained definition, as [`expression_with_files`] gives.
///
/// # Errors
/// When no set has this name, the file cannot be read, or the definition has a mistake.
pub fn load(request: &str) -> Result<Definition, FeatureError> {
    let mut loader = Loader::default();
    let loaded = if let Some(file) = library::find(request) {
        loader.file(&file)?
    } else if library::is_name(request) || request.ends_with(".toml") {
        let UnknownName { nearest, searched } = library::unknown(request, Siblings::Nothing);
        let name = request.strip_suffix(".toml").unwrap_or(request).to_owned();
        return Err(FeatureError::UnknownSet { name, nearest, searched });
    } else if request.contains('"') {
        // Only TOML has quotes.
        return parse(request);
    } else {
        loader.expression(request, Siblings::Nothing)?
    };
    Ok(loaded.into_definition())
}

/// The self-contained definition of an expression that names files in `folder`, as TOML; `None` if it names none.
///
/// # Errors
/// When the definition has a mistake.
pub fn expression_with_files(expression: &str, folder: &Path) -> Result<Option<String>, FeatureError> {
    let siblings = Siblings::Folder(folder);
    let names_file = |term: &BlockExpr| match term {
        BlockExpr::Named { name, .. } => siblings.named(name).is_some(),
        BlockExpr::Product(_) => false,
    };
    if !syntax::parse(expression).is_ok_and(|terms| terms.iter().any(names_file)) {
        return Ok(None);
    }
    let definition = Loader::default().expression(expression, siblings)?.into_definition();
    Ok(Some(definition.text))
}

/// Loads a shipped definition; the user's `feature_sets` folders are not searched.
///
/// # Errors
/// When no shipped set has this name.
pub fn shipped(name: &str) -> Result<Definition, FeatureError> {
    match library::shipped(name) {
        Some(file) => Loader::default().file(&file).map(Loaded::into_definition),
        None => Err(FeatureError::UnknownSet { name: name.to_owned(), nearest: None, searched: Vec::new() }),
    }
}

/// Reads the text of a definition.
///
/// # Errors
/// When the definition has a mistake.
pub fn parse(text: &str) -> Result<Definition, FeatureError> {
    let source = SourceText::new("definition", text);
    Loader::default().text(&source, Siblings::Nothing, "definition", Author::Program).map(Loaded::into_definition)
}

/// A resolved definition with its self-contained form.
struct Loaded {
    name: String,
    blocks: Vec<BlockSpec>,
    size: u32,
    standalone: StandaloneDefinition,
    remarks: Vec<String>,
    comment: Option<String>,
}

impl Loaded {
    fn into_definition(self) -> Definition {
        let text = self.standalone.to_toml();
        let Loaded { name, blocks, size, standalone, remarks, comment } = self;
        Definition { name, about: standalone.about, blocks, size, text, remarks, comment }
    }
}

/// Reads definitions and, recursively, those they name; detects cycles.
#[derive(Default)]
struct Loader {
    /// Keys of the definitions being read, outermost first.
    open: Vec<String>,
}

/// Where a definition's names are looked up before the `feature_sets` folders.
#[derive(Clone, Copy, Default)]
struct NameScope<'a> {
    embedded: Option<&'a BTreeMap<String, StandaloneDefinition>>,
    siblings: Siblings<'a>,
}

/// Who wrote a definition's text. fsbench spells out every key, so only a person's keys are checked for effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Person,
    Program,
}

impl Loader {
    fn file(&mut self, file: &DefinitionFile) -> Result<Loaded, FeatureError> {
        let source = SourceText::new(file.origin(), &*file.text()?);
        self.text(&source, file.siblings(), file.stem(), Author::Person)
    }

    fn expression(&mut self, text: &str, siblings: Siblings<'_>) -> Result<Loaded, FeatureError> {
        let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let standalone = StandaloneDefinition {
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
        let scope = NameScope { embedded: None, siblings };
        self.blocks(name, standalone, &BTreeMap::new(), &expression, &[], scope)
    }

    fn text(
        &mut self,
        source: &SourceText,
        siblings: Siblings<'_>,
        default_name: &str,
        author: Author,
    ) -> Result<Loaded, FeatureError> {
        let keys: DefinitionKeys = toml::from_str(&source.text).map_err(|error| toml_error(source, &error))?;
        let mirror = keys.mirror.as_ref().map(|mirror| *mirror.as_ref()).unwrap_or_default();
        let buckets = buckets::read(&keys.buckets, mirror, source)?;
        let block_keys = keys.block_keys();
        let name = keys.name.clone().unwrap_or_else(|| default_name.to_owned());
        let expression = locate(source, &keys.features, "features");
        let factors = read_factors(source, keys.factor.as_ref());
        let selection = read_selection(source, &keys, siblings)?;
        let standalone = StandaloneDefinition {
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
        let scope = NameScope { embedded: Some(&keys.definitions), siblings };
        let mut loaded = self.blocks(name, standalone, &buckets, &expression, &factors, scope)?;
        loaded.comment = leading_comment(&source.text);
        if author == Author::Person && keys.definitions.is_empty() {
            check_block_keys(source, &block_keys, &mut loaded)?;
        }
        if let Some(selection) = selection {
            loaded.size = selection.apply(&mut loaded.blocks, u64::from(loaded.size))?;
        }
        Ok(loaded)
    }

    fn blocks(
        &mut self,
        name: String,
        mut standalone: StandaloneDefinition,
        buckets: &BTreeMap<String, Arc<Bucket>>,
        expression: &ExpressionText,
        factors: &[FactorText],
        scope: NameScope<'_>,
    ) -> Result<Loaded, FeatureError> {
        let settings = BlockSettings {
            orientation: Orientation { black: standalone.black, mirror: standalone.mirror },
            multiplicity: standalone.multiplicity,
            buckets,
        };
        let terms = syntax::parse(&standalone.features).map_err(|error| expression.error(error))?;
        let products = terms.iter().filter(|term| matches!(term, BlockExpr::Product(_))).count();
        let mut factors =
            factors_of_blocks(factors, matches!(standalone.factor, Some(FactorKey::ForAll(_))), products)?;
        let mut blocks: Vec<BlockSpec> = Vec::new();
        let mut remarks = Vec::new();
        let mut size = 0u64;
        for (at, term) in terms.iter().enumerate() {
            let (mut added, features, span) = match term {
                BlockExpr::Product(product) => {
                    let label = if products > 1 { format!("{name}#{}", at + 1) } else { name.clone() };
                    let mut block = resolve::block(product, label, &settings).map_err(|e| expression.error(e))?;
                    if let Some(factor) = factors.next().flatten() {
                        block.factor = Some(factor.resolve(product, &settings)?);
                    }
                    let features = block.product.size;
                    (vec![block], features, &product.span)
                }
                BlockExpr::Named { name, span } => {
                    let named = self.named(name, span, expression, scope)?;
                    remarks.extend(named.remarks);
                    standalone.definitions.insert(name.clone(), named.standalone);
                    (named.blocks, named.size, span)
                }
            };
            added.iter_mut().for_each(|block| block.offset = block.offset.saturating_add(size as u32));
            size += u64::from(features);
            blocks.append(&mut added);
            if size > MAX_FEATURES {
                let message = "with this block the set has more than 2^32 − 1 features; indices have 32 bits";
                return Err(expression.at(message, span.clone()));
            }
            if blocks.len() > MAX_BLOCKS {
                return Err(
                    expression.at(format!("with this block the set has more than {MAX_BLOCKS} blocks"), span.clone())
                );
            }
        }
        remarks.dedup();
        Ok(Loaded { name, blocks, size: size as u32, standalone, remarks, comment: None })
    }

    fn named(
        &mut self,
        name: &str,
        span: &Span,
        expression: &ExpressionText,
        scope: NameScope<'_>,
    ) -> Result<Loaded, FeatureError> {
        if let Some(definition) = scope.embedded.and_then(|definitions| definitions.get(name)) {
            let source = SourceText::new(format!("definition {name}"), definition.to_toml());
            // Embedded definitions cannot form a cycle, so each depth is another key, even where a name repeats.
            let key = format!("{name}, embedded {} deep", self.open.len());
            let read = |loader: &mut Loader| loader.text(&source, scope.siblings, name, Author::Program);
            return self.enter(&key, span, expression, read);
        }
        let Some(file) = scope.siblings.named(name).or_else(|| library::find(name)) else {
            let UnknownName { nearest, searched } = library::unknown(name, scope.siblings);
            let help = match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("looked in {}", library::searched_places(&searched)),
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
            let message = "these definitions name each other in a cycle";
            let error = SyntaxError::new(message, span.clone()).with_help(format!("through {}", self.open.join(", ")));
            return Err(expression.error(error));
        }
        self.open.push(key.to_owned());
        let loaded = read(self);
        self.open.pop();
        loaded
    }
}

/// A key that applies to the blocks written in its file.
struct BlockKey {
    name: &'static str,
    span: Span,
}

impl DefinitionKeys {
    fn block_keys(&self) -> Vec<BlockKey> {
        let spans = [
            ("black", self.black.as_ref().map(Spanned::span)),
            ("mirror", self.mirror.as_ref().map(Spanned::span)),
            ("multiplicity", self.multiplicity.as_ref().map(Spanned::span)),
            ("factor", self.factor.as_ref().map(Spanned::span)),
        ];
        spans.into_iter().filter_map(|(name, span)| Some(BlockKey { name, span: span? })).collect()
    }
}

/// Rejects block keys in a file that writes no block; where a file also names definitions, adds a remark that their
/// blocks keep their own settings.
fn check_block_keys(source: &SourceText, keys: &[BlockKey], loaded: &mut Loaded) -> Result<(), FeatureError> {
    let terms = syntax::parse(&loaded.standalone.features).unwrap_or_default();
    let named: Vec<&str> = terms
        .iter()
        .filter_map(|term| match term {
            BlockExpr::Named { name, .. } => Some(name.as_str()),
            BlockExpr::Product(_) => None,
        })
        .collect();
    let Some(first) = keys.first().filter(|_| !named.is_empty()) else { return Ok(()) };
    if named.len() == terms.len() {
        let message = format!("`{}` has no effect here: it applies to blocks written in this file", first.name);
        let help = format!(
            "`features` only names other definitions, and {} keeps its own settings; write the block out, as in \
             `features = \"square(P) * role(P) * color(P) for P in pieces\"`, or set `{}` in the file of {}",
            listed(&named),
            first.name,
            named[0],
        );
        return Err(source.error(message, first.span.clone(), Some(help)));
    }
    let keys: Vec<&str> = keys.iter().map(|key| key.name).collect();
    loaded.remarks.push(format!(
        "{}: {} only to the blocks written in this file; these keep their own settings: {}",
        loaded.name,
        match keys[..] {
            [key] => format!("`{key}` applies"),
            _ => format!("{} apply", listed(&keys)),
        },
        named.join(", "),
    ));
    Ok(())
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The comment lines at the start of a text, joined without their `#`.
fn leading_comment(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    Some(lines.join(" ")).filter(|comment| !comment.is_empty())
}

fn toml_error(source: &SourceText, error: &toml::de::Error) -> FeatureError {
    let span = error.span().unwrap_or(0..0);
    source.error(error.message(), span, None)
}

/// The place of a key's text in its file. A string with escapes has none: errors then show the text alone.
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

/// An entry of the key `factor`.
struct FactorText {
    expression: String,
    text: ExpressionText,
}

impl FactorText {
    fn resolve(&self, block: &ProductBlock, settings: &BlockSettings<'_>) -> Result<BlockFactor, FeatureError> {
        let product = syntax::parse_product(&self.expression);
        let product = product
            .and_then(|product| resolve::factor(block, &product, settings))
            .map_err(|error| self.text.error(error))?;
        Ok(BlockFactor { product, expression: self.expression.clone(), text: self.text.clone() })
    }
}

fn read_factors(source: &SourceText, factors: Option<&Spanned<FactorKey>>) -> Vec<FactorText> {
    let Some(factors) = factors else { return Vec::new() };
    let expressions = match factors.as_ref() {
        FactorKey::ForAll(expression) => std::slice::from_ref(expression),
        FactorKey::PerBlock(expressions) => expressions,
    };
    let text = |expression: &String| FactorText {
        expression: expression.clone(),
        text: locate_in(source, factors.span(), expression, "factor"),
    };
    expressions.iter().map(text).collect()
}

/// The factor of each written block; `None` for a block without one.
fn factors_of_blocks(
    factors: &[FactorText],
    for_all: bool,
    blocks: usize,
) -> Result<impl Iterator<Item = Option<&FactorText>>, FeatureError> {
    let per_block = match factors {
        [one] if for_all => vec![one; blocks],
        [first, ..] if factors.len() != blocks => {
            let message = format!(
                "`factor` lists {} and the file writes {}: give one factor per block, \"\" for a block without",
                quantity(factors.len(), "factor"),
                quantity(blocks, "block"),
            );
            return Err(first.text.at(message, 0..first.expression.len()));
        }
        _ => factors.iter().collect(),
    };
    Ok(per_block.into_iter().map(|factor| Some(factor).filter(|factor| !factor.expression.trim().is_empty())))
}

fn quantity(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn read_selection(
    source: &SourceText,
    keys: &DefinitionKeys,
    siblings: Siblings<'_>,
) -> Result<Option<Selection>, FeatureError> {
    match (&keys.select, &keys.selected) {
        (Some(_), Some(selected)) => {
            Err(source.error("`select` and `selected` cannot be combined", selected.span(), None))
        }
        (Some(file), None) => match siblings.file(file.as_ref()) {
            Some(file) => Selection::read(&file).map(Some),
            None => {
                let message = format!("there is no file {}", siblings.path(file.as_ref()).display());
                let help =
                    "`select` names a file beside this one with one index per line; `fsbench select` writes such files";
                Err(source.error(message, file.span(), Some(help.into())))
            }
        },
        (None, Some(ranges)) => Selection::parse(ranges.as_ref(), locate(source, ranges, "selected")).map(Some),
        (None, None) => Ok(None),
    }
}
