//! Blocks of any other form: the programs that fsbench's encoder runs, as functions. A move of at most two pieces away
//! and two to the board is followed by the derived change where there is one; else both boards are encoded and compared.

use super::{FeaturePart, FeaturesWriter};
use crate::export::Language;
use crate::features::Block;
use crate::features::code::{Function, Parameter, Program};
use crate::features::lower::{self, DeltaProgram, EncoderProgram};

const FOLLOW: &str = "The features that a change of the board removes and adds while the context stays.";
const START: &str = "What `follow` keeps of a board.";

/// A program's function.
struct ProgramFunction {
    name: String,
    parameters: Vec<Parameter>,
    scratch: u32,
    repeats: bool,
}

impl ProgramFunction {
    fn has(&self, is: fn(&Parameter) -> bool) -> bool {
        self.parameters.iter().any(is)
    }

    /// A call for one perspective. `argument`: what stands for a parameter.
    fn call(&self, language: Language, pov: usize, argument: &dyn Fn(Parameter) -> &'static str) -> String {
        let mut arguments = Vec::new();
        let mut constant = String::new();
        for parameter in &self.parameters {
            match (parameter, language) {
                (Parameter::Perspective, Language::Rust) => constant = format!("::<{pov}>"),
                (Parameter::Perspective, Language::C) => arguments.push(pov.to_string()),
                (other, _) => arguments.push(argument(*other).to_owned()),
            }
        }
        format!("{}{constant}({});", self.name, arguments.join(", "))
    }
}

/// Lines that are written once for each perspective if they differ.
fn by_perspective(language: Language, lines: &dyn Fn(usize) -> Vec<String>) -> Vec<String> {
    let [white, black] = [0, 1].map(lines);
    if white == black {
        return white;
    }
    let mut out = vec![language.choose("if pov == WHITE {", "if (pov == FSB_WHITE) {").to_owned()];
    out.extend(white);
    out.push("} else {".to_owned());
    out.extend(black);
    out.push("}".to_owned());
    out
}

fn is_list(parameter: &Parameter) -> bool {
    matches!(parameter, Parameter::Active | Parameter::Added | Parameter::Removed)
}

