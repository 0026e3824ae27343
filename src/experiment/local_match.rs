//! Plays an experiment's matches in this process.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::executor::{MatchRequest, MatchSetup, StepError};
use super::match_settings::MatchMeasure;
use super::runner_options::ExperimentMonitor;
use crate::alpha_beta::search_digest;
use crate::net::NetFile;
use crate::output::OutputError;
use crate::pipeline::generation::BookSource;
use crate::pipeline::sample_openings;
use crate::play;
use crate::play::{
    Book, BookPart, CostPlayer, MatchOutcome, MatchSettings, MoveLimit, NetworkPlayer, PlayError, Player,
    PlayerIdentity, PlayerKind, PlayerWork, Termination, equal_cost, play_match, play_to_width,
};
use crate::record::{
    CostRatio, GameCounts, Machine, MatchConditions, MatchKind, MatchOpenings, MatchPlayer, MatchRecord, ShardRecord,
    read_checked_json, write_checked_json,
};

/// Reads the book of a match.
pub(super) fn match_setup(
    openings: Option<&Path>,
    plies: Option<u16>,
    part: Option<BookPart>,
) -> Result<MatchSetup, StepError> {
    let path = openings.map_or_else(sample_openings, |path| Ok(path.to_path_buf()))?;
    let book = Book::open(&BookSource::File(path), plies, part).map_err(PlayError::from)?;
    Ok(MatchSetup { openings: book.facts.blake3, count: book.facts.openings, search: search_digest().into() })
}

