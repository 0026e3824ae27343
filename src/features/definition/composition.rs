//! A definition taken apart into the blocks that it writes, so that they can be changed and written again.

use super::factors::FactorKey;
use super::{Definition, StandaloneDefinition, load, parse};
use crate::chess::Orientation;
use crate::features::error::FeatureError;
use crate::features::selection::ranges;
use crate::features::spec::{BlockSpec, DROPPED, Multiplicity};
use crate::units::SortedMap;

/// A block as a definition writes it, with the settings that apply to it.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenBlock {
    /// The expression, as in `square(P) for P in pieces`.
    pub text: String,
    pub orientation: Orientation,
    pub multiplicity: Multiplicity,
    /// The bucket tables that the block reads.
    pub buckets: SortedMap<String, Vec<i32>>,
    pub factor: Option<String>,
    /// Features before a selection.
    pub size: u32,
}

impl WrittenBlock {
    fn of(spec: &BlockSpec) -> WrittenBlock {
        let tables = spec.buckets().into_iter().map(|bucket| (bucket.name.clone(), bucket.table.to_vec()));
        WrittenBlock {
            text: spec.as_written.clone(),
            orientation: spec.orientation,
            multiplicity: spec.multiplicity,
            buckets: tables.collect(),
            factor: spec.factor.as_ref().map(|factor| factor.expression.clone()),
            size: spec.product.size,
        }
    }

    /// Whether one file can write both blocks: its settings apply to all of its blocks.
    fn fits(&self, other: &WrittenBlock) -> bool {
        let same_table = |(name, table): (&String, &Vec<i32>)| other.buckets.get(name).is_none_or(|own| own == table);
        (self.orientation, self.multiplicity) == (other.orientation, other.multiplicity)
            && self.buckets.iter().all(same_table)
    }
}

/// A summand of a definition.
#[derive(Clone, Debug, PartialEq)]
pub enum Summand {
    Block(WrittenBlock),
    /// Some of the features of blocks.
    Selection {
        blocks: Vec<WrittenBlock>,
        /// The selected features of the blocks side by side, in order.
        indices: Vec<u32>,
    },
}

impl Summand {
    /// Number of features.
    pub fn size(&self) -> u64 {
        match self {
            Summand::Block(block) => u64::from(block.size),
            Summand::Selection { indices, .. } => indices.len() as u64,
        }
    }
}

/// A definition as a list of blocks, whatever files and names it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    pub name: String,
    pub summands: Vec<Summand>,
}

impl Composition {
    /// Takes a definition apart; the request is what the command line takes.
    ///
    /// # Errors
    /// When the request is no definition.
    pub fn load(request: &str) -> Result<Composition, FeatureError> {
        Ok(Composition::of(&load(request)?))
    }

    /// Takes an expression apart whose own blocks see boards in this orientation.
    ///
    /// # Errors
    /// When the expression has a mistake.
    pub fn of_expression(expression: &str, orientation: Orientation) -> Result<Composition, FeatureError> {
        let Orientation { black, mirror } = orientation;
        let written = StandaloneDefinition { black, mirror, ..StandaloneDefinition::of_expression(expression) };
        Ok(Composition::of(&parse(&written.to_toml())?))
    }

    pub fn of(definition: &Definition) -> Composition {
        // The blocks of one selection share their first index.
        let same =
            |a: &BlockSpec, b: &BlockSpec| a.renumbering.is_some() && b.renumbering.is_some() && a.offset == b.offset;
        let summands = definition.blocks.chunk_by(same).map(|specs| match specs {
            [spec] if spec.renumbering.is_none() => Summand::Block(WrittenBlock::of(spec)),
            specs => Summand::Selection {
                blocks: specs.iter().map(WrittenBlock::of).collect(),
                indices: selected_indices(specs),
            },
        });
        Composition { name: definition.name.clone(), summands: summands.collect() }
    }

    /// Number of features.
    pub fn size(&self) -> u64 {
        self.summands.iter().map(Summand::size).sum()
    }

    /// Writes the definition, and reads it to check it.
    ///
    /// # Errors
    /// When the blocks are no definition.
    pub fn define(&self, about: &str) -> Result<Definition, FeatureError> {
        let written = StandaloneDefinition {
            name: Some(self.name.clone()),
            about: Some(about.to_owned()),
            ..sum(&self.summands)
        };
        parse(&written.to_toml())
    }
}

