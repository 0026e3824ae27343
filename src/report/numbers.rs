//! Number formatting: as many digits as the interval allows, the same number of decimals in a column.

use crate::statistics::Estimate;
use crate::text::grouped;

/// Stands for a value that was not measured.
pub(super) const MISSING: &str = "–";

/// Decimals of a column: two significant digits of the median interval or, without intervals, four of the median value.
pub(super) fn decimals(estimates: &[Estimate]) -> usize {
    let intervals = estimates.iter().filter_map(|estimate| estimate.interval).filter(|half| *half > 0.0).collect();
    let (typical, digits) = match median(intervals) {
        Some(interval) => (interval, 2),
        None if estimates.iter().all(|estimate| estimate.mean.fract() == 0.0) => return 0,
        None => (median(estimates.iter().map(|e| e.mean.abs()).filter(|mean| *mean > 0.0).collect()).unwrap_or(1.0), 4),
    };
    (digits - 1 - typical.log10().floor() as i32).clamp(0, 9) as usize
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// `0.01234 ± 0.00041`, or the mean alone if there is no interval.
pub(super) fn estimate(value: Estimate, decimals: usize, signed: bool) -> String {
    let mean = number(value.mean, decimals, signed);
    match value.interval {
        Some(half) => format!("{mean} ± {}", number(half, decimals, false)),
        None => mean,
    }
}

pub(super) const MILLION: f64 = 1e6;

/// A number of samples with two significant digits: `850,000`, `6.7 M`, `21 M`, `1,200 M`.
pub(super) fn amount(samples: f64) -> String {
    let (value, suffix) = if samples < 0.995 * MILLION { (samples, "") } else { (samples / MILLION, " M") };
    let digits = value.max(1.0).log10().floor() as i32;
    let unit = 10f64.powi(digits - 1);
    let decimals = if unit < 1.0 && !suffix.is_empty() { 1 } else { 0 };
    format!("{}{suffix}", number((value / unit).round() * unit, decimals, false))
}

/// A signed value with its interval: `+2.4 ± 6.0`, or `+71 (+13 to +158)` where one side is a fifth longer than the other
/// or more. `mark` stands behind the value.
pub(super) fn with_interval(value: f64, [low, high]: [f64; 2], decimals: usize, mark: &str) -> String {
    let [below, above] = [value - low, high - value];
    let number = |value, signed| number(value, decimals, signed);
    let found = format!("{}{mark}", number(value, true));
    if below.max(above) < 1.2 * below.min(above) {
        format!("{found} ± {}", number((high - low) / 2.0, false))
    } else {
        format!("{found} ({} to {})", number(low, true), number(high, true))
    }
}

/// A number with a minus sign (−), grouped thousands and, if `signed`, a plus sign.
pub(super) fn number(value: f64, decimals: usize, signed: bool) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let is_zero = digits.chars().all(|c| c == '0' || c == '.');
    let sign = if is_zero {
        ""
    } else if value < 0.0 {
        "−"
    } else if signed {
        "+"
    } else {
        ""
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", grouped(integer))
}

/// `83 s`, `6 min 40 s`, `2 h 5 min`
pub(super) fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lopsided_intervals_show_both_ends() {
        assert_eq!(with_interval(2.41, [-3.4, 8.6], 1, ""), "+2.4 ± 6.0");
        assert_eq!(with_interval(71.0, [12.8, 158.0], 0, "*"), "+71* (+13 to +158)");
        assert_eq!(with_interval(-5.0, [-5.0, -5.0], 0, ""), "−5 (−5 to −5)");
    }

    #[test]
    fn digits_follow_the_interval() {
        let check = |pairs: &[(f64, Option<f64>)], expected: &[&str]| {
            let all: Vec<_> = pairs.iter().map(|&(mean, interval)| Estimate { mean, interval, count: 3 }).collect();
            let places = decimals(&all);
            assert_eq!(all.iter().map(|e| estimate(*e, places, false)).collect::<Vec<_>>(), expected);
        };
        check(&[(0.012_345, Some(0.000_41)), (0.5, Some(0.000_9))], &["0.01235 ± 0.00041", "0.50000 ± 0.00090"]);
        check(&[(1_234_567.8, Some(4_321.0))], &["1,234,568 ± 4,321"]);
        check(&[(0.012_345, None)], &["0.01235"]);
        check(&[(0.25, Some(0.0))], &["0.2500 ± 0.0000"]);
        check(&[(3.0, Some(0.0)), (0.0, Some(0.0))], &["3 ± 0", "0 ± 0"]);
        check(&[(12.345, Some(1.5)), (3.0, None)], &["12.3 ± 1.5", "3.0"]);
    }

    #[test]
    fn signs_and_groups() {
        assert_eq!(number(-0.001, 2, true), "0.00");
        assert_eq!(number(-1.25, 1, true), "−1.2");
        assert_eq!(number(1.25, 2, true), "+1.25");
        assert_eq!(number(999.0, 0, false), "999");
        assert_eq!(number(-12_345.6, 1, false), "−12,345.6");
        assert_eq!([duration(59.4), duration(400.0), duration(7_500.0)], ["59 s", "6 min 40 s", "2 h 5 min"]);
    }
}
