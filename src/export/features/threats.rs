//! Families of threats: blocks whose index is a base for the attacker and its target (colours and roles), plus the
//! number of the pair of squares among all that the attacker's kind attacks. Together they become one loop over
//! attackers.

use super::dialect::{NumberType, table_or};
use super::evaluate::{has_counts, indices, reads_king};
use super::helpers::reached;
use super::{Form, Generator};
use crate::chess::Orientation;
use crate::export::Language;
use crate::features::Block;
use crate::features::spec::{BlockSpec, ENEMY_KING, Entity, FactorKind, OWN_KING, ProductSpec, SourceSpec};

/// By order (target's square below, above the attacker's), attacker's code and target's code (colour · 6 + role).
type Bases = [[[Option<u32>; 12]; 12]; 2];

/// Blocks of one orientation, no two of which have features for the same attacker, target and order.
pub struct Family {
    pub blocks: Vec<usize>,
    orientation: Orientation,
    bases: Bases,
}

/// The families of a set's blocks.
pub fn families(blocks: &[Block]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let spec = block.spec();
        let Some(bases) = bases(spec) else { continue };
        let known = families.iter_mut().find(|family| {
            family.orientation == spec.orientation
                && overlaid(&family.bases, &bases).is_some_and(|both| is_distinct(&both))
        });
        match known {
            Some(family) => {
                family.blocks.push(at);
                family.bases = overlaid(&family.bases, &bases).unwrap_or(family.bases);
            }
            None if is_distinct(&bases) => {
                families.push(Family { blocks: vec![at], orientation: spec.orientation, bases });
            }
            None => {}
        }
    }
    families
}

/// Both tables in one; `None` if both have an entry somewhere.
fn overlaid(one: &Bases, other: &Bases) -> Option<Bases> {
    let mut both = *one;
    for ((order, attacker), target) in all() {
        match (one[order][attacker][target], other[order][attacker][target]) {
            (Some(_), Some(_)) => return None,
            (own, new) => both[order][attacker][target] = own.or(new),
        }
    }
    Some(both)
}

fn all() -> impl Iterator<Item = ((usize, usize), usize)> {
    (0..2).flat_map(|order| (0..12).flat_map(move |attacker| (0..12).map(move |target| ((order, attacker), target))))
}

/// Whether no two pairs of pieces on their squares share an index.
fn is_distinct(bases: &Bases) -> bool {
    let mut found = Vec::new();
    for ((order, attacker), target) in all() {
        if let Some(base) = bases[order][attacker][target] {
            found.extend(pairs(attacker).into_iter().filter(|pair| pair.order == order).map(|pair| base + pair.number));
        }
    }
    found.sort_unstable();
    found.windows(2).all(|pair| pair[0] != pair[1])
}

/// A square, a square attacked from it on an empty board, and their number.
struct AttackPair {
    from: u32,
    to: u32,
    number: u32,
    order: usize,
}

fn pairs(attacker: usize) -> Vec<AttackPair> {
    let kind = if attacker == 6 { 6 } else { attacker as u32 % 6 };
    let of = |from: u32| (0..64).filter(move |to| reached(kind, from) >> to & 1 != 0).map(move |to| (from, to));
    let numbered = (0..64).flat_map(of).enumerate();
    numbered
        .map(|(number, (from, to))| AttackPair { from, to, number: number as u32, order: usize::from(to > from) })
        .collect()
}

/// The bases of a block; `None` if it has another form.
fn bases(spec: &BlockSpec) -> Option<Bases> {
    let [attackers, targets] = &spec.binders[..] else { return None };
    let is_plain = attackers.source == SourceSpec::Pieces
        && targets.source == SourceSpec::Targets(attackers.slot)
        && !has_counts(spec)
        && !reads_king(spec, OWN_KING)
        && !reads_king(spec, ENEMY_KING);
    let role = reach_role(&spec.product).filter(|_| is_plain)?;
    let mut bases = [[[None; 12]; 12]; 2];
    let mut entities = vec![Entity::bare(0); spec.variables.len()];
    for attacker in [role as usize, 6 + role as usize] {
        let pairs = pairs(attacker);
        for target in 0..12 {
            let mut found: [Option<Option<u32>>; 2] = [None; 2];
            for pair in &pairs {
                let entity =
                    |code: usize, square: u32| Entity { square, role: code as u32 % 6, color: code as u32 / 6 };
                entities[attackers.slot] = entity(attacker, pair.from);
                entities[targets.slot] = entity(target, pair.to);
                let base = match indices(spec, &entities)[..] {
                    [] => None,
                    [index] => Some(index.checked_sub(pair.number)?),
                    _ => return None,
                };
                if *found[pair.order].get_or_insert(base) != base {
                    return None;
                }
            }
            for (bases, found) in bases.iter_mut().zip(found) {
                bases[attacker][target] = found.flatten();
            }
        }
    }
    Some(bases)
}

