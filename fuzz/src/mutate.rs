//! Mutations of text. libFuzzer mutates bytes, which seldom leaves a definition, a game or a document well formed;
//! these remove, repeat, move and replace whole tokens, often by tokens of the target's seeds. Half of the mutations
//! are libFuzzer's own.

use std::path::Path;
use std::sync::OnceLock;

/// Targets whose inputs are text.
const TEXTS: [&str; 8] = ["definition", "pgn", "text", "experiment", "uci", "journal", "record", "service_client"];

/// The most mutations of an input at once.
const MOST: u64 = 4;

/// Whether the target's inputs are mutated by tokens, too.
pub fn is_text(target: &str) -> bool {
    TEXTS.contains(&target)
}

/// Mutates the first `size` bytes of `data` by tokens and returns the new size, at most `max_size`.
pub fn mutate(target: &str, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random(u64::from(seed) | 1 << 32);
    let input = data[..size].to_vec();
    let mut tokens: Vec<&[u8]> = tokens(&input);
    for _ in 0..=random.below(MOST) {
        change(&mut tokens, vocabulary(target), &mut random);
    }
    let mut output = tokens.concat();
    output.truncate(max_size);
    data[..output.len()].copy_from_slice(&output);
    output.len()
}

fn change<'a>(tokens: &mut Vec<&'a [u8]>, vocabulary: &'a [Vec<u8>], random: &mut Random) {
    let at = random.below(tokens.len() as u64 + 1) as usize;
    // Mostly short runs of tokens.
    let count = (1 << random.below(4)).min(tokens.len() - at);
    let other = random.below(tokens.len() as u64 + 1) as usize;
    match random.below(6) {
        0 => drop(tokens.drain(at..at + count)),
        1 => {
            let run: Vec<_> = tokens[at..at + count].to_vec();
            drop(tokens.splice(other..other, run));
        }
        2 if at < tokens.len() && other < tokens.len() => tokens.swap(at, other),
        3 if at < tokens.len() && other < tokens.len() => tokens[at] = tokens[other],
        kind => {
            let Some(token) = vocabulary.get(random.below(vocabulary.len() as u64) as usize) else { return };
            if kind == 5 && at < tokens.len() {
                tokens[at] = token;
            } else {
                tokens.insert(at, token);
            }
        }
    }
}

/// Splits text into words, numbers, runs of spaces, and single other bytes.
fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let class = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => 0,
        b'0'..=b'9' => 1,
        b' ' => 2,
        _ => 3,
    };
    text.chunk_by(|left, right| class(*left) == class(*right) && class(*left) != 3).collect()
}

/// The different tokens of the target's seeds, and numbers at the edges of their types.
fn vocabulary(target: &str) -> &'static [Vec<u8>] {
    static TOKENS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    TOKENS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
        let seeds = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let texts: Vec<Vec<u8>> = seeds.filter_map(|seed| std::fs::read(seed.path()).ok()).collect();
        let mut all: Vec<Vec<u8>> = texts.iter().flat_map(|text| tokens(text)).map(<[u8]>::to_vec).collect();
        let edges = [0, 1, 2, i64::from(u8::MAX), i64::from(u16::MAX), i64::from(u32::MAX), 1 << 53, i64::MAX, -1];
        all.extend(edges.map(|number| number.to_string().into_bytes()));
        all.sort_unstable();
        all.dedup();
        all
    })
}

/// xorshift64*: libFuzzer gives a seed a mutation, so that a run can be repeated.
struct Random(u64);

impl Random {
    /// A number below `end`; 0 if that is 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % end.max(1)
    }
}
