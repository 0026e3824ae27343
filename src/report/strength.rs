//! Playing strength: each set's Elo over its trained seeds, and the conditions of the matches.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::numbers;
use super::summary::{MethodSummary, SummaryRow};
use crate::record::{CostRatio, MatchConditions, MatchKind, MatchRecord, MatchResult, PlannedRow, Results};
use crate::statistics::pentanomial::Interval;
use crate::statistics::{
    Effect, EloBySeed, Estimate, Level, Outlook, PairedDifference, elo_over_seeds, proportional_effect,
};
use crate::text::grouped;
use crate::units::SortedMap;

/// A set's strength. Elo is against the reference set, seed by seed; the reference itself has none.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Strength {
    /// Means over the seeds.
    pub elo_equal_nodes: Option<Estimate>,
    pub elo_equal_cost: Option<Estimate>,
    /// Elo at equal cost minus Elo at equal nodes, over the seeds that played both with as many nodes of the reference.
    pub elo_by_cost: Option<Estimate>,
    /// Games at equal nodes and at equal cost.
    pub games: [u64; 2],
    /// Nodes per move at equal cost, mean over the seeds.
    pub nodes: Option<f64>,
    /// log2 of the nodes of the same processor time divided by the reference's, mean over the seeds.
    #[serde(skip)]
    pub(super) log2_speed: Option<f64>,
    /// By the noisiest measurement of its cost, the share of these nodes that equal cost may be: `[0.9, 1.3]`; absent
    /// if no measurement was noisy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_noise: Option<[f64; 2]>,
    /// Whether equal cost goes by the user's own figures.
    pub is_by_figures: bool,
    /// How much cost weighs at equal cost; `None` for 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_weight: Option<f64>,
    /// Nodes per second over all its matches.
    pub nps: f64,
}

/// The Elo of a comparison's sets over their seeds, by set.
#[derive(Clone, Debug)]
pub(super) struct EloTables {
    equal_nodes: EloTable,
    equal_cost: EloTable,
    /// Elo at equal cost minus Elo at equal nodes.
    by_cost: EloTable,
    /// What the first two tables are of.
    by_seed: [SortedMap<String, EloBySeed>; 2],
}

type EloTable = SortedMap<String, PairedDifference>;

impl EloTables {
    /// Of the comparison that a planned row belongs to.
    pub(super) fn of(results: &Results, planned: &PlannedRow) -> EloTables {
        let rows = compared_rows(results, planned);
        let by_seed = |row: &&PlannedRow, kind: MatchKind| -> EloBySeed {
            of_kind(results, row, kind).into_iter().map(|result| (result.key.seed.0, effect(result))).collect()
        };
        let [nodes, cost] =
            MatchKind::ALL.map(|kind| rows.iter().map(|row| by_seed(row, kind)).collect::<Vec<EloBySeed>>());
        let minus = |row: &&PlannedRow| -> EloBySeed {
            cost_minus_nodes(results, row).map(|(cost, effect)| (cost.key.seed.0, effect)).collect()
        };
        let by_cost: Vec<EloBySeed> = rows.iter().map(minus).collect();
        let table = |sets: &[EloBySeed]| {
            rows.iter().zip(elo_over_seeds(sets)).filter_map(|(row, found)| Some((row.set.clone(), found?))).collect()
        };
        let by_set = |sets: &[EloBySeed]| rows.iter().map(|row| row.set.clone()).zip(sets.to_vec()).collect();
        EloTables {
            equal_nodes: table(&nodes),
            equal_cost: table(&cost),
            by_cost: table(&by_cost),
            by_seed: [by_set(&nodes), by_set(&cost)],
        }
    }

    fn of_kind(&self, kind: MatchKind) -> &EloTable {
        match kind {
            MatchKind::EqualNodes => &self.equal_nodes,
            MatchKind::EqualCost => &self.equal_cost,
        }
    }

    fn by_seed(&self, kind: MatchKind) -> &SortedMap<String, EloBySeed> {
        match kind {
            MatchKind::EqualNodes => &self.by_seed[0],
            MatchKind::EqualCost => &self.by_seed[1],
        }
    }
}

/// Elo as verdicts and their picture give it: with an interval that holds jointly with the other sets' intervals.
#[derive(Copy, Clone, Debug)]
pub(super) struct JudgedElo {
    pub(super) estimate: Estimate,
    pub(super) outlook: Outlook,
}

