//! Features in words: the axis values of an index, and the squares that an active feature's variables are bound to.

use crate::chess::{Board, Perspective, Square};

use super::reference;
use super::set::FeatureSet;
use super::spec::{AxisSpec, BlockSpec, FactorKind, FactorSpec, ProductSpec};
use super::syntax::value_name;

/// An active feature and one binding that yields it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExplainedFeature {
    /// Index in the set.
    pub index: u32,
    /// `square(P) = e4, role(P) = pawn`, on the oriented board.
    pub values: String,
    /// Squares of the variables in binding order, on the board as played (not oriented).
    pub squares: Vec<Square>,
}

/// The meaning of an index.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FeatureText {
    /// The block's name.
    pub block: String,
    /// `square(P) = e4, role(P) = pawn`, on the oriented board.
    pub values: String,
}

impl FeatureSet {
    /// The feature in words; `None` when the set has no such index.
    ///
    /// ```
    /// let set = fsbench::features::FeatureSet::resolve("file(P) * color(P) for P in pieces")?;
    /// let feature = set.describe(7).expect("the set has 16 features");
    /// assert_eq!(feature.values, "file(P) = d, color(P) = their");
    /// # Ok::<(), fsbench::features::FeatureError>(())
    /// ```
    #[must_use]
    pub fn describe(&self, index: u32) -> Option<FeatureText> {
        let block = self.blocks().iter().find(|block| block.contains(index))?;
        let spec = block.spec();
        let element = match &spec.renumbering {
            None => index.checked_sub(spec.offset)?,
            Some(table) => (0..table.len() as u32).find(|element| spec.index_of(*element) == Some(index))?,
        };
        Some(FeatureText { block: block.name.clone(), values: values(&spec.product, element) })
    }
}

/// A block's active features in ascending order, one entry per binding that yields the feature.
pub fn explain(block: &BlockSpec, board: &Board, pov: Perspective) -> Vec<ExplainedFeature> {
    let Some(own_king) = board.king_of(pov.own()) else { return Vec::new() };
    let mask = block.orientation.mask(own_king, pov);
    let explained = |(element, squares): (u32, Vec<u32>)| {
        let squares = squares.into_iter().map(|square| Square::new(square ^ mask)).collect();
        Some(ExplainedFeature { index: block.index_of(element)?, values: values(&block.product, element), squares })
    };
    let mut features: Vec<ExplainedFeature> =
        reference::elements_by_binding(block, board, pov).into_iter().filter_map(explained).collect();
    features.sort_by(|a, b| (a.index, &a.squares).cmp(&(b.index, &b.squares)));
    features
}

/// The axis values of an element of a product.
fn values(product: &ProductSpec, element: u32) -> String {
    let value = |factor: &FactorSpec| self::value(factor, element / factor.stride % factor.size);
    product.factors.iter().map(value).collect::<Vec<_>>().join(", ")
}

fn value(factor: &FactorSpec, element: u32) -> String {
    match &factor.kind {
        FactorKind::Axis(axis) => format!("{} = {}", factor.name, axis_value(axis, element)),
        FactorKind::Difference(left, _) => {
            format!("{} = {}", factor.name, i64::from(element) - i64::from(left.size()) + 1)
        }
        FactorKind::Reserved | FactorKind::Count(_) => format!("{} = {element}", factor.name),
        FactorKind::Sum(products) => {
            let mut offset = 0;
            for product in products {
                if element - offset < product.size {
                    return values(product, element - offset);
                }
                offset += product.size;
            }
            String::new()
        }
    }
}

fn axis_value(axis: &AxisSpec, element: u32) -> String {
    let plain = axis.domain.as_ref().map_or(element, |domain| domain[element as usize]);
    value_name(&axis.property.kind(), plain)
}
