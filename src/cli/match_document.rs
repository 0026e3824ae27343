//! What `fsbench match` prints, as JSON or as text.

use std::fmt::Write as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::print::table;
use super::sprt;
use crate::alpha_beta::search_digest;
use crate::pipeline::uci::EngineFault;
use crate::play::{
    Adjudication, CostRatio, Interval, MatchEstimate, MatchOutcome, MatchSettings, PairingResult, Pairs,
    PlayerIdentity, Rating, SprtOutcome, Termination, are_bounded, ratings,
};
use crate::record::FeatureCost;
use crate::units::SortedMap;

/// A match and its results, also in `match.json`.
#[derive(Serialize, JsonSchema)]
pub struct MatchDocument {
    /// The players, in the order given.
    players: Vec<PlayerDocument>,
    /// The limit of a move, in words.
    limit: String,
    /// The book.
    openings: OpeningsDocument,
    /// Seed of the order of openings.
    seed: u64,
    /// Identifies the search with which networks played.
    search: &'static str,
    adjudication: Option<Adjudication>,
    /// The cost of a node, with --equal-cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal_cost: Option<CostRatio>,
    /// The first pairing: its fields stand at the top of the document as well.
    #[serde(flatten)]
    first: PairingDocument,
    pairings: Vec<PairingDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sprt: Option<SprtOutcome>,
    /// Whether the games bound all ratings; only with more than two players.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratings_bounded: Option<bool>,
    /// Empty with two players.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ratings: Vec<Rating>,
    /// How the games ended.
    terminations: Vec<TerminationDocument>,
    /// Games taken over from an interrupted match and from shards.
    resumed: u64,
}

