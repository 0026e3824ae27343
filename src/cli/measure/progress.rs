//! How far a measure is, on stderr: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Between two plain lines.
const QUIET: Duration = Duration::from_secs(10);

pub struct Progress {
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Progress {
    pub fn new() -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { bar, last_line: Instant::now() }
    }

    /// `done` of `total` are done, where that is known; `what` comes next.
    pub fn show(&mut self, counts: Option<(u64, u64)>, what: &str) {
        let Some(bar) = &self.bar else { return self.line(counts, what) };
        if let Some((done, total)) = counts {
            if bar.length() != Some(total) {
                bar.set_length(total);
                let style = ProgressStyle::with_template("{elapsed} {wide_bar} {pos}/{len}, {eta} left; {msg}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            }
            bar.set_position(done);
        }
        bar.set_message(what.to_owned());
    }

    fn line(&mut self, counts: Option<(u64, u64)>, what: &str) {
        if self.last_line.elapsed() < QUIET {
            return;
        }
        self.last_line = Instant::now();
        match counts {
            Some((done, total)) => note!("{done} of {total}: {what}"),
            None => note!("{what}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
