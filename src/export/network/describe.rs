//! The layout of the weights' file in words, for the heads of the sources and the README.

use super::weights::{HEADER, Layout, MAGIC, Section};
use crate::text::grouped;

/// A Markdown table of the file's bytes.
pub(super) fn layout(layout: &Layout, stacks: usize) -> String {
    let mut rows = vec![
        "| byte | size | content |".to_owned(),
        "|---|---|---|".to_owned(),
        format!("| 0 | 8 | `{}` |", String::from_utf8_lossy(MAGIC)),
        "| 8 | 8 | the number of the network, u64 |".to_owned(),
        format!("| 16 | 8 | the size of the file, u64: {} |", thousands(layout.size)),
        format!("| 24 | {} | zeros, as before every multiple of 64 at which a section starts |", HEADER - 24),
    ];
    rows.extend(layout.transformer.iter().map(|section| row(section, &thousands(section.at))));
    let stack = match stacks {
        1 => String::new(),
        _ => {
            rows.push(format!(
                "| | | the dense layers of each of {stacks} output buckets, {} bytes each; b is the bucket |",
                thousands(layout.stack_size)
            ));
            format!(" + {} * b", thousands(layout.stack_size))
        }
    };
    let in_stack = |section: &Section| row(section, &format!("{}{stack}", thousands(layout.stacks_at + section.at)));
    rows.extend(layout.stack.iter().map(in_stack));
    rows.join("\n")
}

fn row(section: &Section, at: &str) -> String {
    let Section { name, integer, rows, columns, content, .. } = section;
    let matrix = if *rows == 1 { format!("{columns}") } else { format!("{rows} x {columns}") };
    format!("| {at} | {} | `{name}`, {matrix} {}: {content} |", thousands(section.size()), integer.name())
}

fn thousands(number: usize) -> String {
    grouped(&number.to_string())
}
