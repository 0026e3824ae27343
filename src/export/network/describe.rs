//! The layout of the weights' file in words, for the heads of the sources and the README.

use super::weights::{HEADER, MAGIC, MatrixSection, SectionLayout};
use crate::export::Language;
use crate::net::QuantNet;
use crate::text::grouped;

/// A Markdown table of the file's bytes.
pub(super) fn layout(layout: &SectionLayout, stacks: usize) -> String {
    let mut rows = vec![
        "| byte | size | content |".to_owned(),
        "|---|---|---|".to_owned(),
        format!("| 0 | 8 | `{}` |", String::from_utf8_lossy(MAGIC)),
        "| 8 | 8 | the number of the architecture, u64: that of the sources |".to_owned(),
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
    let in_stack =
        |section: &MatrixSection| row(section, &format!("{}{stack}", thousands(layout.stacks_at + section.at)));
    rows.extend(layout.stack.iter().map(in_stack));
    rows.join("\n")
}

fn row(section: &MatrixSection, at: &str) -> String {
    let MatrixSection { name, integer, rows, columns, content, .. } = section;
    let matrix = if *rows == 1 { format!("{columns}") } else { format!("{rows} x {columns}") };
    format!("| {at} | {} | `{name}`, {matrix} {}: {content} |", thousands(section.size()), integer.name())
}

fn thousands(number: usize) -> String {
    grouped(&number.to_string())
}

const RUST: &str = r#"```rust
let net = Network::from_bytes(include_bytes!("weights.bin"))?;
let mut accumulators = [Accumulator::new(&net), Accumulator::new(&net)];
for pov in [WHITE, BLACK] {
    accumulators[pov].refresh(&net, &board, pov);
}
// After a move from `board` to `after`:
for pov in [WHITE, BLACK] {
    accumulators[pov].update(&net, &board, &after, pov);
}
let score = evaluate(&net, &accumulators, &after, side_to_move);
let cp = centipawns(score);
```"#;

const C: &str = r#"```c
static fsb_network net;
const char *error = fsb_network_load(&net, bytes, size); /* the content of weights.bin; NULL if it is right */
static fsb_accumulator accumulators[2];
for (uint32_t pov = 0; pov < 2; pov++) {
    fsb_accumulator_refresh(&accumulators[pov], &net, &board, pov);
}
/* After a move from `board` to `after`: */
for (uint32_t pov = 0; pov < 2; pov++) {
    fsb_accumulator_update(&accumulators[pov], &net, &board, &after, pov);
}
int32_t score = fsb_evaluate(&net, accumulators, &after, side_to_move);
printf("%d centipawns\n", (int)fsb_centipawns(score));
```"#;

/// The chapter of the export's README on the network, in Markdown.
pub(super) fn readme(layout: &SectionLayout, net: &QuantNet, language: Language) -> String {
    let (source, code) = match language {
        Language::Rust => ("network.rs", RUST),
        Language::C => ("network.h", C),
    };
    let shape = &net.shape;
    let scheme = &net.scheme.name;
    let table = self::layout(layout, net.shape.buckets.count);
    format!(
        "## The network

`{source}` evaluates this network, quantised by scheme `{scheme}`, with the weights of `weights.bin`:

    {shape}

It is plain scalar code to start from: its integers are exactly those of `fsbench eval`, so faster code can be held
against it.

{code}

Accumulators are sums modulo 2^16. `update` recomputes the sums where the kings' move changes the context of most
features, and adds and subtracts the rows of changed features otherwise; both give the same sums. An engine that undoes
moves keeps one pair of accumulators per ply. Networks that agree in features, shape and scheme have the same source: their
`weights.bin` can take each other's place. The score is the side to move's, in internal units; {pawn} are a pawn.

`weights.bin` is little-endian. Its sections start at multiples of 64 bytes, so that a mapped file can be used in place:

{table}

",
        pawn = net.scheme.pawn_value,
    )
}
