//! Follows a game with a quantised network: accumulators are updated move by move.
//!
//!     cargo run --release --example follow_game -- network.safetensors e2e4 e7e5 g1f3
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

use std::path::Path;

use fsbench::chess::{BoardChange, Chess};
use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
use fsbench::net::NetFile;
use shakmaty::Position;
use shakmaty::uci::UciMove;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: follow_game NETWORK MOVE… (moves in UCI notation)")?;
    let file = NetFile::load(Path::new(&path))?;
    let set = file.origin.feature_set()?;
    let model = Model::new(&file.net);
    let mut evaluator = Evaluator::new(&set, &model, Strategy::EagerCached, BackEnd::best())?;

    let mut position = Chess::default();
    evaluator.set(position.board());
    for text in arguments {
        let mv = text.parse::<UciMove>()?.to_move(&position)?;
        let change = BoardChange::of(mv, position.turn());
        position.play_unchecked(mv);
        evaluator.play(&change);
        let evaluation = evaluator.evaluate(position.turn());
        println!("{text}: {} centipawns for the side to move", evaluation.score_cp.0);
    }
    Ok(())
}
