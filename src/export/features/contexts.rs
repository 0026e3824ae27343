//! The refresh rule: the number of the context for every placement of the kings.

use std::collections::HashMap;

use super::Generator;
use crate::chess::{BlackOrientation, too_close};
use crate::export::Language;
use crate::features::FeatureSet;

/// The context of placements of the kings on the real board, by perspective, own king · 64 + their king. Placements
/// that differ in some block's context have different numbers; adjacent kings may have any.
pub struct Contexts {
    by_pov: [Vec<u32>; 2],
    pub count: usize,
}

impl Contexts {
    pub fn of(set: &FeatureSet) -> Contexts {
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
                let contexts = set.blocks().iter().map(|block| {
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

    /// The public function `context`.
    pub fn function(&self, generator: &mut Generator<'_>) -> Vec<String> {
        let language = generator.language;
        let mut lines = language.doc(
            "The context of two kings, a number below the count of contexts: within a context, a king's move changes\n\
             few features. The kings stand on squares of the real board.",
        );
        lines.push(match language {
            Language::Rust => "pub fn context(pov: usize, own_king: u32, their_king: u32) -> u16 {".to_owned(),
            Language::C => {
                "static inline uint16_t fsb_context(uint32_t pov, uint32_t own_king, uint32_t their_king) {".to_owned()
            }
        });
        let unused = |name: &str| match language {
            Language::Rust => format!("let _ = {name};"),
            Language::C => format!("(void){name};"),
        };
        let own = [0, 1].map(|pov| self.by_own(pov));
        let (entries, index) = match own {
            [Some(white), Some(black)] => {
                lines.push(unused("their_king"));
                ([white, black], "own_king")
            }
            _ => (self.by_pov.clone(), "pair"),
        };
        if self.count <= 1 {
            lines.extend([unused("pov"), unused("own_king")]);
            lines.push(if language == Language::Rust { "0" } else { "return 0;" }.to_owned());
            lines.push("}".to_owned());
            return lines;
        }
        let turn = [56u32, 63].into_iter().find(|turn| {
            let mask = if index == "pair" { turn << 6 | turn } else { *turn };
            (0..entries[0].len()).all(|at| entries[1][at] == entries[0][at ^ mask as usize])
        });
        let numbers = |entries: &[u32]| entries.iter().map(|entry| i64::from(*entry)).collect::<Vec<i64>>();
        let (table, rows) = match turn {
            Some(_) => {
                let about = "The context by oriented square of the own king, before mirroring.";
                let about = if index == "pair" {
                    "The context by own king * 64 + their king, turned for Black."
                } else {
                    about
                };
                (generator.tables.list(language, "context", &numbers(&entries[0]), about), 1)
            }
            None => {
                let both: Vec<u32> = entries.concat();
                let about = "The context by perspective and squares of the kings.";
                (generator.tables.rows(language, "context", 2, &numbers(&both), about), 2)
            }
        };
        let usize_of =
            |text: &str| if language == Language::Rust { format!("({text}) as usize") } else { text.to_owned() };
        let turned = |king: &str| match turn {
            Some(_) => format!("({king} ^ turn) & 63"),
            None => format!("{king} & 63"),
        };
        if let Some(turn) = turn {
            lines.push(match language {
                Language::Rust => format!("let turn = if pov == WHITE {{ 0 }} else {{ {turn} }};"),
                Language::C => format!("const uint32_t turn = pov == FSB_WHITE ? 0 : {turn};"),
            });
        }
        let at = match index {
            "pair" => format!("({}) << 6 | ({})", turned("own_king"), turned("their_king")),
            _ => turned("own_king"),
        };
        let row = if rows == 2 { "[pov]" } else { "" };
        let entry = format!("{}{row}[{}]", table.name, usize_of(&at));
        lines.push(match language {
            Language::Rust => format!("{entry} as u16"),
            Language::C => format!("return {entry};"),
        });
        lines.push("}".to_owned());
        lines
    }
}
