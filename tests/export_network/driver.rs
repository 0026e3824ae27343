//! Follows positions with an exported network. Reads lines `s SIDE BITBOARD…` (a new position) and `m SIDE BITBOARD…`
//! (after a move from the last one) with twelve bitboards in hexadecimal, and prints the score in internal units and
//! centipawns. Fails where updated accumulators differ from refreshed ones.

mod feature_set;
mod network;

use feature_set::Board;
use network::{centipawns, evaluate, Accumulator, Network};
use std::io::{BufRead, Write};

fn main() {
    let net = Network::from_bytes(&std::fs::read("weights.bin").unwrap()).unwrap();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut before = Board::default();
    let mut updated = [Accumulator::new(&net), Accumulator::new(&net)];
    let mut refreshed = updated.clone();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let is_move = words.next() == Some("m");
        let side: usize = words.next().unwrap().parse().unwrap();
        let mut bitboard = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        let board = Board { pieces: std::array::from_fn(|_| std::array::from_fn(|_| bitboard())) };
        for pov in 0..2 {
            refreshed[pov].refresh(&net, &board, pov);
            if is_move { updated[pov].update(&net, &before, &board, pov); } else { updated[pov] = refreshed[pov].clone(); }
        }
        assert!(updated == refreshed, "updated accumulators differ: {line}");
        let score = evaluate(&net, &updated, &board, side);
        writeln!(out, "{score} {}", centipawns(score)).unwrap();
        before = board;
    }
}
