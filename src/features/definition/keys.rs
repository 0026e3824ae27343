//! The keys of a definition file, where they stand, and the blocks to which they apply.

use serde::Deserialize;
use toml::Spanned;

use super::factors::FactorKey;
use super::{Loaded, StandaloneDefinition};
use crate::chess::{BlackOrientation, Mirror};
use crate::features::buckets::BucketTable;
use crate::features::error::{ExpressionText, FeatureError, SourceText};
use crate::features::library::Siblings;
use crate::features::selection::Selection;
use crate::features::spec::Multiplicity;
use crate::features::syntax::{self, BlockExpr, Span};
use crate::units::SortedMap;

/// The keys of a definition file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DefinitionKeys {
    pub(super) name: Option<String>,
    pub(super) about: Option<String>,
    pub(super) features: Spanned<String>,
    pub(super) black: Option<Spanned<BlackOrientation>>,
    pub(super) mirror: Option<Spanned<Mirror>>,
    pub(super) multiplicity: Option<Spanned<Multiplicity>>,
    #[serde(default)]
    pub(super) buckets: SortedMap<String, Spanned<BucketTable>>,
    /// One for all blocks written in the file, or a list with one per block; "" = no factor.
    pub(super) factor: Option<Spanned<FactorKey>>,
    /// Name of a file of indices.
    pub(super) select: Option<Spanned<String>>,
    /// The indices as ranges; fsbench writes this key.
    pub(super) selected: Option<Spanned<String>>,
    /// The definitions that `features` names, so that the text needs no other file; fsbench writes this key.
    #[serde(default)]
    pub(super) definitions: SortedMap<String, StandaloneDefinition>,
}

/// A key that applies to the blocks written in its file.
pub(super) struct BlockKey {
    name: &'static str,
    span: Span,
}

impl DefinitionKeys {
    pub(super) fn block_keys(&self) -> Vec<BlockKey> {
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

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The comment lines at the start of a text, joined without their `#`.
pub(super) fn leading_comment(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    Some(lines.join(" ")).filter(|comment| !comment.is_empty())
}

pub(super) fn toml_error(source: &SourceText, error: &toml::de::Error) -> FeatureError {
    let span = error.span().unwrap_or(0..0);
    source.error(error.message(), span, None)
}

/// The place of a key's text in its file. A string with escapes has none: errors then show the text alone.
pub(super) fn locate(source: &SourceText, value: &Spanned<String>, key: &str) -> ExpressionText {
    locate_in(source, value.span(), value.as_ref(), key)
}

pub(super) fn locate_in(source: &SourceText, literal: Span, content: &str, key: &str) -> ExpressionText {
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
