//! Blocks of single pieces whose index is a part for the own king plus a part for the piece: the sets that most engines
//! have. Their code is one sum, and a move's changes are the features of the pieces that it takes away and brings.

use std::ops::Range;

use super::dialect::{FunctionParameter, NumberType};
use super::evaluate::{has_counts, indices, reads_king};
use super::{Form, Generator};
use crate::chess::{BlackOrientation, Mirror, Orientation};
use crate::export::Language;
use crate::features::Block;
use crate::features::spec::{BlockSpec, ENEMY_KING, Entity, OWN_KING, SourceSpec};

/// A block's index = `kings[own king] + parts[code · 64 + square]`, squares oriented, codes colour · 6 + role.
struct PieceRows {
    /// `None`: no features with the king there.
    kings: Vec<Option<u32>>,
    parts: Vec<Option<u32>>,
}

impl PieceRows {
    /// `None` if the block has another form.
    fn of(spec: &BlockSpec) -> Option<PieceRows> {
        let [binder] = &spec.binders[..] else { return None };
        if binder.source != SourceSpec::Pieces || has_counts(spec) || reads_king(spec, ENEMY_KING) {
            return None;
        }
        let king_squares: Vec<u32> = if reads_king(spec, OWN_KING) {
            (0..64).filter(|square| is_possible(spec.orientation.mirror, *square)).collect()
        } else {
            vec![0]
        };
        let mut kings: Vec<Option<u32>> = vec![None; 64];
        let mut parts: Option<Vec<Option<u32>>> = None;
        for king in king_squares {
            let mut rows = Vec::with_capacity(768);
            for state in 0..768 {
                let mut entities = vec![Entity::bare(0); spec.variables.len()];
                entities[OWN_KING] = Entity { square: king, role: 5, color: 0 };
                entities[ENEMY_KING] = Entity { square: 0, role: 5, color: 1 };
                entities[binder.slot] = Entity { square: state & 63, role: state / 64 % 6, color: state / 384 };
                match indices(spec, &entities)[..] {
                    [] => rows.push(None),
                    [index] => rows.push(Some(index)),
                    _ => return None,
                }
            }
            let Some(least) = rows.iter().flatten().min().copied() else { continue };
            let relative: Vec<Option<u32>> = rows.iter().map(|row| row.map(|row| row - least)).collect();
            if parts.get_or_insert_with(|| relative.clone()) != &relative {
                return None;
            }
            kings[king as usize] = Some(least);
        }
        if !reads_king(spec, OWN_KING) {
            kings = vec![kings[0]; 64];
        }
        Some(PieceRows { kings, parts: parts? })
    }

