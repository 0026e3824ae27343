//! Reads definitions: a TOML file or an expression, with the definitions that it names.

#[cfg(feature = "report")]
mod composition;
mod factors;
mod keys;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chess::{BlackOrientation, Mirror, Orientation};
use crate::units::SortedMap;

use super::buckets;
use super::error::{ExpressionText, FeatureError, SourceText};
use super::identity::Identity;
use super::library::{self, DefinitionFile, Siblings, UnknownName};
use super::resolve::{self, BlockSettings, MAX_FEATURES};
use super::selection::Selection;
use super::spec::{BlockSpec, Bucket, Multiplicity};
use super::syntax::{self, AxisKind, BlockExpr, Span, SyntaxError};
#[cfg(feature = "report")]
pub use composition::{Composition, Summand, WrittenBlock};
use factors::{FactorKey, FactorText, factors_of_blocks, read_factors};
use keys::{
    DefinitionKeys, block_keys, check_block_keys, leading_comment, locate, read_selection, remark_unread_tables,
};

/// Deepest nesting of named definitions.
const MAX_NESTING: usize = 32;
/// Most blocks of a set, named definitions expanded.
const MAX_BLOCKS: usize = 4096;

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
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    buckets: SortedMap<String, Vec<i32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<FactorKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<String>,
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    definitions: SortedMap<String, StandaloneDefinition>,
}

impl StandaloneDefinition {
    fn of_expression(features: &str) -> StandaloneDefinition {
        StandaloneDefinition {
            name: None,
            about: None,
            features: features.to_owned(),
            black: BlackOrientation::default(),
            mirror: Mirror::default(),
            multiplicity: Multiplicity::default(),
            buckets: SortedMap::new(),
            factor: None,
            selected: None,
            definitions: SortedMap::new(),
        }
    }

    /// The bucket tables of this definition and of those it names. A table hides those of its name further inside;
    /// several of one name are those of definitions side by side.
    fn tables(&self) -> SortedMap<String, Vec<Vec<i32>>> {
        let mut tables = SortedMap::<String, Vec<Vec<i32>>>::new();
        for (name, table) in self.definitions.iter().flat_map(|(_, definition)| definition.tables()) {
            let known = tables.get_or_default(name);
            known.extend(table);
            known.dedup();
        }
        for (name, table) in &self.buckets {
            tables.insert(name.clone(), vec![table.clone()]);
        }
        tables
    }

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
    /// Warnings about keys that have less effect than they seem to.
    pub remarks: Vec<String>,
    /// The comment at the top of the file, joined to one line.
    pub comment: Option<String>,
}

impl Definition {
    pub fn identity(&self) -> Identity {
        Identity::of(&self.blocks)
    }
}

