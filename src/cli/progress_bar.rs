//! Progress bars on stderr, which are shown where stderr is a terminal.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// A style with indicatif's keys, and `{left}`: the time that is left, once there is something to estimate it from.
pub fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("left", |state: &ProgressState, out: &mut dyn Write| {
        // Writing to a line of the bar cannot fail.
        let _ = out.write_str(&left(state.eta(), state.fraction()));
    })
}

fn left(eta: Duration, done: f32) -> String {
    // Before the first steps the estimate is zero.
    if eta.is_zero() && done < 1.0 {
        return "time left unknown".into();
    }
    format!("{:#} left", HumanDuration(eta))
}

/// A bar, or a spinner without `length`.
pub fn progress(length: Option<u64>, template: &str) -> ProgressBar {
    let bar = length.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    bar.set_style(style(template));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_does_not_begin_at_the_end() {
        assert_eq!(left(Duration::ZERO, 0.0), "time left unknown");
        assert_eq!(left(Duration::from_secs(125), 0.5), "2m left");
        assert_eq!(left(Duration::ZERO, 1.0), "0s left");
        let bar = ProgressBar::hidden().with_style(style("{left}"));
        bar.set_length(10);
        assert_eq!(bar.eta(), Duration::ZERO, "what indicatif says before the first step");
    }
}
