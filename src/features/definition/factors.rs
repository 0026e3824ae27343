//! The key `factor`: factors of the blocks written in a file.

use serde::{Deserialize, Serialize};

use super::keys::locate;
use crate::features::error::{ExpressionText, FeatureError, SourceText};
use crate::features::resolve::{self, BlockSettings};
use crate::features::spec::BlockFactor;
use crate::features::syntax::{self, ProductBlock};
use crate::settings::Document;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum FactorKey {
    ForAll(String),
    PerBlock(Vec<String>),
}

/// An entry of the key `factor`.
pub(super) struct FactorText {
    expression: String,
    text: ExpressionText,
}

impl FactorText {
    pub(super) fn resolve(
        &self,
        block: &ProductBlock,
        settings: &BlockSettings<'_>,
    ) -> Result<BlockFactor, FeatureError> {
        let product = syntax::parse_product(&self.expression);
        let product = product
            .and_then(|product| resolve::factor(block, &product, settings))
            .map_err(|error| self.text.error(error))?;
        Ok(BlockFactor { product, expression: self.expression.clone(), text: self.text.clone() })
    }
}

pub(super) fn read_factors(source: &SourceText, document: &Document, factors: Option<&FactorKey>) -> Vec<FactorText> {
    let expressions = match factors {
        Some(FactorKey::ForAll(expression)) => std::slice::from_ref(expression),
        Some(FactorKey::PerBlock(expressions)) => expressions,
        None => &[],
    };
    let text = |expression: &String| FactorText {
        expression: expression.clone(),
        text: locate(source, document, expression, "factor"),
    };
    expressions.iter().map(text).collect()
}

/// The factor of each written block; `None` for a block without one.
pub(super) fn factors_of_blocks(
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