/// Loads the definition that a request names: the path of a TOML file, a set's name, or an expression. A request can
/// also be the text of a self-contained definition, as [`expression_with_files`] gives.
///
/// # Errors
/// When no set has this name, there is no such file, it cannot be read, or the definition has a mistake.
pub fn load(request: &str) -> Result<Definition, FeatureError> {
    let mut loader = Loader::default();
    let loaded = if let Some(file) = library::find(request) {
        loader.file(&file)?
    } else if library::is_path(request) {
        return Err(library::no_file(request));
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

/// The text of a definition whose features are a selection of those of `whole`, the text of a self-contained definition.
///
/// # Errors
/// When `whole` is no definition.
pub fn of_selection(name: &str, about: Option<&str>, whole: &str, selected: String) -> Result<String, FeatureError> {
    const WHOLE: &str = "whole";
    let source = SourceText::new(name, whole);
    let whole: StandaloneDefinition = keys::read(&source, &keys::parse(&source)?)?;
    let definition = StandaloneDefinition {
        name: Some(name.to_owned()),
        about: about.map(str::to_owned),
        selected: Some(selected),
        definitions: SortedMap::from([(WHOLE.to_owned(), whole)]),
        ..StandaloneDefinition::of_expression(WHOLE)
    };
    Ok(definition.to_toml())
}

/// The definition of output buckets by an expression, which has the bucket tables of `whole`, the text of a
/// self-contained definition, and the orientation of its first block.
///
/// # Errors
/// When the expression has a mistake or is not one block.
pub fn of_bucket_expression(expression: &str, whole: &str) -> Result<Definition, FeatureError> {
    let text = ExpressionText { source: SourceText::new("bucket rule", expression), offset: 0 };
    let terms = syntax::parse(expression).map_err(|error| text.error(error))?;
    let block = match &terms[..] {
        [BlockExpr::Product(block)] => block,
        [BlockExpr::Named { name, span }] => {
            let help = "a bucket rule is `stockfish`, `cpw`, or an expression such as `bucket(K, zones)`";
            let error = SyntaxError::new(format!("`{name}` is no bucket rule"), span.clone()).with_help(help);
            return Err(text.error(error));
        }
        _ => return Err(text.at("a bucket rule is one block, without `+` outside of brackets", 0..expression.len())),
    };
    let source = SourceText::new("definition", whole);
    let whole_set: StandaloneDefinition = keys::read(&source, &keys::parse(&source)?)?;
    let known = whole_set.tables();
    for axis in block.axes() {
        let AxisKind::Bucket(name) = &axis.kind else { continue };
        if known.get(name).is_some_and(|tables| tables.len() > 1) {
            let help = "write them under different names in the set's definition";
            let message = format!("blocks of the set have different bucket tables `{name}`");
            return Err(text.error(SyntaxError::new(message, axis.span.clone()).with_help(help)));
        }
    }
    let tables: SortedMap<String, Vec<i32>> =
        known.into_iter().filter_map(|(name, tables)| Some((name, tables.into_iter().next()?))).collect();
    let orientation = parse(whole)?.blocks.first().map_or_else(Orientation::default, |block| block.orientation);
    let mut buckets = SortedMap::new();
    for (name, table) in &tables {
        let numbers: Vec<i64> = table.iter().map(|number| i64::from(*number)).collect();
        let bucket = buckets::bucket(name, &numbers);
        let bucket = bucket.map_err(|problem| text.at(format!("bucket table `{name}` {problem}"), 0..0))?;
        buckets.insert(name.clone(), Arc::new(bucket));
    }
    let standalone = StandaloneDefinition {
        name: Some(expression.to_owned()),
        about: Some("one feature is active in every position, and its index is the output bucket".to_owned()),
        black: orientation.black,
        mirror: orientation.mirror,
        buckets: tables,
        ..StandaloneDefinition::of_expression(expression)
    };
    let name = expression.to_owned();
    let loaded = Loader::default().blocks(name, standalone, &buckets, &text, &[], NameScope::default())?;
    Ok(loaded.into_definition())
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
    embedded: Option<&'a SortedMap<String, StandaloneDefinition>>,
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
        let standalone = StandaloneDefinition { name: Some(name.clone()), ..StandaloneDefinition::of_expression(text) };
        let expression = ExpressionText { source: SourceText::new("expression", text), offset: 0 };
        let scope = NameScope { embedded: None, siblings };
        self.blocks(name, standalone, &SortedMap::new(), &expression, &[], scope)
    }

    fn text(
        &mut self,
        source: &SourceText,
        siblings: Siblings<'_>,
        default_name: &str,
        author: Author,
    ) -> Result<Loaded, FeatureError> {
        let document = keys::parse(source)?;
        let keys: DefinitionKeys = keys::read(source, &document)?;
        let mirror = keys.mirror.unwrap_or_default();
        let buckets = buckets::read(&keys.buckets, mirror, source, &document)?;
        let name = keys.name.clone().unwrap_or_else(|| default_name.to_owned());
        let expression = locate(source, &document, &keys.features, "features");
        let factors = read_factors(source, &document, keys.factor.as_ref());
        let selection = read_selection(source, &document, &keys, siblings)?;
        let standalone = StandaloneDefinition {
            name: keys.name,
            about: keys.about,
            features: keys.features,
            black: keys.black.unwrap_or_default(),
            mirror,
            multiplicity: keys.multiplicity.unwrap_or_default(),
            buckets: buckets.iter().map(|(name, bucket)| (name.clone(), bucket.table.to_vec())).collect(),
            factor: keys.factor,
            selected: selection.as_ref().map(Selection::ranges),
            definitions: SortedMap::new(),
        };
        let scope = NameScope { embedded: Some(&keys.definitions), siblings };
        let mut loaded = self.blocks(name, standalone, &buckets, &expression, &factors, scope)?;
        loaded.comment = leading_comment(&source.text);
        if author == Author::Person && keys.definitions.is_empty() {
            check_block_keys(source, &block_keys(&document), &mut loaded)?;
            remark_unread_tables(&buckets, &mut loaded);
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
        buckets: &SortedMap<String, Arc<Bucket>>,
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
        let is_cycle = self.open.iter().any(|open| open == key);
        if is_cycle || self.open.len() >= MAX_NESTING {
            let message = if is_cycle {
                "these definitions name each other in a cycle".to_owned()
            } else {
                format!("these definitions are nested more than {MAX_NESTING} deep")
            };
            let error = SyntaxError::new(message, span.clone()).with_help(format!("through {}", self.open.join(", ")));
            return Err(expression.error(error));
        }
        self.open.push(key.to_owned());
        let loaded = read(self);
        self.open.pop();
        loaded
    }
}