impl Strength {
    /// The strength of a planned row; `None` if it played no match. `tables`: of its comparison.
    pub(super) fn of(results: &Results, planned: &PlannedRow, tables: &EloTables) -> Option<Strength> {
        let [nodes, cost] = MatchKind::ALL.map(|kind| of_kind(results, planned, kind));
        let limits: Vec<f64> = cost.iter().map(|result| result.record.player.node_limit as f64).collect();
        let speeds = cost.iter().filter_map(|result| Some(result.record.cost.as_ref()?.ratio.log2()));
        let elo = |table: &EloTable| Some(table.get(&planned.set)?.estimate(Level::SINGLE));
        Some(Strength {
            elo_equal_nodes: elo(&tables.equal_nodes),
            elo_equal_cost: elo(&tables.equal_cost),
            elo_by_cost: elo(&tables.by_cost),
            games: [&nodes, &cost].map(|matches| matches.iter().map(|result| result.record.games.total()).sum()),
            nodes: Estimate::over(&limits).map(|limits| limits.mean),
            log2_speed: Estimate::over(&speeds.collect::<Vec<_>>()).map(|log2| log2.mean),
            cost_noise: cost_noise(&cost),
            is_by_figures: cost.iter().any(|result| is_by_figures(&result.record)),
            cost_weight: cost.iter().find_map(|result| result.record.cost.as_ref()?.weight),
            nps: nps(results, planned)?,
        })
    }

    /// Elo by kind of match.
    pub(super) fn elo(&self, kind: MatchKind) -> Option<Estimate> {
        match kind {
            MatchKind::EqualNodes => self.elo_equal_nodes,
            MatchKind::EqualCost => self.elo_equal_cost,
        }
    }
}

impl MethodSummary {
    /// A row's Elo, with an interval that holds jointly with the intervals of all sets that have played such matches.
    /// Games are counted over all seeds.
    pub(super) fn judged_elo(&self, row: &SummaryRow, kind: MatchKind) -> Option<JudgedElo> {
        let table = self.elo.of_kind(kind);
        let level = Level::together(table.len(), 1);
        let found = table.get(&row.set)?;
        let outlook = found.outlook(level);
        let more_games = outlook.more_games.map(|pairs| 2 * pairs * found.seeds as u64);
        Some(JudgedElo { estimate: found.estimate(level), outlook: Outlook { more_games, ..outlook } })
    }
}

impl MethodSummary {
    /// The rows that have played such matches and are not shown to be weaker than the row of this name: their Elo is taken
    /// seed by seed, and the intervals of the differences hold jointly.
    pub(super) fn not_weaker_than(&self, name: &str, kind: MatchKind) -> Vec<&str> {
        let by_seed = self.elo.by_seed(kind);
        let of_row = |row: &SummaryRow| by_seed.get(&row.set).filter(|own| !own.is_empty());
        let Some(best) = self.rows.iter().find(|row| row.name == name).and_then(of_row) else { return Vec::new() };
        let others: Vec<(&str, &EloBySeed)> = self
            .rows
            .iter()
            .filter(|row| row.name != name)
            .filter_map(|row| Some((row.name.as_str(), of_row(row)?)))
            .collect();
        let ahead = |(_, other): &(&str, &EloBySeed)| -> EloBySeed {
            best.iter().filter_map(|(seed, own)| Some((*seed, own.minus(*other.get(seed)?)))).collect()
        };
        let found = elo_over_seeds(&others.iter().map(ahead).collect::<Vec<_>>());
        let level = Level::together(others.len(), 1);
        let is_shown = |found: &Option<PairedDifference>| {
            let ahead = found.as_ref().map(|found| found.estimate(level));
            ahead.is_some_and(|ahead| ahead.interval.is_some_and(|half| ahead.mean > half))
        };
        others.iter().zip(&found).filter(|(_, found)| !is_shown(found)).map(|((name, _), _)| *name).collect()
    }
}

fn of_kind<'a>(results: &'a Results, planned: &PlannedRow, kind: MatchKind) -> Vec<&'a MatchResult> {
    let is_own = |result: &&MatchResult| {
        (&result.key.set, result.key.method, result.record.kind) == (&planned.set, planned.method, kind)
    };
    results.matches.iter().filter(is_own).collect()
}

/// The rows of the comparison that a planned row belongs to.
fn compared_rows<'a>(results: &'a Results, planned: &PlannedRow) -> Vec<&'a PlannedRow> {
    let is_compared = |row: &&PlannedRow| (row.method, &row.group) == (planned.method, &planned.group);
    results.study.rows.iter().filter(is_compared).collect()
}

