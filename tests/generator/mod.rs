//! Random definitions over the complete grammar: valid by construction, and small enough for the reference encoder.

use std::fmt::Write;
use std::ops::Range;

use rand::{Rng, RngExt};

/// Most elements of a product.
const MAX_SIZE: u64 = 1 << 24;

/// Limits on the contents of a generated definition.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    pub blocks: usize,
    pub binders: usize,
    pub counts: bool,
    /// Whether variables may be bound from a king.
    pub king_sources: bool,
}

impl Limits {
    pub const FULL: Limits = Limits { blocks: 3, binders: 3, counts: true, king_sources: true };
}

/// The numbers of the definitions to test: `usual`, unless `FSBENCH_DEFINITIONS` asks for others, say `400..20000`.
pub fn wanted(usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("FSBENCH_DEFINITIONS") else { return usual };
    let range = text.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    range.expect("FSBENCH_DEFINITIONS is a range, such as 400..20000")
}

/// A definition, split so that tests can exchange its features.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Every key but `features`.
    pub keys: String,
    /// The tables that follow `keys`.
    pub buckets: String,
    pub blocks: Vec<Block>,
}

/// A block, written as product and tail.
#[derive(Clone, Debug)]
pub struct Block {
    pub product: String,
    /// Binders and condition.
    pub tail: String,
    /// An estimate of the bindings in a position.
    pub cost: u64,
}

impl Generated {
    pub fn features(&self) -> String {
        self.blocks.iter().map(|block| format!("{}{}", block.product, block.tail)).collect::<Vec<_>>().join("\n  + ")
    }

    pub fn text(&self) -> String {
        self.with(&self.features())
    }

    /// Other features with the same keys.
    pub fn with(&self, features: &str) -> String {
        format!("features = \"\"\"\n{features}\"\"\"\n{}{}", self.keys, self.buckets)
    }

    pub fn cost(&self) -> u64 {
        self.blocks.iter().map(|block| block.cost).sum()
    }
}

/// A random definition within `limits`.
pub fn definition(rng: &mut impl Rng, limits: Limits) -> Generated {
    let keys = format!(
        "black = \"{}\"\nmirror = \"{}\"\nmultiplicity = \"{}\"\n",
        pick(rng, &["flip", "rotate"]),
        pick(rng, &["none", "none", "king-left", "king-right"]),
        pick(rng, &["set", "set", "bag"]),
    );
    let mut buckets = String::from("[buckets]\n");
    let mut bucket_sizes = [0u64; 2];
    for (name, size) in ["half", "zone"].into_iter().zip(&mut bucket_sizes) {
        let most = rng.random_range(0..6i64);
        let table: Vec<i64> =
            (0..64).map(|square| if square == 9 { most } else { rng.random_range(-1..=most) }).collect();
        *size = most as u64 + 1;
        writeln!(buckets, "{name} = {table:?}").unwrap();
    }
    let count = rng.random_range(1..=limits.blocks);
    let blocks = (0..count).map(|_| Writer::new(rng, limits, bucket_sizes).block()).collect();
    Generated { keys, buckets, blocks }
}

/// Three products over the same variables, and the tail that binds them.
pub fn three_products(rng: &mut impl Rng) -> (Generated, [String; 3], String) {
    let mut generated = definition(rng, Limits { blocks: 1, binders: 2, ..Limits::FULL });
    let sizes = bucket_sizes(&generated.buckets);
    let mut writer = Writer::new(rng, Limits { counts: false, ..Limits::FULL }, sizes);
    let (binders, cost) = writer.binders(2);
    let condition = writer.tail_condition();
    let products = [(); 3].map(|()| writer.product(2, 256).0);
    generated.blocks = vec![Block { product: String::new(), tail: String::new(), cost }];
    (generated, products, format!("{binders}{condition}"))
}

