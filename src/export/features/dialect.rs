//! What Rust and C write differently. Generated statements are lines without indentation; [`indented`] adds it.

use crate::export::Language;

/// The C prefixes of functions and types, and of tables.
const PREFIX: &str = "fsb_";
const TABLE_PREFIX: &str = "FSB_";

/// The number types of generated code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NumberType {
    U8,
    U16,
    U32,
    U64,
    I32,
}

impl NumberType {
    /// The smallest unsigned type for numbers up to `most`.
    pub fn for_values(most: u64) -> NumberType {
        match most {
            0..=0xff => NumberType::U8,
            0x100..=0xffff => NumberType::U16,
            0x1_0000..=0xffff_ffff => NumberType::U32,
            _ => NumberType::U64,
        }
    }
}

/// A parameter of a generated function.
#[derive(Clone, Debug)]
pub enum FunctionParameter {
    Number(String, NumberType),
    /// A colour or perspective: an index.
    Color(&'static str),
    View,
    Out(&'static str),
}

impl Language {
    fn is_rust(self) -> bool {
        self == Language::Rust
    }

    pub fn number(self, number: NumberType) -> &'static str {
        match (self, number) {
            (Language::Rust, NumberType::U8) => "u8",
            (Language::Rust, NumberType::U16) => "u16",
            (Language::Rust, NumberType::U32) => "u32",
            (Language::Rust, NumberType::U64) => "u64",
            (Language::Rust, NumberType::I32) => "i32",
            (Language::C, NumberType::U8) => "uint8_t",
            (Language::C, NumberType::U16) => "uint16_t",
            (Language::C, NumberType::U32) => "uint32_t",
            (Language::C, NumberType::U64) => "uint64_t",
            (Language::C, NumberType::I32) => "int32_t",
        }
    }

    /// A function's name.
    pub fn function(self, name: &str) -> String {
        if self.is_rust() { name.to_owned() } else { format!("{PREFIX}{name}") }
    }

    pub fn call(self, name: &str, arguments: &[&str]) -> String {
        format!("{}({})", self.function(name), arguments.join(", "))
    }

    pub fn table(self, name: &str) -> String {
        if self.is_rust() { name.to_owned() } else { format!("{TABLE_PREFIX}{name}") }
    }

    /// An entry of a table or array, by indices of type `i32`.
    pub fn entry(self, array: &str, indices: &[&str]) -> String {
        let index = |index: &&str| match self {
            Language::Rust if index.bytes().all(|byte| byte.is_ascii_digit()) => format!("[{index}]"),
            Language::Rust if is_simple(index) => format!("[{index} as usize]"),
            Language::Rust => format!("[({index}) as usize]"),
            Language::C => format!("[{index}]"),
        };
        format!("{array}{}", indices.iter().map(index).collect::<String>())
    }

    pub fn cast(self, value: &str, to: NumberType) -> String {
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        match self {
            Language::Rust if digits => value.to_owned(),
            Language::C if digits && to == NumberType::U32 => format!("{value}u"),
            Language::Rust if is_simple(value) => format!("{value} as {}", self.number(to)),
            Language::Rust => format!("({value}) as {}", self.number(to)),
            Language::C if is_simple(value) => format!("({}){value}", self.number(to)),
            Language::C => format!("({})({value})", self.number(to)),
        }
    }

    /// A 64-bit signed value of an `i32`.
    pub fn widened(self, value: &str) -> String {
        match self {
            Language::Rust => format!("i64::from({value})"),
            Language::C => format!("(int64_t)({value})"),
        }
    }

    pub fn unsigned(self, value: u64) -> String {
        if self.is_rust() { value.to_string() } else { format!("{value}u") }
    }

    /// A field of the view.
    pub fn view(self, field: &str) -> String {
        format!("view{}{field}", if self.is_rust() { "." } else { "->" })
    }

    /// The length of an output list.
    pub fn len(self, list: &str) -> String {
        if self.is_rust() { format!("{list}.len") } else { format!("{list}->len") }
    }

    /// `let name = value;` of type `number`.
    pub fn constant(self, name: &str, number: NumberType, value: &str) -> String {
        match self {
            Language::Rust => format!("let {name} = {value};"),
            Language::C => format!("const {} {name} = {value};", self.number(number)),
        }
    }

    pub fn variable(self, name: &str, number: NumberType, value: &str) -> String {
        match self {
            Language::Rust => format!("let mut {name} = {value};"),
            Language::C => format!("{} {name} = {value};", self.number(number)),
        }
    }

    /// `if condition {`.
    pub fn when(self, condition: &str) -> String {
        if self.is_rust() { format!("if {condition} {{") } else { format!("if ({condition}) {{") }
    }

    pub fn minimum(self, a: &str, b: &str) -> String {
        if self.is_rust() { format!("{a}.min({b})") } else { format!("{a} < {b} ? {a} : {b}") }
    }

    pub fn comment(self, text: &str) -> String {
        if self.is_rust() { format!("// {text}") } else { format!("/* {text} */") }
    }

    pub fn doc(self, text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        match (self, &lines[..]) {
            (Language::Rust, _) => lines.iter().map(|line| format!("/// {line}").trim_end().to_owned()).collect(),
            (Language::C, [only]) => vec![format!("/* {only} */")],
            (Language::C, _) => {
                let inner = lines.iter().map(|line| format!(" * {line}").trim_end().to_owned());
                std::iter::once("/*".to_owned()).chain(inner).chain([" */".to_owned()]).collect()
            }
        }
    }

    /// The head of a function for this file alone.
    pub fn head(self, name: &str, parameters: &[FunctionParameter], result: Option<NumberType>) -> String {
        let parameter = |parameter: &FunctionParameter| match (self, parameter) {
            (Language::Rust, FunctionParameter::Number(name, number)) => format!("{name}: {}", self.number(*number)),
            (Language::C, FunctionParameter::Number(name, number)) => format!("{} {name}", self.number(*number)),
            (Language::Rust, FunctionParameter::Color(name)) => format!("{name}: usize"),
            (Language::C, FunctionParameter::Color(name)) => format!("uint32_t {name}"),
            (Language::Rust, FunctionParameter::View) => "view: &View".to_owned(),
            (Language::C, FunctionParameter::View) => "const fsb_view *view".to_owned(),
            (Language::Rust, FunctionParameter::Out(name)) => format!("{name}: &mut List"),
            (Language::C, FunctionParameter::Out(name)) => format!("fsb_list *{name}"),
        };
        let parameters = parameters.iter().map(parameter).collect::<Vec<_>>().join(", ");
        let name = self.function(name);
        match self {
            Language::Rust => {
                let result = result.map_or_else(String::new, |number| format!(" -> {}", self.number(number)));
                format!("fn {name}({parameters}){result} {{")
            }
            Language::C => {
                let result = result.map_or("void", |number| self.number(number));
                format!("static inline {result} {name}({parameters}) {{")
            }
        }
    }

    /// `for name in bits` over the squares of a bitboard.
    pub fn each_square(self, name: &str, bits: &str, body: Vec<String>) -> Vec<String> {
        let used = is_used(name, &body);
        let mut lines = match self {
            Language::Rust => vec![format!("for {}{name} in Bits({bits}) {{", if used { "" } else { "_" })],
            Language::C => {
                let left = format!("{name}_left");
                let mut lines = vec![format!("for (uint64_t {left} = {bits}; {left} != 0; {left} &= {left} - 1) {{")];
                if used {
                    lines.push(format!("const int32_t {name} = (int32_t)fsb_lsb({left});"));
                }
                lines
            }
        };
        lines.extend(body);
        lines.push("}".to_owned());
        lines
    }

    /// `for name in from..to`.
    pub fn each_number(self, name: &str, from: u32, to: u32, body: Vec<String>) -> Vec<String> {
        let head = match self {
            Language::Rust => format!("for {name} in {from}..{to} {{"),
            Language::C => format!("for (int32_t {name} = {from}; {name} < {to}; {name}++) {{"),
        };
        std::iter::once(head).chain(body).chain(["}".to_owned()]).collect()
    }
}

/// A table's entry, `NONE` where there is no number.
pub fn table_or(language: Language, entry: Option<u32>) -> String {
    entry.map_or_else(|| language.table("NONE"), |number| number.to_string())
}

/// Whether a value binds tighter than a cast: a name, a call or an entry.
fn is_simple(value: &str) -> bool {
    let mut depth = 0;
    value.bytes().all(|byte| {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            _ => {}
        }
        depth > 0 || byte.is_ascii_alphanumeric() || b"_)].".contains(&byte)
    }) && !value.starts_with('(')
}

