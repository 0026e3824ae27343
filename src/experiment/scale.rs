//! `[scale.NAME]`: tables of settings that replace the file's own, so that one file describes the same experiment at
//! several sizes.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::checks::Mistake;

/// The scale of a file with scales when none is asked for.
pub const DEFAULT_SCALE: &str = "cpu";

/// Replaces settings by a scale's settings, table by table and key by key, and takes the scales out. Returns the
/// scale's name; `None` if the file has no scales.
pub(super) fn apply_scale(root: &mut DeTable<'_>, chosen: Option<&str>) -> Result<Option<String>, Mistake> {
    let Some(scales) = root.remove("scale") else {
        return match chosen {
            Some(chosen) => Err(Mistake { byte: 0, message: format!("no table [scale.{chosen}] in this file") }),
            None => Ok(None),
        };
    };
    let start = scales.span().start;
    let at_start = |message: String| Mistake { byte: start, message };
    let DeValue::Table(mut scales) = scales.into_inner() else {
        return Err(at_start("scale must consist of tables, as in [scale.cpu]".into()));
    };
    let names: Vec<String> = scales.keys().map(|name| name.get_ref().to_string()).collect();
    let name = chosen.unwrap_or(DEFAULT_SCALE);
    let Some(scale) = scales.remove(name) else {
        return Err(at_start(format!("no scale `{name}`; choose one by --scale: {}", names.join(", "))));
    };
    let scale_start = scale.span().start;
    let problem = |message: String| Mistake { byte: scale_start, message };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.chars().all(is_name) {
        return Err(problem(format!("the scale's name `{name}` must consist of letters, digits, '-' and '_'")));
    }
    match scale.get_ref() {
        DeValue::Table(table) if table.contains_key("name") || table.contains_key("scale") => {
            return Err(problem("a scale cannot have a name or scales of its own".into()));
        }
        DeValue::Table(_) => {}
        _ => return Err(problem(format!("scale.{name} must be a table of settings"))),
    }
    if let DeValue::Table(table) = scale.into_inner() {
        replace(root, table);
    }
    Ok(Some(name.to_owned()))
}

/// Replaces the settings that `by` has; tables key by key.
fn replace<'t>(table: &mut DeTable<'t>, by: DeTable<'t>) {
    for (key, value) in by {
        let span = value.span();
        let value = value.into_inner();
        match (table.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value) {
            (Some(DeValue::Table(inner)), DeValue::Table(by)) => replace(inner, by),
            (_, value) => {
                // Insertion alone would keep the key as the file's own table has it, and so its place.
                table.remove(key.get_ref().as_ref());
                table.insert(key, Spanned::new(span, value));
            }
        }
    }
}
