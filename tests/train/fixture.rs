//! Random games, evaluated by material balance, and runs over them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fsbench::data::Method;
use fsbench::pipeline::{BuildOptions, open_or_build_with};
use fsbench::train::{
    DeviceChoice, RunObserver, StepMetrics, TrainConfig, TrainError, TrainOutcome, TrainSettings, TrainingRun, run_dir,
};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Color, Position, Role};
use tempfile::TempDir;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_fsbench");

/// A temporary folder with data and the runs over them.
pub struct Workspace {
    folder: TempDir,
}

impl Workspace {
    pub fn new() -> Workspace {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("games.pgn"), games(40)).expect("written");
        Workspace { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The games as samples; of eval from ply 20 on, since both sides have as much before.
    pub fn data(&self, method: Method) -> PathBuf {
        let min_ply = if method == Method::Eval { 20 } else { 0 };
        let options = BuildOptions { min_ply, ..BuildOptions::new(method) };
        let games = self.path("games.pgn");
        let fsd = open_or_build_with(&games, None, &options, Some(self.folder.path())).expect("samples");
        fsd.path().to_path_buf()
    }

    /// A configuration with six steps per epoch.
    pub fn config(&self, method: Method) -> TrainConfig {
        let settings = TrainSettings {
            l1: 16,
            hidden: vec![8],
            batch_size: 128,
            epochs: 4,
            epoch_samples: Some(700),
            learning_rate: 5e-3,
            decay: 0.7,
            validation: 0.2,
            threads: Some(2),
            device: DeviceChoice::Cpu,
            ..TrainSettings::default()
        };
        TrainConfig { seed: Seed(3), ..TrainConfig::new("piece", self.data(method), method, settings) }
    }

    pub fn run(
        &self,
        config: &TrainConfig,
        name: &str,
        resume: bool,
        observer: &mut dyn RunObserver,
    ) -> Result<TrainOutcome, TrainError> {
        let service = Some(Path::new(PROGRAM));
        TrainingRun { resume, service, ..TrainingRun::new(config, &self.path(name)) }.train(observer)
    }

    /// `fsbench train` over eval samples.
    pub fn command(&self, name: &str, more: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["train", "piece", "--l1", "16", "--batch-size", "64", "--validation", "0.2"]);
        if !more.contains(&"--threads") {
            command.args(["--threads", "1"]);
        }
        command.arg("--data").arg(self.data(Method::Eval)).arg("--out").arg(self.path(name)).args(more);
        command
    }
}

/// The same configuration with some settings changed.
pub fn with(config: &TrainConfig, change: impl FnOnce(&mut TrainSettings)) -> TrainConfig {
    let mut config = config.clone();
    change(&mut config.settings);
    config
}

/// Random games, each move with the material balance as its evaluation.
pub fn games(count: u64) -> String {
    let mut pgn = String::new();
    for game in 0..count {
        let mut rng = Seed(1).stream("games", game);
        let mut position = Chess::default();
        pgn.push_str("[Event \"test\"]\n[Result \"1/2-1/2\"]\n\n");
        for _ in 0..80 {
            let moves = position.legal_moves();
            if moves.len() < 2 {
                break;
            }
            let san = SanPlus::from_move_and_play_unchecked(&mut position, moves[rng.random_range(0..moves.len())]);
            write!(pgn, "{san} {{ [%eval {:.2}] }} ", balance(&position)).expect("a string grows");
        }
        pgn.push_str("1/2-1/2\n\n");
    }
    pgn
}

fn balance(position: &Chess) -> f64 {
    let values = [(Role::Pawn, 1), (Role::Knight, 3), (Role::Bishop, 3), (Role::Rook, 5), (Role::Queen, 9)];
    let worth = |color| -> i32 {
        let side = position.board().material_side(color);
        values.iter().map(|&(role, value)| i32::from(*side.get(role)) * value).sum()
    };
    f64::from(worth(Color::White) - worth(Color::Black))
}

pub fn same_results(workspace: &Workspace, a: &str, b: &str) {
    for file in [run_dir::CHECKPOINT, run_dir::BEST, run_dir::NETWORK, run_dir::LAST] {
        let read = |name: &str| fs::read(workspace.path(name).join(file)).expect("the run left the file");
        assert!(read(a) == read(b), "{file} of {a} and {b} differ");
    }
}

pub fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Loses a run to another process at a step, as a machine that slept.
pub struct LoseAt {
    pub at: u64,
    pub step: u64,
    /// The lock of the run's folder.
    pub lock: PathBuf,
    /// Stops there, too.
    pub stops: bool,
}

impl RunObserver for LoseAt {
    fn stepped(&mut self, step: &StepMetrics) {
        self.step = step.step;
        if self.step == self.at {
            std::fs::write(&self.lock, r#"{"pid":1,"host":"another","since":"now"}"#).expect("written");
        }
    }

    fn interrupted(&self) -> bool {
        self.stops && self.step >= self.at
    }
}

/// Stops a run at a step.
pub struct StopAt {
    stop: u64,
    step: u64,
}

impl StopAt {
    pub fn new(stop: u64) -> StopAt {
        StopAt { stop, step: 0 }
    }
}

impl RunObserver for StopAt {
    fn stepped(&mut self, step: &StepMetrics) {
        self.step = step.step;
    }

    fn interrupted(&self) -> bool {
        self.step >= self.stop
    }
}
