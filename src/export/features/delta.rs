//! The public function `delta`: from the pieces that a move takes away and brings where the blocks allow it, otherwise
//! from the features of both boards.

use super::api::{clear, every, has_kings, kings, make_view, orientations, reads_own_king, unused, view_name};
use super::pieces::mask_call;
use super::{Form, NumberType};
use crate::chess::{Mirror, Orientation};
use crate::export::Language;

/// The lines of `delta`.
pub fn delta(language: Language, forms: &[Form]) -> Vec<String> {
    let mut lines = language.doc(
        "Clears both lists and fills them with the features that are active after a move and not before, and before \
         and\n\
         not after. They are exact whatever the contexts, and for any two boards.",
    );
    lines.extend(match language {
        Language::Rust => [
            "#[rustfmt::skip]".to_owned(),
            "pub fn delta(before: &Board, after: &Board, pov: usize, added: &mut List, removed: &mut List) {"
                .to_owned(),
        ]
        .to_vec(),
        Language::C => [
            "static inline void fsb_delta(const fsb_board *before, const fsb_board *after, uint32_t pov, fsb_list \
             *added,"
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
        Form::Threats { orientation, .. } => orientation.mirror != Mirror::None,
        Form::View { .. } => true,
    });
    let always = forms.iter().any(|form| match form {
        Form::Pieces { is_distinct, .. } => !is_distinct,
        Form::Threats { .. } => false,
        Form::View { .. } => true,
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
        if always {
            lines.push(call);
        } else {
            lines.extend([language.when("repeats"), call, "}".to_owned()]);
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
            let before = view("_before");
            let after = view("_after");
            let changed = language.call("changed", &[&before, &after]);
            let among = language.call("affected", &[&before, &after, "changed"]);
            let every_pair = [
                call(name, &[&before, &after, every(language), "0", "removed"]),
                call(name, &[&after, &before, every(language), "0", "added"]),
            ];
            let mut lines = vec![
                language.constant("changed", NumberType::U64, &changed),
                language.constant("among", NumberType::U64, &among),
                call(name, &[&before, &after, "among", not_changed(language), "removed"]),
                call(name, &[&after, &before, "among", not_changed(language), "added"]),
            ];
            if orientation.mirror == Mirror::None {
                lines.insert(0, "{".to_owned());
                lines.push("}".to_owned());
                return lines;
            }
            let same = format!("{} == {}", mask("king_before"), mask("king_after"));
            lines.insert(0, language.when(&same));
            lines.push("} else {".to_owned());
            lines.extend(every_pair);
            if marks {
                lines.push("repeats = true;".to_owned());
            }
            lines.push("}".to_owned());
            lines
        }
    }
}

const fn not_changed(language: Language) -> &'static str {
    match language {
        Language::Rust => "!changed",
        Language::C => "~changed",
    }
}