/// Whether a name occurs in the lines as a whole word.
pub fn is_used(name: &str, lines: &[String]) -> bool {
    lines.iter().any(|line| mentions(line, name))
}

/// Whether a name occurs in a text as a whole word.
pub fn mentions(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

/// The lines as text, indented by four spaces per open bracket.
pub fn indented(lines: &[String]) -> String {
    let mut out = String::new();
    let mut depth = 0usize;
    for line in lines {
        if line.starts_with(['}', ']', ')']) {
            depth = depth.saturating_sub(1);
        }
        if !line.is_empty() {
            out += &"    ".repeat(depth);
            out += line;
        }
        out.push('\n');
        if line.ends_with(['{', '[', '(']) {
            depth += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_have_brackets_where_they_need_them() {
        assert_eq!(Language::Rust.cast("p_square", NumberType::U32), "p_square as u32");
        assert_eq!(Language::Rust.cast("a + b", NumberType::U32), "(a + b) as u32");
        assert_eq!(Language::Rust.cast("file(a + b)", NumberType::U32), "file(a + b) as u32");
        assert_eq!(Language::C.cast("(a) + (b)", NumberType::U32), "(uint32_t)((a) + (b))");
        assert_eq!(Language::C.cast("7", NumberType::U32), "7u");
    }

    #[test]
    fn only_whole_words_are_mentioned() {
        assert!(mentions("p_square + 1", "p_square"));
        assert!(!mentions("pp_square + p_squares", "p_square"));
    }
}