    /// Whether no two states of pieces share an index.
    fn is_distinct(&self) -> bool {
        let mut rows: Vec<u32> = self.parts.iter().flatten().copied().collect();
        rows.sort_unstable();
        rows.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// part + square · stride for the pieces that have features, if that is their form.
    fn linear(&self) -> Option<Linear> {
        let mut stride = None;
        let mut by_code = Vec::new();
        for code in self.parts.chunks(64) {
            let squares: Vec<u32> = code.iter().flatten().copied().collect();
            if squares.is_empty() {
                by_code.push(None);
                continue;
            }
            if squares.len() < 64 {
                return None;
            }
            let own = squares[1].checked_sub(squares[0])?;
            if *stride.get_or_insert(own) != own
                || squares.windows(2).any(|pair| pair[1].checked_sub(pair[0]) != Some(own))
            {
                return None;
            }
            by_code.push(Some(squares[0]));
        }
        let present: Vec<usize> = (0..12).filter(|code| by_code[*code].is_some()).collect();
        let range = |of: fn(usize) -> usize| {
            let values = present.iter().map(|code| of(*code));
            Some(values.clone().min()?..values.max()? + 1)
        };
        let colors = range(|code| code / 6)?;
        let roles = range(|code| code % 6)?;
        (present.len() == colors.len() * roles.len()).then(|| Linear {
            stride: stride.unwrap_or(0),
            colors,
            roles,
            by_code: by_code.into_iter().map(Option::unwrap_or_default).collect(),
        })
    }
}

struct Linear {
    stride: u32,
    colors: Range<usize>,
    roles: Range<usize>,
    by_code: Vec<u32>,
}

impl Linear {
    /// Factors of colour and role, if the parts are their sum.
    fn factors(&self) -> Option<[u32; 2]> {
        let at = |color: usize, role: usize| self.by_code[color * 6 + role];
        let c = self.colors.start;
        let r = self.roles.start;
        let by_color = if self.colors.len() > 1 { at(c + 1, r).checked_sub(at(c, r))? } else { 0 };
        let by_role = if self.roles.len() > 1 { at(c, r + 1).checked_sub(at(c, r))? } else { 0 };
        let mut codes = self.colors.clone().flat_map(|color| self.roles.clone().map(move |role| (color, role)));
        codes
            .all(|(color, role)| at(color, role) == by_color * color as u32 + by_role * role as u32)
            .then_some([by_color, by_role])
    }
}

fn is_possible(mirror: Mirror, square: u32) -> bool {
    match mirror {
        Mirror::None => true,
        Mirror::KingLeft => square & 7 < 4,
        Mirror::KingRight => square & 7 > 3,
    }
}

/// The call of the function that gives an orientation's mask.
pub fn mask_call(language: Language, orientation: Orientation, pov: &str, king: &str) -> String {
    let turn = match orientation.black {
        BlackOrientation::Flip => "flip_mask",
        BlackOrientation::Rotate => "rotate_mask",
    };
    match orientation.mirror {
        Mirror::None => language.call(turn, &[pov]),
        Mirror::KingLeft => language.call(&format!("{turn}_king_left"), &[pov, king]),
        Mirror::KingRight => language.call(&format!("{turn}_king_right"), &[pov, king]),
    }
}

impl Generator<'_> {
    /// Writes the block in this form, if it has it.
    pub(super) fn piece_block(&mut self, block: &Block) -> Option<Form> {
        let spec = block.spec();
        if block.may_repeat() {
            return None;
        }
        let rows = PieceRows::of(spec)?;
        let name = self.numbered("block");
        let (bucket, base) = self.king_part(&rows, spec.orientation.mirror);
        let lines = self.piece_lines(&name, spec, &rows, bucket.as_deref(), &base);
        self.functions.push(super::dialect::indented(&lines));
        let is_mirrored = spec.orientation.mirror != Mirror::None;
        let key = (bucket.is_some() || is_mirrored).then(|| self.key_function(&name, spec, bucket.as_deref()));
        Some(Form::Pieces { name, key, is_distinct: rows.is_distinct() })
    }

    /// The expressions of the king's bucket on `king ^ mask`, and of the part of the index that it gives.
    fn king_part(&mut self, rows: &PieceRows, mirror: Mirror) -> (Option<String>, String) {
        let language = self.language;
        let known: Vec<u32> = rows.kings.iter().flatten().copied().collect();
        let least = known.iter().min().copied().unwrap_or(0);
        let step = known.iter().fold(0, |step, base| greatest_divisor(step, base - least));
        let plus = |least: u32, text: String| match least {
            0 => text,
            _ => format!("{} + {text}", language.unsigned(least.into())),
        };
        let is_nowhere = |at: usize| rows.kings[at].is_none() && is_possible(mirror, at as u32);
        let has_nowhere = (0..64).any(is_nowhere);
        if step == 0 && !has_nowhere {
            return (None, language.unsigned(least.into()));
        }
        let step_text = language.unsigned(step.into());
        let bucket_of = |base: u32| i64::from((base - least).checked_div(step).unwrap_or(0));
        if rows.kings.iter().enumerate().all(|(at, base)| base.is_some_and(|base| bucket_of(base) == at as i64)) {
            return (Some("king ^ mask".to_owned()), plus(least, format!("bucket * {step_text}")));
        }
        // Squares without features have a number of their own, so that the key changes.
        let nowhere = known.iter().map(|base| bucket_of(*base) + 1).max().unwrap_or(0);
        let entry = |(at, base): (usize, &Option<u32>)| match base {
            Some(base) => bucket_of(*base),
            None if is_nowhere(at) => nowhere,
            None => 0,
        };
        let entries: Vec<i64> = rows.kings.iter().enumerate().map(entry).collect();
        let about = match (has_nowhere, mirror) {
            (true, _) => {
                "The own king's bucket by its oriented square; the last number is for squares without features."
            }
            (false, Mirror::None) => "The own king's bucket by its oriented square.",
            (false, _) => "The own king's bucket by its oriented square; 0 where it cannot stand.",
        };
        let table = self.tables.list(language, "king_bucket", &entries, about);
        let entry = match language {
            Language::Rust => format!("{table}[((king ^ mask) & 63) as usize] as u32"),
            Language::C => format!("{table}[(king ^ mask) & 63u]"),
        };
        match step {
            0 => (Some(entry), language.unsigned(least.into())),
            _ => (Some(entry), plus(least, format!("bucket * {step_text}"))),
        }
    }

