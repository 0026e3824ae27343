//! The generated file: its head, the public functions, and everything that they call.

use super::contexts::Contexts;
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

/// What the file is, its licence, the definition and the constants.
fn head(generator: &Generator<'_>, contexts: usize) -> String {
    let (set, language) = (generator.set, generator.language);
    let max_active = set.max_active().max(1);
    let title = set.about().map_or_else(|| set.name().to_owned(), |about| format!("{}: {about}", set.name()));
    let mut text = vec![
        format!("The input features {title}."),
        String::new(),
        "Written by `fsbench export` from the definition below. This file belongs to whoever exported it, to use, change and".to_owned(),
        "distribute under any terms, without any warranty. The licence of fsbench does not apply to it.".to_owned(),
        String::new(),
    ];
    text.extend(set.definition().trim_end().lines().flat_map(|line| wrapped(line)).map(|line| format!("    {line}")));
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
            out += " */\n#ifndef FSB_FEATURES_H\n#define FSB_FEATURES_H\n\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n\n";
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
        "Whether the contexts of the kings before and after a move differ, so that starting over may be cheaper than a\n\
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
                "static inline bool fsb_refresh(uint32_t pov, const uint32_t kings_before[2], const uint32_t kings_after[2]) {",
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
fn orientations(forms: &[Form]) -> Vec<Orientation> {
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

fn view_name(orientations: &[Orientation], of: Orientation, suffix: &str) -> String {
    let at = orientations.iter().position(|own| *own == of).unwrap_or(0);
    if orientations.len() == 1 { format!("view{suffix}") } else { format!("view_{}{suffix}", at + 1) }
}

/// Makes a view.
fn make_view(language: Language, name: &str, board: &str, mask: &str) -> Vec<String> {
    match language {
        Language::Rust => vec![format!("let {name} = View::new({board}, pov, {mask});")],
        Language::C => vec![format!("fsb_view {name};"), format!("fsb_view_of(&{name}, {board}, pov, {mask});")],
    }
}

/// `let name = board.king(pov);`, if something reads it.
fn kings(language: Language, names: [&str; 2], is_used: bool) -> Vec<String> {
    let [name, board] = names;
    let line = match language {
        Language::Rust => format!("let {name} = {board}.king(pov);"),
        Language::C => format!("const uint32_t {name} = fsb_king({board}, pov);"),
    };
    if is_used { vec![line] } else { Vec::new() }
}

fn has_kings(language: Language, board: &str) -> String {
    match language {
        Language::Rust => format!("{board}.has_kings()"),
        Language::C => language.call("has_kings", &[board]),
    }
}

fn reads_own_king(forms: &[Form]) -> bool {
    forms.iter().any(|form| match form {
        Form::Pieces { .. } => true,
        Form::View { orientation, .. } | Form::Threats { orientation, .. } => orientation.mirror != Mirror::None,
    })
}

const EVERY: [&str; 2] = ["!0", "~(uint64_t)0"];

fn every(language: Language) -> &'static str {
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

fn clear(language: Language, list: &str) -> String {
    match language {
        Language::Rust => format!("{list}.clear();"),
        Language::C => format!("{list}->len = 0;"),
    }
}

fn unused(language: Language, names: &[&str]) -> Vec<String> {
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
                language.call(name, &[&view, every(language), out])
            }
        };
        lines.push(format!("{call};"));
    }
    lines
}

fn delta(language: Language, forms: &[Form]) -> Vec<String> {
    let mut lines = language.doc(
        "Clears both lists and fills them with the features that are active after a move and not before, and before and\n\
         not after. They are exact whatever the contexts, and for any two boards.",
    );
    lines.extend(match language {
        Language::Rust => [
            "#[rustfmt::skip]".to_owned(),
            "pub fn delta(before: &Board, after: &Board, pov: usize, added: &mut List, removed: &mut List) {".to_owned(),
        ]
        .to_vec(),
        Language::C => [
            "static inline void fsb_delta(const fsb_board *before, const fsb_board *after, uint32_t pov, fsb_list *added,"
                .to_owned(),
            "                             fsb_list *removed) {".to_owned(),
        ]
        .to_vec(),
    });
    if language == Language::Rust {
        lines.remove(lines.len() - 2);
    }
    lines.push(clear(language, "added"));
    lines.push(clear(language, "removed"));
    if forms.is_empty() {
        lines.extend(unused(language, &["before", "after", "pov"]));
        lines.push("}".to_owned());
        return lines;
    }
    // Boards without both kings have no features.
    lines.push(language.when(&format!("!({} && {})", has_kings(language, "before"), has_kings(language, "after"))));
    let whole = |board: &str, list: &str| language.call("active", &[board, "pov", list]);
    lines.push(format!("{};", whole("after", "added")));
    lines.push(format!("{};", whole("before", "removed")));
    lines.push("return;".to_owned());
    lines.push("}".to_owned());
    lines.extend(delta_of_forms(language, forms));
    lines.push("}".to_owned());
    lines
}

