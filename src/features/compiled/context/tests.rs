//! Contexts against the rows of explicit assignments, on generated and chosen definitions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use rand::RngExt;

use super::*;
use crate::features::compiled::generator::{self, Limits};
use crate::features::definition;
use crate::features::spec::{CountSpec, DROPPED, FactorKind, ProductSpec};
use crate::features::{Block, FeatureSet};
use crate::units::Seed;

/// A state of the unmirrored board for each of some variables.
type Assignment = Vec<(usize, Entity)>;

/// An assignment of the block's variables; for a question about a count, its number and an assignment of its variables.
type Question = (Assignment, Option<(usize, Assignment)>);

/// Elements for bound variables with all counts 0, each with the numbers of its counts. Computed directly.
fn elements(product: &ProductSpec, entities: &[Entity], counts: &mut usize) -> Vec<(u32, Vec<usize>)> {
    let mut found = vec![(0, Vec::new())];
    for factor in &product.factors {
        let right: Vec<(u32, Vec<usize>)> = match &factor.kind {
            FactorKind::Axis(axis) => {
                axis.index(entities[axis.slot]).into_iter().map(|index| (index, Vec::new())).collect()
            }
            FactorKind::Difference(left, right) => {
                let value = left.property.of(entities[left.slot]) - right.property.of(entities[right.slot]);
                vec![((value + left.size() as i32 - 1) as u32, Vec::new())]
            }
            // Tested where they are lowered.
            FactorKind::Reserved | FactorKind::Reach(_) | FactorKind::Pair(_) => Vec::new(),
            FactorKind::Count(_) => {
                *counts += 1;
                vec![(0, vec![*counts - 1])]
            }
            FactorKind::Sum(products) => {
                let mut offset = 0;
                let mut all = Vec::new();
                for product in products {
                    let inner = elements(product, entities, counts).into_iter();
                    all.extend(inner.map(|(element, of)| (element + offset, of)));
                    offset += product.size;
                }
                all
            }
        };
        let times_right = |(a, of): &(u32, Vec<usize>)| {
            let a = *a;
            let of = of.clone();
            right.iter().map(move |(b, more)| (a * factor.size + b, [of.clone(), more.clone()].concat())).collect()
        };
        found = found.iter().flat_map(|left| -> Vec<_> { times_right(left) }).collect();
    }
    found
}

/// Whether every variable bound from a king is on a square that the king reaches.
fn kings_reach(binders: &[BinderSpec], entities: &[Entity]) -> bool {
    binders.iter().all(|binder| {
        let Some(of) = binder.source.of().filter(|of| *of <= ENEMY_KING) else { return true };
        let coordinates = |square: u32| [(square & 7) as i32, (square >> 3) as i32];
        let from = coordinates(entities[of].square);
        let to = coordinates(entities[binder.slot].square);
        let [files, ranks] = [to[0] - from[0], to[1] - from[1]];
        match binder.source.direction() {
            Some(direction) => {
                let (file, rank) = direction.step();
                (1..8).any(|steps| (files, ranks) == (file * steps, rank * steps))
            }
            None => files.abs().max(ranks.abs()) == 1,
        }
    })
}

fn sideways(binders: &[BinderSpec]) -> bool {
    binders.iter().any(|binder| {
        let is_sideways = binder.source.direction().is_some_and(|direction| direction != Direction::North);
        is_sideways && binder.source.of().is_some_and(|of| of > ENEMY_KING)
    })
}

