//! Features in words: the axis values of an index, and the squares that an active feature's variables are bound to.

use crate::chess::{Board, Perspective, Square};

use super::reference;
use super::set::{Block, FeatureSet};
use super::spec::{AxisSpec, BlockSpec, ENEMY_KING, FactorKind, FactorSpec, OWN_KING, PairSpec, ProductSpec, Property};
use crate::units::sort_by;

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
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
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

/// A value of an axis: one coordinate of a feature.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisValue {
    /// The axis as written: `square(P)`.
    pub axis: String,
    /// The value's name: `e4`.
    pub value: String,
    /// The value's relation to a square.
    pub place: Place,
    /// Whether the axis reads a king's square.
    pub of_king: bool,
}

/// The plain value of an axis, on the oriented board.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// 0–63
    Square(u32),
    /// 0–7
    File(u32),
    /// 0–7
    Rank(u32),
    /// An axis that names no square, file or rank: its element.
    Other(u32),
}

impl Block {
    /// Every feature of the block: its index in the set and its coordinates, one per axis. Within a bracketed sum, a
    /// feature has the axes of its own summand. Reserved features have fewer.
    pub fn coordinates(&self) -> impl Iterator<Item = (u32, Vec<AxisValue>)> + '_ {
        let spec = self.spec();
        (0..spec.product.size).filter_map(|element| {
            let mut found = Vec::new();
            coordinates(&spec.product, element, &mut found);
            Some((spec.index_of(element)?, found))
        })
    }
}

fn coordinates(product: &ProductSpec, element: u32, found: &mut Vec<AxisValue>) {
    for factor in &product.factors {
        let element = element / factor.stride % factor.size;
        let (place, of_king) = match &factor.kind {
            FactorKind::Reserved => continue,
            FactorKind::Sum(products) => {
                if let Some((product, element)) = summand(products, element) {
                    coordinates(product, element, found);
                }
                continue;
            }
            FactorKind::Axis(axis) => {
                let plain = plain_value(axis, element);
                let place = match axis.property {
                    Property::Square => Place::Square(plain),
                    Property::File => Place::File(plain),
                    Property::Rank => Place::Rank(plain),
                    _ => Place::Other(element),
                };
                (place, [OWN_KING, ENEMY_KING].contains(&axis.slot))
            }
            FactorKind::Difference(..) | FactorKind::Count(_) | FactorKind::Reach(_) | FactorKind::Pair(_) => {
                (Place::Other(element), false)
            }
        };
        found.push(AxisValue { axis: factor.name.clone(), value: value_text(factor, element), place, of_king });
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
    sort_by(&mut features, &|a, b| (a.index, &a.squares).cmp(&(b.index, &b.squares)));
    features
}

/// The axis values of an element of a product.
fn values(product: &ProductSpec, element: u32) -> String {
    let value = |factor: &FactorSpec| self::value(factor, element / factor.stride % factor.size);
    product.factors.iter().map(value).collect::<Vec<_>>().join(", ")
}

fn value(factor: &FactorSpec, element: u32) -> String {
    match &factor.kind {
        FactorKind::Sum(_) => value_text(factor, element),
        _ => format!("{} = {}", factor.name, value_text(factor, element)),
    }
}

/// An element of a factor without the factor's name; of a sum, the values of its summand.
fn value_text(factor: &FactorSpec, element: u32) -> String {
    match &factor.kind {
        FactorKind::Axis(axis) => axis.property.value_name(plain_value(axis, element)),
        FactorKind::Difference(left, _) => (i64::from(element) - i64::from(left.size()) + 1).to_string(),
        FactorKind::Reserved | FactorKind::Count(_) => element.to_string(),
        FactorKind::Reach(reach) => {
            let square = |square: u32| Property::Square.value_name(square);
            let ends =
                |color| reach.ends(element, color).map(|[from, to]| format!("{} to {}", square(from), square(to)));
            match (ends(0), ends(1)) {
                (Some(own), Some(their)) if own != their => format!("{own}, their {their}"),
                (ends, _) => ends.unwrap_or_default(),
            }
        }
        FactorKind::Pair(pair) => {
            let [high, low] = PairSpec::elements(element);
            format!("{} and {}", values(&pair.sides[0], low), values(&pair.sides[1], high))
        }
        FactorKind::Sum(products) => {
            summand(products, element).map_or_else(String::new, |(product, element)| values(product, element))
        }
    }
}

/// The product that an element of a sum belongs to, and its element there.
fn summand(products: &[ProductSpec], mut element: u32) -> Option<(&ProductSpec, u32)> {
    for product in products {
        if element < product.size {
            return Some((product, element));
        }
        element -= product.size;
    }
    None
}

/// The property's own value, before the domain renumbered it.
fn plain_value(axis: &AxisSpec, element: u32) -> u32 {
    axis.domain.as_ref().map_or(element, |domain| domain[element as usize])
}
