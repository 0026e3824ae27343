//! The README of an export: its files, how to keep an accumulator, and how to check the code.

use super::{ExportFile, Language};
use crate::features::FeatureSet;

/// The text. `files`: the others of the folder; `network`: the chapter on the network, if there is one.
pub fn text(set: &FeatureSet, language: Language, files: &[ExportFile], network: &str) -> String {
    let about = |file: &ExportFile| {
        let about = match file.name.as_str() {
            "feature_set.rs" | "feature_set.h" => {
                "the input features: no dependencies, no allocation, nothing to initialise"
            }
            "bullet.rs" => "an input type for the trainer bullet with the same indices",
            "golden.jsonl" => "positions and moves with the features that the code must find",
            "network.rs" | "network.h" => "accumulators and the evaluation, in plain integers",
            "bucket_rule.rs" | "bucket_rule.h" => "the expression that chooses the output bucket",
            "weights.bin" => "the network's weights",
            _ => "",
        };
        format!("- `{}`{}\n", file.name, if about.is_empty() { String::new() } else { format!(": {about}") })
    };
    let title = set.about().map_or_else(|| set.name().to_owned(), |about| format!("{}: {about}", set.name()));
    let files: String = files.iter().map(about).collect();
    let usage = match language {
        Language::Rust => RUST_USAGE,
        Language::C => C_USAGE,
    };
    format!(
        "# {title}\n\nWritten by `fsbench export`. The generated files belong to whoever exported them, to use, change \
         and distribute under\nany terms, without any warranty.\n\n\
         {} features per perspective, at most {} active, {} context{}.\nIdentity {}.\n\n{files}\n\
         {usage}{ACCUMULATOR}{network}{GOLDEN}",
        set.num_features(),
        set.max_active(),
        set.contexts(),
        if set.contexts() == 1 { "" } else { "s" },
        set.identity(),
    )
}

const RUST_USAGE: &str = "## Use

```rust
mod feature_set;

let mut active = feature_set::List::new();
feature_set::active(&board, feature_set::WHITE, &mut active);
for index in active.as_slice() { /* add this row of the feature transformer */ }
```

";

const C_USAGE: &str = "## Use

```c
#include \"feature_set.h\"

fsb_list active;
fsb_active(&board, FSB_WHITE, &active);
for (uint32_t i = 0; i < active.len; i++) { /* add row active.index[i] of the feature transformer */ }
```

Give the folder to the compiler with `-I`.

";

const ACCUMULATOR: &str = "## Keeping an accumulator

A board is twelve bitboards by colour and role; bit 0 is a1, bit 63 h8. Each colour has an accumulator, the bias plus the
rows of its active features:

1. At the root, start from the bias and add the rows of `active`.
2. After a move, add the rows in `added` and subtract those in `removed` of `delta`. Both lists are exact for any two
   boards. An index that occurs twice is a row that is added twice.
3. Where `refresh` says that the contexts differ, most features change, and step 1 is cheaper. Cheaper still is a copy of
   the last accumulator of every context (`context`) with its board: take the one of the new context and apply the
   `delta` between its board and the present one.

The side to move comes first at the network's input.

";

const GOLDEN: &str = "## Checking

`golden.jsonl` has a JSON object per line: `fen`, the active features of `white` and `black`, ascending (with repeats
where a feature counts more than once); with a network `eval_internal` and `eval_cp`, from the side to move. Where a move
was played: `move` (UCI; castling as e1g1, in Chess960 as king takes rook), the position `after` it, and `delta` with `added`, `removed` and `refresh` of
both perspectives. Half of the lines are random play with castling, en passant and promotions, half are games.
";
