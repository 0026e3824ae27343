//! Stockfish builds with their networks: Debian's, and the npm package's in fsbench's cache folder.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An engine's command and its network.
pub struct Engine {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub folder: PathBuf,
    pub net: PathBuf,
    /// Whether the engine reports that it has loaded the network.
    pub asks: bool,
    /// UCI commands to send first.
    pub options: String,
}

fn skip<T>(need: &str, why: &str) -> Option<T> {
    super::common::skip::skip(need, why);
    None
}

/// The cache folder: `$FSBENCH_CACHE`, else fsbench's default.
fn cache() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("FSBENCH_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("fsbench")))
        .or_else(|| Some(variable("HOME")?.join(".cache/fsbench")))?;
    Some(base.join("engines"))
}

/// Debian's Stockfish 15.1; its network is written to `folder`.
pub fn debian(folder: &Path) -> Option<Engine> {
    let program = PathBuf::from("/usr/games/stockfish");
    let net = folder.join("own.nnue");
    let script = format!("export_net {}\nquit\n", net.display());
    let output = talk(Command::new(&program), &script).unwrap_or_default();
    if !output.contains("Stockfish 15.1 ") || !net.is_file() {
        return skip("stockfish-15.1", "there is no Stockfish 15.1 at /usr/games/stockfish");
    }
    Some(Engine { program, arguments: vec![], folder: folder.into(), net, asks: false, options: String::new() })
}

fn talk(mut command: Command, script: &str) -> std::io::Result<String> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    child.stdin.take().unwrap().write_all(script.as_bytes())?;
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
}

/// The npm package of Stockfish, downloaded once.
pub fn npm(version: &str, net: &str) -> Option<Engine> {
    let Some(cache) = cache() else { return skip("npm", "no cache folder: set FSBENCH_CACHE") };
    let package = cache.join(format!("stockfish-{version}"));
    if !package.is_dir() && fetch(&cache, version, &package).is_none() {
        return skip("npm", &format!("npm cannot fetch stockfish@{version}"));
    }
    let folder = package.join("src");
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|output| output.status.success()) {
        return skip("node", "there is no node here");
    }
    // See `Engine::start`.
    if version == "12.0.0" && std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
        return skip("cores", "Stockfish 12's build for node does not start reliably on one core");
    }
    let arguments = ["--no-experimental-fetch", "stockfish.js"].map(str::to_owned).to_vec();
    Some(Engine {
        program: "node".into(),
        arguments,
        net: folder.join(net),
        folder,
        asks: true,
        options: String::new(),
    })
}

fn fetch(cache: &Path, version: &str, package: &Path) -> Option<()> {
    fs::create_dir_all(cache).ok()?;
    let fresh = tempfile::tempdir_in(cache).ok()?;
    let wanted = format!("stockfish@{version}");
    let ran = |command: &mut Command| {
        let status = command.current_dir(fresh.path()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then_some(())
    };
    ran(Command::new("npm").args(["pack", &wanted]))?;
    ran(Command::new("tar").args(["xzf", &format!("stockfish-{version}.tgz")]))?;
    fs::rename(fresh.path().join("package"), package).ok().or_else(|| package.is_dir().then_some(()))
}

/// Builds for node start one at a time; see [`Engine::start`].
static STARTING: Mutex<()> = Mutex::new(());

/// A running engine. It is killed when dropped.
struct Session {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Engine {
    /// The lines that `eval` prints for each position; the last one starts with `end`.
    pub fn evaluate(&self, fens: &[String], end: &str) -> Vec<Vec<String>> {
        let _alone = self.asks.then(|| STARTING.lock().unwrap_or_else(PoisonError::into_inner));
        let mut session = self.start();
        let mut answers = Vec::with_capacity(fens.len());
        for fen in fens {
            writeln!(session.input, "position fen {fen}\neval").unwrap();
            session.input.flush().unwrap();
            let mut answer = Vec::new();
            for line in &session.lines {
                let last = line.starts_with(end);
                answer.push(line);
                if last {
                    break;
                }
            }
            assert!(answer.last().is_some_and(|line| line.starts_with(end)), "{fen}: {answer:?}");
            answers.push(answer);
        }
        answers
    }

    /// Starts the engine with its network. Until its threads run, Stockfish 12's build for node reads the network again
    /// and again, hundreds of megabytes a second, and on a slow machine that never ends: it is killed, and given more
    /// time before its first command.
    fn start(&self) -> Session {
        let waits: &[u64] = if self.asks { &[1, 5, 15, 30] } else { &[0] };
        let started = waits.iter().find_map(|wait| self.try_start(Duration::from_secs(*wait)));
        started.unwrap_or_else(|| panic!("{} does not start", self.program.display()))
    }

    fn try_start(&self, wait: Duration) -> Option<Session> {
        const PATIENCE: Duration = Duration::from_secs(12);
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        let mut session = Session { child, input, lines };
        std::thread::sleep(wait);
        write!(session.input, "uci\n{}setoption name Use NNUE value true\n", self.options).unwrap();
        let ready = if self.asks { "Load eval file success: 1" } else { "uciok" };
        let deadline = Instant::now() + if self.asks { PATIENCE } else { 10 * PATIENCE };
        loop {
            let line = session.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
            if line == ready {
                return Some(session);
            }
        }
    }
}
