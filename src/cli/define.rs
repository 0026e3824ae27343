//! `fsbench define`: what a definition means.

use serde::Serialize;

use super::{Failure, Format, print_json};
use crate::features::{Block, FactorSpec, FeatureSet};

/// Show what a feature-set definition means: sizes, strides, contexts, identity
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Described<'a> {
    name: &'a str,
    about: Option<&'a str>,
    num_features: u32,
    identity: String,
    contexts: usize,
    /// Bound on the active features of a legal position, a perspective.
    max_active: usize,
    table_bytes: usize,
    blocks: Vec<DescribedBlock<'a>>,
}

#[derive(Serialize)]
struct DescribedBlock<'a> {
    name: &'a str,
    offset: u32,
    size: u32,
    contexts: u32,
    formula: String,
    axes: Vec<DescribedAxis<'a>>,
}

#[derive(Serialize)]
struct DescribedAxis<'a> {
    name: &'a str,
    size: u32,
    stride: u32,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    let described = describe(&set);
    match arguments.format {
        Format::Text => print!("{}", text(&described)),
        Format::Json => print_json(&described)?,
    }
    Ok(())
}

fn describe(set: &FeatureSet) -> Described<'_> {
    Described {
        name: set.name(),
        about: set.about(),
        num_features: set.num_features(),
        identity: set.identity().to_string(),
        contexts: set.contexts(),
        max_active: set.max_active(),
        table_bytes: set.table_bytes(),
        blocks: set.blocks().iter().map(describe_block).collect(),
    }
}

fn describe_block(block: &Block) -> DescribedBlock<'_> {
    let product = &block.spec().product;
    let mut stride = product.size;
    let axis = |factor: &'_ FactorSpec| {
        stride = stride.checked_div(factor.size).unwrap_or(0);
        stride
    };
    let strides: Vec<u32> = product.factors.iter().map(axis).collect();
    let axes = product.factors.iter().zip(strides);
    DescribedBlock {
        name: &block.name,
        offset: block.offset,
        size: block.size,
        contexts: block.contexts(),
        formula: formula(&block.spec().text),
        axes: axes.map(|(factor, stride)| DescribedAxis { name: &factor.name, size: factor.size, stride }).collect(),
    }
}

/// Canonical text in mathematical notation.
fn formula(text: &str) -> String {
    text.replace(" * ", " × ").replace(" + ", " ⊕ ")
}

fn text(set: &Described<'_>) -> String {
    let mut out = format!("{}: {} features\n", set.name, grouped(u64::from(set.num_features)));
    if let Some(about) = set.about {
        out += &format!("{about}\n");
    }
    for block in &set.blocks {
        let range = format!("{}..{}", block.offset, u64::from(block.offset) + u64::from(block.size));
        out += &format!(
            "\n{}  [{range}], {} features, {}\n",
            block.name,
            grouped(block.size.into()),
            contexts(block.contexts as usize)
        );
        out += &format!("  {}\n", block.formula);
        let width = block.axes.iter().map(|axis| axis.name.chars().count()).max().unwrap_or(0);
        for axis in &block.axes {
            out += &format!(
                "    {:width$}  size {:>6}  stride {:>8}\n",
                axis.name,
                grouped(axis.size.into()),
                grouped(axis.stride.into())
            );
        }
    }
    out += &format!("\ncontexts    {}\n", contexts(set.contexts));
    out += &format!("active      at most {} a perspective\n", set.max_active);
    out += &format!("tables      {} bytes\n", grouped(set.table_bytes as u64));
    out += &format!("identity    {}\n", set.identity);
    out
}

fn contexts(count: usize) -> String {
    match count {
        1 => "1 context: never refreshes".to_owned(),
        count => format!("{count} contexts: refreshes when a king moves from one to another"),
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
