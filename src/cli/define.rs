//! `fsbench define`: the sizes, contexts, dead features, losslessness and cost of a definition.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use schemars::JsonSchema;
use serde::Serialize;

use super::print::terminal_width;
use super::threads::Threads;
use super::{Failure, ResultFormat, print_json, print_text};
use crate::features::analysis::{Analysis, Budget, StatusCounts};
use crate::features::{
    ActiveSummary, BlockSummary, FeatureSet, SetSummary, ShippedSet, formula, index_ranges, shipped_sets,
};
use crate::text;

/// Show the sizes, strides, contexts, dead features, losslessness, cost and identity of a definition
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    #[arg(required_unless_present = "list")]
    set: Option<String>,
    /// List the shipped sets with size, description and source
    #[arg(long, conflicts_with_all = ["set", "list_dead", "witnesses", "thorough"])]
    list: bool,
    /// List the indices of dead features
    #[arg(long)]
    list_dead: bool,
    /// Print, for each live feature, a legal position (FEN) in which it is active for White
    #[arg(long)]
    witnesses: bool,
    /// Search for proofs and witnesses without a time limit; by default features are unresolved after some seconds
    #[arg(long)]
    thorough: bool,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    let Some(request) = &arguments.set else { return list(arguments.format) };
    let budget = if arguments.thorough { Budget::THOROUGH } else { Budget::brief() };
    let set = FeatureSet::resolve(request).map_err(Failure::request)?;
    let (mut document, analysis) = summarise(&set, budget)?;
    for warning in &document.warnings {
        note!("warning: {warning}");
    }
    if arguments.list_dead {
        document.dead_indices = Some(analysis.dead());
    }
    if arguments.witnesses {
        let witness = |index| Some((index, analysis.witness(index)?.fen()));
        document.witnesses = Some((0..set.num_features()).filter_map(witness).collect());
    }
    match arguments.format {
        ResultFormat::Text => print_text(&text(&document))?,
        ResultFormat::Json => print_json(&document)?,
    }
    Ok(())
}

/// The shipped sets.
#[derive(Serialize, JsonSchema)]
pub struct SetList {
    sets: Vec<ShippedSet>,
}

/// Prints the shipped sets.
fn list(format: ResultFormat) -> Result<(), Failure> {
    let sets = shipped_sets().map_err(Failure::request)?;
    if format == ResultFormat::Json {
        return print_json(&SetList { sets });
    }
    Ok(print_text(&list_text(&sets, terminal_width().unwrap_or(usize::MAX)))?)
}

