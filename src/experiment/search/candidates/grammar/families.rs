//! The blocks of each source, whatever their size.

use super::{GeneratedBlock, GrammarAxis, GrammarSource};

/// A product that describes a variable; without factors it says nothing.
#[derive(Clone, Debug, Default)]
struct Description {
    text: String,
    size: u64,
    /// Whether it has differences, which pairs cannot have.
    has_difference: bool,
}

/// A condition and the properties of the first variable that it leaves with one value.
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    text: &'static str,
    fixes_role: bool,
    fixes_color: bool,
}

/// Every block of a source.
pub(super) fn blocks(source: GrammarSource, axes: &[GrammarAxis]) -> Vec<GeneratedBlock> {
    match source {
        GrammarSource::Pieces => pieces(axes),
        GrammarSource::Pairs => pairs(axes),
        GrammarSource::Targets => of_two(axes, "T", &["targets(P)"]),
        GrammarSource::Next => {
            of_two(axes, "Q", &["next(P, east)", "next(P, north)", "next(P, northeast)", "next(P, northwest)"])
        }
        GrammarSource::Moves => squares(axes, "M", "moves(P)", &[""]),
        GrammarSource::Attacks => squares(axes, "A", "attacks(P)", &["", NEAR_OWN_KING, NEAR_ENEMY_KING]),
        GrammarSource::Counts => counts(axes),
    }
}

const NEAR_OWN_KING: &str = "abs(file(A) - file(K)) <= 1 and abs(rank(A) - rank(K)) <= 1";
const NEAR_ENEMY_KING: &str = "abs(file(A) - file(E)) <= 1 and abs(rank(A) - rank(E)) <= 1";

const ROLES: [&str; 6] = [
    "role(P) == pawn",
    "role(P) == knight",
    "role(P) == bishop",
    "role(P) == rook",
    "role(P) == queen",
    "role(P) == king",
];

/// Conditions on the role of P, where roles are read at all.
fn roles(axes: &[GrammarAxis]) -> Vec<Condition> {
    let of_role = |text: &&'static str| Condition { text, fixes_role: true, fixes_color: false };
    let known = if axes.contains(&GrammarAxis::Role) { &ROLES[..] } else { &[] };
    std::iter::once(Condition::default()).chain(known.iter().map(of_role)).collect()
}

/// Relations of the colours of P and another piece, where colours are read at all.
fn relations(axes: &[GrammarAxis], other: &str) -> Vec<String> {
    let mut relations = vec![String::new()];
    if axes.contains(&GrammarAxis::Color) {
        relations.extend(["!=", "=="].map(|relation| format!("color(P) {relation} color({other})")));
    }
    relations
}

fn pieces(axes: &[GrammarAxis]) -> Vec<GeneratedBlock> {
    let mut conditions = roles(axes);
    if axes.contains(&GrammarAxis::Color) {
        let of_color = |text| Condition { text, fixes_role: false, fixes_color: true };
        conditions.extend(["color(P) == own", "color(P) == their"].map(of_color));
    }
    let mut blocks = Vec::new();
    for condition in conditions {
        for piece in descriptions("P", axes, condition) {
            blocks.extend(block(&[&piece], "P in pieces", &[condition.text], 1));
        }
    }
    blocks
}

/// Unordered pairs of pieces of one kind.
fn pairs(axes: &[GrammarAxis]) -> Vec<GeneratedBlock> {
    const KINDS: [(&str, bool); 3] = [
        ("role(P) == pawn and role(Q) == pawn and square(P) < square(Q)", true),
        ("role(P) == pawn and role(Q) == pawn and square(P) < square(Q) and abs(file(P) - file(Q)) <= 1", true),
        (
            "role(P) != pawn and role(P) != king and role(Q) != pawn and role(Q) != king and square(P) < square(Q)",
            false,
        ),
    ];
    let mut blocks = Vec::new();
    for (text, fixes_role) in KINDS {
        let condition = Condition { text, fixes_role, fixes_color: false };
        for piece in descriptions("P", axes, condition).into_iter().filter(|piece| !piece.has_difference) {
            let other = piece.text.replace("(P", "(Q");
            let text = format!("pair({}, {other})", piece.text);
            let pair = Description { text, size: piece.size * piece.size.saturating_sub(1) / 2, ..piece };
            blocks.extend(block(&[&pair], "P in pieces, Q in pieces", &[condition.text], 2));
        }
    }
    blocks
}

