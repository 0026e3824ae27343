//! The keys of a definition file, where they stand, and the blocks to which they apply.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::factors::FactorKey;
use super::{Loaded, StandaloneDefinition};
use crate::chess::{BlackOrientation, Mirror};
use crate::features::buckets::BucketTable;
use crate::features::error::{ExpressionText, FeatureError, SourceText};
use crate::features::library::Siblings;
use crate::features::selection::Selection;
use crate::features::spec::{Bucket, Multiplicity};
use crate::features::syntax::{self, BlockExpr, Span};
use crate::json::{ReadError, from_value};
use crate::settings::Document;
use crate::units::SortedMap;

/// The keys of a definition file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DefinitionKeys {
    pub(super) name: Option<String>,
    pub(super) about: Option<String>,
    pub(super) features: String,
    pub(super) black: Option<BlackOrientation>,
    pub(super) mirror: Option<Mirror>,
    pub(super) multiplicity: Option<Multiplicity>,
    #[serde(default)]
    pub(super) buckets: SortedMap<String, BucketTable>,
    /// One for all blocks written in the file, or a list with one per block; "" = no factor.
    pub(super) factor: Option<FactorKey>,
    /// Name of a file of indices.
    pub(super) select: Option<String>,
    /// The indices as ranges; fsbench writes this key.
    pub(super) selected: Option<String>,
    /// The definitions that `features` names, so that the text needs no other file; fsbench writes this key.
    #[serde(default)]
    pub(super) definitions: SortedMap<String, StandaloneDefinition>,
}

/// A key that applies to the blocks written in its file.
pub(super) struct BlockKey {
    name: &'static str,
    span: Span,
}

/// Reads the keys of a definition file.
pub(super) fn read<T: DeserializeOwned>(source: &SourceText, document: &Document) -> Result<T, FeatureError> {
    from_value(document.root(), "").map_err(|ReadError { path, is_key, message, .. }| {
        let span = if is_key { document.span_of_key(&path) } else { document.span_of_value(&path) };
        source.error(message, span, None)
    })
}

/// The block keys that a file has.
pub(super) fn block_keys(document: &Document) -> Vec<BlockKey> {
    let mut keys = Vec::new();
    for name in ["black", "mirror", "multiplicity", "factor"] {
        if document.contains(name) {
            keys.push(BlockKey { name, span: document.span_of_value(name) });
        }
    }
    keys
}

/// Rejects block keys in a file that writes no block; where a file also names definitions, adds a remark that their
/// blocks keep their own settings.
pub(super) fn check_block_keys(
    source: &SourceText,
    keys: &[BlockKey],
    loaded: &mut Loaded,
) -> Result<(), FeatureError> {
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

/// Adds a remark on each bucket table that no block reads.
pub(super) fn remark_unread_tables(tables: &SortedMap<String, Arc<Bucket>>, loaded: &mut Loaded) {
    for (name, table) in tables {
        if !loaded.blocks.iter().any(|block| block.reads_table(table)) {
            let set = &loaded.name;
            let remark = format!("{set}: no block reads the bucket table `{name}`; only a network's bucket rule may");
            loaded.remarks.push(remark);
        }
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The comment lines at the start of a text, joined without their `#`.
pub(super) fn leading_comment(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    Some(lines.join(" ")).filter(|comment| !comment.is_empty())
}

/// Parses a definition file.
pub(super) fn parse(source: &SourceText) -> Result<Document, FeatureError> {
    Document::parse(&source.text).map_err(|error| source.error(error.message(), error.span().unwrap_or(0..0), None))
}

/// The place of a key's text in its file. A string with escapes has none: errors then show the text alone.
pub(super) fn locate(source: &SourceText, document: &Document, content: &str, key: &str) -> ExpressionText {
    let literal = document.span_of_value(key);
    match source.text.get(literal.clone()).and_then(|literal| literal.find(content)) {
        Some(at) => ExpressionText { source: source.clone(), offset: literal.start + at },
        None => {
            let origin = format!("{} ({key})", source.origin);
            ExpressionText { source: SourceText::new(origin, content), offset: 0 }
        }
    }
}

pub(super) fn read_selection(
    source: &SourceText,
    document: &Document,
    keys: &DefinitionKeys,
    siblings: Siblings<'_>,
) -> Result<Option<Selection>, FeatureError> {
    match (&keys.select, &keys.selected) {
        (Some(_), Some(_)) => {
            let span = document.span_of_value("selected");
            Err(source.error("`select` and `selected` cannot be combined", span, None))
        }
        (Some(file), None) => match siblings.file(file) {
            Some(file) => Selection::read(&file).map(Some),
            None => {
                let message = format!("there is no file {}", siblings.path(file).display());
                let help =
                    "`select` names a file beside this one with one index per line; `fsbench select` writes such files";
                Err(source.error(message, document.span_of_value("select"), Some(help.into())))
            }
        },
        (None, Some(ranges)) => Selection::parse(ranges, locate(source, document, ranges, "selected")).map(Some),
        (None, None) => Ok(None),
    }
}
