//! The progress of a measurement on stderr: a bar on a terminal, else plain lines.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::cli::progress_bar::style;

/// The least time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Clears the bar when dropped.
pub struct MeasureProgress {
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl MeasureProgress {
    pub fn new() -> MeasureProgress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        MeasureProgress { bar, last_line: Instant::now() }
    }

    /// Shows the current activity, and (done, total) if known.
    pub fn show(&mut self, counts: Option<(u64, u64)>, activity: &str) {
        let Some(bar) = &self.bar else { return self.print_line(counts, activity) };
        if let Some((done, total)) = counts {
            if bar.length() != Some(total) {
                bar.set_length(total);
                bar.set_style(style("{elapsed} {wide_bar} {pos}/{len}, {left}; {msg}"));
            }
            bar.set_position(done);
        }
        bar.set_message(activity.to_owned());
    }

    fn print_line(&mut self, counts: Option<(u64, u64)>, activity: &str) {
        if self.last_line.elapsed() < LINE_INTERVAL {
            return;
        }
        self.last_line = Instant::now();
        match counts {
            Some((done, total)) => note!("{done} of {total}: {activity}"),
            None => note!("{activity}"),
        }
    }
}

impl Drop for MeasureProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
