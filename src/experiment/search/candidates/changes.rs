//! The kinds of change, each from an incumbent to changed definitions.

use super::layouts::{KingAxis, Layout, fitted};
use crate::chess::{Mirror, Orientation};
use crate::features::analysis::Budget;
use crate::features::syntax::{self, Axis, AxisKind, BlockExpr, Factor, Letter, ProductBlock, factor_text};
use crate::features::{Composition, FactorCheck, Factors, FeatureSet, Summand, WrittenBlock};
use crate::units::sort_by;

/// A changed incumbent.
pub(super) struct Change {
    pub composition: Composition,
    /// The change in words.
    pub words: String,
}

/// The orientation of the incumbent's first block, in which added expressions see the board.
pub(super) fn orientation(incumbent: &Composition) -> Orientation {
    let first = incumbent.summands.first().and_then(|summand| match summand {
        Summand::Block(block) => Some(block),
        Summand::Selection { blocks, .. } => blocks.first(),
    });
    first.map_or_else(Orientation::default, |block| block.orientation)
}

/// The incumbent with further blocks, without those that it has.
pub(super) fn added(incumbent: &Composition, blocks: &Composition, written: &str) -> Vec<Change> {
    let mut composition = incumbent.clone();
    composition.summands.extend(blocks.summands.iter().filter(|new| !incumbent.summands.contains(new)).cloned());
    changed(incumbent, composition, format!("plus {}", one_line(written)))
}

/// The incumbent on boards mirrored otherwise. Selections stay as they are.
pub(super) fn mirrored(incumbent: &Composition, mirror: Mirror) -> Vec<Change> {
    let words = match mirror {
        Mirror::None => "not mirrored",
        Mirror::KingLeft => "mirrored, own king on the files a to d",
        Mirror::KingRight => "mirrored, own king on the files e to h",
    };
    let mirrored = |block: &WrittenBlock| {
        let orientation = Orientation { mirror, ..block.orientation };
        let fit = |(name, table): (&String, &Vec<i32>)| {
            let is_of_king = readers(block, name).all(|reader| reader == Letter::OWN_KING);
            (name.clone(), if is_of_king { fitted(table, mirror) } else { table.clone() })
        };
        WrittenBlock { orientation, buckets: block.buckets.iter().map(fit).collect(), ..block.clone() }
    };
    changed(incumbent, with_blocks(incumbent, &|_, block| mirrored(block)), words.to_owned())
}

/// The incumbent with a layout of king buckets in all blocks, and where it has several, in each alone.
pub(super) fn with_king_buckets(incumbent: &Composition, layout: &Layout) -> Vec<Change> {
    let refined = |block: &WrittenBlock| king_buckets(block, layout).unwrap_or_else(|| block.clone());
    let mut changes = changed(incumbent, with_blocks(incumbent, &|_, block| refined(block)), layout.words.clone());
    if incumbent.summands.len() > 1 {
        for (at, summand) in incumbent.summands.iter().enumerate() {
            let Summand::Block(block) = summand else { continue };
            let one = |number, block: &WrittenBlock| if number == at { refined(block) } else { block.clone() };
            let words = format!("{} of {}", layout.words, block.text);
            changes.extend(changed(incumbent, with_blocks(incumbent, &one), words));
        }
    }
    changes
}

/// The incumbent with a row for every square of the own king in the first block that can have them; the incumbent
/// itself if it has them. `None` if no block can.
pub(super) fn by_king_square(incumbent: &Composition) -> Option<Composition> {
    let squares = Layout { words: "king squares".into(), axis: KingAxis::Square };
    let refined = |(at, summand): (usize, &Summand)| match summand {
        Summand::Block(block) => Some((at, king_buckets(block, &squares)?)),
        Summand::Selection { .. } => None,
    };
    let (at, block) = incumbent.summands.iter().enumerate().find_map(refined)?;
    let mut composition = incumbent.clone();
    composition.summands[at] = Summand::Block(block);
    Some(composition)
}