    fn piece_lines(
        &mut self,
        name: &str,
        spec: &BlockSpec,
        rows: &PieceRows,
        bucket: Option<&str>,
        base: &str,
    ) -> Vec<String> {
        let language = self.language;
        let mut lines = language.doc(&spec.as_written);
        lines.push(self.piece_head(name));
        lines.push(language.constant("mask", NumberType::U32, &mask_call(language, spec.orientation, "pov", "king")));
        match bucket {
            Some(bucket) if base.contains("bucket") => lines.push(language.constant("bucket", NumberType::U32, bucket)),
            Some(_) => {}
            None if spec.orientation.mirror == Mirror::None => {
                lines.push(if language == Language::Rust { "let _ = king;" } else { "(void)king;" }.to_owned());
            }
            None => {}
        }
        // With the king on such squares there are no features.
        if let Some(nowhere) = self.nowhere(spec, rows) {
            lines.push(nowhere);
            lines.push("return;".to_owned());
            lines.push("}".to_owned());
        }
        match rows.linear() {
            Some(linear) => self.linear_lines(&linear, base, &mut lines),
            None => self.table_lines(rows, base, &mut lines),
        }
        lines.push("}".to_owned());
        lines
    }

    fn piece_head(&self, name: &str) -> String {
        match self.language {
            Language::Rust => format!("fn {name}(pieces: &Board, pov: usize, king: u32, out: &mut List) {{"),
            Language::C => format!(
                "static inline void fsb_{name}(const fsb_board *pieces, uint32_t pov, uint32_t king, fsb_list *out) {{"
            ),
        }
    }

    /// `if …` the king stands where the block has no features, though it can stand there.
    fn nowhere(&mut self, spec: &BlockSpec, rows: &PieceRows) -> Option<String> {
        let language = self.language;
        let without =
            |square: &u32| is_possible(spec.orientation.mirror, *square) && rows.kings[*square as usize].is_none();
        let squares = (0..64).filter(without).fold(0u64, |bits, square| bits | 1 << square);
        (squares != 0).then(|| match language {
            Language::Rust => format!("if {squares:#x}u64 >> ((king ^ mask) & 63) & 1 != 0 {{"),
            Language::C => format!("if (((uint64_t){squares:#x} >> ((king ^ mask) & 63u)) & 1u) {{"),
        })
    }

    fn linear_lines(&mut self, linear: &Linear, base: &str, lines: &mut Vec<String>) {
        let language = self.language;
        let number = |name: &str| match language {
            Language::Rust => format!("{name} as u32"),
            Language::C => name.to_owned(),
        };
        let mut parts: Vec<String> = Vec::new();
        if !["0", "0u"].contains(&base) {
            parts.push(base.to_owned());
        }
        match linear.factors() {
            Some([by_color, by_role]) if by_color == 6 * by_role && by_role > 0 => {
                let factor = language.unsigned(by_role.into());
                parts.push(format!("({} * 6 + {}) * {factor}", number("color"), number("role")));
            }
            Some(factors) => {
                for (factor, name) in factors.into_iter().zip(["color", "role"]).filter(|(factor, _)| *factor > 0) {
                    parts.push(format!("{} * {}", number(name), language.unsigned(factor.into())));
                }
            }
            None => {
                let entries: Vec<i64> = linear.by_code.iter().map(|part| i64::from(*part)).collect();
                let about = "Where a piece's squares begin, by colour (own, their) and role.";
                let table = self.tables.rows(language, "piece_start", 2, &entries, about);
                parts.push(number(&format!("{table}[color][role]")));
            }
        }
        let part = if parts.is_empty() { language.unsigned(0) } else { parts.join(" + ") };
        let square = match (language, linear.stride) {
            (_, 0) => None,
            (Language::Rust, 1) => Some("(square as u32 ^ mask)".to_owned()),
            (Language::Rust, stride) => Some(format!("(square as u32 ^ mask) * {stride}")),
            (Language::C, 1) => Some("((uint32_t)square ^ mask)".to_owned()),
            (Language::C, stride) => Some(format!("((uint32_t)square ^ mask) * {stride}u")),
        };
        if square.is_none() {
            lines.push(if language == Language::Rust { "let _ = mask;" } else { "(void)mask;" }.to_owned());
        }
        let index = match &square {
            Some(square) => format!("part + {square}"),
            None => "part".to_owned(),
        };
        lines.extend(self.over_pieces(
            [linear.colors.clone(), linear.roles.clone()],
            vec![language.constant("part", NumberType::U32, &part)],
            vec![format!("{};", language.call("push", &["out", &index]))],
        ));
    }

