//! Programs as C11.

use super::{BitLoop, Dialect, Parameter};
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
            Unary::CountOnes => format!("fsb_popcount({of})"),
            Unary::TrailingZeros => format!("fsb_lsb({of})"),
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

    fn code_on(&self, board: &str, square: &str) -> String {
        format!("fsb_code_on({board}, {})", place(square))
    }

    fn element(&self, array: &str, index: &str, _: usize) -> String {
        format!("{array}[{}]", place(index))
    }

    fn store(&self, array: &str, index: &str, value: &str, width: usize) -> String {
        match width {
            1 => format!("{array}[{}] = (uint8_t){value};", place(index)),
            _ => format!("{array}[{}] = {value};", place(index)),
        }
    }

    fn field(&self, board: &str, field: &str) -> String {
        format!("{board}->{field}")
    }

    fn declare(&self, name: &str, value: &str, is_changed: bool) -> String {
        format!("{}uint64_t {name} = {value};", if is_changed { "" } else { "const " })
    }

    fn assign(&self, name: &str, value: &str) -> String {
        assigned(name, value)
    }

    fn for_bits(&self, left: &str, bits: &str, square: &str) -> BitLoop {
        BitLoop {
            heads: vec![format!("for (uint64_t {left} = {bits}; {left} != 0; {left} &= {left} - 1) {{")],
            square: format!("const uint64_t {square} = fsb_lsb({left});"),
            advance: None,
        }
    }

    fn for_range(&self, number: &str, count: &str) -> String {
        format!("for (uint64_t {number} = 0; {number} < {count}; {number}++) {{")
    }

    fn repeat(&self, number: &str, count: &str) -> String {
        self.for_range(number, count)
    }

    fn if_(&self, condition: &str) -> String {
        format!("if ({condition} != 0) {{")
    }

    fn otherwise(&self) -> String {
        "} else {".to_owned()
    }

    fn append(&self, list: &str, row: &str, condition: Option<&str>, repeats: bool) -> String {
        let by = condition.unwrap_or("1");
        if repeats {
            format!("fsb_append_rare({list}, old_len, {row}, {by});")
        } else {
            format!("fsb_append({list}, {row}, {by});")
        }
    }

    fn begin_repeats(&self, list: &str) -> String {
        format!("const uint32_t old_len = {list}->len;")
    }

    fn by_perspective(&self, [white, black]: &[String; 2]) -> String {
        format!("pov == 0 ? {white} : {black}")
    }

    fn if_perspective(&self, perspective: usize) -> String {
        format!("if (pov == {perspective}) {{")
    }

    fn table(&self, name: &str, table: &Table) -> String {
        let [kind, values] = match table {
            Table::Bytes(values) => ["uint8_t", &joined(values.iter().map(ToString::to_string))],
            Table::Words(values) => ["uint32_t", &joined(values.iter().map(|value| word(*value, "FSB_NONE", "u")))],
            Table::Bitboards(values) => {
                ["uint64_t", &joined(values.iter().map(|value| format!("UINT64_C({value:#x})")))]
            }
        };
        format!("static const {kind} {name}[{}] = {{\n{values}}};\n", table.len().max(1))
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
                Parameter::Active | Parameter::Added | Parameter::Removed => {
                    texts.push(format!("fsb_list *{name}"));
                }
            }
        }
        format!("FSB_INLINE void {name}({}) {{\n", wrapped(&texts, 92))
    }
}

/// An index: a literal needs no type.
fn place(index: &str) -> &str {
    index.strip_prefix("(uint64_t)").unwrap_or(index)
}

/// A number of 32 bits; the greatest one stands for none.
pub(super) fn word(value: u32, none: &str, suffix: &str) -> String {
    if value == u32::MAX { none.to_owned() } else { format!("{value}{suffix}") }
}

/// Numbers in lines of at most 120 columns: of few numbers in columns, sixteen or fewer to the line.
pub(super) fn joined(values: impl Iterator<Item = String>) -> String {
    const MOST_IN_COLUMNS: usize = 1024;
    let mut values: Vec<String> = values.collect();
    if values.is_empty() {
        values.push("0".to_owned());
    }
    let width = values.iter().map(String::len).max().unwrap_or(1);
    let in_line = [16, 8, 4, 2].into_iter().find(|count| count * (width + 2) <= 116).unwrap_or(1);
    let mut lines = String::new();
    if values.len() <= MOST_IN_COLUMNS {
        for line in values.chunks(in_line) {
            let line: Vec<String> = line.iter().map(|value| format!("{value:>width$}")).collect();
            lines += &format!("    {},\n", line.join(", "));
        }
        return lines;
    }
    let mut line = String::new();
    for value in values {
        if line.len() + value.len() > 112 {
            lines += &format!("    {}\n", line.trim_end());
            line.clear();
        }
        line += &value;
        line += ", ";
    }
    lines + &format!("    {}\n", line.trim_end())
}

/// Parameters in one line of at most so many letters, or in a line each.
pub(super) fn wrapped(parameters: &[String], most: usize) -> String {
    let line = parameters.join(", ");
    if line.len() <= most { line } else { format!("\n    {}\n", parameters.join(",\n    ")) }
}

/// An assignment, shortened where a variable is changed by an operator.
pub(super) fn assigned(name: &str, value: &str) -> String {
    for operator in ["&", "|", "^", "+", "-", "*"] {
        if let Some(right) = value.strip_prefix(&format!("{name} {operator} ")) {
            return format!("{name} {operator}= {right};");
        }
    }
    format!("{name} = {value};")
}