fn delta_of_forms(language: Language, forms: &[Form]) -> Vec<String> {
    let orientations = orientations(forms);
    let mut lines = Vec::new();
    for (suffix, board) in [("_before", "before"), ("_after", "after")] {
        let king = format!("king{suffix}");
        lines.extend(kings(language, [&king, board], reads_own_king(forms)));
    }
    for orientation in &orientations {
        for (suffix, board) in [("_before", "before"), ("_after", "after")] {
            let name = view_name(&orientations, *orientation, suffix);
            let mask = mask_call(language, *orientation, "pov", &format!("king{suffix}"));
            lines.extend(make_view(language, &name, board, &mask));
        }
    }
    let cancels = forms.iter().any(|form| match form {
        Form::Pieces { key, is_distinct, .. } => key.is_some() || !is_distinct,
        Form::View { .. } | Form::Threats { .. } => true,
    });
    let always = forms.iter().any(|form| match form {
        Form::Pieces { is_distinct, .. } => !is_distinct,
        Form::View { .. } | Form::Threats { .. } => true,
    });
    if forms.iter().any(|form| matches!(form, Form::Pieces { .. })) {
        lines.extend(match language {
            Language::Rust => {
                ["let gone = difference(before, after);".to_owned(), "let come = difference(after, before);".to_owned()]
            }
            Language::C => [
                "const fsb_board gone = fsb_difference(before, after);".to_owned(),
                "const fsb_board come = fsb_difference(after, before);".to_owned(),
            ],
        });
    }
    if cancels && !always {
        lines.push(match language {
            Language::Rust => "let mut repeats = false;".to_owned(),
            Language::C => "bool repeats = false;".to_owned(),
        });
    }
    for form in forms {
        lines.extend(delta_of_form(language, form, &orientations, !always));
    }
    if cancels {
        let call = format!("{};", language.call("cancel", &["added", "removed"]));
        match always {
            true => lines.push(call),
            false => lines.extend([language.when("repeats"), call, "}".to_owned()]),
        }
    }
    lines
}

fn delta_of_form(language: Language, form: &Form, orientations: &[Orientation], marks: bool) -> Vec<String> {
    let call = |name: &str, arguments: &[&str]| format!("{};", language.call(name, arguments));
    match form {
        Form::Pieces { name, key, .. } => {
            let changed = [
                call(name, &["&gone", "pov", "king_before", "removed"]),
                call(name, &["&come", "pov", "king_after", "added"]),
            ];
            let Some(key) = key else { return changed.to_vec() };
            let same = format!(
                "{} == {}",
                language.call(key, &["pov", "king_before"]),
                language.call(key, &["pov", "king_after"])
            );
            let mut lines = vec![language.when(&same)];
            lines.extend(changed);
            lines.push("} else {".to_owned());
            lines.push(call(name, &["before", "pov", "king_before", "removed"]));
            lines.push(call(name, &["after", "pov", "king_after", "added"]));
            if marks {
                lines.push("repeats = true;".to_owned());
            }
            lines.push("}".to_owned());
            lines
        }
        Form::View { name, orientation } => {
            let view = |suffix: &str| format!("&{}", view_name(orientations, *orientation, suffix));
            vec![call(name, &[&view("_before"), "removed"]), call(name, &[&view("_after"), "added"])]
        }
        Form::Threats { name, orientation } => {
            let view = |suffix: &str| format!("&{}", view_name(orientations, *orientation, suffix));
            let mask = |king: &str| mask_call(language, *orientation, "pov", king);
            let affected = language.call("affected", &[&view("_before"), &view("_after")]);
            let mut lines = Vec::new();
            let bound = format!("{name}_among");
            if orientation.mirror == Mirror::None {
                lines.push(language.constant(&bound, super::Number::U64, &affected));
            } else {
                let same = format!("{} == {}", mask("king_before"), mask("king_after"));
                lines.push(language.variable(&bound, super::Number::U64, every(language)));
                lines.extend([language.when(&same), format!("{bound} = {affected};"), "}".to_owned()]);
            }
            lines.push(call(name, &[&view("_before"), &bound, "removed"]));
            lines.push(call(name, &[&view("_after"), &bound, "added"]));
            lines
        }
    }
}
