//! The report as a single HTML page that contains its styles, plots and scripts.

use std::fmt::Write;

use super::figures::Figure;
use super::learning_loop;
use super::plain_table::PlainTable;
use super::plot::PlotError;
use super::search;
use super::summary::Summary;
use super::tables::{ComparisonTable, INTERVALS, Section, meanings};
use super::text::provenance;

/// The page: per method the verdict, the plots that decide, tables, the other plots and the pairs of sets; then plots
/// of the sets, the meaning of the columns and the provenance.
///
/// # Errors
/// When a plot cannot be drawn.
pub fn html(summary: &Summary) -> Result<String, PlotError> {
    let figures = Figure::all(summary);
    let tables: Vec<_> = summary.methods.iter().map(ComparisonTable::of).collect();
    let mut body = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(body, "<h1>{}</h1>", escape(&summary.study.name));
    if !summary.study.about.is_empty() {
        let _ = writeln!(body, "<p class=\"about\">{}</p>", escape(&summary.study.about));
    }
    for (index, (method, table)) in summary.methods.iter().zip(&tables).enumerate() {
        let _ = writeln!(body, "<section>\n<h2>{}</h2>", escape(&table.title));
        if let Some((whole, sets)) = method.verdict.split_first() {
            let items: String = sets.iter().map(|set| format!("<li>{}</li>\n", escape(set))).collect();
            let _ = writeln!(body, "<p class=\"verdict\">{}</p>\n<ul class=\"verdict\">\n{items}</ul>", escape(whole));
        }
        body.push_str(&plots(&figures, |figure| figure.comparison == Some(index) && figure.is_decisive)?);
        for section in Section::ALL {
            body.push_str(&section_html(table, section));
        }
        body.push_str(&plots(&figures, |figure| figure.comparison == Some(index) && !figure.is_decisive)?);
        PlainTable::of(method).iter().for_each(|table| body += &table.html(escape));
        for note in method.notes() {
            let _ = writeln!(body, "<p>{}</p>", escape(&note));
        }
        body.push_str("</section>\n");
    }
    if let Some(found) = &summary.search {
        body.push_str("<section>\n<h2>Search</h2>\n");
        for sentence in search::sentences(found) {
            let _ = writeln!(body, "<p>{}</p>", escape(&sentence));
        }
        search::tables(found, usize::MAX).iter().for_each(|table| body += &table.html(escape));
        body.push_str(&plots(&figures, Figure::is_of_search)?);
        body.push_str("</section>\n");
    }
    if let Some(found) = &summary.learning_loop {
        body.push_str("<section>\n<h2>Loop</h2>\n");
        for sentence in learning_loop::sentences(found) {
            let _ = writeln!(body, "<p>{}</p>", escape(&sentence));
        }
        body.push_str(&plots(&figures, Figure::is_of_loop)?);
        body.push_str(&learning_loop::table(found).html(escape));
        body.push_str("</section>\n");
    }
    let is_shared = |figure: &Figure| figure.comparison.is_none() && !figure.is_of_search() && !figure.is_of_loop();
    let shared = plots(&figures, is_shared)?;
    if !shared.is_empty() {
        let _ = writeln!(body, "<section>\n<h2>Cost of the feature sets</h2>\n{shared}</section>");
    }
    let mut meaning_of_all = String::new();
    if !tables.is_empty() {
        meaning_of_all.push_str("<h2>What the columns mean</h2>\n<dl>\n");
        for (heading, meaning) in meanings(&tables) {
            let _ = writeln!(meaning_of_all, "<dt>{heading}</dt><dd>{}</dd>", escape(meaning));
        }
        let _ = writeln!(meaning_of_all, "</dl>\n<p>{INTERVALS}</p>");
    }
    for why in summary.without_pairs() {
        let _ = writeln!(meaning_of_all, "<p>{}</p>", escape(why));
    }
    if let Some(conditions) = &summary.match_conditions {
        let _ = writeln!(meaning_of_all, "<p>{}</p>", escape(conditions));
    }
    if !meaning_of_all.is_empty() {
        let _ = write!(body, "<section>\n{meaning_of_all}</section>\n");
    }
    let _ = writeln!(body, "<footer>{}</footer>", escape(&provenance(summary)));
    let title = escape(&summary.study.name);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{title} – fsbench</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<main>\n{body}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    ))
}