/// The rows that answer a question for a placement of the kings, and the direction in which `next` runs.
fn answer(spec: &BlockSpec, counts: &[&CountSpec], kings: &Kings, (outer, counted): &Question) -> Vec<u32> {
    let mut entities = vec![Entity::bare(0); spec.variables.len()];
    let [own, enemy] = kings.bindings();
    entities[OWN_KING] = own.entity();
    entities[ENEMY_KING] = enemy.entity();
    let inner = counted.iter().flat_map(|(_, inner)| inner);
    for (slot, entity) in outer.iter().chain(inner) {
        entities[*slot] = Entity { square: entity.square ^ kings.mask, ..*entity };
    }
    let holds = |condition: &Option<ConditionSpec>| {
        condition.as_ref().is_none_or(|condition| condition.holds(&|slot: usize| entities[slot]))
    };
    if !kings_reach(&spec.binders, &entities) || !holds(&spec.condition) {
        return Vec::new();
    }
    let mut rows = elements(&spec.product, &entities, &mut 0);
    if let Some(kept) = &spec.renumbering {
        rows.iter_mut().for_each(|(element, _)| *element = kept[*element as usize]);
        rows.retain(|(element, _)| *element != DROPPED);
    }
    let (count, binders) = match counted {
        None => (None, &spec.binders),
        Some((number, _)) => {
            rows.retain(|(_, of)| of.contains(number));
            (Some(counts[*number]), &counts[*number].binders)
        }
    };
    if count.is_some_and(|count| count.max == 0 || !kings_reach(binders, &entities) || !holds(&count.condition)) {
        return Vec::new();
    }
    let turned = (!rows.is_empty() && sideways(binders)).then_some(u32::MAX - kings.mask);
    rows.into_iter().map(|(element, _)| element).chain(turned).collect()
}

fn all_states(spec: &BlockSpec, slot: usize) -> Vec<Entity> {
    states(slot, spec.variables[slot]).flatten().collect()
}

/// All assignments of at most two variables.
fn all_assignments(spec: &BlockSpec, slots: &[usize]) -> Vec<Assignment> {
    slots.iter().fold(vec![Vec::new()], |found, slot| {
        let more = |known: &Assignment| {
            let known = known.clone();
            all_states(spec, *slot).into_iter().map(move |entity| [known.clone(), vec![(*slot, entity)]].concat())
        };
        found.iter().flat_map(more).collect()
    })
}

/// The variables of a group of questions: the block's, and one count's by its number.
type QuestionVariables = (Vec<usize>, Option<(usize, Vec<usize>)>);

/// The block's variables alone, then with each count's.
fn all_question_variables(spec: &BlockSpec, counts: &[&CountSpec]) -> Vec<QuestionVariables> {
    let slots = |binders: &[BinderSpec]| binders.iter().map(|binder| binder.slot).collect::<Vec<_>>();
    let outer = slots(&spec.binders);
    let counted = counts.iter().enumerate().map(|(number, count)| Some((number, slots(&count.binders))));
    std::iter::once(None).chain(counted).map(|counted| (outer.clone(), counted)).collect()
}