/// Name, size, description and source of every set, at most `width` characters wide.
fn list_text(sets: &[ShippedSet], width: usize) -> String {
    let name_width = sets.iter().map(|set| set.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for set in sets {
        let head = format!("{:name_width$}  {:>7}  ", set.name, grouped(set.num_features.into()));
        let about = set.about.as_deref().map(str::to_owned);
        let source = set.source.as_deref().map(|source| format!("({source})"));
        let texts = [about, source].into_iter().flatten();
        let lines: Vec<String> = texts.flat_map(|text| text::wrapped(&text, head.len(), head.len(), width)).collect();
        out += &format!("{head}{}\n", lines.join("\n").trim_start());
    }
    out
}

/// Examines the set; shows progress on stderr if it takes long.
fn summarise(set: &FeatureSet, budget: Budget) -> Result<(SetSummary<'_>, Analysis), Failure> {
    const PROGRESS_AFTER: Duration = Duration::from_secs(2);
    let start = Instant::now();
    let bar = ProgressBar::new_spinner();
    let summary = SetSummary::within(set, budget, |block, left| {
        if start.elapsed() > PROGRESS_AFTER {
            bar.set_message(format!("{}: {} features to examine", block.name, grouped(left as u64)));
            bar.tick();
        }
    });
    bar.finish_and_clear();
    summary.map_err(Failure::request)
}

fn text(set: &SetSummary<'_>) -> String {
    let mut out = format!("{}: {} features\n", set.name, grouped(u64::from(set.num_features)));
    if let Some(about) = set.about {
        out += &format!("{about}\n");
    }
    for block in &set.blocks {
        out += &block_text(block);
    }
    out += &format!(
        "\nfeatures    {}{}\n",
        tally(set.dead),
        if set.can_resolve_more { "; --thorough may resolve more" } else { "" }
    );
    out += &format!("contexts    {}\n", contexts(set.contexts, set.contexts_bound));
    out += &format!("lossless    {}\n", lossless(set));
    out += &active(&set.active);
    if let Some(density) = set.density {
        out += &format!("density     {:.3} %\n", 100.0 * density);
    }
    if let Some(inputs) = set.virtual_inputs {
        out += &format!("factor      {} virtual inputs while training\n", grouped(inputs.into()));
    }
    out += &format!("tables      {} bytes\n", grouped(set.table_bytes as u64));
    out += &format!("identity    {}\n", set.identity);
    if let Some(indices) = &set.dead_indices {
        out += &format!("\ndead        {}\n", ranges(indices));
    }
    for (index, fen) in set.witnesses.iter().flatten() {
        out += &format!("{index:>10}  {fen}\n");
    }
    out
}

fn active(active: &ActiveSummary) -> String {
    let ActiveSummary { mean: Some(mean), max: Some(max), bound, positions, sample } = active else {
        return format!("active      not measured, encoding takes too long; bound {}\n", active.bound);
    };
    let positions = grouped(*positions as u64);
    format!(
        "active      mean {mean:.1} and maximum {max} per perspective over {positions} positions of {sample}; bound \
         {bound}\n"
    )
}

/// Largest number of runs of indices that are listed one by one.
const MAX_RUNS: usize = 4;

fn block_text(block: &BlockSummary<'_>) -> String {
    let range = match block.runs.as_deref() {
        None => format!("{}..{}", block.offset, u64::from(block.offset) + u64::from(block.size)),
        Some(runs @ [.., (_, last)]) if runs.len() > MAX_RUNS => {
            format!("{}..{} in {} runs", block.offset, u64::from(*last) + 1, runs.len())
        }
        Some(runs) => runs.iter().copied().map(run_text).collect::<Vec<_>>().join(" "),
    };
    let mut out = format!("\n{}  [{range}], {} features", block.name, grouped(block.size.into()));
    out += &format!(", {}\n", contexts(block.contexts as usize, block.contexts_bound));
    out += &format!("  {}\n", block.formula);
    let names: Vec<String> = block.axes.iter().map(|axis| formula(axis.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, axis) in names.iter().zip(&block.axes) {
        let size = grouped(axis.size.into());
        let stride = grouped(axis.stride.into());
        out += &format!("    {name:width$}  size {size:>6}  stride {stride:>8}\n");
    }
    out += &format!("  {}\n", tally(block.dead));
    out
}

fn tally(tally: StatusCounts) -> String {
    let [dead, live, unresolved] = [tally.dead, tally.live, tally.unresolved].map(|count| grouped(count.into()));
    format!("{dead} dead, {live} live, {unresolved} unresolved")
}

fn lossless(set: &SetSummary<'_>) -> String {
    match &set.counterexample {
        Some([a, b]) => format!("no: these positions have the same features\n              {a}\n              {b}"),
        None => set.lossless.to_owned(),
    }
}

/// Indices as runs: `4..7` stands for 4, 5 and 6.
fn ranges(indices: &[u32]) -> String {
    index_ranges(indices.iter().copied()).into_iter().map(run_text).collect::<Vec<_>>().join(" ")
}

fn run_text((first, last): (u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first}..{}", u64::from(last) + 1) }
}

fn contexts(count: usize, bound: bool) -> String {
    let refreshes = "refreshes when a king's move changes the context";
    match (count, bound) {
        (1, _) => "1 context: never refreshes".to_owned(),
        (_, false) => format!("{count} contexts: {refreshes}"),
        (_, true) => format!("at most {count} contexts (there are too many assignments to try): {refreshes}"),
    }
}

fn grouped(number: u64) -> String {
    text::grouped(&number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_sets_fits_a_terminal() {
        let sets = shipped_sets().expect("shipped sets");
        let narrow = list_text(&sets, 80);
        let wide = list_text(&sets, usize::MAX);
        // A formula without spaces has a line of its own.
        let fits = |line: &str| line.chars().count() <= 80 || line.split_whitespace().count() == 1;
        assert!(narrow.lines().all(fits), "{narrow}");
        assert!(narrow.split_whitespace().eq(wide.split_whitespace()), "{narrow}");
        let words = wide.split_whitespace().collect::<Vec<_>>().join(" ");
        let half_ka = "half-ka-v2-hm 22,528 HalfKAv2 mirrored: own king on e–h (HalfKAv2_hm";
        assert!(words.contains(half_ka), "{wide}");
    }
}
