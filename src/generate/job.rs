//! Who plays how many games, and the checks of a request.

use super::GenerateError;
use crate::pipeline::generation::GenerateSettings;
use crate::pipeline::uci::{EngineSpec, SearchLimit, Workers};
use crate::play::{Book, MoveLimit, Player};

/// Who plays how many games, and how. The games do not depend on `workers`.
#[derive(Clone)]
pub struct GenerateJob {
    /// A single player plays itself, several play each other. Networks play by fsbench's own search, in this process.
    pub players: Vec<Player>,
    pub goal: GenerateGoal,
    /// Games played at once, one thread each; every game has its own engine processes.
    pub workers: Workers,
    /// Transposition table of each network's search, in MiB.
    pub hash: u32,
    /// An engine that draws the openings by its command `genfens`, one for each encounter, in place of a book.
    pub openings_engine: Option<EngineSpec>,
    /// The command line, for the manifest of a `.fsd` file.
    pub command: Vec<String>,
}

/// When there are games enough.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum GenerateGoal {
    /// So many games; those that are dropped count, too.
    Games(u32),
    /// The first games that have at least so many searched positions.
    Positions(u64),
}

impl GenerateJob {
    /// Transposition table of a network's search, in MiB.
    pub const DEFAULT_HASH: u32 = 8;

    /// A job with one worker and no command line.
    #[must_use]
    pub fn new(players: Vec<Player>, goal: GenerateGoal) -> GenerateJob {
        let hash = GenerateJob::DEFAULT_HASH;
        let workers = Workers::default();
        GenerateJob { players, goal, workers, hash, openings_engine: None, command: Vec::new() }
    }

    /// One more than the largest number that a game may have.
    pub(super) fn most_games(&self) -> u64 {
        match self.goal {
            GenerateGoal::Games(games) => games.into(),
            // Samples hold a game's number in 32 bits.
            GenerateGoal::Positions(_) => u32::MAX.into(),
        }
    }
}

/// The moves of longer games would not fit a pipe's buffer, and writing them to an engine that hangs would block.
const LONGEST_GAME: u16 = 10_000;

/// Checks the settings and the job, and returns the limit of the searches.
pub fn check(settings: &GenerateSettings, job: &GenerateJob) -> Result<MoveLimit, GenerateError> {
    let request = |text: String| Err(GenerateError::Request(text));
    let GenerateSettings { limit, random_plies, random_move_rate, adjudication, .. } = settings;
    let move_limit = match *limit {
        SearchLimit::Nodes(nodes) => MoveLimit::Nodes(nodes),
        SearchLimit::SoftNodes(nodes) => MoveLimit::SoftNodes(nodes),
        SearchLimit::Depth(depth) => MoveLimit::Depth(depth),
        SearchLimit::MoveTime(_) | SearchLimit::Clock { .. } => {
            return request("games must be reproducible: limit the searches by nodes or depth, not by time".into());
        }
    };
    if limit.is_empty() {
        return request("a search needs at least one node or ply".into());
    }
    if let (SearchLimit::SoftNodes(_), Some(engine)) = (limit, job.players.iter().find(|player| !player.is_network())) {
        return request(format!(
            "--soft-nodes limits networks, and {} is a UCI engine: give --nodes, and the engine's own option if it has \
             one, as in 'uci:ENGINE|SoftNodes=true'",
            engine.name
        ));
    }
    if !(0.0..=1.0).contains(random_move_rate) {
        return request("--random-move-rate must lie between 0 and 1".into());
    }
    if random_plies.0 > random_plies.1 {
        return request("--random-plies A..B needs A at most B".into());
    }
    if random_plies.1 > adjudication.max_plies {
        return request("--random-plies must not exceed --max-plies".into());
    }
    if adjudication.max_plies > LONGEST_GAME {
        return request(format!("--max-plies must be at most {LONGEST_GAME}"));
    }
    match job.goal {
        GenerateGoal::Games(0) => return request("--games must be at least 1".into()),
        GenerateGoal::Positions(0) => return request("--positions must be at least 1".into()),
        GenerateGoal::Games(_) | GenerateGoal::Positions(_) => {}
    }
    if job.players.is_empty() {
        return request("give an engine or a network with --engine".into());
    }
    Ok(move_limit)
}

/// Checks that games are longer than the openings of their book, with the random moves after them.
pub fn check_book(settings: &GenerateSettings, book: &Book) -> Result<(), GenerateError> {
    let most_plies = settings.adjudication.max_plies;
    let random_plies = settings.random_plies.1;
    let openings = book.most_plies;
    if openings == 0 || openings + usize::from(random_plies) < usize::from(most_plies) {
        return Ok(());
    }
    let random = if random_plies > 0 { format!(" and {random_plies} random ones") } else { String::new() };
    Err(GenerateError::Request(format!(
        "an opening of the book has {openings} moves{random}, and --max-plies {most_plies} ends a game there: cut the \
         openings with --book-plies, or raise --max-plies"
    )))
}
