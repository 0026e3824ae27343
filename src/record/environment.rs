//! Where and when results were produced: the only record that differs between two runs of the same experiment.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time in UTC, in whole seconds. It is serialised as `2026-01-31T23:59:59Z`, so text order is chronological order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    #[must_use]
    pub fn now() -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix(since_1970.as_secs())
    }

    /// Converts seconds since 1970. The calendar algorithm is Howard Hinnant's `civil_from_days`.
    #[must_use]
    pub fn from_unix(seconds: u64) -> Timestamp {
        let days = seconds / 86_400;
        let second = seconds % 86_400;
        let shifted = days + 719_468; // days since 0000-03-01
        let era = shifted / 146_097;
        let day_of_era = shifted % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153; // 0 = March
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let hour = second / 3_600;
        let minute = second / 60 % 60;
        let second = second % 60;
        Timestamp(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Wall-clock seconds of an experiment's stages, summed over interruptions.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSeconds {
    /// Building samples.
    pub data: f64,
    /// Trainings.
    pub training: f64,
    /// Measures.
    pub measures: f64,
    /// Matches.
    pub matches: f64,
    /// All of them.
    pub total: f64,
}

impl StageSeconds {
    /// The sum, stage by stage.
    #[must_use]
    pub fn plus(self, other: StageSeconds) -> StageSeconds {
        StageSeconds {
            data: self.data + other.data,
            training: self.training + other.training,
            measures: self.measures + other.measures,
            matches: self.matches + other.matches,
            total: self.total + other.total,
        }
    }
}

/// The machine, the program and the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// When the newest result was recorded.
    pub recorded: Timestamp,
    /// Version of fsbench.
    pub fsbench: String,
    /// The commit that fsbench was built from; empty if it was built without git.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// The CPU's model name.
    pub cpu: String,
    /// The widest vector instructions that the engine uses.
    pub back_end: String,
    /// Logical cores that the process may use.
    pub cores: usize,
    /// Operating system.
    pub os: String,
    /// Threads of the trainer; the samples-service uses as many more.
    pub threads: usize,
    /// The kind of machine on which times were measured, with its CPU, if the experiment names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_on: Option<String>,
    pub seconds: StageSeconds,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates() {
        let check = |seconds, text: &str| assert_eq!(Timestamp::from_unix(seconds).to_string(), text);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_798_761_599, "2026-12-31T23:59:59Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
        assert!(Timestamp::from_unix(999_999_999) < Timestamp::from_unix(1_000_000_000));
    }
}