/// The incumbent without each of its blocks.
pub(super) fn without_each(incumbent: &Composition) -> Vec<Change> {
    let without = |(at, summand): (usize, &Summand)| {
        let mut composition = incumbent.clone();
        composition.summands.remove(at);
        Change { composition, words: format!("without {}", summand_words(summand)) }
    };
    if incumbent.summands.len() < 2 {
        return Vec::new();
    }
    incumbent.summands.iter().enumerate().map(without).collect()
}

/// A number for every feature of the incumbent; the larger, the more it matters.
pub(super) struct FeatureImportance<'a>(pub &'a [f64]);

impl FeatureImportance<'_> {
    /// The incumbent with `keep` features of each of its larger blocks; of equally important features the first.
    pub(super) fn selected(&self, incumbent: &Composition, keep: u32) -> Vec<Change> {
        let mut first = 0;
        let mut changes = Vec::new();
        for (at, summand) in incumbent.summands.iter().enumerate() {
            let size = summand.size() as usize;
            let own = self.0.get(first..first + size).unwrap_or_default();
            first += size;
            let Summand::Block(block) = summand else { continue };
            if keep as usize >= own.len() {
                continue;
            }
            let mut indices: Vec<u32> = (0..own.len() as u32).collect();
            sort_by(&mut indices, &|a, b| own[*b as usize].total_cmp(&own[*a as usize]).then(a.cmp(b)));
            indices.truncate(keep as usize);
            indices.sort_unstable();
            let mut composition = incumbent.clone();
            composition.summands[at] = Summand::Selection { blocks: vec![block.clone()], indices };
            let words = format!("the {keep} features of greatest importance of {}", block.text);
            changes.push(Change { composition, words });
        }
        changes
    }
}

fn summand_words(summand: &Summand) -> String {
    match summand {
        Summand::Block(block) => block.text.clone(),
        Summand::Selection { blocks, indices } => {
            let texts: Vec<&str> = blocks.iter().map(|block| block.text.as_str()).collect();
            format!("{} features of {}", indices.len(), texts.join(" + "))
        }
    }
}

/// The change, if it is one.
fn changed(incumbent: &Composition, composition: Composition, words: String) -> Vec<Change> {
    let is_changed = composition.summands != incumbent.summands;
    is_changed.then_some(Change { composition, words }).into_iter().collect()
}

/// The incumbent with every block replaced that is no selection; `replace` gets the summand's number.
fn with_blocks(incumbent: &Composition, replace: &dyn Fn(usize, &WrittenBlock) -> WrittenBlock) -> Composition {
    let replaced = |(at, summand): (usize, &Summand)| match summand {
        Summand::Block(block) => Summand::Block(replace(at, block)),
        Summand::Selection { .. } => summand.clone(),
    };
    let summands = incumbent.summands.iter().enumerate().map(replaced).collect();
    Composition { name: incumbent.name.clone(), summands }
}

/// The name of a layout's table in a block.
const TABLE: &str = "layout";
/// Its name where the block has another table of that name.
const OTHER_TABLE: &str = "king-layout";

/// The block with this layout instead of the axis over the own king that it begins with or has among its factors. What
/// all buckets have in common becomes the block's factor. `None` if that is no block.
fn king_buckets(block: &WrittenBlock, layout: &Layout) -> Option<WrittenBlock> {
    let parts = BlockParts::of(block);
    let mut factors = parts.factors.clone();
    let at = parts.king.unwrap_or(0);
    if parts.king.is_some() {
        factors.remove(at);
    }
    let common: Vec<&str> =
        factors.iter().filter(|factor| !factor.has_count).map(|factor| factor.text.as_str()).collect();
    let common = Some(common.join(" * ")).filter(|common| !common.is_empty());
    let mut changed = block.clone();
    let text = |factors: &[FactorPart]| {
        let texts: Vec<&str> = factors.iter().map(|factor| factor.text.as_str()).collect();
        format!("{}{}", texts.join(" * "), parts.tail)
    };
    let without = text(&factors);
    let still_read = WrittenBlock { text: without.clone(), ..block.clone() };
    changed.buckets.retain(|name, _| readers(&still_read, name).next().is_some());
    match &layout.axis {
        KingAxis::Nothing => {
            if factors.is_empty() || parts.king.is_none() {
                return None;
            }
            changed.factor = block.factor.clone().filter(|factor| Some(factor) != common.as_ref());
            changed.text = without;
        }
        axis => {
            let read = match axis {
                KingAxis::Buckets(table) => {
                    let name = if changed.buckets.contains_key(TABLE) { OTHER_TABLE } else { TABLE };
                    changed.buckets.insert(name.to_owned(), fitted(table, block.orientation.mirror));
                    format!("bucket(K, {name})")
                }
                _ => "square(K)".to_owned(),
            };
            factors.insert(at, FactorPart { text: read, has_count: false });
            changed.factor = block.factor.clone().or(common);
            changed.text = text(&factors);
            if block.factor.is_none() && !determines_factor(&changed) {
                changed.factor = None;
            }
        }
    }
    Some(changed)
}