/// A piece P and another one from sources that start from it.
fn of_two(axes: &[GrammarAxis], other: &str, sources: &[&str]) -> Vec<GeneratedBlock> {
    let seconds = with_nothing(descriptions(other, axes, Condition::default()));
    let mut blocks = Vec::new();
    for source in sources {
        let binders = format!("P in pieces, {other} in {source}");
        for relation in relations(axes, other) {
            for role in roles(axes) {
                for first in with_nothing(descriptions("P", axes, role)) {
                    for second in &seconds {
                        blocks.extend(block(&[&first, second], &binders, &[role.text, &relation], 2));
                    }
                }
            }
        }
    }
    blocks
}

/// A piece P and squares that it reaches.
fn squares(axes: &[GrammarAxis], variable: &str, source: &str, zones: &[&str]) -> Vec<GeneratedBlock> {
    let of_squares: Vec<GrammarAxis> =
        axes.iter().copied().filter(|axis| !matches!(axis, GrammarAxis::Role | GrammarAxis::Color)).collect();
    let seconds = with_nothing(descriptions(variable, &of_squares, Condition::default()));
    let binders = format!("P in pieces, {variable} in {source}");
    let mut blocks = Vec::new();
    for zone in zones {
        for role in roles(axes) {
            for first in with_nothing(descriptions("P", axes, role)) {
                for second in &seconds {
                    blocks.extend(block(&[&first, second], &binders, &[role.text, zone], 1));
                }
            }
        }
    }
    blocks
}

fn counts(axes: &[GrammarAxis]) -> Vec<GeneratedBlock> {
    /// Most moves that are told apart, by role.
    const MOVES: [u64; 7] = [15, 4, 8, 13, 14, 27, 8];
    const ATTACKERS: &str = "for Q in pieces, T in targets(Q) if square(T) == square(P) and color(Q)";
    let count = |max: u64, of: &str| Description {
        text: format!("count({max} {of})"),
        size: max + 1,
        ..Description::default()
    };
    let mut blocks = Vec::new();
    for (role, max) in roles(axes).into_iter().zip(MOVES) {
        let numbers = [
            (count(max, "for M in moves(P)"), 1),
            (count(3, &format!("{ATTACKERS} != color(P)")), 3),
            (count(3, &format!("{ATTACKERS} == color(P)")), 3),
        ];
        for first in with_nothing(descriptions("P", axes, role)) {
            for (number, pieces) in &numbers {
                blocks.extend(block(&[&first, number], "P in pieces", &[role.text], *pieces));
            }
        }
    }
    for role in roles(axes).into_iter().filter(|role| role.fixes_role) {
        for color in ["own", "their"] {
            let number = count(8, &format!("for P in pieces if {} and color(P) == {color}", role.text));
            blocks.extend(block(&[&number], "", &[], 1));
        }
    }
    blocks.extend(zone_attacks());
    blocks.extend(pawns(axes));
    blocks
}

/// Numbers of attacks on the squares around the kings.
fn zone_attacks() -> Vec<GeneratedBlock> {
    let mut blocks = Vec::new();
    for (color, zone) in [("their", NEAR_OWN_KING), ("own", NEAR_ENEMY_KING)] {
        let text = format!("count(15 for P in pieces, A in attacks(P) if color(P) == {color} and {zone})");
        blocks.push(GeneratedBlock { text, size: 16, pieces: 1 });
    }
    blocks
}

