//! The key `factor`: factors of the blocks written in a file.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::keys::locate_in;
use crate::features::error::{ExpressionText, FeatureError, SourceText};
use crate::features::resolve::{self, BlockSettings};
use crate::features::spec::BlockFactor;
use crate::features::syntax::{self, ProductBlock};

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

pub(super) fn read_factors(source: &SourceText, factors: Option<&Spanned<FactorKey>>) -> Vec<FactorText> {
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
