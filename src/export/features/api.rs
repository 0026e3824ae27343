//! The generated file: its head, the public functions, and everything that they call.

use super::contexts::Contexts;
use super::delta::delta;
use super::dialect::indented;
use super::pieces::mask_call;
use super::{Form, Generator, helpers};
use crate::chess::{Mirror, Orientation};
use crate::export::Language;

const BOARD_RS: &str = include_str!("../prelude/board.rs.txt");
const BOARD_C: &str = include_str!("../prelude/board.c.txt");

pub fn file(generator: &mut Generator<'_>, forms: &[Form]) -> String {
    let language = generator.language;
    let contexts = Contexts::of(generator.set);
    let public = [contexts.function(generator), refresh(language), active(language, forms), delta(language, forms)];
    let public: Vec<String> = public.iter().map(|lines| indented(lines)).collect();
    let functions = &generator.functions;
    let code = [public.join("\n"), functions.join("\n")].concat();
    let helpers = helpers::needed(language, &code);
    let geometry = helpers::geometry(language, &[code.as_str(), helpers.as_str()].concat());
    let mut out = head(generator, contexts.count);
    match language {
        Language::Rust => {
            out += BOARD_RS;
            out += "\n";
            out += &public.join("\n");
            out += "\n";
            out += &functions.join("\n");
            out += "\n";
            out += &helpers;
            out += generator.tables.text();
            out += &geometry;
        }
        Language::C => {
            out += BOARD_C;
            out += "\n";
            out += generator.tables.text();
            out += &geometry;
            out += &helpers;
            out += &functions.join("\n");
            out += "\n";
            out += &public.join("\n");
            out += "\n#endif";
        }
    }
    let mut out = out.trim_end().to_owned();
    out.push('\n');
    out
}

/// The file's purpose, its licence, the definition and the constants.
fn head(generator: &Generator<'_>, contexts: usize) -> String {
    let set = generator.set;
    let language = generator.language;
    let max_active = set.max_active().max(1);
    let title = set.about().map_or_else(|| set.name().to_owned(), |about| format!("{}: {about}", set.name()));
    let mut text = vec![
        format!("The input features {title}."),
        String::new(),
        "Written by `fsbench export` from the definition below. This file belongs to whoever exported it, to use, \
         change and"
            .to_owned(),
        "distribute under any terms, without any warranty. The licence of fsbench does not apply to it.".to_owned(),
        String::new(),
    ];
    text.extend(set.definition().trim_end().lines().flat_map(wrapped).map(|line| format!("    {line}")));
    let quoted = |text: &str| format!("{text:?}");
    match language {
        Language::Rust => {
            let mut out = fenced(&text);
            out += "#![allow(dead_code)]\n\n";
            out += &format!("pub const NAME: &str = {};\n", quoted(set.name()));
            out += &format!("pub const IDENTITY: &str = {};\n", quoted(&set.identity().to_string()));
            out += &format!("pub const NUM_FEATURES: usize = {};\n", set.num_features());
            out += "/// No legal position has more active features in one perspective.\n";
            out += &format!("pub const MAX_ACTIVE: usize = {max_active};\n");
            out += "/// The number of contexts: values of [`context`].\n";
            out += &format!("pub const CONTEXTS: usize = {};\n\n", contexts.max(1));
            out
        }
        Language::C => {
            let mut out = String::from("/*\n");
            for line in &text {
                out += format!(" * {}", line.replace("*/", "* /")).trim_end();
                out.push('\n');
            }
            out += " */\n#ifndef FSB_FEATURES_H\n#define FSB_FEATURES_H\n\n#include <stdbool.h>\n#include <stdint.h>\n\
                #include <string.h>\n\n";
            out += &format!("#define FSB_NAME {}\n", quoted(set.name()));
            out += &format!("#define FSB_IDENTITY {}\n", quoted(&set.identity().to_string()));
            out += &format!("#define FSB_NUM_FEATURES {}u\n", set.num_features());
            out += "/* No legal position has more active features in one perspective. */\n";
            out += &format!("#define FSB_MAX_ACTIVE {max_active}u\n");
            out += "/* The number of contexts: values of fsb_context. */\n";
            out += &format!("#define FSB_CONTEXTS {}u\n\n", contexts.max(1));
            out
        }
    }
}

/// The head as inner documentation, the definition (indented by four) in a fence.
fn fenced(text: &[String]) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in text {
        let code = line.strip_prefix("    ");
        if code.is_some() && !inside {
            out += "//! ```toml\n";
            inside = true;
        }
        out += format!("//! {}", code.unwrap_or(line)).trim_end();
        out.push('\n');
    }
    if inside {
        out += "//! ```\n";
    }
    out
}

/// A long line of the definition (a selection's indices) in several.
fn wrapped(line: &str) -> Vec<String> {
    const WIDTH: usize = 112;
    let mut lines = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = lines.len() - 1;
        if lines[last].len() + word.len() > WIDTH && !lines[last].is_empty() {
            lines.push(String::new());
        }
        let last = lines.len() - 1;
        lines[last] += word;
    }
    lines
}