    fn table_lines(&mut self, rows: &PieceRows, base: &str, lines: &mut Vec<String>) {
        let language = self.language;
        let has_gaps = rows.parts.iter().any(Option::is_none);
        // 0 where there is no feature, if that happens anywhere.
        let shift = u32::from(has_gaps);
        let entries: Vec<i64> = rows.parts.iter().map(|part| part.map_or(0, |part| i64::from(part + shift))).collect();
        let about = if has_gaps {
            "The piece's part of the index plus one, by colour * 6 + role and oriented square; 0 without a feature."
        } else {
            "The piece's part of the index by colour * 6 + role and oriented square."
        };
        let table = self.tables.rows(language, "piece_part", 12, &entries, about);
        let base = if ["0", "0u"].contains(&base) { String::new() } else { format!("{base} + ") };
        let push = |part: &str| format!("{};", language.call("push", &["out", &format!("{base}{part}")]));
        let entry = match language {
            Language::Rust => format!("{table}[color * 6 + role][(square as u32 ^ mask) as usize] as u32"),
            Language::C => format!("{table}[color * 6 + role][(uint32_t)square ^ mask]"),
        };
        let mut inner = vec![language.constant("part", NumberType::U32, &entry)];
        if has_gaps {
            inner.extend([language.when("part != 0"), push("part - 1"), "}".to_owned()]);
        } else {
            inner.push(push("part"));
        }
        lines.extend(self.over_pieces([0..2, 0..6], Vec::new(), inner));
    }

    fn over_pieces(&self, [colors, roles]: [Range<usize>; 2], head: Vec<String>, inner: Vec<String>) -> Vec<String> {
        let language = self.language;
        let bits = match language {
            Language::Rust => "pieces.pieces[color ^ pov][role]",
            Language::C => "pieces->pieces[color ^ pov][role]",
        };
        let mut body = head;
        body.extend(language.each_square("square", bits, inner));
        for (name, range) in [("role", roles), ("color", colors)] {
            let open = match language {
                Language::Rust => format!("for {name} in {}..{} {{", range.start, range.end),
                Language::C => {
                    format!("for (uint32_t {name} = {}; {name} < {}; {name}++) {{", range.start, range.end)
                }
            };
            body.insert(0, open);
            body.push("}".to_owned());
        }
        body
    }

    /// A number that changes when the king's part or the orientation does.
    fn key_function(&mut self, block: &str, spec: &BlockSpec, bucket: Option<&str>) -> String {
        let language = self.language;
        let name = format!("{block}_key");
        let parameters =
            [FunctionParameter::Color("pov"), FunctionParameter::Number("king".to_owned(), NumberType::U32)];
        let mask = mask_call(language, spec.orientation, "pov", "king");
        let mut lines =
            language.doc(&format!("Unless this changes, the pieces that stay keep their indices in `{block}`."));
        lines.push(language.head(&name, &parameters, Some(NumberType::U32)));
        lines.push(language.constant("mask", NumberType::U32, &mask));
        let value = match bucket {
            Some(bucket) => {
                lines.push(language.constant("bucket", NumberType::U32, bucket));
                format!("bucket * {} + mask", language.unsigned(64))
            }
            None => "mask".to_owned(),
        };
        lines.push(if language == Language::Rust { value } else { format!("return {value};") });
        lines.push("}".to_owned());
        self.functions.push(super::dialect::indented(&lines));
        name
    }
}

const fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}
