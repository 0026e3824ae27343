//! Neurons that are active together, put together: the first dense layer leaves out groups of four inputs that are all
//! zero, and the better the groups, the more of them are.

use rand::RngExt;

use super::{BackEnd, EngineError, Evaluator, Model, Strategy};
use crate::chess::{Board, Color};
use crate::features::FeatureSet;
use crate::net::QuantNet;
use crate::units::Seed;

/// Inputs of a group.
const GROUP: usize = 4;
/// Exchanges tried a unit.
const EXCHANGES: usize = 100;

/// The network with its accumulators' neurons in an order that suits `positions`; every score is the same. Some thousand
/// positions tell enough; the same ones give the same order.
///
/// # Errors
/// When the network has not as many inputs as the set has features.
pub fn ft_permute<'a>(
    set: &FeatureSet,
    net: &QuantNet,
    positions: impl IntoIterator<Item = (&'a Board, Color)>,
) -> Result<QuantNet, EngineError> {
    let model = Model::new(net);
    let mut evaluator = Evaluator::new(set, &model, Strategy::Refresh, BackEnd::best())?;
    let mut activity = Activity { active: vec![Vec::new(); net.units()], samples: 0 };
    for (board, turn) in positions {
        evaluator.set(board);
        evaluator.observe(turn, |layer, values| {
            if layer == 0 {
                activity.add(values);
            }
        });
    }
    Ok(net.permute_ft(&activity.order()))
}

/// In which samples every unit was not zero: bit s % 64 of word s / 64.
struct Activity {
    active: Vec<Vec<u64>>,
    samples: usize,
}

impl Activity {
    fn add(&mut self, values: &[u8]) {
        let (word, bit) = (self.samples / 64, self.samples % 64);
        for (active, value) in self.active.iter_mut().zip(values) {
            active.resize(word + 1, 0);
            active[word] |= u64::from(*value != 0) << bit;
        }
        self.samples += 1;
    }

    /// Units in an order whose groups are active in few samples: each begun by the most active unit left, filled with
    /// those most often active when the group is, then bettered by exchanges.
    fn order(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.active.len()).collect();
        left.sort_by_key(|unit| std::cmp::Reverse(count(&self.active[*unit])));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        while !left.is_empty() {
            let mut group = vec![left.remove(0)];
            let mut union = self.active[group[0]].clone();
            while group.len() < GROUP && !left.is_empty() {
                let shared = |unit: &usize| both(&union, &self.active[*unit]);
                let (best, _) = left
                    .iter()
                    .map(shared)
                    .enumerate()
                    .max_by_key(|(at, shared)| (*shared, usize::MAX - at))
                    .unwrap_or_default();
                let unit = left.remove(best);
                union.iter_mut().zip(&self.active[unit]).for_each(|(union, active)| *union |= active);
                group.push(unit);
            }
            groups.push(group);
        }
        self.exchange(&mut groups);
        groups.concat()
    }

    /// Tries exchanges of two units of different groups, and keeps those that make the groups active in fewer samples.
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
            (groups[a][i], groups[b][j]) = (units[1], units[0]);
            let new = [self.cost(&groups[a]), self.cost(&groups[b])];
            if new[0] + new[1] < costs[a] + costs[b] {
                (costs[a], costs[b]) = (new[0], new[1]);
            } else {
                (groups[a][i], groups[b][j]) = (units[0], units[1]);
            }
        }
    }

    /// Samples in which some unit of a group is active.
    fn cost(&self, group: &[usize]) -> usize {
        let words = self.active[group[0]].len();
        (0..words)
            .map(|word| group.iter().fold(0, |all, unit| all | self.active[*unit][word]).count_ones() as usize)
            .sum()
    }
}

fn count(active: &[u64]) -> u32 {
    active.iter().map(|word| word.count_ones()).sum()
}

/// Samples in which both are active.
fn both(one: &[u64], other: &[u64]) -> u32 {
    one.iter().zip(other).map(|(one, other)| (one & other).count_ones()).sum()
}