/// A row's matches at equal cost, with their Elo minus that of the same network's match at equal nodes, where the
/// reference had as many nodes in both.
fn cost_minus_nodes<'a>(
    results: &'a Results,
    row: &PlannedRow,
) -> impl Iterator<Item = (&'a MatchResult, Effect)> + use<'a> {
    let nodes = of_kind(results, row, MatchKind::EqualNodes);
    of_kind(results, row, MatchKind::EqualCost).into_iter().filter_map(move |cost| {
        let is_same = |nodes: &&&MatchResult| {
            (nodes.key.seed, nodes.record.conditions.nodes) == (cost.key.seed, cost.record.conditions.nodes)
        };
        let nodes = nodes.iter().find(is_same)?;
        Some((cost, effect(cost).minus(effect(nodes))))
    })
}

/// What twice the nodes are worth.
#[derive(Copy, Clone, Debug, Serialize, JsonSchema)]
pub struct DoublingElo {
    pub elo: Estimate,
    /// The fewest nodes that a network had in these matches, as a share of the reference's: what lies beyond is not
    /// measured.
    pub least_share: f64,
}

/// The Elo of twice the nodes, by Elo at equal cost minus Elo at equal nodes of all networks in a planned row's
/// comparison, where the reference had as many nodes in both.
pub(super) fn elo_of_doubling(results: &Results, planned: &PlannedRow) -> Option<DoublingElo> {
    let points: Vec<_> = compared_rows(results, planned)
        .into_iter()
        .flat_map(|row| cost_minus_nodes(results, row))
        .map(|(cost, effect)| (log2_nodes(cost), effect))
        .collect();
    let least = points.iter().map(|(log2, _)| *log2).fold(0.0, f64::min);
    Some(DoublingElo { elo: proportional_effect(&points, Level::SINGLE)?, least_share: least.exp2() })
}

fn effect(result: &MatchResult) -> Effect {
    result.record.pairs.elo_effect()
}

/// log2 of the player's nodes divided by the reference's.
fn log2_nodes(result: &MatchResult) -> f64 {
    let [own, other] = [&result.record.player, &result.record.reference_player].map(|player| player.node_limit as f64);
    (own / other).log2()
}

/// See [`Strength::cost_noise`].
fn cost_noise(matches: &[&MatchResult]) -> Option<[f64; 2]> {
    let costs = matches.iter().filter_map(|result| result.record.cost.as_ref()).filter(|cost| cost.is_noisy());
    let shares =
        costs.map(|cost| [cost.low, cost.high].map(|bound| (bound / cost.ratio).powf(cost.weight.unwrap_or(1.0))));
    shares.max_by(|[low, high], [other_low, other_high]| (high - low).total_cmp(&(other_high - other_low)))
}

fn is_by_figures(record: &MatchRecord) -> bool {
    record.cost.as_ref().is_some_and(CostRatio::is_by_figures)
}

/// Nodes per second of a row's networks, on either side of a match.
fn nps(results: &Results, planned: &PlannedRow) -> Option<f64> {
    let mut has_played = false;
    let mut nodes = 0;
    let mut seconds = 0.0;
    for MatchResult { key, reference, record } in &results.matches {
        for (set, side) in [(&key.set, &record.player), (reference, &record.reference_player)] {
            if key.method == planned.method && *set == planned.set {
                has_played = true;
                nodes += side.nodes;
                seconds += side.seconds;
            }
        }
    }
    if has_played { Some(nodes as f64 / f64::max(seconds, 1e-9)) } else { None }
}

/// The conditions of all matches and what their intervals hold, in a few sentences; `None` without matches.
pub(super) fn match_conditions(results: &Results) -> Option<String> {
    let first = results.matches.first()?;
    let of_kind =
        |kind: MatchKind| results.matches.iter().map(|result| &result.record).find(|record| record.kind == kind);
    let mut text =
        "Elo is measured in matches under fsbench's own search, network against network, each opening played \
        twice with colours swapped."
            .to_owned();
    if let Some(record) = of_kind(MatchKind::EqualNodes) {
        text += &format!(" Equal nodes: {} nodes per move.", grouped(&record.conditions.nodes.to_string()));
    }
    if let Some(record) = of_kind(MatchKind::EqualCost) {
        text += &format!(" {}", equal_cost_sentence(record));
        if results.matches.iter().any(|result| is_by_figures(&result.record)) {
            text += " Where you gave figures of your own engine, the cost of a node goes by them: by your time of \
                     finding features in the place of fsbench's, or by your cost of a node alone.";
        }
    }
    for kind in MatchKind::ALL {
        text += &other_terms(results, kind);
    }
    text += &format!(" {}", rules_sentence(&first.record.conditions));
    if let Some(width) = first.record.conditions.half_width {
        text += &format!(" {}", width_sentence(width, &results.matches));
    }
    text += &format!(" {}", seeds_sentence(&results.matches));
    Some(text)
}

/// How matches of a wanted precision ended.
fn width_sentence(width: f64, matches: &[MatchResult]) -> String {
    let is_short = |result: &&MatchResult| {
        let Interval { low, high, .. } = result.record.pairs.estimate().elo;
        (high - low) / 2.0 > width
    };
    let short = match matches.iter().filter(is_short).count() {
        0 => String::new(),
        count => format!(" ({count} of {} did not get there)", matches.len()),
    };
    format!(
        "A match ended once half its interval was at most {width} Elo, or its pairs were played{short}: stopping by \
         the interval's width biases Elo slightly."
    )
}

fn equal_cost_sentence(record: &MatchRecord) -> String {
    let rounds = record.cost.as_ref().filter(|cost| cost.rounds > 0);
    let rounds = rounds.map(|cost| format!(", measured in {} rounds", cost.rounds)).unwrap_or_default();
    let weight = record.cost.as_ref().and_then(|cost| cost.weight);
    let terms = weight.map_or_else(
        || format!("as many as cost the same processor time{rounds}."),
        |weight| {
            format!(
                "by the cost of a node{rounds}, which weighs {weight}: at twice the cost a network gets {}% fewer nodes, \
                 not 50%, as for an engine to which nodes are worth {} than in these matches. So the times differ.",
                numbers::number(100.0 * (1.0 - 0.5f64.powf(weight)), 0, false),
                if weight > 1.0 { "more" } else { "less" }
            )
        },
    );
    let nodes = grouped(&record.conditions.nodes.to_string());
    format!("Equal cost: {nodes} nodes per move for the reference, and for every other network {terms}")
}

/// A sentence on matches of a kind that had other nodes or another weight of cost, as those of joined experiments may;
/// empty if all had the same.
fn other_terms(results: &Results, kind: MatchKind) -> String {
    let of_match = |result: &MatchResult| {
        let weight = result.record.cost.as_ref().and_then(|cost| cost.weight).filter(|weight| *weight != 1.0);
        let weight = weight.map(|weight| format!(", cost weighs {weight}")).unwrap_or_default();
        format!("{} nodes{weight}", grouped(&result.record.conditions.nodes.to_string()))
    };
    let own = results.matches.iter().filter(|result| result.record.kind == kind);
    let terms: BTreeSet<String> = own.map(of_match).collect();
    if terms.len() < 2 {
        return String::new();
    }
    let terms: Vec<String> = terms.into_iter().collect();
    format!(" Matches at {} differ ({}): their Elo values cannot be compared.", kind.name(), terms.join("; "))
}

fn rules_sentence(conditions: &MatchConditions) -> String {
    let MatchConditions { openings, adjudication, hash, search, .. } = conditions;
    let book = match &openings.name {
        Some(name) => format!("{} openings of {name}", grouped(&openings.count.to_string())),
        None => format!("the {} openings that come with fsbench", grouped(&openings.count.to_string())),
    };
    let rules = match adjudication {
        Some(rules) => format!(
            "games adjudicated (resigned at −{} centipawns on {} moves in a row when both agree, drawn from move {} \
             within {} on {} moves of each side)",
            rules.resign_score, rules.resign_moves, rules.draw_from_move, rules.draw_score, rules.draw_moves
        ),
        None => "games played until the rules ended them".into(),
    };
    let hashes = openings.blake3.get(..16).unwrap_or(&openings.blake3);
    format!("Openings: {book} (BLAKE3 {hashes}); {rules}; {hash} MiB of hash; search {search}.")
}

/// The meaning of the intervals.
fn seeds_sentence(matches: &[MatchResult]) -> String {
    let mut by_row: SortedMap<_, BTreeSet<u64>> = SortedMap::new();
    for MatchResult { key, .. } in matches {
        by_row.get_or_default((key.method.name(), &key.set)).insert(key.seed.0);
    }
    let counts = || by_row.values().map(BTreeSet::len);
    let fewest = counts().min().unwrap_or(0);
    let most = counts().max().unwrap_or(0);
    if most <= 1 {
        return "One trained seed played: the intervals (95%, over game pairs) cover the variation between games, not \
                between trainings."
            .into();
    }
    let seeds = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let single = match fewest {
        1 => "; for a set with one seed it covers the variation between games only",
        _ => "",
    };
    format!(
        "{seeds} trained seeds played: Elo is the mean over the seeds, and its 95% interval covers the variation \
         between trainings, as all sets and the set itself show it, and between games{single}."
    )
}