/// Whether it is soon proved that a block's features determine its factor, as trainings ask.
fn determines_factor(block: &WrittenBlock) -> bool {
    let alone = Composition { name: String::new(), summands: vec![Summand::Block(block.clone())] };
    let set = alone.define("").and_then(|definition| FeatureSet::from_definition(&definition.text));
    let check = set.and_then(|set| Factors::within(&set, Budget::QUICK));
    matches!(check, Ok(FactorCheck::Determined(_)))
}

/// A block's text, cut between its factors.
struct BlockParts {
    factors: Vec<FactorPart>,
    /// From ` for` or ` if` on.
    tail: String,
    /// The first factor that is an axis over the own king.
    king: Option<usize>,
}

#[derive(Clone)]
struct FactorPart {
    text: String,
    has_count: bool,
}

impl BlockParts {
    fn of(block: &WrittenBlock) -> BlockParts {
        let product = product_of(&block.text).expect("the text of a block is a product");
        let factors = &product.product.factors;
        let part = |factor: &Factor| FactorPart { text: factor_text(factor), has_count: has_count(factor) };
        let is_king = |factor: &Factor| matches!(factor, Factor::Axis(axis) if is_own_king(axis));
        let parts: Vec<FactorPart> = factors.iter().map(part).collect();
        let length = parts.iter().map(|part| part.text.len()).sum::<usize>() + " * ".len() * (parts.len() - 1);
        BlockParts {
            king: factors.iter().position(is_king),
            tail: block.text.get(length..).unwrap_or_default().to_owned(),
            factors: parts,
        }
    }
}

/// Whether an axis is one that a layout of king buckets replaces.
fn is_own_king(axis: &Axis) -> bool {
    let is_square = matches!(axis.kind, AxisKind::Square | AxisKind::Bucket(_));
    is_square && axis.variable.letter == Letter::OWN_KING && axis.domain.is_none()
}

fn has_count(factor: &Factor) -> bool {
    match factor {
        Factor::Count(_) => true,
        Factor::Sum(products, _) => products.iter().flat_map(|product| &product.factors).any(has_count),
        Factor::Axis(_) | Factor::Difference(..) | Factor::Reserved(..) | Factor::Reach(_) | Factor::Pair(..) => false,
    }
}

/// The block that a text is; `None` without factors.
fn product_of(text: &str) -> Option<Box<ProductBlock>> {
    let terms = syntax::parse(text).unwrap_or_default();
    terms.into_iter().find_map(|term| match term {
        BlockExpr::Product(product) => Some(product),
        BlockExpr::Named { .. } => None,
    })
}

/// The variables of a block, and of its own factor, whose axes read a bucket table.
fn readers(block: &WrittenBlock, table: &str) -> impl Iterator<Item = Letter> {
    let of = |axes: Vec<&Axis>| -> Vec<Letter> {
        let reads = |axis: &&Axis| matches!(&axis.kind, AxisKind::Bucket(name) if name == table);
        axes.into_iter().filter(reads).map(|axis| axis.variable.letter).collect()
    };
    let own = product_of(&block.text).map(|block| of(block.axes())).unwrap_or_default();
    let common = block.factor.as_ref().and_then(|factor| syntax::parse_product(factor).ok());
    own.into_iter().chain(common.map(|product| of(product.axes())).unwrap_or_default())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
