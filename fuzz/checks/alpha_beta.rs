//! UCI input, with a small network.

use std::io::Cursor;
use std::path::Path;

use fsbench::alpha_beta::{self, PlayingNetwork, UciHost};
use fsbench::engine::Model;
use fsbench::features::FeatureSet;
use fsbench::net::{FloatNet, Scheme, Shape, quantise};

/// The path by which the network is loaded, at the start and by `setoption name EvalFile`.
const NETWORK: &str = "net";

const START: &[u8] = b"setoption name Hash value 1\nsetoption name EvalFile value net\n";

pub fn uci(bytes: &[u8]) {
    // A bench searches the same nodes each time, for half a second here: one is kept.
    let mut benches = 0;
    let mut is_kept = |line: &&[u8]| {
        let is_bench = is(line, "bench");
        benches += u32::from(is_bench);
        let is_repeated = is_bench && benches > 1;
        !asks_for_memory(line) && !is_repeated
    };
    let kept: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').filter(&mut is_kept).collect();
    let mut answers = Vec::new();
    // The network comes after the smallest hash table, because the default one takes longer than most inputs.
    let input = [START, &kept.concat()].concat();
    let host = UciHost { load: &load, openings: &|_| Err("no openings".into()) };
    let ended = alpha_beta::uci(Cursor::new(input), &mut answers, host, None);
    ended.expect("memory can be read");
    // Every search asked for is answered.
    let searches = kept
        .concat()
        .split(|byte| *byte == b'\n')
        .take_while(|line| !is(line, "quit"))
        .filter(|line| is(line, "go"))
        .count();
    let answered = String::from_utf8(answers).expect("the engine writes UTF-8");
    assert_eq!(answered.lines().filter(|line| line.starts_with("bestmove ")).count(), searches);
}

/// Whether a line's command is `name`.
fn is(line: &[u8], name: &str) -> bool {
    String::from_utf8_lossy(line).split_whitespace().next() == Some(name)
}

/// A hash table of a thousand megabytes is what the user asked for, not a finding.
fn asks_for_memory(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line).to_ascii_lowercase();
    let largest = text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<u64>().ok()).max();
    text.contains("hash") && largest.is_some_and(|megabytes| megabytes > 32)
}

fn load(path: &Path) -> Result<PlayingNetwork, String> {
    if path != Path::new(NETWORK) {
        return Err("no such file".into());
    }
    let set = FeatureSet::resolve("role(P) * color(P) * rank(P) for P in pieces").map_err(|error| error.to_string())?;
    let mut net = FloatNet::zeros(&Shape::plain(set.num_features(), 16, vec![]));
    // Weights that make positions differ.
    for (at, weight) in net.ft_weights.iter_mut().enumerate() {
        *weight = ((at * 7919) % 201) as f32 / 400.0 - 0.25;
    }
    for stack in &mut net.stacks {
        for layer in stack {
            for (at, weight) in layer.weights.iter_mut().enumerate() {
                *weight = if at % 3 == 0 { 0.5 } else { -0.25 };
            }
        }
    }
    let net = quantise(&net, &Scheme::stockfish()).map_err(|error| error.to_string())?;
    Ok(PlayingNetwork { model: Model::new(&net), set })
}
