//! `ft_permute`: an order of the accumulator's neurons that speeds up the first dense layer. That layer skips groups of
//! four inputs that are all zero, so neurons that are active together belong in one group.

use std::cmp::Reverse;

use rand::RngExt;

use super::{BackEnd, EngineError, Evaluator, Model, Strategy};
use crate::chess::{Board, Color};
use crate::features::FeatureSet;
use crate::net::QuantNet;
use crate::units::Seed;

/// Inputs per group.
const GROUP: usize = 4;
/// Exchanges tried per unit.
const EXCHANGES: usize = 100;

/// Permutes the accumulator's neurons so that fewer groups of inputs are active on `positions`. Every score stays the
/// same. A few thousand positions are enough, and equal positions give an equal order.
///
/// # Errors
/// When the network's number of inputs differs from the set's number of features.
pub fn ft_permute<'a>(
    set: &FeatureSet,
    net: &QuantNet,
    positions: impl IntoIterator<Item = (&'a Board, Color)>,
) -> Result<QuantNet, EngineError> {
    let model = Model::new(net);
    let mut evaluator = Evaluator::new(set, &model, Strategy::Refresh, BackEnd::best())?;
    let mut activations = Activations { active: vec![Vec::new(); net.units()], samples: 0 };
    for (board, turn) in positions {
        evaluator.set(board);
        evaluator.observe(turn, |layer, values| {
            if layer == 0 {
                activations.add(values);
            }
        });
    }
    Ok(net.permute_ft(&activations.order()))
}

/// The samples in which each unit was not zero, as bit sets: sample s is bit s % 64 of word s / 64.
struct Activations {
    active: Vec<Vec<u64>>,
    samples: usize,
}

impl Activations {
    fn add(&mut self, values: &[u8]) {
        let word = self.samples / 64;
        let bit = self.samples % 64;
        for (active, value) in self.active.iter_mut().zip(values) {
            active.resize(word + 1, 0);
            active[word] |= u64::from(*value != 0) << bit;
        }
        self.samples += 1;
    }

    /// Orders the units so that few groups are active per sample. Each group starts with the most active free unit and
    /// takes those most often active together with it; exchanges between groups then improve the result.
    fn order(&self) -> Vec<usize> {
        let mut free: Vec<usize> = (0..self.active.len()).collect();
        free.sort_by_key(|unit| Reverse(count(&self.active[*unit])));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        while !free.is_empty() {
            let mut group = vec![free.remove(0)];
            let mut union = self.active[group[0]].clone();
            while group.len() < GROUP && !free.is_empty() {
                let shared = |unit: &usize| count_shared(&union, &self.active[*unit]);
                // The first of the best.
                let best = free.iter().map(shared).enumerate().max_by_key(|(at, shared)| (*shared, Reverse(*at)));
                let unit = free.remove(best.unwrap_or_default().0);
                union.iter_mut().zip(&self.active[unit]).for_each(|(union, active)| *union |= active);
                group.push(unit);
            }
            groups.push(group);
        }
        self.exchange(&mut groups);
        groups.concat()
    }

    /// Tries random exchanges of two units between groups; keeps the exchanges with which the groups are active in
    /// fewer samples.
    fn exchange(&self, groups: &mut [Vec<usize>]) {
        if groups.len() < 2 {
            return;
        }
        let mut rng = Seed(0).stream("arrange", 0);
        let mut costs: Vec<usize> = groups.iter().map(|group| self.cost(group)).collect();
        for _ in 0..EXCHANGES * self.active.len() {
            let [a, b] = [rng.random_range(0..groups.len()), rng.random_range(0..groups.len())];
            if a == b {
                continue;
            }
            let [i, j] = [rng.random_range(0..groups[a].len()), rng.random_range(0..groups[b].len())];
            let units = [groups[a][i], groups[b][j]];
            groups[a][i] = units[1];
            groups[b][j] = units[0];
            let new = [self.cost(&groups[a]), self.cost(&groups[b])];
            if new[0] + new[1] < costs[a] + costs[b] {
                costs[a] = new[0];
                costs[b] = new[1];
            } else {
                groups[a][i] = units[0];
                groups[b][j] = units[1];
            }
        }
    }

    /// The number of samples in which some unit of a group is active.
    fn cost(&self, group: &[usize]) -> usize {
        let words = self.active[group[0]].len();
        let union = |word: usize| group.iter().fold(0, |union, unit| union | self.active[*unit][word]);
        (0..words).map(|word| union(word).count_ones() as usize).sum()
    }
}

fn count(active: &[u64]) -> u32 {
    active.iter().map(|word| word.count_ones()).sum()
}

/// The number of samples in which both are active.
fn count_shared(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum()
}
