//! Deltas of blocks that bind a piece and something that it attacks or moves to, or that count these.
//!
//! A change alters the pairs of the pieces on changed squares and of those that reach one: [`pairs`] finds these for
//! blocks whose bindings have rows of their own, and for bags, in which equal rows cancel ([`bag`]). Where rows count
//! once for all pieces of a code, [`channels`] compares the [`unions`] of what these reach; [`counts`] compares
//! numbers. [`rows`] has the rows of a pair of states, [`scene`] the boards.

mod bag;
mod channels;
mod count_groups;
mod counted;
mod counts;
mod pairs;
mod rows;
mod scene;
mod unions;

use crate::features::code::{Builder, Program};
use crate::features::compiled::PairBlock;
use crate::features::lower::context::Context;
use crate::features::spec::VariableKind;

use crate::features::lower::sources::Reachable;
use bag::BagCounter;
use channels::ChannelPlan;
use counts::CountDeltas;
use pairs::{PairPlan, PairSink};
use rows::StatePairRows;
use scene::Scene;
use unions::{UnionState, Unions};

/// What [`delta`] wrote.
#[derive(Default)]
pub struct ReachDeltas<'a> {
    /// The blocks whose deltas it wrote, by position.
    pub written: Vec<usize>,
    /// Most rows that they append to a list.
    pub capacity: u32,
    /// What it keeps with the board.
    unions: Option<UnionState>,
    counts: Option<CountDeltas<'a>>,
}

impl ReachDeltas<'_> {
    /// The program that computes the state of a board.
    pub fn start(&self) -> Option<Program> {
        let counts = self.counts.as_ref().filter(|counts| counts.elements() > 0);
        if self.unions.is_none() && counts.is_none() {
            return None;
        }
        let mut builder = Builder::default();
        builder.state(self.unions.map_or(0, UnionState::elements) + counts.map_or(0, CountDeltas::elements));
        if let Some(unions) = self.unions {
            unions.start(&mut builder);
        }
        if let Some(counts) = counts {
            counts.start(&mut builder);
        }
        Some(builder.finish(0, 0))
    }
}

