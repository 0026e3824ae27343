//! Templates of generated sources: text with values `{{NAME}}`, and lines that stand only `%if` a flag of the network
//! is set.

use crate::units::SortedMap;

/// The values and flags of a template for one network.
#[derive(Debug, Default)]
pub(super) struct TemplateValues {
    values: SortedMap<&'static str, String>,
    flags: SortedMap<&'static str, bool>,
}

impl TemplateValues {
    /// Sets what `{{name}}` stands for.
    pub(super) fn set(&mut self, name: &'static str, value: impl std::fmt::Display) {
        self.values.insert(name, value.to_string());
    }

    /// Sets whether the lines from `%if name` to `%end` or `%else` stand in the output; `%if !name` negates.
    pub(super) fn flag(&mut self, name: &'static str, is_set: bool) {
        self.flags.insert(name, is_set);
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.flags.get(name).is_some_and(|flag| *flag)
    }

    /// The template's text. Conditions nest.
    ///
    /// # Panics
    /// If the template names a value or flag that is not set: templates are part of this crate, and tests render each.
    pub(super) fn render(&self, template: &str) -> String {
        let mut out = String::with_capacity(2 * template.len());
        // One entry per open condition: whether its lines stand in the output.
        let mut open: Vec<bool> = Vec::new();
        for line in template.lines() {
            match line.strip_prefix('%').map(|line| line.split_once(' ').unwrap_or((line, ""))) {
                Some(("if", name)) => open.push(self.holds(name)),
                Some(("else", _)) => *open.last_mut().expect("`%else` stands within a condition") ^= true,
                Some(("end", _)) => drop(open.pop().expect("`%end` closes a condition")),
                _ if open.iter().all(|is_shown| *is_shown) => {
                    self.fill(line, &mut out);
                    out.push('\n');
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "a condition of the template is not closed");
        out
    }

    fn holds(&self, name: &str) -> bool {
        let (name, is_wanted) = name.strip_prefix('!').map_or((name, true), |name| (name, false));
        let flag = self.flags.get(name);
        *flag.unwrap_or_else(|| unreachable!("the template's flag `{name}` is set")) == is_wanted
    }

    /// Appends a line with its values.
    fn fill(&self, line: &str, out: &mut String) {
        let mut rest = line;
        while let Some((before, (name, after))) =
            rest.split_once("{{").and_then(|(before, from)| Some((before, from.split_once("}}")?)))
        {
            let value = self.values.get(name);
            out.push_str(before);
            out.push_str(value.unwrap_or_else(|| unreachable!("the template's value `{name}` is set")));
            rest = after;
        }
        out.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_conditions() {
        let mut values = TemplateValues::default();
        values.set("L1", 16);
        values.flag("a", true);
        values.flag("b", false);
        let check = |template: &str, expected: &str| assert_eq!(values.render(template), expected, "{template}");
        check("x {{L1}}, {{L1}}; {{", "x 16, 16; {{\n");
        check("%if a\n1\n%else\n2\n%end\n3", "1\n3\n");
        check("%if b\n1\n%if a\n2\n%end\n%else\n3\n%if !b\n4\n%end\n%end", "3\n4\n");
    }
}