impl MatchDocument {
    /// `limit`: the limit of a move, in words.
    pub(super) fn new(result: MatchOutcome, settings: &MatchSettings, limit: String, cost: Option<CostRatio>) -> Self {
        let pairing = |(pairing, games): (&PairingResult, &[u64; 3])| {
            let MatchEstimate { score, elo, nelo, los, .. } = pairing.pairs.estimate();
            let [wins, draws, losses] = *games;
            let games = GamesDocument { wins, losses, draws };
            PairingDocument {
                first: pairing.first,
                second: pairing.second,
                pairs: pairing.pairs,
                games,
                score,
                elo,
                nelo,
                los,
            }
        };
        let pairings: Vec<PairingDocument> = result.pairings.iter().zip(&result.games).map(pairing).collect();
        let count = result.names.len();
        let several = count > 2;
        let players = result.names.into_iter().zip(result.identities).zip(&result.work);
        MatchDocument {
            players: players
                .map(|((name, identity), work)| PlayerDocument {
                    name,
                    identity,
                    nodes: work.nodes as f64 / work.moves.max(1) as f64,
                    nps: work.nodes as f64 / work.seconds.max(1e-9),
                    lost_on_time: work.lost_on_time,
                    forfeits: work.forfeits.clone(),
                })
                .collect(),
            limit,
            openings: OpeningsDocument {
                path: settings.openings.to_string(),
                count: result.openings.openings,
                blake3: result.openings.blake3,
            },
            seed: settings.seed.0,
            search: search_digest(),
            adjudication: settings.adjudication,
            equal_cost: cost,
            first: pairings[0].clone(),
            sprt: settings.sprt.map(|test| test.outcome(pairings[0].pairs)),
            ratings_bounded: several.then(|| are_bounded(count, &result.pairings)),
            ratings: if several { ratings(count, &result.pairings) } else { Vec::new() },
            pairings,
            terminations: result
                .terminations
                .into_iter()
                .map(|(termination, games)| TerminationDocument { termination, games })
                .collect(),
            resumed: result.resumed,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct PlayerDocument {
    /// The player's name.
    name: String,
    identity: PlayerIdentity,
    /// Nodes per move, on average.
    nodes: f64,
    /// Nodes per second, over all its moves.
    nps: f64,
    /// Games that it lost on time.
    lost_on_time: u64,
    /// Games lost by forfeit, by reason.
    forfeits: SortedMap<EngineFault, u64>,
}

#[derive(Serialize, JsonSchema)]
struct OpeningsDocument {
    /// The book's file, or the name of the start positions.
    path: String,
    /// Openings in it.
    count: u64,
    /// Their BLAKE3 hash, in hexadecimal.
    blake3: String,
}

/// The results of two players' games, seen from the first.
#[derive(Clone, Serialize, JsonSchema)]
struct PairingDocument {
    /// Number of the first player, from 0.
    first: usize,
    /// Number of the second player, from 0.
    second: usize,
    pairs: Pairs,
    /// Games by outcome.
    games: GamesDocument,
    /// Points per game of the first player, from 0 to 1.
    score: f64,
    elo: Interval,
    nelo: Interval,
    /// Likelihood that the first player is the stronger one.
    los: f64,
}

#[derive(Copy, Clone, Serialize, JsonSchema)]
struct GamesDocument {
    /// Won by the first player.
    wins: u64,
    /// Lost by the first player.
    losses: u64,
    /// Without a winner.
    draws: u64,
}

#[derive(Serialize, JsonSchema)]
struct TerminationDocument {
    termination: Termination,
    /// Games that ended so.
    games: u64,
}

/// The cost of a node, and the figures that it goes by.
fn cost_text(cost: &CostRatio, names: &[String; 2]) -> String {
    let CostRatio { ratio, low, high, rounds, weight, .. } = cost;
    let mut out = String::new();
    if let Some([one, two]) = cost.nanoseconds_per_node {
        let by_figures = if cost.is_by_figures() { " by your figures" } else { "" };
        let weighed = weight.map(|weight| format!(", to the power of {weight}")).unwrap_or_default();
        out += &format!(
            "a node costs {one:.0} ns and {two:.0} ns{by_figures}: by the median of {rounds} rounds the second gets \
             {ratio:.3} [{low:.3}, {high:.3}] times the nodes{weighed}\n"
        );
    }
    if let Some([one, two]) = cost.own_node_costs {
        out += &format!(
            "by your figures a node of {} costs {} times as much as one of {}\n",
            names[1],
            two / one,
            names[0]
        );
    }
    for (name, features) in names.iter().zip(cost.own_features) {
        if let Some(FeatureCost { measured_ns, own_ns, moves_per_node }) = features {
            out += &format!(
                "finding the features of {name}: {own_ns} ns a move by your figure in the place of {measured_ns:.0} \
                 ns, {moves_per_node:.2} moves a node\n"
            );
        }
    }
    out
}

/// The results as tables and sentences; `folder` is the folder that was written.
pub(super) fn text(document: &MatchDocument, folder: Option<&Path>) -> String {
    let interval = |Interval { value, low, high }: &Interval| format!("{value:+.1} [{low:+.1}, {high:+.1}]");
    let name = |number: usize| document.players[number].name.clone();
    let rows = document
        .players
        .iter()
        .map(|player| vec![player.name.clone(), format!("{:.0}", player.nodes), format!("{:.0}", player.nps)]);
    let mut out = table(&["player", "nodes per move", "nodes/s"], rows);
    let rows = document.pairings.iter().map(|pairing| {
        let PairingDocument { first, second, pairs, games, elo, nelo, .. } = pairing;
        let counts = pairs.counts().map(|count| count.to_string()).join(",");
        let games = format!("+{} ={} -{}", games.wins, games.draws, games.losses);
        vec![format!("{} − {}", name(*first), name(*second)), games, counts, interval(elo), interval(nelo)]
    });
    let header = ["pairing", "games", "pairs LL,LD,WL+DD,WD,WW", "Elo", "normalised Elo"];
    let _ = write!(out, "\n\n{}\n", table(&header, rows));
    if !document.ratings.is_empty() {
        let elo = |rating: &Rating| if rating.player == 0 { "0".to_owned() } else { interval(&rating.elo) };
        let rows = document.ratings.iter().map(|rating| vec![name(rating.player), elo(rating)]);
        let _ = write!(out, "\n{}\n", table(&["player", "Elo"], rows));
    }
    if document.ratings_bounded == Some(false) {
        let _ = writeln!(out, "some players took no point from the others: their ratings are bounds, play more games");
    }
    let _ = writeln!(out, "\n{}, {} openings, 95% intervals over pairs", document.limit, document.openings.count);
    for player in document.players.iter().filter(|player| player.lost_on_time > 0) {
        let _ = writeln!(out, "{} lost {} games on time", player.name, player.lost_on_time);
    }
    for player in &document.players {
        for (reason, games) in &player.forfeits {
            let _ = writeln!(out, "{} lost {games} games by forfeit: {}", player.name, reason.name());
        }
    }
    if let Some(cost) = &document.equal_cost {
        out += &cost_text(cost, &[name(0), name(1)]);
    }
    if let Some(outcome) = &document.sprt {
        let _ = writeln!(out, "LLR {}", sprt::describe(outcome, "not decided"));
    }
    if document.resumed > 0 {
        let _ = writeln!(out, "{} games were played before, by an interrupted match or its shards", document.resumed);
    }
    if let Some(folder) = folder {
        let _ = writeln!(out, "wrote games.pgn and match.json to {}", folder.display());
    }
    out
}