/// Plays a match, or continues it; `None` if the monitor stopped it.
pub(super) fn play(
    request: &MatchRequest<'_>,
    monitor: &dyn ExperimentMonitor,
) -> Result<Option<MatchRecord>, StepError> {
    let Some(prepared) = Prepared::new(request, monitor)? else { return Ok(None) };
    let Prepared { players, networks, settings, nodes, cost } = prepared;
    let interrupted = || monitor.stop_requested();
    let progress = &mut |progress: &_| monitor.games(progress);
    let result = match request.settings.terms.half_width {
        Some(width) => play_to_width(&players, &settings, width, &request.folder, &interrupted, progress),
        None => play_match(&players, &settings, &request.folder, &interrupted, progress),
    };
    match result {
        Ok(result) => Ok(Some(record(request, &settings, (networks, nodes), cost, &result))),
        Err(PlayError::Stopped) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Plays some pairs of a match, or continues them; `None` if the monitor stopped it.
pub(super) fn play_shard(
    request: &MatchRequest<'_>,
    pairs: Range<u64>,
    monitor: &dyn ExperimentMonitor,
) -> Result<Option<ShardRecord>, StepError> {
    let Some(Prepared { players, mut settings, .. }) = Prepared::new(request, monitor)? else { return Ok(None) };
    settings.pairs = pairs.end;
    let progress = &mut |progress: &_| monitor.games(progress);
    let interrupted = || monitor.stop_requested();
    match play::play_shard(&players, &settings, pairs.clone(), &request.folder, &interrupted, progress) {
        Ok(half_points) => Ok(half_points.map(|half_points| ShardRecord { first: pairs.start, half_points })),
        Err(PlayError::Stopped) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Measures the cost of a node for a match; `None` if the monitor stopped it.
pub(super) fn match_cost(
    request: &MatchRequest<'_>,
    monitor: &dyn ExperimentMonitor,
) -> Result<Option<CostRatio>, StepError> {
    make_folder(request)?;
    cost(request, &[player(request, 0)?, player(request, 1)?], monitor)
}

fn make_folder(request: &MatchRequest<'_>) -> Result<(), StepError> {
    let failed = |cause| OutputError { path: request.folder.clone(), cause };
    Ok(std::fs::create_dir_all(&request.folder).map_err(failed)?)
}

/// Players and settings of a match.
struct Prepared {
    players: [Player; 2],
    /// Hashes of the networks.
    networks: [String; 2],
    settings: MatchSettings,
    /// Per move, by player.
    nodes: [u64; 2],
    cost: Option<CostRatio>,
}

impl Prepared {
    fn new(request: &MatchRequest<'_>, monitor: &dyn ExperimentMonitor) -> Result<Option<Prepared>, StepError> {
        make_folder(request)?;
        let mut players = [player(request, 0)?, player(request, 1)?];
        let cost = match request.kind {
            MatchKind::EqualNodes => None,
            MatchKind::EqualCost => match cost(request, &players, monitor)? {
                None => return Ok(None),
                measured => measured,
            },
        };
        let nodes = node_limits(request.settings, cost.as_ref());
        for (player, nodes) in players.iter_mut().zip(nodes) {
            player.0.nodes = Some(nodes);
        }
        let networks = [0, 1].map(|index: usize| players[index].1.hash.clone());
        let players = players.map(|(player, _)| player);
        Ok(Some(Prepared { players, networks, settings: settings(request, nodes[1])?, nodes, cost }))
    }
}

type LoadedPlayer = (Player, Arc<NetworkPlayer>);

fn player(request: &MatchRequest<'_>, index: usize) -> Result<LoadedPlayer, StepError> {
    let file = NetFile::load(&request.networks[index])?;
    let network = Arc::new(NetworkPlayer::of(&file)?);
    let kind = PlayerKind::Network(Arc::clone(&network));
    Ok((Player { name: request.names[index].clone(), kind, nodes: None }, network))
}

/// The cost of a node of both networks, with its weight; `None` if the monitor stopped its measurement.
fn cost(
    request: &MatchRequest<'_>,
    players: &[LoadedPlayer; 2],
    monitor: &dyn ExperimentMonitor,
) -> Result<Option<CostRatio>, StepError> {
    let weight = request.settings.terms.cost_weight;
    Ok(unweighted_cost(request, players, monitor)?.map(|ratio| CostRatio { weight, ..ratio }))
}

/// By the user's figures, as an earlier part of the same match measured it, or measured now.
fn unweighted_cost(
    request: &MatchRequest<'_>,
    players: &[LoadedPlayer; 2],
    monitor: &dyn ExperimentMonitor,
) -> Result<Option<CostRatio>, StepError> {
    if let [Some(player), Some(reference)] = request.own.map(|own| own.node_cost) {
        return Ok(Some(CostRatio::of_figures([reference, player])));
    }
    if let Some(measured) = &request.cost {
        return Ok(Some(measured.clone()));
    }
    let path = request.folder.join("cost.json");
    if let Ok(measured) = read_checked_json(&path) {
        return Ok(Some(measured));
    }
    let nodes = request.settings.terms.equal_cost.unwrap_or_default();
    // The reference comes first.
    let both = [1, 0].map(|side: usize| CostPlayer {
        player: &players[side].0,
        network: &players[side].1,
        own_features_ns: request.own[side].features_ns,
    });
    match equal_cost(both, nodes, request.settings.options.hash, |_, _| !monitor.stop_requested()) {
        Ok(ratio) => {
            write_checked_json(&path, &ratio)?;
            Ok(Some(ratio))
        }
        Err(PlayError::Stopped) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Nodes per move of the network and of the reference.
fn node_limits(measure: &MatchMeasure, cost: Option<&CostRatio>) -> [u64; 2] {
    match (cost, measure.terms.equal_cost, measure.terms.nodes) {
        (Some(cost), Some(nodes), _) => [cost.nodes_of_second(nodes), nodes],
        (_, _, nodes) => [nodes.unwrap_or_default(); 2],
    }
}

fn settings(request: &MatchRequest<'_>, nodes: u64) -> Result<MatchSettings, StepError> {
    let openings = request.openings.clone().map_or_else(sample_openings, Ok::<PathBuf, _>)?;
    let settings = request.settings.options.settings(MoveLimit::Nodes(nodes), BookSource::File(openings));
    let MatchRequest { seed, pairs, book_part, sprt, .. } = *request;
    Ok(MatchSettings { seed, pairs, book_part, sprt, ..settings })
}

fn record(
    request: &MatchRequest<'_>,
    settings: &MatchSettings,
    (networks, nodes): ([String; 2], [u64; 2]),
    cost: Option<CostRatio>,
    result: &MatchOutcome,
) -> MatchRecord {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let openings = MatchOpenings {
        name: request.openings.as_ref().map(name),
        count: result.openings.openings,
        blake3: result.openings.blake3.clone(),
        plies: settings.opening_plies,
    };
    let side = |index: usize| {
        let PlayerWork { moves, nodes: searched, seconds, .. } = result.work[index];
        let eval_scale = match result.identities[index] {
            PlayerIdentity::Network { eval_scale, .. } => eval_scale,
            // Engines give centipawns.
            PlayerIdentity::Engine { .. } => 1.0,
        };
        let network = networks[index].clone();
        let node_limit = nodes[index];
        MatchPlayer { network, eval_scale, node_limit, moves, nodes: searched, seconds }
    };
    let [wins, draws, losses] = result.games[0];
    let adjudicated = result.terminations.iter().filter(|(kind, _)| *kind == Termination::Adjudication);
    MatchRecord {
        kind: request.kind,
        conditions: MatchConditions {
            nodes: nodes[1],
            openings,
            seed: request.seed,
            adjudication: settings.adjudication,
            hash: settings.setup.hash,
            search: search_digest().into(),
            half_width: request.settings.terms.half_width,
        },
        player: side(0),
        reference_player: side(1),
        cost,
        pairs: result.pairings[0].pairs,
        games: GameCounts { wins, draws, losses },
        adjudicated: adjudicated.map(|(_, games)| games).sum(),
        machine: Machine::current(),
    }
}