/// One section of a table; empty if it has no columns.
fn section_html(table: &ComparisonTable, section: Section) -> String {
    if table.section(section).next().is_none() {
        return String::new();
    }
    let mut out = "<div class=\"wide\"><table>\n<thead>\n<tr class=\"heads\">".to_owned();
    out.push_str("<th scope=\"col\"><button>set</button></th>");
    for column in table.section(section) {
        let meaning = escape(&column.meaning);
        let _ = write!(out, "<th scope=\"col\" title=\"{meaning}\"><button>{}</button></th>", column.heading);
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for (index, set) in table.sets.iter().enumerate() {
        let _ = write!(out, "<tr><th scope=\"row\" data-value=\"{index}\">{}</th>", escape(set));
        for column in table.section(section) {
            let class = if column.is_prose { " class=\"prose\"" } else { "" };
            let cell = &column.cells[index];
            let value = cell.value.map(|value| format!(" data-value=\"{value}\"")).unwrap_or_default();
            let _ = write!(out, "<td{class}{value}>{}</td>", escape(&cell.text));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    match section {
        Section::Overview | Section::Strength => format!("<h3>{}</h3>\n{out}", section.title()),
        _ => folded(section.title(), &out),
    }
}

/// A part of the page that opens when its heading is clicked, and for printing.
pub(super) fn folded(title: &str, content: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{content}</details>\n", escape(title))
}

fn plots(figures: &[Figure], is_wanted: impl Fn(&Figure) -> bool) -> Result<String, PlotError> {
    let mut out = String::new();
    for figure in figures.iter().filter(|figure| is_wanted(figure)) {
        let _ = writeln!(out, "<figure>\n{}</figure>", figure.inline_svg()?);
    }
    Ok(out)
}

/// Escapes a text for HTML elements and attributes.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c1c1e; --paper: #fdfdfb; --soft: #6b6b70; --rule: #d9d9d4; --hover: #f1f1ec; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e3; --paper: #17181a; --soft: #a0a0a6; --rule: #3a3b3f; --hover: #222327; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .8rem; }
h3, summary { font-size: 1rem; font-weight: 600; color: var(--soft); margin: 1.4rem 0 .3rem; }
summary { cursor: pointer; width: max-content; max-width: 100%; }
.verdict { max-width: 52rem; }
@media print { .wide { overflow: visible; } table { font-size: .7rem; } th, td { padding: .15rem .35rem; } }
.about { font-size: 1.1rem; color: var(--soft); max-width: 46rem; margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .32rem .7rem; text-align: right; }
thead th { font-weight: 600; color: var(--soft); }
thead .heads th { border-bottom: 2px solid var(--rule); }
tbody tr { border-bottom: 1px solid var(--rule); }
tbody tr:hover { background: var(--hover); }
td.prose { text-align: left; white-space: normal; min-width: 16rem; }
tbody th, thead .heads th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
button { all: unset; cursor: pointer; }
button:focus-visible { outline: 2px solid currentColor; }
th[aria-sort=ascending] button::after { content: ' \u{25b4}'; }
th[aria-sort=descending] button::after { content: ' \u{25be}'; }
figure { margin: 1.6rem 0; }
svg { height: auto; display: block; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; }
dt { font-weight: 600; } dd { margin: 0; max-width: 44rem; }
p { max-width: 46rem; }
footer { margin-top: 2.5rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--soft);
  font-size: .88rem; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; }
  th, td { padding: .3rem .45rem; } }
";

/// Sorts a table by the column whose heading is clicked; rows without a value stay last.
const SCRIPT: &str = "
addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(part => part.open = true));
for (const table of document.querySelectorAll('table')) {
  const heads = [...table.querySelectorAll('.heads th')];
  heads.forEach((head, column) => head.firstElementChild.addEventListener('click', () => {
    const down = head.getAttribute('aria-sort') === 'ascending';
    heads.forEach(other => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const value = row => parseFloat(row.cells[column].dataset.value);
    const order = (a, b) => isNaN(a) - isNaN(b) || (down ? b - a : a - b) || 0;
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort((a, b) => order(value(a), value(b))));
  }));
}
";
