//! Counts: functions of the variables around them.

use super::Generator;
use super::block::RestrictedBinders;
use super::dialect::{FunctionParameter, NumberType, is_used};
use super::scope::SourceScope;
use crate::export::Language;
use crate::features::spec::{CountSpec, ENEMY_KING};

impl Generator<'_> {
    /// The call of a count's function, which is added to the file.
    pub(super) fn count(&mut self, outer: &SourceScope, spec: &CountSpec) -> String {
        let language = self.language;
        if spec.max == 0 {
            return "0".to_owned();
        }
        let saved = self.begin_function();
        let mut scope = outer.clone();
        let bindings = RestrictedBinders {
            binders: &spec.binders,
            condition: spec.condition.as_ref(),
            guards: &spec.guards,
            product: None,
        };
        let one = COUNT_ONE.to_owned();
        let mut body = self.bindings(&mut scope, &bindings, &mut |_, _| vec![one.clone()]);
        self.end_function(saved);
        let max = i64::from(spec.max).min(i64::from(i32::MAX)).to_string();
        // Where single bindings are counted, the maximum ends the search.
        let stops = is_used_line(COUNT_ONE, &body);
        if stops {
            let stop = [language.when(&format!("number >= {max}")), format!("return {max};"), "}".to_owned()];
            body = body
                .into_iter()
                .flat_map(|line| if line == COUNT_ONE { [vec![line], stop.to_vec()].concat() } else { vec![line] })
                .collect();
        }
        let mut parameters = vec![FunctionParameter::View];
        let mut arguments = vec!["view".to_owned()];
        for slot in spec.outer_slots().into_iter().filter(|slot| *slot > ENEMY_KING) {
            for name in [scope.square(slot), scope.role(slot), scope.color(slot)] {
                if is_used(&name, &body) && name.contains('_') && !arguments.contains(&name) {
                    parameters.push(FunctionParameter::Number(name.clone(), NumberType::I32));
                    arguments.push(name);
                }
            }
        }
        let result = if stops && !body.iter().any(|line| line.contains("popcount") || line.contains("count_ones")) {
            "number".to_owned()
        } else {
            language.minimum("number", &max)
        };
        let mut lines = vec![language.variable("number", NumberType::I32, "0")];
        if body.is_empty() {
            lines = Vec::new();
        }
        lines.splice(0..0, self.kings_used(&body, false));
        let result = if body.is_empty() { "0".to_owned() } else { result };
        lines.extend(body);
        lines.push(if language == Language::Rust { result } else { format!("return {result};") });
        lines.push("}".to_owned());
        let name = self.add_function("count", &parameters, NumberType::I32, lines);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        language.call(&name, &arguments)
    }
}

/// The line that counts a binding.
const COUNT_ONE: &str = "number += 1;";

fn is_used_line(line: &str, body: &[String]) -> bool {
    body.iter().any(|other| other == line)
}

/// Where a loop over squares would only count them.
pub(super) fn popcount_of(language: Language, bits: &str, body: &[String]) -> Option<String> {
    let [only] = body else { return None };
    (only == COUNT_ONE).then(|| match language {
        Language::Rust => format!("number += ({bits}).count_ones() as i32;"),
        Language::C => format!("number += (int32_t)fsb_popcount({bits});"),
    })
}