/// The elements of blocks side by side that a selection keeps, in the selection's order.
fn selected_indices(specs: &[BlockSpec]) -> Vec<u32> {
    let mut first = 0;
    let mut selected = Vec::new();
    for spec in specs {
        let renumbered = spec.renumbering.iter().flat_map(|renumbering| renumbering.iter().zip(first..));
        selected.extend(renumbered.filter(|(new, _)| **new != DROPPED).map(|(new, element)| (*new, element)));
        first += spec.product.size;
    }
    selected.sort_unstable();
    selected.into_iter().map(|(_, element)| element).collect()
}

/// The definition of some summands: one file where they have the same settings, else one for each run that has.
fn sum(summands: &[Summand]) -> StandaloneDefinition {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for summand in summands {
        match (summand, parts.last_mut()) {
            (Summand::Block(block), Some(Part::Written(blocks))) if blocks.iter().all(|other| other.fits(block)) => {
                blocks.push(block);
            }
            (Summand::Block(block), _) => parts.push(Part::Written(vec![block])),
            (Summand::Selection { blocks, indices }, _) => parts.push(Part::Selected { blocks, indices }),
        }
    }
    if let [part] = &parts[..] {
        return part.definition();
    }
    let named: Vec<(String, StandaloneDefinition)> =
        parts.iter().zip(1..).map(|(part, number)| (format!("part{number}"), part.definition())).collect();
    let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let features = names.join(" + ");
    StandaloneDefinition { definitions: named.into_iter().collect(), ..StandaloneDefinition::of_expression(&features) }
}

/// Summands that one file writes.
enum Part<'a> {
    Written(Vec<&'a WrittenBlock>),
    Selected { blocks: &'a [WrittenBlock], indices: &'a [u32] },
}

impl Part<'_> {
    fn definition(&self) -> StandaloneDefinition {
        match self {
            Part::Written(blocks) => written(blocks),
            Part::Selected { blocks, indices } => {
                const WHOLE: &str = "whole";
                let whole: Vec<Summand> = blocks.iter().cloned().map(Summand::Block).collect();
                StandaloneDefinition {
                    selected: Some(ranges(indices.iter().copied())),
                    definitions: SortedMap::from([(WHOLE.to_owned(), sum(&whole))]),
                    ..StandaloneDefinition::of_expression(WHOLE)
                }
            }
        }
    }
}

/// The definition that writes blocks of equal settings.
fn written(blocks: &[&WrittenBlock]) -> StandaloneDefinition {
    let texts: Vec<&str> = blocks.iter().map(|block| block.text.as_str()).collect();
    let factors: Vec<&str> = blocks.iter().map(|block| block.factor.as_deref().unwrap_or_default()).collect();
    let factor = match factors[..] {
        [first, ref others @ ..] if others.iter().all(|other| *other == first) => {
            (!first.is_empty()).then(|| FactorKey::ForAll(first.to_owned()))
        }
        _ => Some(FactorKey::PerBlock(factors.into_iter().map(str::to_owned).collect())),
    };
    let mut definition = StandaloneDefinition::of_expression(&texts.join(" + "));
    if let Some(first) = blocks.first() {
        definition.black = first.orientation.black;
        definition.mirror = first.orientation.mirror;
        definition.multiplicity = first.multiplicity;
    }
    for (name, table) in blocks.iter().flat_map(|block| &block.buckets) {
        definition.buckets.insert(name.clone(), table.clone());
    }
    StandaloneDefinition { factor, ..definition }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::definition::shipped;
    use crate::features::{Factors, FeatureSet, shipped_names};

    /// Taken apart and written again, every shipped set is the same set with the same factors.
    #[test]
    fn shipped_sets_stay_the_same() {
        for name in shipped_names() {
            let definition = shipped(name).expect("shipped");
            let composition = Composition::of(&definition);
            let again = composition.define("again").expect("a definition");
            assert_eq!(again.identity(), definition.identity(), "{name}");
            assert_eq!(Composition::of(&again).summands, composition.summands, "{name}");
        }
    }

    #[test]
    fn blocks_of_other_settings_become_definitions() {
        let mut composition = Composition::load("chess768-kb2-hm").expect("shipped");
        for other in ["threat-roles", "chess768-kb4-hm", "top-pp"] {
            composition.summands.extend(Composition::load(other).expect("shipped").summands);
        }
        let definition = composition.define("all").expect("a definition");
        let expected = "chess768-kb2-hm + threat-roles + chess768-kb4-hm + top-pp";
        let expected = FeatureSet::resolve(expected).expect("shipped");
        let set = FeatureSet::from_definition(&definition.text).expect("a definition");
        assert_eq!(set.identity(), expected.identity());
        assert_eq!(Factors::of(&set).expect("determined"), Factors::of(&expected).expect("determined"));
        assert_eq!(Composition::of(&definition), Composition { name: definition.name.clone(), ..composition });
    }
}