/// The role of a product's only reach.
fn reach_role(product: &ProductSpec) -> Option<u32> {
    let mut reaches = product.factors.iter().filter_map(|factor| match &factor.kind {
        FactorKind::Reach(reach) => Some(reach.role),
        _ => None,
    });
    reaches.next().filter(|_| reaches.next().is_none())
}

impl Generator<'_> {
    /// The function `name(view, other, among, same, out)` of a family.
    pub(super) fn threats(&mut self, family: &Family) -> Form {
        let language = self.language;
        let name = self.numbered("threats");
        let entries: Vec<String> =
            family.bases.iter().flatten().flatten().map(|base| table_or(language, *base)).collect();
        let about = "Where the pairs of an attacker and its target begin (colour * 6 + role of both, own before \
                     their), for targets\n\
                     on squares below the attacker's, then for those above it.";
        let table = self.tables.cube(language, "threat_start", [2, 12, 12], NumberType::U32, &entries, about);
        let texts: Vec<&str> =
            family.blocks.iter().map(|block| self.set.blocks()[*block].spec().as_written.as_str()).collect();
        let about = "Those of attackers on the squares `among`, without the pairs that stand on the squares `same` of \
                     the other\n\
                     board, too:";
        let mut lines = language.doc(&format!("{about}\n{}", texts.join("\n")));
        let attackers: Vec<usize> =
            (0..12).filter(|code| family.bases.iter().any(|order| order[*code].iter().any(Option::is_some))).collect();
        let first = attackers.iter().map(|code| code % 6).min().unwrap_or(0);
        let last = attackers.iter().map(|code| code % 6).max().unwrap_or(0);
        lines.push(match language {
            Language::Rust => {
                format!("fn {name}(view: &View, other: &View, among: u64, same: u64, out: &mut List) {{")
            }
            Language::C => format!(
                "static inline void fsb_{name}(const fsb_view *view, const fsb_view *other, uint64_t among, uint64_t \
                 same, fsb_list *out) {{"
            ),
        });
        lines.extend(match language {
            Language::Rust => rust_lines(&table, first, last),
            Language::C => c_lines(&table, first, last),
        });
        lines.push("}".to_owned());
        self.functions.push(super::dialect::indented(&lines));
        Form::Threats { name, orientation: family.orientation }
    }
}

fn rust_lines(table: &str, first: usize, last: usize) -> Vec<String> {
    let text = format!(
        "for color in 0..2 {{
for role in {first}..{end} {{
let kind = if role == 0 {{ color * 6 }} else {{ role }};
for from in Bits(view.pieces[color][role] & among) {{
let reached = REACH[kind][from as usize];
let start = REACH_START[kind][from as usize] as u32;
let mut targets = attacks(view, color as i32, role as i32, from) & reached & view.occupied;
if same >> from & 1 != 0 {{
targets &= !(same & attacks(other, color as i32, role as i32, from));
}}
for to in Bits(targets) {{
let target = (color_at(view, to) * 6 + role_at(view, to)) as usize;
let base = {table}[(to > from) as usize][color * 6 + role][target];
if base != NONE {{
push(out, base + start + (reached & ((1 << to) - 1)).count_ones());
}}
}}
}}
}}
}}",
        end = last + 1
    );
    text.lines().map(str::to_owned).collect()
}

fn c_lines(table: &str, first: usize, last: usize) -> Vec<String> {
    let text = format!(
        "for (int32_t color = 0; color < 2; color++) {{
for (int32_t role = {first}; role < {end}; role++) {{
const int32_t kind = role == 0 ? color * 6 : role;
for (uint64_t among_left = view->pieces[color][role] & among; among_left != 0; among_left &= among_left - 1) {{
const int32_t from = (int32_t)fsb_lsb(among_left);
const uint64_t reached = FSB_REACH[kind][from];
const uint32_t start = FSB_REACH_START[kind][from];
uint64_t targets = fsb_attacks(view, color, role, from) & reached & view->occupied;
if ((same >> from) & 1) {{
targets &= ~(same & fsb_attacks(other, color, role, from));
}}
for (; targets != 0; targets &= targets - 1) {{
const int32_t to = (int32_t)fsb_lsb(targets);
const int32_t target = fsb_color_at(view, to) * 6 + fsb_role_at(view, to);
const uint32_t base = {table}[to > from][color * 6 + role][target];
if (base != FSB_NONE) {{
fsb_push(out, base + start + fsb_popcount(reached & (((uint64_t)1 << to) - 1)));
}}
}}
}}
}}
}}",
        end = last + 1
    );
    text.lines().map(str::to_owned).collect()
}