/// Writes the deltas of blocks that are of one of these kinds.
pub fn delta<'a>(builder: &mut Builder, contexts: &[(usize, &'a Context<'a>)]) -> ReachDeltas<'a> {
    let mut reached = ReachDeltas::default();
    let mut alone: Vec<(&Context<'_>, PairBlock<'_>)> = Vec::new();
    let mut channels = Vec::new();
    let mut bags = Vec::new();
    let mut counting = Vec::new();
    for (number, context) in contexts {
        if counts::derives(context) {
            counting.push(*context);
            reached.written.push(*number);
            continue;
        }
        let Some(block) = context.block.as_pairs().filter(|_| context.block.terms().len() <= super::MOST_TERMS) else {
            continue;
        };
        if Reachable::of(block.source).is_none() {
            continue;
        }
        if block.is_injective() {
            reached.capacity += most_bindings(block) * block.terms().len() as u32;
            alone.push((context, block));
        } else if block.is_bag() {
            let counters: Option<Vec<_>> =
                (0..block.terms().len()).map(|number| BagCounter::new(builder, context, block, number)).collect();
            let Some(counters) = counters else { continue };
            reached.capacity += most_bindings(block) * counters.len() as u32;
            bags.extend(counters.into_iter().map(|counter| (block, counter)));
        } else if let Some(plan) = ChannelPlan::new(context, block) {
            reached.capacity += plan.most_rows();
            channels.push(plan);
        } else {
            continue;
        }
        reached.written.push(*number);
    }
    if reached.written.is_empty() {
        return reached;
    }
    let scene = Scene::new(builder);
    for (reach, ends_on_pieces) in
        [(Reachable::Attacks, true), (Reachable::Attacks, false), (Reachable::Moves, false), (Reachable::Board, true)]
    {
        let is_one = |(_, block): &&(&Context<'_>, PairBlock<'_>)| {
            Reachable::of(block.source) == Some(reach) && block.ends_on_pieces() == ends_on_pieces
        };
        let blocks: Vec<_> = alone.iter().filter(is_one).copied().collect();
        let rows = rows_of(builder, &blocks);
        if !rows.is_empty() {
            PairPlan { reach, ends_on_pieces, pairs: PairSink::Emitted(&rows), scene: &scene }.write(builder);
        }
    }
    for (block, counter) in &bags {
        if let Some(reach) = Reachable::of(block.source) {
            let ends_on_pieces = block.ends_on_pieces();
            PairPlan { reach, ends_on_pieces, pairs: PairSink::Counted(counter), scene: &scene }.write(builder);
            counter.emit(builder);
        }
    }
    let codes = channels.iter().fold(0, |codes, plan: &ChannelPlan<'_>| codes | plan.codes());
    if !channels.is_empty() {
        let state = UnionState::new(builder, codes);
        let unions = Unions::new(builder, &scene, codes, state);
        for plan in &channels {
            plan.write(builder, &scene, &unions);
        }
        reached.unions = Some(state);
    }
    if !counting.is_empty() {
        let counts = CountDeltas::new(builder, &counting);
        counts.write(builder, &scene);
        reached.capacity += counts.most_rows();
        reached.counts = Some(counts);
    }
    reached
}

/// Whether [`encode`] lists a row that counts once only once, however many bindings have it.
pub fn tells_apart(context: &Context<'_>) -> bool {
    let has_few_terms = context.block.terms().len() <= super::MOST_TERMS;
    has_few_terms && context.block.as_pairs().is_some_and(|block| ChannelPlan::new(context, block).is_some())
}

/// Writes the encoders of blocks that bind a piece and something that it attacks or moves to. Gives the positions of
/// those that are of another kind.
pub fn encode<'a>(builder: &mut Builder, contexts: &[&'a Context<'a>]) -> Vec<usize> {
    let mut others = Vec::new();
    let mut alone: Vec<(&Context<'_>, PairBlock<'_>)> = Vec::new();
    let mut channels = Vec::new();
    for (number, context) in contexts.iter().enumerate() {
        let block = context.block.as_pairs().filter(|_| context.block.terms().len() <= super::MOST_TERMS);
        let reach = block.and_then(|block| Reachable::of(block.source));
        let (Some(block), Some(Reachable::Attacks | Reachable::Moves)) = (block, reach) else {
            others.push(number);
            continue;
        };
        match ChannelPlan::new(context, block) {
            Some(plan) => channels.push(plan),
            None => alone.push((context, block)),
        }
    }
    if others.len() == contexts.len() {
        return others;
    }
    let scene = Scene::of_board(builder);
    for (reach, ends_on_pieces) in [(Reachable::Attacks, true), (Reachable::Attacks, false), (Reachable::Moves, false)]
    {
        let is_one = |(_, block): &&(&Context<'_>, PairBlock<'_>)| {
            Reachable::of(block.source) == Some(reach) && block.ends_on_pieces() == ends_on_pieces
        };
        let blocks: Vec<_> = alone.iter().filter(is_one).copied().collect();
        let rows = rows_of(builder, &blocks);
        if !rows.is_empty() {
            let plan = PairPlan { reach, ends_on_pieces, pairs: PairSink::Emitted(&rows), scene: &scene };
            plan.encode(builder, &rows);
        }
    }
    if !channels.is_empty() {
        let codes = channels.iter().fold(0, |codes, plan: &ChannelPlan<'_>| codes | plan.codes());
        let unions = Unions::of_board(builder, &scene, codes);
        for plan in &channels {
            plan.encode(builder, &scene, &unions);
        }
    }
    others
}

/// The rows of blocks of one source: those of several blocks as one table where that is possible.
fn rows_of<'a>(builder: &mut Builder, blocks: &[(&'a Context<'a>, PairBlock<'a>)]) -> Vec<StatePairRows<'a>> {
    let mut all = Vec::new();
    let mut left = blocks.to_vec();
    while let Some((context, block)) = left.first().copied() {
        let needs_table = |block: PairBlock<'_>| block.has_condition() || block.is_renumbered();
        let is_alike = |(other, other_block): &(&Context<'_>, PairBlock<'_>)| {
            other.spec.orientation == context.spec.orientation && needs_table(*other_block)
        };
        let group: Vec<_> = left.iter().filter(|other| is_alike(other)).copied().collect();
        let table = if needs_table(block) { StatePairRows::pairs(builder, &group) } else { None };
        match table {
            Some(rows) => {
                all.push(rows);
                left.retain(|other| !is_alike(other));
            }
            None => {
                all.extend((0..block.terms().len()).map(|number| StatePairRows::sums(context, block, number)));
                left.remove(0);
            }
        }
    }
    all
}

/// Most bindings of a block on a board of at most 32 pieces.
fn most_bindings(block: PairBlock<'_>) -> u32 {
    const PIECES: u32 = 32;
    match (Reachable::of(block.source), block.second_kind) {
        (None | Some(Reachable::Board), _) => PIECES * PIECES,
        // No piece attacks more than eight pieces, and none more than 27 squares.
        (Some(_), VariableKind::Piece) => PIECES * 8,
        (Some(_), VariableKind::Square) => PIECES * 27,
    }
}

#[cfg(test)]
mod tests;