/// Placements share a context exactly when no assignment distinguishes them. Returns how many definitions have several
/// contexts, how many pairs of contexts were distinguished and how many contexts are bounds.
fn check_generated(name: &str, limits: Limits, select: bool, definitions: u64) -> [usize; 3] {
    const SAMPLE: usize = 300;
    let mut several = 0;
    let mut pairs = 0;
    let mut bounds = 0;
    for number in 0..definitions {
        let mut rng = Seed(31).stream(name, number);
        let text = generator::definition(&mut rng, limits).text();
        let mut spec = definition::parse(&text).expect("generated definitions are valid").blocks.swap_remove(0);
        if select {
            if spec.product.size > 1 << 20 {
                continue;
            }
            let mut fresh = 0..;
            let mut select = |_| if rng.random_bool(0.3) { fresh.next().unwrap_or(0) } else { DROPPED };
            spec.renumbering = Some((0..spec.product.size).map(&mut select).collect::<Arc<[u32]>>());
        }
        let spec = &spec;
        let counts = spec.product.counts();
        // Conditions with counts in them have their own test.
        if !spec.guards.is_empty() || counts.iter().any(|count| !count.guards.is_empty()) {
            continue;
        }
        let block = CompiledBlock::new(spec).expect("few terms");
        let variables = all_question_variables(spec, &counts);
        let mut pick = |slots: &[usize]| -> Assignment {
            let mut state = |slot| {
                let states = all_states(spec, slot);
                (slot, states[rng.random_range(0..states.len())])
            };
            slots.iter().map(|slot| state(*slot)).collect()
        };
        let mut sample: Vec<Question> = Vec::new();
        for (outer, counted) in &variables {
            let question = |_| (pick(outer), counted.as_ref().map(|(number, inner)| (*number, pick(inner))));
            sample.extend((0..SAMPLE).map(question));
        }
        let mut known: HashMap<u32, (Kings, Vec<Vec<u32>>)> = HashMap::new();
        for placement in 0..128u32 {
            // Two enemy kings each; a table that does not read them must give both one context.
            let own = placement / 2;
            let enemy = (0..).map(|_| rng.random_range(0..64)).find(|enemy| !too_close(own, *enemy)).unwrap_or(0);
            let mask = spec.orientation.mask(Square::new(own), Perspective::White);
            let kings = Kings { own: own ^ mask, enemy: enemy ^ mask, mask };
            let answers: Vec<Vec<u32>> =
                sample.iter().map(|question| answer(spec, &counts, &kings, question)).collect();
            match known.entry(block.contexts().id(own, enemy)) {
                Entry::Occupied(same) => assert_eq!(same.get().1, answers, "{kings:?} {:?} {text}", same.get().0),
                Entry::Vacant(new) => {
                    new.insert((kings, answers));
                }
            }
        }
        if block.contexts().is_bound() {
            bounds += 1;
            continue;
        }
        let found: Vec<&(Kings, Vec<Vec<u32>>)> = known.values().collect();
        several += usize::from(found.len() > 1);
        let small = |(outer, counted): &QuestionVariables| {
            outer.len() + counted.as_ref().map_or(0, |(_, inner)| inner.len()) <= 2
        };
        if !variables.iter().all(small) {
            continue;
        }
        for (at, (kings, answers)) in found.iter().enumerate() {
            for (other, other_answers) in &found[..at] {
                let differs = |question: Question| {
                    answer(spec, &counts, kings, &question) != answer(spec, &counts, other, &question)
                };
                let some_differs = || {
                    variables.iter().any(|(outer, counted)| {
                        let inner = |outer: &Assignment| match counted {
                            None => differs((outer.clone(), None)),
                            Some((number, slots)) => {
                                let mut inner = all_assignments(spec, slots).into_iter();
                                inner.any(|inner| differs((outer.clone(), Some((*number, inner)))))
                            }
                        };
                        all_assignments(spec, outer).iter().any(inner)
                    })
                };
                assert!(answers != other_answers || some_differs(), "{kings:?} {other:?} {text}");
                pairs += 1;
            }
        }
    }
    [several, pairs, bounds]
}

#[test]
fn contexts_of_plain_blocks() {
    let limits = Limits { blocks: 1, binders: 2, counts: false, king_sources: false };
    let [several, pairs, bounds] = check_generated("contexts", limits, false, 90);
    assert!(several > 30 && pairs > 4_000 && bounds < 3, "{several} {pairs} {bounds}");
}

#[test]
fn contexts_of_counts_and_sources_over_kings() {
    let limits = Limits { blocks: 1, binders: 3, ..Limits::FULL };
    let [several, pairs, bounds] = check_generated("counted contexts", limits, false, 100);
    assert!(several > 30 && pairs > 2_000 && bounds < 10, "{several} {pairs} {bounds}");
}

#[test]
fn contexts_of_selections() {
    let limits = Limits { blocks: 1, binders: 2, counts: false, king_sources: true };
    let [several, pairs, bounds] = check_generated("selected contexts", limits, true, 60);
    assert!(several > 12 && pairs > 1_000 && bounds < 10, "{several} {pairs} {bounds}");
}

/// Exact contexts of a set.
fn check(definition: &str, expected: usize) {
    let set = FeatureSet::resolve(definition).or_else(|_| FeatureSet::from_definition(definition)).expect("a set");
    let bound = set.blocks().iter().any(Block::contexts_are_a_bound);
    assert_eq!((set.contexts(), bound), (expected, false), "{definition}");
}

#[test]
fn placements_with_equal_rows_share_a_context() {
    // A king on the eighth rank has no square to its north.
    check("file(K) for N in next(K, north)", 57);
    // A king on the a-file or the eighth rank has no square to its northwest.
    check("file(C) for N in next(E, northwest), C in attacks(E)", 50);
    // Kings two ranks or more from the first rank share a context.
    check("count(3 for M in moves(K) if rank(M) == 0)", 17);
    check("role(T) * count(0 for Z in next(K, northwest)) for T in pieces", 1);
    let always = "color(N) <= 4 or square(N) - square(Q) - square(S) > square(K)";
    check(&format!("file(N) for N in pieces, Q in pieces, S in next(N, northwest) if {always}"), 1);
    // Sums over three pieces that distinguish all squares of the king.
    let sums = "square(N) - square(Q) - square(S) > square(K)";
    check(&format!("file(N) for N in pieces, Q in pieces, S in next(N, northwest) if {sums}"), 64);
    check("file(P) for P in pieces if file(K) < 8 and rank(P) < 4 or rank(P) == 7", 1);
    check("file(P) for P in pieces if abs(file(K) - file(P)) < 9", 1);
}