fn bucket_sizes(tables: &str) -> [u64; 2] {
    let mut sizes = tables.lines().filter_map(|line| line.split_once('[').filter(|(name, _)| !name.is_empty())).map(
        |(_, numbers)| {
            let numbers = numbers.trim_end_matches(']').split(", ");
            numbers.map(|number| number.parse::<i64>().unwrap() + 1).max().unwrap() as u64
        },
    );
    [sizes.next().unwrap(), sizes.next().unwrap()]
}

fn pick<'a>(rng: &mut impl Rng, of: &[&'a str]) -> &'a str {
    of[rng.random_range(0..of.len())]
}

/// A variable in scope.
#[derive(Copy, Clone)]
struct Variable {
    letter: char,
    piece: bool,
}

struct Writer<'a, R> {
    rng: &'a mut R,
    limits: Limits,
    bucket_sizes: [u64; 2],
    scope: Vec<Variable>,
    letters: Vec<char>,
    /// How many counts enclose the text being written.
    depth_in_counts: usize,
}

impl<'a, R: Rng> Writer<'a, R> {
    fn new(rng: &'a mut R, limits: Limits, bucket_sizes: [u64; 2]) -> Self {
        let mut letters: Vec<char> = ('A'..='Z').filter(|letter| !['K', 'E'].contains(letter)).collect();
        for at in (1..letters.len()).rev() {
            letters.swap(at, rng.random_range(0..=at));
        }
        let scope = ['K', 'E'].map(|letter| Variable { letter, piece: true }).to_vec();
        Writer { rng, limits, bucket_sizes, scope, letters, depth_in_counts: 0 }
    }

    fn block(&mut self) -> Block {
        let most = self.limits.binders;
        let binders = *[0, 1, 1, 1, 1, 2, 2, 2, 3].map(|count: usize| count.min(most)).get(self.below(9)).unwrap();
        let (binders, cost) = self.binders(binders);
        let product = self.product(3, MAX_SIZE).0;
        let condition = self.tail_condition();
        let counts = [&product, &condition].map(|text| text.matches("count(").count() as u64);
        let counts = 1 + 60 * counts[0] + 20 * counts[1];
        Block { product, tail: format!("{binders}{condition}"), cost: cost * counts }
    }

    fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end)
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    /// ` for …` and an estimate of the bindings.
    fn binders(&mut self, count: usize) -> (String, u64) {
        let mut text = String::new();
        let mut cost = 1;
        for at in 0..count {
            let pieces: Vec<char> = {
                let kings = if self.limits.king_sources { 0 } else { 2 };
                self.scope[kings..].iter().filter(|variable| variable.piece).map(|variable| variable.letter).collect()
            };
            let (source, piece, bindings) =
                if cost >= 1000 || (!pieces.is_empty() && self.chance(if at == 0 { 15 } else { 75 })) {
                    if pieces.is_empty() {
                        break;
                    }
                    // The piece bound last is the most frequent source.
                    let of = if self.chance(60) { pieces[pieces.len() - 1] } else { pieces[self.below(pieces.len())] };
                    match self.below(4) {
                        0 => (format!("moves({of})"), false, 4),
                        1 => (format!("attacks({of})"), false, 5),
                        2 => (format!("targets({of})"), true, 2),
                        _ => {
                            let direction = pick(self.rng, &["east", "north", "northeast", "northwest"]);
                            (format!("next({of}, {direction})"), true, 1)
                        }
                    }
                } else {
                    ("pieces".to_owned(), true, 28)
                };
            cost *= bindings;
            let letter = self.letters.pop().unwrap();
            self.scope.push(Variable { letter, piece });
            let lead = if at == 0 { " for " } else { ", " };
            write!(text, "{lead}{letter} in {source}").unwrap();
        }
        (text, cost)
    }

    /// A product and its size: at most `max_size`, unless it has one factor.
    fn product(&mut self, depth: usize, max_size: u64) -> (String, u64) {
        let mut factors = Vec::new();
        let mut size = 1;
        for _ in 0..=self.below(4) {
            let (text, factor) = self.factor(depth, (max_size / size).max(1));
            if size * factor > max_size && !factors.is_empty() {
                break;
            }
            size *= factor;
            factors.push(text);
        }
        (factors.join(" * "), size)
    }

    fn factor(&mut self, depth: usize, max_size: u64) -> (String, u64) {
        match self.below(20) {
            0..=2 if depth > 0 => {
                let products: Vec<(String, u64)> =
                    (0..2 + self.below(2)).map(|_| self.product(depth - 1, (max_size / 4).max(1))).collect();
                let size = products.iter().map(|(_, size)| size).sum();
                let texts: Vec<String> = products.into_iter().map(|(text, _)| text).collect();
                (format!("({})", texts.join(" + ")), size)
            }
            3 => {
                let size = 1 + self.below(4) as u64;
                (format!("reserved({size})"), size)
            }
            4..=6 => self.difference(),
            7 if self.limits.counts => self.count(),
            8 => self.reach(max_size),
            9 => self.pair(max_size),
            _ => self.axis(),
        }
    }

    /// A reach, where there is a piece and room for the values of both variables.
    fn reach(&mut self, max_size: u64) -> (String, u64) {
        let attacker = self.variable();
        let target = self.variable();
        let role = pick(self.rng, &["pawn", "knight", "bishop", "rook", "queen", "king"]);
        let combinations = if role == "pawn" { 2 * 64 * 64 } else { 64 * 64 };
        if !attacker.piece || combinations > max_size {
            return self.axis();
        }
        (format!("reach({}, {}, {role})", attacker.letter, target.letter), combinations)
    }

    /// A pair of the same axes of two variables.
    fn pair(&mut self, max_size: u64) -> (String, u64) {
        let left = self.variable();
        let right = self.variable();
        let of_pieces = left.piece && right.piece;
        let sides =
            ["file(V)", "square(V)", "rank(V, 2..4, 8) * file(V, c..d)", "role(V) * color(V)", "role(V, king, pawn)"];
        let (side, size) = [(0, 8), (1, 64), (2, 8), (3, 12), (4, 2)][self.below(if of_pieces { 5 } else { 3 })];
        if left.letter == right.letter || size * size > max_size {
            return self.axis();
        }
        let side = |letter: char| sides[side].replace('V', &letter.to_string());
        (format!("pair({}, {})", side(left.letter), side(right.letter)), size * size)
    }

    fn variable(&mut self) -> Variable {
        // The block's own variables are more frequent than the kings.
        let from = if self.scope.len() > 2 && self.chance(70) { 2 } else { 0 };
        let at = from + self.below(self.scope.len() - from);
        self.scope[at]
    }

    fn axis(&mut self) -> (String, u64) {
        let variable = self.variable();
        let letter = variable.letter;
        let axes = ["square", "file", "rank", "diagonal", "antidiagonal", "bucket", "role", "color"];
        let axis = axes[self.below(if variable.piece { 8 } else { 6 })];
        if axis == "bucket" {
            let which = self.below(2);
            return (format!("bucket({letter}, {})", ["half", "zone"][which]), self.bucket_sizes[which]);
        }
        let values = values(axis);
        if !self.chance(30) {
            return (format!("{axis}({letter})"), values.len() as u64);
        }
        let (domain, size) = self.domain(&values);
        (format!("{axis}({letter}, {domain})"), size)
    }

    /// Some of the values, as ranges and single ones in any order.
    fn domain(&mut self, values: &[String]) -> (String, u64) {
        let mut items = Vec::new();
        let mut at = self.below(values.len().min(4));
        let mut size = 0;
        while at < values.len() && items.len() < 3 {
            let length = 1 + self.below(values.len() - at);
            let end = at + length - 1;
            items.push(if length > 1 { format!("{}..{}", values[at], values[end]) } else { values[at].clone() });
            size += length as u64;
            at = end + 1 + self.below(3);
        }
        if self.chance(50) {
            items.reverse();
        }
        (items.join(", "), size)
    }

    fn difference(&mut self) -> (String, u64) {
        let axes = [
            ("square", 64),
            ("file", 8),
            ("rank", 8),
            ("diagonal", 15),
            ("antidiagonal", 15),
            ("role", 6),
            ("color", 2),
        ];
        let left = self.variable();
        let right = self.variable();
        let (axis, size) = axes[self.below(if left.piece && right.piece { 7 } else { 5 })];
        (format!("({axis}({}) - {axis}({}))", left.letter, right.letter), 2 * size - 1)
    }

    fn count(&mut self) -> (String, u64) {
        let most = self.below(10) as u64;
        let wanted = 1 + self.below(2);
        match self.counted(most, wanted) {
            // Without a binder there is nothing to count.
            None => self.axis(),
            Some(text) => (text, most + 1),
        }
    }

    /// A count up to `max`; `None` when no binder can be written.
    fn counted(&mut self, max: u64, binders: usize) -> Option<String> {
        let outer = self.scope.len();
        let (binders, _) = self.binders(binders);
        self.depth_in_counts += 1;
        let condition = self.tail_condition();
        self.depth_in_counts -= 1;
        self.scope.truncate(outer);
        (!binders.is_empty()).then(|| format!("count({max}{binders}{condition})"))
    }

    fn tail_condition(&mut self) -> String {
        if self.chance(45) { format!(" if {}", self.condition(2)) } else { String::new() }
    }

    fn condition(&mut self, depth: usize) -> String {
        match self.below(if depth > 0 { 10 } else { 6 }) {
            0..=5 => self.comparison(),
            6 => format!("not ({})", self.condition(depth - 1)),
            7 | 8 => format!("({}) and ({})", self.condition(depth - 1), self.condition(depth - 1)),
            _ => format!("{} or {}", self.comparison(), self.condition(depth - 1)),
        }
    }

    fn comparison(&mut self) -> String {
        let comparison = pick(self.rng, &["==", "!=", "<", "<=", ">", ">="]);
        if self.chance(40) {
            // A named value of the axis.
            let variable = self.variable();
            let axes = ["square", "file", "role", "color"];
            let axis = axes[self.below(if variable.piece { 4 } else { 2 })];
            let values = values(axis);
            let value = &values[self.below(values.len())];
            return format!("{axis}({}) {comparison} {value}", variable.letter);
        }
        format!("{} {comparison} {}", self.term(2), self.term(1))
    }

    fn term(&mut self, depth: usize) -> String {
        match self.below(if depth > 0 { 10 } else { 6 }) {
            0 => self.below(12).to_string(),
            // Deeper nested counts take the reference encoder too long.
            1 if self.limits.counts && self.depth_in_counts < 2 && self.letters.len() > 12 && self.chance(50) => {
                let most = 1 + self.below(4) as u64;
                self.counted(most, 1).unwrap_or_else(|| "1".to_owned())
            }
            1..=5 => {
                let variable = self.variable();
                let axes = ["file", "rank", "diagonal", "antidiagonal", "square", "bucket", "role", "color"];
                match axes[self.below(if variable.piece { 8 } else { 6 })] {
                    "bucket" => format!("bucket({}, {})", variable.letter, pick(self.rng, &["half", "zone"])),
                    axis => format!("{axis}({})", variable.letter),
                }
            }
            6 => format!("abs({})", self.term(depth - 1)),
            7 => format!("-{}", self.term(0)),
            8 => format!("({} + {})", self.term(depth - 1), self.term(depth - 1)),
            _ => format!("({} - {})", self.term(depth - 1), self.term(depth - 1)),
        }
    }
}

/// The names of an axis's values, in order.
fn values(axis: &str) -> Vec<String> {
    let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect();
    match axis {
        "square" => (0..64u8).map(|at| format!("{}{}", (b'a' + at % 8) as char, at / 8 + 1)).collect(),
        "file" => ('a'..='h').map(String::from).collect(),
        "rank" => (1..=8).map(|rank| rank.to_string()).collect(),
        "role" => names(&["pawn", "knight", "bishop", "rook", "queen", "king"]),
        "color" => names(&["own", "their"]),
        _ => (0..15).map(|at| at.to_string()).collect(),
    }
}
