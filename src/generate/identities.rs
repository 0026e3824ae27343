//! The facts about the players of generated games on which the games depend.

use super::{GenerateError, GenerateJob};
use crate::alpha_beta::{EvalScale, search_digest};
use crate::pipeline::generation::GenerateSettings;
use crate::pipeline::uci::{Engine, EngineIdentity, EngineSpec};
use crate::pipeline::{NetworkIdentity, NetworkSearch, ScorerIdentity};
use crate::play::{PlayError, PlayerKind};
use crate::text::distinct_names;

/// Who plays.
pub(super) struct Identities {
    pub(super) engines: Vec<ScorerIdentity>,
    /// The players' names, for PGN and the summary.
    pub(super) names: Vec<String>,
}

impl Identities {
    /// Starts each UCI engine once to learn its name and options.
    pub(super) fn of(settings: &GenerateSettings, job: &GenerateJob) -> Result<Identities, GenerateError> {
        let mut engines = Vec::new();
        let mut names = Vec::new();
        for player in &job.players {
            match &player.kind {
                PlayerKind::Network(network) => {
                    let scale = EvalScale::of_model(&network.set, &network.model).map_err(|error| {
                        GenerateError::Play(PlayError::Player { name: player.name.clone(), reason: error.to_string() })
                    })?;
                    names.push(player.name.clone());
                    let search =
                        NetworkSearch { hash: job.hash, eval_scale: scale.factor(), digest: search_digest().into() };
                    engines.push(ScorerIdentity::Network(NetworkIdentity {
                        network: network.hash.clone(),
                        features: network.set.identity().to_string(),
                        search: Some(search),
                    }));
                }
                PlayerKind::Engine(spec) => {
                    let identity = uci_identity(spec, settings, job)?;
                    names.push(identity.name.clone());
                    engines.push(ScorerIdentity::Uci(identity));
                }
            }
        }
        let names = distinct_names(&names.iter().map(String::as_str).collect::<Vec<_>>());
        Ok(Identities { engines, names })
    }
}

fn uci_identity(
    spec: &EngineSpec,
    settings: &GenerateSettings,
    job: &GenerateJob,
) -> Result<EngineIdentity, GenerateError> {
    let engine = Engine::start(spec, job.workers.answer_timeout).map_err(GenerateError::before_games)?;
    let identity = engine.identity();
    if identity.reproducible(settings.limit) {
        return Ok(identity);
    }
    let why = "plays below its strength by choosing moves at random: its games cannot be repeated";
    Err(GenerateError::Request(format!("{} with the options {:?} {why}", identity.name, identity.options)))
}