#[test]
fn contexts_fix_the_own_king_where_no_two_squares_share_one() {
    let definitions = [
        ("half-ka-v2-hm", true),
        ("square(K) * role(P) for P in pieces", true),
        ("square(K) * file(E) * role(P) for P in pieces", true),
        ("chess768", false),
        ("chess768-mirrored", false),
        ("chess768-kb16-hm", false),
        ("file(K) * square(E) * role(P) for P in pieces", false),
    ];
    for (definition, fixes) in definitions {
        let set = FeatureSet::resolve(definition).expect("a set");
        assert_eq!(set.blocks()[0].compiled.contexts().fix_own_king(), fixes, "{definition}");
    }
}

#[test]
fn conditions_with_counts_distinguish_counted_squares() {
    check("file(P) for P in pieces if count(1 for Q in pieces if file(Q) == file(P) and role(Q) == pawn) == 0", 1);
    check("file(P) for P in pieces if count(3 for Q in pieces if file(Q) == file(K)) == 2", 8);
    // Always true, and never true.
    check("file(P) for P in pieces if count(3 for Q in pieces if file(Q) == file(K)) < 4", 1);
    check("file(P) for P in pieces if (count(3 for Q in pieces if file(Q) == file(K)) + file(P)) > 10", 1);
    // Some files and counts reach ten.
    check("file(P) for P in pieces if (count(3 for Q in pieces if file(Q) == file(K)) + file(P)) > 9", 8);
    // No file is so far away.
    check("file(P) for P in pieces if count(3 for Q in pieces if (file(Q) - file(K)) == 9) == 1", 1);
    let inner = "count(1 for Q in pieces if square(Q) == square(M))";
    check(&format!("count(3 for M in moves(K) if rank(M) == 0 and {inner} == 0)"), 17);
    check(&format!("role(P) for P in pieces if count(3 for M in moves(K) if rank(M) == 0 and {inner} < 1) > 0"), 17);
    check("role(P) * file(K) for P in pieces if count(0 for Q in pieces) > 0", 1);
}

/// Such a set reads only the half of the own king, whichever features are selected.
#[test]
fn a_selection_over_two_variables_reads_the_kings_half_alone() {
    let features = "square(P) * role(P) * square(Q) for P in pieces, Q in pieces";
    let selected = |ranges: &str| format!("features = \"{features}\"\nmirror = \"king-left\"\nselected = \"{ranges}\"");
    check(&selected("0-4095 9000"), 2);
    // A pawn on a1 with something on a1 or h1: a1 is another square on the mirrored board.
    check(&selected("0 7"), 2);
    // Ranks stay on the mirrored board.
    let both =
        "features = \"rank(P) * rank(Q) for P in pieces, Q in pieces\"\nmirror = \"king-left\"\nselected = \"3 9\"";
    check(both, 1);
}

/// Where there are too many assignments to try, the values read of the kings decide.
#[test]
fn too_many_assignments_give_an_upper_bound() {
    let term = |times: [u32; 5]| {
        let axes = ["square(P)", "square(Q)", "square(R)", "square(S)", "square(K)"];
        let parts = axes.iter().zip(times).map(|(axis, times)| vec![*axis; times as usize].join(" + "));
        parts.collect::<Vec<_>>().join(" + ")
    };
    let conditions =
        [[1, 2, 3, 4, 1], [4, 1, 2, 3, 1], [3, 4, 1, 2, 1]].map(|times| format!("({}) > 300", term(times)));
    let text =
        format!("file(P) for P in pieces, Q in pieces, R in pieces, S in pieces if {}", conditions.join(" and "));
    let set = FeatureSet::resolve(&text).expect("a set");
    assert!(set.blocks()[0].contexts_are_a_bound());
    assert_eq!(set.contexts(), 64);
}
