//! The proof that an index is dead: no binding that a legal position could have yields it.
//!
//! [`examine`] enumerates the index's bindings. When the search ends and none of them is possible, the index is dead;
//! when a legal position can be built from one of them, the index is live.

use std::ops::ControlFlow;

use super::AnalysisGoal;
use super::bindings::{BindingSearch, SearchEnd};
use super::budget::AnalysisSteps;
use super::counts;
use super::positions::stream;
use super::witness::{self, EncodedWitness};

/// Attempts to build a witness, per index and per binding.
const ATTEMPTS: u32 = 512;
const ATTEMPTS_PER_BINDING: u32 = 24;

/// The result for one index.
pub enum Verdict {
    Dead,
    Live(EncodedWitness),
    Unresolved,
}

/// Examines an index within `budget` steps for the search and as many for witnesses; returns the steps taken, too.
pub fn examine(
    search: &BindingSearch<'_>,
    index: u32,
    goal: AnalysisGoal,
    budget: AnalysisSteps,
) -> (Verdict, AnalysisSteps) {
    if search.expired() {
        return (Verdict::Unresolved, 0);
    }
    let (constraints, decoding_steps) = search.constraints_and_steps(index);
    let Some(constraints) = constraints else { return (Verdict::Dead, decoding_steps) };
    let mut rng = None;
    let mut attempts = 0;
    let mut has_possible_binding = false;
    let mut witness = None;
    let mut search_budget = budget;
    let mut witness_budget = budget;
    let end = search.bindings(&constraints, &mut search_budget, &mut |partial, entities| {
        let mut values = |spec| counts::possible_values(spec, &search.pieces, partial, entities, &mut witness_budget);
        let counts_match = constraints.counts.iter().all(|(spec, value)| counts::admits(&values(spec), *value));
        let mut may_hold =
            |guard| counts::guard_may_hold(guard, &search.pieces, partial, entities, &mut witness_budget);
        if !(counts_match && search.block.guards.iter().all(&mut may_hold)) {
            return if witness_budget > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        }
        has_possible_binding = true;
        if witness_budget == 0 || goal == AnalysisGoal::DeadOnly {
            return ControlFlow::Break(());
        }
        let rng = rng.get_or_insert_with(|| stream("witness", index.into()));
        for attempt in 0..ATTEMPTS_PER_BINDING {
            if attempts >= ATTEMPTS || witness_budget == 0 {
                return ControlFlow::Break(());
            }
            attempts += 1;
            witness = witness::attempt(search, &constraints, index, partial, attempt, rng, &mut witness_budget);
            if witness.is_some() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    let verdict = match (witness, end) {
        (Some(witness), _) => Verdict::Live(witness),
        (None, SearchEnd::Exhausted) if !has_possible_binding => Verdict::Dead,
        (None, _) => Verdict::Unresolved,
    };
    (verdict, 2 * budget - search_budget - witness_budget + decoding_steps)
}
