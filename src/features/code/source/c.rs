//! Programs as C11.

use super::{Dialect, Parameter};
use crate::features::code::form::{Binary, Operand, Slider, Table, Unary};

pub(super) struct CDialect;

impl Dialect for CDialect {
    fn literal(&self, value: u64) -> String {
        if value < 1024 { format!("(uint64_t){value}") } else { format!("UINT64_C({value:#x})") }
    }

    fn binary(&self, operator: Binary, left: &str, right: Operand, right_text: &str) -> String {
        let comparison = |sign: &str| format!("(uint64_t)({left} {sign} {right_text})");
        let shift = |sign: &str| match right {
            Operand::Constant(value) => format!("{left} {sign} {}", value & 63),
            Operand::Register(_) => format!("{left} {sign} ({right_text} & 63)"),
        };
        match operator {
            Binary::And => format!("{left} & {right_text}"),
            Binary::Or => format!("{left} | {right_text}"),
            Binary::Xor => format!("{left} ^ {right_text}"),
            Binary::AndNot => format!("{left} & ~{right_text}"),
            Binary::Add => format!("{left} + {right_text}"),
            Binary::Subtract => format!("{left} - {right_text}"),
            Binary::Multiply => format!("{left} * {right_text}"),
            Binary::ShiftLeft => shift("<<"),
            Binary::ShiftRight => shift(">>"),
            Binary::Equal => comparison("=="),
            Binary::NotEqual => comparison("!="),
            Binary::Less => comparison("<"),
            // Signed order is unsigned order with the signs flipped.
            Binary::LessSigned => format!("(uint64_t)(({left} ^ FSB_SIGN) < ({right_text} ^ FSB_SIGN))"),
        }
    }

    fn unary(&self, operator: Unary, of: &str) -> String {
        match operator {
            Unary::Move => of.to_owned(),
            Unary::Not => format!("~{of}"),
            Unary::CountOnes => format!("fsb_count({of})"),
            Unary::TrailingZeros => format!("fsb_lowest({of})"),
            Unary::LeadingZeros => format!("fsb_leading_zeros({of})"),
        }
    }

    fn slide(&self, slider: Slider, square: &str, occupied: &str) -> String {
        let name = match slider {
            Slider::Bishop => "fsb_bishop",
            Slider::Rook => "fsb_rook",
        };
        format!("{name}({square}, {occupied})")
    }

    fn select(&self, condition: &str, yes: &str, no: &str) -> String {
        format!("{condition} != 0 ? {yes} : {no}")
    }

    fn element(&self, array: &str, index: &str, _: usize) -> String {
        format!("{array}[{index}]")
    }

    fn store(&self, array: &str, index: &str, value: &str, width: usize) -> String {
        match width {
            1 => format!("{array}[{index}] = (uint8_t){value};"),
            _ => format!("{array}[{index}] = {value};"),
        }
    }

    fn field(&self, board: &str, field: &str) -> String {
        format!("{board}->{field}")
    }

    fn declare(&self, name: &str, value: &str, is_changed: bool) -> String {
        format!("{}uint64_t {name} = {value};", if is_changed { "" } else { "const " })
    }

    fn assign(&self, name: &str, value: &str) -> String {
        format!("{name} = {value};")
    }

    fn for_bits(&self, left: &str, bits: &str, square: &str) -> [String; 2] {
        [
            format!("for (uint64_t {left} = {bits}; {left} != 0; {left} &= {left} - 1) {{"),
            format!("const uint64_t {square} = fsb_lowest({left});"),
        ]
    }

    fn for_range(&self, number: &str, count: &str) -> String {
        format!("for (uint64_t {number} = 0; {number} < {count}; {number}++) {{")
    }

    fn if_(&self, condition: &str) -> String {
        format!("if ({condition} != 0) {{")
    }

    fn otherwise(&self) -> String {
        "} else {".to_owned()
    }

    fn push(&self, list: &str, row: &str, condition: Option<&str>) -> String {
        let by = condition.map_or_else(|| "1".to_owned(), |condition| format!("(uint32_t){condition}"));
        format!("{list}->index[{list}->len] = (uint32_t){row}; {list}->len += {by};")
    }

    fn by_perspective(&self, [white, black]: &[String; 2]) -> String {
        format!("(pov == 0 ? {white} : {black})")
    }

    fn if_perspective(&self, perspective: usize) -> String {
        format!("if (pov == {perspective}) {{")
    }

    fn table(&self, name: &str, table: &Table) -> String {
        let [kind, values] = match table {
            Table::Bytes(values) => ["uint8_t", &joined(values.iter().map(|value| value.to_string()))],
            Table::Words(values) => ["uint32_t", &joined(values.iter().map(|value| format!("{value}u")))],
            Table::Bitboards(values) => {
                ["uint64_t", &joined(values.iter().map(|value| format!("UINT64_C({value:#x})")))]
            }
        };
        format!("static const {kind} {name}[{}] = {{\n{values}}};\n\n", table.len().max(1))
    }

    fn head(&self, name: &str, parameters: &[Parameter]) -> String {
        let mut texts = Vec::new();
        for parameter in parameters {
            let name = parameter.name();
            match parameter {
                Parameter::Before | Parameter::After => texts.push(format!("const fsb_pieces *{name}")),
                Parameter::Change => texts.push(format!("const uint16_t *{name}")),
                Parameter::StateBefore => texts.push(format!("const uint64_t *{name}")),
                Parameter::StateAfter => texts.push(format!("uint64_t *{name}")),
                Parameter::Scratch => texts.push(format!("uint8_t *{name}")),
                Parameter::Perspective => texts.push(format!("uint32_t {name}")),
                Parameter::Active(_) | Parameter::Added(_) | Parameter::Removed(_) => {
                    texts.push(format!("fsb_rows *{name}"))
                }
            }
        }
        format!("static inline void {name}({}) {{\n", texts.join(", "))
    }
}

/// Numbers in lines of at most 120 columns.
pub(super) fn joined(values: impl Iterator<Item = String>) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for value in values {
        if line.len() + value.len() > 112 {
            lines += &format!("    {}\n", line.trim_end());
            line.clear();
        }
        line += &value;
        line += ", ";
    }
    if line.is_empty() && lines.is_empty() {
        line = "0,".to_owned();
    }
    if !line.is_empty() {
        lines += &format!("    {}\n", line.trim_end());
    }
    lines
}
