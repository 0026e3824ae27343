//! The median of a few measurements, with an interval that assumes nothing of their distribution.

use super::CONFIDENCE;

/// A median and the bounds of its 95% interval.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Median {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// The median of independent measurements, and the closest two of them that enclose the true median with a probability
/// of at least 95%: the number of measurements below it is binomial. With fewer than 6 measurements the bounds are the
/// extremes, which enclose it less often. `None` without measurements.
#[must_use]
pub fn median(values: &[f64]) -> Option<Median> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let outside = outside(sorted.len());
    let middle = [sorted.get(count.wrapping_sub(1) / 2)?, sorted.get(count / 2)?];
    Some(Median {
        value: f64::midpoint(*middle[0], *middle[1]),
        low: sorted[outside],
        high: sorted[count - 1 - outside],
    })
}

/// How many of the smallest, and of the largest, measurements may lie outside the interval.
fn outside(count: usize) -> usize {
    let mut probability = 0.5f64.powi(count as i32);
    let mut below = 0.0;
    let mut outside = 0;
    // P(at most k measurements below the median), for k = 0, 1, …
    for k in 0..count / 2 {
        below += probability;
        if 2.0 * below > 1.0 - CONFIDENCE {
            break;
        }
        outside = k;
        probability *= (count - k) as f64 / (k + 1) as f64;
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of the sign test: with 15 measurements the 4th and the 12th, with 6 the 1st and the last.
    #[test]
    fn bounds_are_those_of_the_sign_test() {
        assert_eq!([1, 5, 6, 8, 9, 15, 20, 100].map(outside), [0, 0, 0, 0, 1, 3, 5, 39]);
        let values: Vec<f64> = [9, 2, 14, 5, 1, 12, 7, 3, 15, 10, 4, 13, 6, 11, 8].map(f64::from).to_vec();
        assert_eq!(median(&values), Some(Median { value: 8.0, low: 4.0, high: 12.0 }));
        assert_eq!(median(&[1.0, 3.0]), Some(Median { value: 2.0, low: 1.0, high: 3.0 }));
        assert_eq!(median(&[]), None);
    }
}