/// Own pawns of a kind that other pawns decide. The other perspective sees the enemy's.
fn pawns(axes: &[GrammarAxis]) -> Vec<GeneratedBlock> {
    const OWN: &str = "role(P) == pawn and color(P) == own";
    const KINDS: [&str; 4] = [
        // Passed.
        "count(1 for Q in pieces if role(Q) == pawn and color(Q) == their and abs(file(Q) - file(P)) <= 1 and \
         rank(Q) > rank(P)) == 0",
        // Isolated.
        "count(1 for Q in pieces if role(Q) == pawn and color(Q) == own and abs(file(Q) - file(P)) == 1) == 0",
        // Doubled.
        "count(1 for Q in pieces if role(Q) == pawn and color(Q) == own and file(Q) == file(P) and \
         rank(Q) > rank(P)) == 1",
        // Protected.
        "count(1 for Q in pieces if role(Q) == pawn and color(Q) == own and abs(file(Q) - file(P)) == 1 and \
         (rank(P) - rank(Q)) == 1) == 1",
    ];
    let fixed = Condition { text: OWN, fixes_role: true, fixes_color: true };
    let mut blocks = Vec::new();
    for kind in KINDS {
        for pawn in descriptions("P", axes, fixed) {
            blocks.extend(block(&[&pawn], "P in pieces", &[fixed.text, kind], 2));
        }
    }
    blocks
}

/// Every description of a variable, none of them empty.
fn descriptions(variable: &str, axes: &[GrammarAxis], condition: Condition) -> Vec<Description> {
    let has = |axis: GrammarAxis| axes.contains(&axis);
    let mut kinds = vec![Vec::new()];
    if has(GrammarAxis::Role) && !condition.fixes_role {
        kinds.push(vec![(format!("role({variable})"), 6)]);
    }
    if has(GrammarAxis::Color) && !condition.fixes_color {
        let color = (format!("color({variable})"), 2);
        let with_color = |kind: &Vec<_>| [kind.clone(), vec![color.clone()]].concat();
        kinds.extend(kinds.iter().map(with_color).collect::<Vec<_>>());
    }
    let mut all = Vec::new();
    for (places, has_difference) in places(variable, axes) {
        for kind in &kinds {
            let factors: Vec<&(String, u64)> = places.iter().chain(kind).collect();
            let texts: Vec<&str> = factors.iter().map(|(text, _)| text.as_str()).collect();
            let size = factors.iter().map(|(_, size)| *size).product();
            all.push(Description { text: texts.join(" * "), size, has_difference });
        }
    }
    all.retain(|description| !description.text.is_empty());
    all
}

/// Factors that say where a variable is, and whether they are differences.
fn places(variable: &str, axes: &[GrammarAxis]) -> Vec<(Vec<(String, u64)>, bool)> {
    let mut places = vec![(Vec::new(), false)];
    for axis in axes {
        let (name, size) = match axis {
            GrammarAxis::Square => ("square", 64),
            GrammarAxis::File => ("file", 8),
            GrammarAxis::Rank => ("rank", 8),
            GrammarAxis::Diagonal => ("diagonal", 15),
            GrammarAxis::Antidiagonal => ("antidiagonal", 15),
            GrammarAxis::Role | GrammarAxis::Color => continue,
            GrammarAxis::King => {
                for king in ["K", "E"] {
                    let [file, rank] =
                        ["file", "rank"].map(|axis| (format!("({axis}({king}) - {axis}({variable}))"), 15));
                    places
                        .extend([vec![file.clone()], vec![rank.clone()], vec![file, rank]].map(|place| (place, true)));
                }
                continue;
            }
        };
        places.push((vec![(format!("{name}({variable})"), size)], false));
    }
    places
}

fn with_nothing(mut descriptions: Vec<Description>) -> Vec<Description> {
    descriptions.push(Description { size: 1, ..Description::default() });
    descriptions
}

/// The block of some descriptions; `None` if they say nothing.
fn block(descriptions: &[&Description], binders: &str, conditions: &[&str], pieces: usize) -> Option<GeneratedBlock> {
    let joined = |texts: &[&str], word: &str| {
        texts.iter().copied().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(word)
    };
    let product = joined(&descriptions.iter().map(|description| description.text.as_str()).collect::<Vec<_>>(), " * ");
    if product.is_empty() {
        return None;
    }
    let mut text = product;
    let condition = joined(conditions, " and ");
    for (word, part) in [("for", binders), ("if", &condition)] {
        if !part.is_empty() {
            text = format!("{text} {word} {part}");
        }
    }
    let size = descriptions.iter().map(|description| description.size).product();
    Some(GeneratedBlock { text, size, pieces })
}
