//! The refresh rule: the number of the context for every placement of the kings.

use std::collections::HashMap;

use super::FeaturesWriter;
use super::tables::narrow;
use crate::chess::{BlackOrientation, too_close};
use crate::export::template::TemplateValues;
use crate::features::Block;

/// The context of placements of the kings on the real board, by perspective, own king · 64 + their king. Placements
/// that differ in some block's context have different numbers; adjacent kings may have any.
pub struct Contexts {
    by_pov: [Vec<u32>; 2],
    pub count: usize,
}

impl Contexts {
    pub fn of(blocks: &[&Block]) -> Contexts {
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        let by_pov = [0, 1].map(|pov| {
            let mut numbers = vec![0; 4096];
            let apart = |pair: &u32| !too_close(pair >> 6, pair & 63);
            for pair in (0..4096).filter(apart) {
                let turned = |square: u32, black: BlackOrientation| match (pov, black) {
                    (0, _) => square,
                    (_, BlackOrientation::Flip) => square ^ 56,
                    (_, BlackOrientation::Rotate) => square ^ 63,
                };
                let contexts = blocks.iter().map(|block| {
                    let black = block.spec().orientation.black;
                    block.context_of_kings(turned(pair >> 6, black), turned(pair & 63, black))
                });
                let fresh = known.len() as u32;
                numbers[pair as usize] = *known.entry(contexts.collect()).or_insert(fresh);
            }
            numbers
        });
        Contexts { by_pov, count: known.len() }
    }

    /// The entries by own king alone, if their king makes no difference.
    fn by_own(&self, pov: usize) -> Option<Vec<u32>> {
        let own = |own: u32| {
            let mut entries = (0..64)
                .filter(|their| !too_close(own, *their))
                .map(|their| self.by_pov[pov][(own << 6 | their) as usize]);
            let first = entries.next()?;
            entries.all(|entry| entry == first).then_some(first)
        };
        (0..64).map(own).collect()
    }

    /// A function that gives the context's number.
    pub fn function(&self, writer: &mut FeaturesWriter, name: &str, is_public: bool) -> String {
        let language = writer.language;
        let (entries, is_own) = match [0, 1].map(|pov| self.by_own(pov)) {
            [Some(white), Some(black)] => ([white, black], true),
            _ => (self.by_pov.clone(), false),
        };
        let length = entries[0].len();
        let turn = [56, 63].into_iter().find(|turn| {
            let mask = if is_own { *turn } else { turn << 6 | turn };
            (0..length).all(|at| entries[1][at] == entries[0][at ^ mask])
        });
        let mut values = TemplateValues::default();
        values.flag("public", is_public);
        values.flag("constant", self.count <= 1);
        values.flag("own", is_own);
        values.flag("turned", turn.is_some());
        values.set("FUNCTION", name);
        values.set("TURN", turn.unwrap_or(0));
        values.set("LENGTH", length);
        if self.count > 1 {
            let (numbers, start) = match turn {
                Some(_) => (entries[0].clone(), "The context by "),
                None => (entries.concat(), "The context by perspective and "),
            };
            let place = match (is_own, turn) {
                (true, Some(_)) => "square of the own king, turned for Black.",
                (true, None) => "square of the own king.",
                (false, Some(_)) => "own king * 64 + their king, turned for Black.",
                (false, None) => "own king * 64 + their king.",
            };
            values.set("TABLE", writer.tables.name(language, "CONTEXT", &narrow(&numbers), &format!("{start}{place}")));
        }
        values.render(language.choose(include_str!("context.rs.template"), include_str!("context.c.template")))
    }
}
