//! Programs as Rust.

use super::c::{assigned, joined, word, wrapped};
use super::{BitLoop, Dialect, Parameter};
use crate::features::code::form::{Binary, Operand, Slider, Table, Unary};

pub(super) struct RustDialect;

impl Dialect for RustDialect {
    fn literal(&self, value: u64) -> String {
        if value < 1024 { format!("{value}u64") } else { format!("{value:#x}u64") }
    }

    fn binary(&self, operator: Binary, left: &str, right: Operand, right_text: &str) -> String {
        let comparison = |sign: &str| format!("u64::from({left} {sign} {right_text})");
        let shift = |sign: &str| match right {
            Operand::Constant(value) => format!("{left} {sign} {}", value & 63),
            Operand::Register(_) => format!("{left} {sign} ({right_text} & 63)"),
        };
        match operator {
            Binary::And => format!("{left} & {right_text}"),
            Binary::Or => format!("{left} | {right_text}"),
            Binary::Xor => format!("{left} ^ {right_text}"),
            Binary::AndNot => format!("{left} & !{right_text}"),
            Binary::Add => format!("{left}.wrapping_add({right_text})"),
            Binary::Subtract => format!("{left}.wrapping_sub({right_text})"),
            Binary::Multiply => format!("{left}.wrapping_mul({right_text})"),
            Binary::ShiftLeft => shift("<<"),
            Binary::ShiftRight => shift(">>"),
            Binary::Equal => comparison("=="),
            Binary::NotEqual => comparison("!="),
            Binary::Less => comparison("<"),
            Binary::LessSigned => format!("u64::from(({left} as i64) < {right_text} as i64)"),
        }
    }

    fn unary(&self, operator: Unary, of: &str) -> String {
        match operator {
            Unary::Move => of.to_owned(),
            Unary::Not => format!("!{of}"),
            Unary::CountOnes => format!("u64::from({of}.count_ones())"),
            Unary::TrailingZeros => format!("u64::from({of}.trailing_zeros())"),
            Unary::LeadingZeros => format!("u64::from({of}.leading_zeros())"),
        }
    }

    fn slide(&self, slider: Slider, square: &str, occupied: &str) -> String {
        let name = match slider {
            Slider::Bishop => "bishop",
            Slider::Rook => "rook",
        };
        format!("{name}({square}, {occupied})")
    }

    fn select(&self, condition: &str, yes: &str, no: &str) -> String {
        format!("if {condition} != 0 {{ {yes} }} else {{ {no} }}")
    }

    fn code_on(&self, board: &str, square: &str) -> String {
        format!("{board}.code_on({square})")
    }

    fn element(&self, array: &str, index: &str, width: usize) -> String {
        let element = format!("{array}[{}]", place(index));
        if width == 8 { element } else { format!("u64::from({element})") }
    }

    fn store(&self, array: &str, index: &str, value: &str, width: usize) -> String {
        let value = if width == 1 { format!("{value} as u8") } else { value.to_owned() };
        format!("{array}[{}] = {value};", place(index))
    }

    fn field(&self, board: &str, field: &str) -> String {
        format!("{board}.{field}")
    }

    fn declare(&self, name: &str, value: &str, is_changed: bool) -> String {
        format!("let {}{name} = {value};", if is_changed { "mut " } else { "" })
    }

    fn assign(&self, name: &str, value: &str) -> String {
        assigned(name, value)
    }

    fn for_bits(&self, left: &str, bits: &str, square: &str) -> BitLoop {
        BitLoop {
            heads: vec![format!("let mut {left} = {bits};"), format!("while {left} != 0 {{")],
            square: format!("let {square} = u64::from({left}.trailing_zeros());"),
            advance: Some(format!("{left} &= {left} - 1;")),
        }
    }

    fn for_range(&self, number: &str, count: &str) -> String {
        format!("for {number} in 0..{count} {{")
    }

    fn repeat(&self, _: &str, count: &str) -> String {
        self.for_range("_", count)
    }

    fn if_(&self, condition: &str) -> String {
        format!("if {condition} != 0 {{")
    }

    fn otherwise(&self) -> String {
        "} else {".to_owned()
    }

    fn append(&self, list: &str, row: &str, condition: Option<&str>, repeats: bool) -> String {
        let by = condition.unwrap_or("1");
        if repeats {
            format!("{list}.append_rare(old_len, {row}, {by});")
        } else {
            format!("{list}.append({row}, {by});")
        }
    }

    fn begin_repeats(&self, list: &str) -> String {
        format!("let old_len = {list}.len;")
    }

    fn by_perspective(&self, [white, black]: &[String; 2]) -> String {
        format!("if POV == 0 {{ {white} }} else {{ {black} }}")
    }

    fn if_perspective(&self, perspective: usize) -> String {
        format!("if POV == {perspective} {{")
    }

    fn table(&self, name: &str, table: &Table) -> String {
        let [kind, values] = match table {
            Table::Bytes(values) => ["u8", &joined(values.iter().map(ToString::to_string))],
            Table::Words(values) => ["u32", &joined(values.iter().map(|value| word(*value, "NONE", "")))],
            Table::Bitboards(values) => ["u64", &joined(values.iter().map(|value| format!("{value:#x}")))],
        };
        format!("#[rustfmt::skip]\nstatic {name}: [{kind}; {}] = [\n{values}];\n", table.len().max(1))
    }

    fn head(&self, name: &str, parameters: &[Parameter]) -> String {
        let mut texts = Vec::new();
        for parameter in parameters {
            let name = parameter.name();
            match parameter {
                Parameter::Before | Parameter::After => texts.push(format!("{name}: &Pieces")),
                Parameter::Change => texts.push(format!("{name}: &[u16; 4]")),
                Parameter::StateBefore => texts.push(format!("{name}: &[u64]")),
                Parameter::StateAfter => texts.push(format!("{name}: &mut [u64]")),
                Parameter::Scratch => texts.push(format!("{name}: &mut [u8]")),
                Parameter::Perspective => {}
                Parameter::Active | Parameter::Added | Parameter::Removed => {
                    texts.push(format!("{name}: &mut List"));
                }
            }
        }
        let constant = if parameters.contains(&Parameter::Perspective) { "<const POV: usize>" } else { "" };
        format!("#[rustfmt::skip]\n#[allow(unused_assignments)]\nfn {name}{constant}({}) {{\n", wrapped(&texts, 90))
    }
}

/// An index: a literal loses its type.
fn place(index: &str) -> String {
    match index.strip_suffix("u64") {
        Some(literal) => literal.to_owned(),
        None => format!("{index} as usize"),
    }
}
