//! Compiles a definition, encodes a position and follows a move.
//!
//!     cargo run --release --example encode
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

use fsbench::chess::{BoardChange, Chess, Perspective};
use fsbench::features::{Delta, FeatureSet};
use shakmaty::Position;
use shakmaty::uci::UciMove;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A shipped set's name, a TOML file, or an expression as here: a table per file of the own king.
    let set = FeatureSet::resolve("file(K) * square(P) * role(P) * color(P) for P in pieces")?;
    println!("{} features, identity {}", set.num_features(), set.identity());

    let position = Chess::default();
    let encoder = set.encoder();
    let mut active = Vec::new();
    encoder.encode(position.board(), Perspective::White, &mut active);
    println!("White sees {} active features", active.len());

    // After 1. e4 e5 the king's move stays on its file: no refresh. Try `rank(K)` instead.
    let mut position = position;
    for text in ["e2e4", "e7e5"] {
        let mv = text.parse::<UciMove>()?.to_move(&position)?;
        position.play_unchecked(mv);
    }
    let mv = "e1e2".parse::<UciMove>()?.to_move(&position)?;
    let change = BoardChange::of(mv, position.turn());
    let after = change.applied_to(position.board());
    let mut delta = Delta::default();
    for pov in Perspective::ALL {
        encoder.diff(position.board(), &change, &after, pov, &mut delta);
        println!("{pov:?}: +{:?} -{:?}, refresh: {}", delta.added, delta.removed, delta.refresh);
    }
    Ok(())
}
