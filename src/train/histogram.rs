//! Histograms of a network's weights.

use super::WeightHistogram;
use crate::net::FloatNet;

/// Bins between an array's smallest and largest number.
const BINS: usize = 30;

/// One histogram per kind of array: PSQT columns apart from neurons, the layers of all buckets together.
#[must_use]
pub fn weight_histograms(net: &FloatNet) -> Vec<WeightHistogram> {
    let l1 = net.shape.l1;
    let row = net.shape.row_len();
    let columns = |from: usize, to: usize| -> Vec<&[f32]> {
        net.ft_weights.chunks_exact(row).map(|row| &row[from..to]).collect()
    };
    let mut all = vec![histogram("ft.weight", &columns(0, l1)), histogram("ft.bias", &[&net.ft_biases])];
    if net.shape.psqt {
        all.push(histogram("psqt.weight", &columns(l1, row)));
    }
    for index in 0..=net.shape.hidden.len() {
        let weights: Vec<&[f32]> = net.stacks.iter().map(|stack| &stack[index].weights[..]).collect();
        let biases: Vec<&[f32]> = net.stacks.iter().map(|stack| &stack[index].biases[..]).collect();
        all.push(histogram(&format!("layers.{index}.weight"), &weights));
        all.push(histogram(&format!("layers.{index}.bias"), &biases));
    }
    all
}

fn histogram(name: &str, parts: &[&[f32]]) -> WeightHistogram {
    let numbers = || parts.iter().copied().flatten().map(|value| f64::from(*value));
    let mut min = f64::INFINITY;
    let mut max = f64::NEG_INFINITY;
    let mut sum = 0.0;
    let mut sum_of_squares = 0.0;
    for value in numbers() {
        min = min.min(value);
        max = max.max(value);
        sum += value;
        sum_of_squares += value * value;
    }
    let mut counts = vec![0; BINS];
    let width = (max - min) / BINS as f64;
    for value in numbers() {
        let bin = if width > 0.0 { ((value - min) / width) as usize } else { 0 };
        counts[bin.min(BINS - 1)] += 1;
    }
    WeightHistogram { name: name.into(), min, max, sum, sum_of_squares, counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{OutputBuckets, Shape};

    #[test]
    fn one_histogram_per_kind_of_array() {
        let buckets = OutputBuckets { count: 2, ..OutputBuckets::default() };
        let mut net = FloatNet::zeros(&Shape { psqt: true, buckets, ..Shape::plain(3, 4, vec![2]) });
        net.ft_weights[0] = 1.0;
        // A row is 4 neurons and 2 buckets.
        net.ft_weights[6 + 5] = -3.0;
        net.stacks[1][1].biases[0] = 0.5;
        let all = weight_histograms(&net);
        let names: Vec<&str> = all.iter().map(|histogram| &histogram.name[..]).collect();
        let layers = ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"];
        assert_eq!(names, [&["ft.weight", "ft.bias", "psqt.weight"][..], &layers].concat());
        let check = |index: usize, min: f64, max: f64, squares: f64, ends: [u64; 2]| {
            let WeightHistogram { min: low, max: high, sum_of_squares, counts, .. } = &all[index];
            assert_eq!((*low, *high, *sum_of_squares), (min, max, squares), "{}", all[index].name);
            assert_eq!([counts[0], counts[BINS - 1]], ends, "{}", all[index].name);
        };
        check(0, 0.0, 1.0, 1.0, [11, 1]);
        check(2, -3.0, 0.0, 9.0, [1, 5]);
        check(6, 0.0, 0.5, 0.25, [1, 1]);
        check(1, 0.0, 0.0, 0.0, [4, 0]);
    }
}
