//! Blocks of single pieces whose index is a number for the own king plus a number for the piece: the sets that most
//! engines have. A move's changes are the features of the pieces that it takes away and brings.

use super::{FeaturePart, FeaturesWriter};
use crate::chess::{BlackOrientation, Mirror};
use crate::export::template::TemplateValues;
use crate::features::Block;
use crate::features::code::Table;
use crate::features::piece_sums::PieceSums;

/// The parts of pieces as numbers by colour and role, and a stride for their squares.
struct ByCode {
    firsts: Vec<Option<u32>>,
    stride: u32,
}

impl ByCode {
    /// `None` if the parts have another form.
    fn of(parts: &[Option<u32>]) -> Option<ByCode> {
        let mut stride = None;
        let mut firsts = Vec::new();
        for code in parts.chunks(64) {
            let squares: Vec<u32> = code.iter().flatten().copied().collect();
            if !squares.is_empty() {
                let own = squares.get(1)?.checked_sub(squares[0]).filter(|own| *own > 0)?;
                let is_linear = squares.windows(2).all(|pair| pair[0] + own == pair[1]);
                if squares.len() < 64 || !is_linear || *stride.get_or_insert(own) != own {
                    return None;
                }
            }
            firsts.push(squares.first().copied());
        }
        Some(ByCode { firsts, stride: stride? })
    }

    /// Whether the parts are the pieces' numbers, colour · 6 + role, times 64 plus their squares.
    fn is_plain(&self) -> bool {
        self.stride == 1 && self.firsts.iter().enumerate().all(|(code, first)| *first == Some(64 * code as u32))
    }
}

/// A table in which no number means none.
fn with_gaps(numbers: &[Option<u32>]) -> Table {
    match numbers.iter().copied().collect::<Option<Vec<u32>>>() {
        // Compared with the constant for none, which is of 32 bits.
        Some(numbers) => Table::Words(numbers.into()),
        None => Table::Words(numbers.iter().map(|number| number.unwrap_or(u32::MAX)).collect()),
    }
}

impl FeaturesWriter {
    /// Writes the block in this form.
    pub(super) fn piece_part<'a>(&mut self, block: &'a Block, sums: &PieceSums) -> FeaturePart<'a> {
        let language = self.language;
        self.parts += 1;
        let name = format!("block_{}", self.parts);
        let mut values = TemplateValues::default();
        values.set("FUNCTION", &name);
        values.set("DOC", language.doc(&block.spec().as_written));
        let orientation = block.spec().orientation;
        values.set("TURN", if orientation.black == BlackOrientation::Flip { 56 } else { 63 });
        let mirrored: u64 = match orientation.mirror {
            Mirror::None => 0,
            Mirror::KingLeft => 0xf0f0_f0f0_f0f0_f0f0,
            Mirror::KingRight => 0x0f0f_0f0f_0f0f_0f0f,
        };
        values.set("MIRRORED", format!("{mirrored:#018x}"));
        let starts: Vec<u32> = sums.starts.iter().flatten().copied().collect();
        let has_kings = sums.has_gaps || starts.iter().any(|start| *start != starts[0]);
        values.flag("kings", has_kings);
        values.flag("gaps", sums.has_gaps);
        if has_kings {
            let about = "The part of an index that the own king decides, by its oriented square.";
            values.set("STARTS", self.tables.name(language, "KING_START", &with_gaps(&sums.starts), about));
        } else {
            values.set("STARTS", starts.first().copied().unwrap_or(0));
        }
        let by_code = ByCode::of(&sums.parts);
        values.flag("table", by_code.is_none());
        values.flag("firsts", by_code.as_ref().is_some_and(|by_code| !by_code.is_plain()));
        values.flag("missing", by_code.as_ref().is_some_and(|by_code| by_code.firsts.contains(&None)));
        let stride = match by_code.as_ref().map_or(1, |by_code| by_code.stride) {
            1 => String::new(),
            stride => format!(" * {stride}{}", language.choose("", "u")),
        };
        values.set("STRIDE", stride);
        let table = match &by_code {
            Some(by_code) if by_code.is_plain() => String::new(),
            Some(by_code) => {
                let about = "Where the indices of a piece begin, by colour (own, their) * 6 + role.";
                self.tables.name(language, "PIECE_START", &with_gaps(&by_code.firsts), about)
            }
            None => {
                let about = "The part of an index that a piece decides, by (colour * 6 + role) * 64 + oriented square.";
                self.tables.name(language, "PIECE_PART", &with_gaps(&sums.parts), about)
            }
        };
        values.set("TABLE", table);
        let template = language.choose(include_str!("pieces.rs.template"), include_str!("pieces.c.template"));
        self.functions.push(values.render(template));
        let call = |pieces: &str, king: &str, list: &str| {
            format!("{}({pieces}, pov, {king}, {list});", language.function(&name))
        };
        let changed = |board: &str, other: &str| {
            let declaration = language.choose("let", "const fsb_board");
            (declaration, format!("{}({board}, {other})", language.function("difference")))
        };
        let king = language.choose("board.king(pov)", "fsb_king(board, pov)");
        let mut before = Vec::new();
        if self.parts == 1 {
            for (name, boards) in [("gone", ["before", "after"]), ("come", ["after", "before"])] {
                let (declaration, value) = changed(boards[0], boards[1]);
                before.push(format!("{declaration} {name} = {value};"));
            }
        }
        FeaturePart {
            blocks: vec![block],
            active: vec![call("board", king, "out")],
            before,
            kept: vec![call("&gone", "kings_before[pov]", "removed"), call("&come", "kings_after[pov]", "added")],
            condition: None,
            any: vec![call("before", "kings_before[pov]", "removed"), call("after", "kings_after[pov]", "added")],
            may_cancel: !sums.is_distinct(),
        }
    }
}