fn refresh(language: Language) -> Vec<String> {
    let mut lines = language.doc(
        "Whether the contexts of the kings before and after a move differ, so that starting over may be cheaper than \
         a\n\
         delta. Kings: White's and Black's square.",
    );
    lines.extend(
        match language {
            Language::Rust => [
                "pub fn refresh(pov: usize, kings_before: [u32; 2], kings_after: [u32; 2]) -> bool {",
                "let of = |kings: [u32; 2]| context(pov, kings[pov], kings[pov ^ 1]);",
                "of(kings_before) != of(kings_after)",
                "}",
            ],
            Language::C => [
                "static inline bool fsb_refresh(uint32_t pov, const uint32_t kings_before[2], const uint32_t \
                 kings_after[2]) {",
                "return fsb_context(pov, kings_before[pov], kings_before[pov ^ 1])",
                "    != fsb_context(pov, kings_after[pov], kings_after[pov ^ 1]);",
                "}",
            ],
        }
        .map(str::to_owned),
    );
    lines
}

/// The orientations of the forms on oriented boards, without repeats.
pub(super) fn orientations(forms: &[Form]) -> Vec<Orientation> {
    let mut all: Vec<Orientation> = Vec::new();
    for form in forms {
        if let Form::View { orientation, .. } | Form::Threats { orientation, .. } = form
            && !all.contains(orientation)
        {
            all.push(*orientation);
        }
    }
    all
}

pub(super) fn view_name(orientations: &[Orientation], of: Orientation, suffix: &str) -> String {
    let at = orientations.iter().position(|own| *own == of).unwrap_or(0);
    if orientations.len() == 1 { format!("view{suffix}") } else { format!("view_{}{suffix}", at + 1) }
}

/// Makes a view.
pub(super) fn make_view(language: Language, name: &str, board: &str, mask: &str) -> Vec<String> {
    match language {
        Language::Rust => vec![format!("let {name} = View::new({board}, pov, {mask});")],
        Language::C => vec![format!("fsb_view {name};"), format!("fsb_view_of(&{name}, {board}, pov, {mask});")],
    }
}

/// `let name = board.king(pov);`, if something reads it.
pub(super) fn kings(language: Language, names: [&str; 2], is_used: bool) -> Vec<String> {
    let [name, board] = names;
    let line = match language {
        Language::Rust => format!("let {name} = {board}.king(pov);"),
        Language::C => format!("const uint32_t {name} = fsb_king({board}, pov);"),
    };
    if is_used { vec![line] } else { Vec::new() }
}

pub(super) fn has_kings(language: Language, board: &str) -> String {
    match language {
        Language::Rust => format!("{board}.has_kings()"),
        Language::C => language.call("has_kings", &[board]),
    }
}

pub(super) fn reads_own_king(forms: &[Form]) -> bool {
    forms.iter().any(|form| match form {
        Form::Pieces { .. } => true,
        Form::View { orientation, .. } | Form::Threats { orientation, .. } => orientation.mirror != Mirror::None,
    })
}

const EVERY: [&str; 2] = ["!0", "~(uint64_t)0"];

pub(super) fn every(language: Language) -> &'static str {
    EVERY[usize::from(language == Language::C)]
}

fn active(language: Language, forms: &[Form]) -> Vec<String> {
    let mut lines = language.doc(
        "Clears `out` and lists the active features of a board as `pov` sees them. Without both kings there are none.",
    );
    lines.push(match language {
        Language::Rust => "pub fn active(board: &Board, pov: usize, out: &mut List) {".to_owned(),
        Language::C => {
            "static inline void fsb_active(const fsb_board *board, uint32_t pov, fsb_list *out) {".to_owned()
        }
    });
    lines.push(clear(language, "out"));
    if forms.is_empty() {
        lines.extend(unused(language, &["board", "pov"]));
    } else {
        lines.push(language.when(&has_kings(language, "board")));
        lines.extend(append_all(language, forms, "board", "out", ""));
        lines.push("}".to_owned());
    }
    lines.push("}".to_owned());
    lines
}

pub(super) fn clear(language: Language, list: &str) -> String {
    match language {
        Language::Rust => format!("{list}.clear();"),
        Language::C => format!("{list}->len = 0;"),
    }
}

pub(super) fn unused(language: Language, names: &[&str]) -> Vec<String> {
    let line = |name: &&str| match language {
        Language::Rust => format!("let _ = {name};"),
        Language::C => format!("(void){name};"),
    };
    names.iter().map(line).collect()
}

/// Appends the features of all forms.
fn append_all(language: Language, forms: &[Form], board: &str, out: &str, suffix: &str) -> Vec<String> {
    let orientations = orientations(forms);
    let king = format!("king{suffix}");
    let mut lines = kings(language, [&king, board], reads_own_king(forms));
    for orientation in &orientations {
        let name = view_name(&orientations, *orientation, suffix);
        lines.extend(make_view(language, &name, board, &mask_call(language, *orientation, "pov", &king)));
    }
    for form in forms {
        let call = match form {
            Form::Pieces { name, .. } => language.call(name, &[board, "pov", &king, out]),
            Form::View { name, orientation } => {
                let view = format!("&{}", view_name(&orientations, *orientation, suffix));
                language.call(name, &[&view, out])
            }
            Form::Threats { name, orientation } => {
                let view = format!("&{}", view_name(&orientations, *orientation, suffix));
                language.call(name, &[&view, &view, every(language), "0", out])
            }
        };
        lines.push(format!("{call};"));
    }
    lines
}
