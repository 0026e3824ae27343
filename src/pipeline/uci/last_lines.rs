//! Keeps an engine's last lines outside the protocol: an engine that fails usually explains itself there.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Lines kept, and characters kept of each line.
const LINES: usize = 8;
const WIDTH: usize = 200;
/// Bytes after which a line is cut.
const LONGEST_LINE: u64 = 1 << 14;

#[derive(Clone, Debug, Default)]
pub struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// Keeps a line unless it belongs to the UCI protocol.
    pub fn add(&self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let protocol = match words.next() {
            None => true,
            Some("info") => words.next() != Some("string"),
            Some(word) => matches!(word, "id" | "option" | "uciok" | "readyok" | "bestmove"),
        };
        if protocol {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(WIDTH).map(|c| if c.is_control() { ' ' } else { c }).collect());
    }

    /// The kept lines, each indented and after a line feed; empty when there are none.
    pub fn indented(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("\n  {line}")).collect()
    }

    /// Starts a thread that reads the engine's stderr to its end.
    pub fn follow(&self, stderr: impl Read + Send + 'static) -> JoinHandle<()> {
        let tail = self.clone();
        thread::spawn(move || {
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            while reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                tail.add(String::from_utf8_lossy(&line).trim());
                line.clear();
            }
        })
    }
}

/// Waits until the thread is done, but at most `longest`: a child process of the engine may keep its stderr open.
pub fn wait_for(thread: &JoinHandle<()>, longest: Duration) {
    let deadline = Instant::now() + longest;
    while !thread.is_finished() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_outside_the_protocol_are_kept() {
        let tail = LastLines::default();
        for line in ["id name X", "option name Y", "uciok", "info depth 3 score cp 5", "bestmove e2e4", "", " "] {
            tail.add(line);
        }
        assert_eq!(tail.indented(), "");
        (0..20).for_each(|number| tail.add(&format!("info string {number}")));
        let thread = tail.follow(&b"Assertion failed\x07\n\nno newline"[..]);
        wait_for(&thread, Duration::from_secs(10));
        let expected: String = (14..20).map(|number| format!("\n  info string {number}")).collect();
        assert_eq!(tail.indented(), expected + "\n  Assertion failed \n  no newline");
        tail.add(&"x".repeat(10_000));
        assert!(tail.indented().len() < 2_000);
    }
}