impl FeaturesWriter {
    /// Writes blocks in this form; `None` if they have no features.
    pub(super) fn program_part<'a>(&mut self, blocks: &[&'a Block]) -> Option<FeaturePart<'a>> {
        let language = self.language;
        let encode = self.encoder("encode", blocks)?;
        let DeltaProgram { program, start, compared, may_cancel } = lower::delta(blocks);
        let mut kept = Vec::new();
        if compared.len() < blocks.len()
            && let Some(change) = self.function("follow", &program, false, FOLLOW)
        {
            let start = start.filter(|_| change.parameters.contains(&Parameter::StateBefore));
            let start = start.and_then(|start| self.function("start_state", &start, false, START));
            kept.extend(memory(language, &change, program.state));
            kept.extend(start.map(|start| start.call(language, 0, &|parameter| argument(language, parameter, true))));
            kept.extend(by_perspective(language, &|pov| {
                vec![change.call(language, pov, &|parameter| argument(language, parameter, false))]
            }));
        }
        let compared: Vec<&Block> = compared.into_iter().map(|block| blocks[block]).collect();
        let both = |name: &str| {
            let [before, after] = ["before", "after"].map(|time| format!("&pieces_{time}"));
            vec![format!("{name}({before}, pov, removed);"), format!("{name}({after}, pov, added);")]
        };
        let mut cancels = may_cancel;
        if !kept.is_empty() && !compared.is_empty() {
            let compared = self.encoder("encode_compared", &compared);
            cancels |= compared.is_some();
            kept.extend(compared.iter().flat_map(|name| both(name)));
        }
        let pieces = |name: &str, board: &str| match language {
            Language::Rust => vec![format!("let {name} = Pieces::of({board});")],
            Language::C => vec![format!("fsb_pieces {name};"), format!("fsb_pieces_of(&{name}, {board});")],
        };
        let mut active = pieces("pieces", "board");
        active.push(format!("{encode}(&pieces, pov, out);"));
        let mut before = [pieces("pieces_before", "before"), pieces("pieces_after", "after")].concat();
        let mut condition = None;
        if !kept.is_empty() {
            before.push(language.choose("let mut change = [0; 4];", "uint16_t change[4];").to_owned());
            condition = Some(language.choose(
                "change_of(&pieces_before, &pieces_after, &mut change)",
                "fsb_change_of(&pieces_before, &pieces_after, change)",
            ));
        }
        let any = both(&encode);
        Some(FeaturePart { blocks: blocks.to_vec(), active, kept, condition, before, any, may_cancel: cancels })
    }

    /// Writes a function that appends the active features of blocks; its name, or `None` if there are none.
    fn encoder(&mut self, name: &str, blocks: &[&Block]) -> Option<String> {
        let language = self.language;
        let mut functions = Vec::new();
        for EncoderProgram { program, repeats } in lower::encoders(blocks) {
            let number = functions.len() + 1;
            functions.extend(self.function(&format!("{name}_{number}"), &program, repeats, ""));
        }
        if functions.is_empty() {
            return None;
        }
        let arguments = |parameter: Parameter| match parameter {
            Parameter::Before | Parameter::After => "pieces",
            _ => "out",
        };
        let lines = by_perspective(language, &|pov| {
            let mut lines = Vec::new();
            for function in &functions {
                if function.repeats {
                    lines.push(language.choose("let from = out.len;", "const uint32_t from = out->len;").to_owned());
                }
                lines.push(function.call(language, pov, &arguments));
                if function.repeats {
                    lines.push(format!("{}(out, from);", language.function("drop_repeats")));
                }
            }
            lines
        });
        let name = language.function(name);
        let definitions: Vec<&str> = blocks.iter().map(|block| block.spec().as_written.trim()).collect();
        let mut text = vec![match language {
            Language::Rust => format!("fn {name}(pieces: &Pieces, pov: usize, out: &mut List) {{"),
            Language::C => {
                format!("static inline void {name}(const fsb_pieces *pieces, uint32_t pov, fsb_list *out) {{")
            }
        }];
        if !functions.iter().any(|function| function.has(|parameter| *parameter == Parameter::Perspective)) {
            text.push(language.choose("let _ = pov;", "(void)pov;").to_owned());
        }
        text.extend(lines);
        text.push("}".to_owned());
        self.functions.push(format!("{}\n{}\n", language.doc(&definitions.join("\n+ ")), super::indented(&text, 0)));
        Some(name)
    }

    /// Writes a program as a function; `None` if it does nothing.
    fn function(&mut self, name: &str, program: &Program, repeats: bool, about: &str) -> Option<ProgramFunction> {
        let language = self.language;
        let name = language.function(name);
        let tables: Vec<String> = program.tables.iter().map(|table| self.tables.of_program(language, table)).collect();
        let Function { text, parameters } = language.source().function(program, &name, repeats, &tables);
        let function = ProgramFunction { name, parameters, scratch: program.scratch, repeats };
        let does_something = function.has(|of| is_list(of) || *of == Parameter::StateAfter);
        does_something.then(|| {
            let about = if about.is_empty() { String::new() } else { format!("{}\n", language.doc(about)) };
            self.functions.push(about + &text);
            function
        })
    }
}

/// Declares what a change reads and writes besides lists.
fn memory(language: Language, change: &ProgramFunction, state: u32) -> Vec<String> {
    let mut lines = Vec::new();
    if change.has(|parameter| *parameter == Parameter::Scratch) {
        lines.push(match language {
            Language::Rust => format!("let mut scratch = [0u8; {}];", change.scratch),
            Language::C => format!("uint8_t scratch[{}] = {{0}};", change.scratch),
        });
    }
    for (parameter, name) in [(Parameter::StateBefore, "state_before"), (Parameter::StateAfter, "state_after")] {
        if change.parameters.contains(&parameter) {
            lines.push(match language {
                Language::Rust => format!("let mut {name} = [0u64; {state}];"),
                Language::C => format!("uint64_t {name}[{state}] = {{0}};"),
            });
        }
    }
    lines
}

/// What stands for a parameter in `delta`. `is_start`: of the function that finds the state before.
fn argument(language: Language, parameter: Parameter, is_start: bool) -> &'static str {
    let [rust, c] = match parameter {
        Parameter::Before => ["&pieces_before"; 2],
        Parameter::After => ["&pieces_after"; 2],
        Parameter::Change => ["&change", "change"],
        Parameter::StateAfter if is_start => ["&mut state_before", "state_before"],
        Parameter::StateBefore => ["&state_before", "state_before"],
        Parameter::StateAfter => ["&mut state_after", "state_after"],
        Parameter::Scratch => ["&mut scratch", "scratch"],
        Parameter::Added => ["added"; 2],
        Parameter::Removed | Parameter::Active | Parameter::Perspective => ["removed"; 2],
    };
    language.choose(rust, c)
}
