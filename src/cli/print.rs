//! Printing: results go to stdout, everything else to stderr. Also the layout of tables and shares.
//!
//! If the reader closes the pipe (`| head -1`), the command ends quietly with status 0. Any other failure to write to
//! stdout, such as a full device, ends it with status 1. Failures to write to stderr are ignored.

use std::fmt::{self, Arguments};
use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, TableComponent, presets};
use serde::Serialize;
use thiserror::Error;

use super::Failure;
use crate::json::{to_indented, to_text};
use crate::system;

/// A failure to write to stdout.
#[derive(Debug, Error)]
#[error("cannot write to standard output: {0}")]
pub struct StdoutError(#[from] pub io::Error);

impl StdoutError {
    /// Whether the reader of stdout has closed the pipe.
    pub fn is_closed_pipe(&self) -> bool {
        system::is_closed_pipe(&self.0)
    }
}

impl From<StdoutError> for Failure {
    fn from(error: StdoutError) -> Failure {
        Failure::work(error)
    }
}

/// Prints a text to stdout without adding a newline.
pub fn print_text(text: &str) -> Result<(), StdoutError> {
    print_bytes(text.as_bytes())
}

pub fn print_bytes(bytes: &[u8]) -> Result<(), StdoutError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    Ok(stdout.flush()?)
}

/// Prints a line to stdout; [`outln!`] calls this.
pub fn print_line(text: Arguments<'_>) -> Result<(), StdoutError> {
    print_text(&fmt::format(format_args!("{text}\n")))
}

/// Prints an indented JSON document to stdout.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = to_indented(value).map_err(Failure::work)?;
    Ok(print_text(&format!("{text}\n"))?)
}

/// Prints a JSON document to stdout on one line.
pub fn print_json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let text = to_text(value)?;
    Ok(print_text(&format!("{text}\n"))?)
}

/// Prints a line to stderr; [`note!`] calls this.
pub fn print_stderr_line(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_all(fmt::format(format_args!("{text}\n")).as_bytes());
}

/// Prints a line to stdout, formatted as by `println!`. Unlike `println!`, it returns errors instead of panicking.
macro_rules! outln {
    ($($text:tt)*) => { $crate::cli::print::print_line(format_args!($($text)*)) };
}

/// Prints a line to stderr, formatted as by `eprintln!`. Unlike `eprintln!`, it never panics.
macro_rules! note {
    ($($text:tt)*) => { $crate::cli::print::print_stderr_line(format_args!($($text)*)) };
}

/// The width in characters of the terminal that the results go to, at least 40; `None` if they go to a file or pipe.
pub fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0).max(40))
}

/// Lays out a table with a header; all columns but the first are aligned right.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header.iter().copied());
    table.remove_style(TableComponent::HorizontalLines).remove_style(TableComponent::MiddleIntersections);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt()
}

/// Formats a share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}
