//! Active neurons and the error of quantisation.

use fsbench::chess::{Chess, Perspective};
use fsbench::measure::{QuantisationOptions, activity, quantisation};
use fsbench::net::{Activation, BucketRule, FloatNet, NetFile, OutputBuckets, Scheme, quantise};
use fsbench::record::BucketActivity;
use shakmaty::Position;

use super::{Nets, games, nets, write_pgn};

#[test]
fn activity_equals_a_direct_count() {
    let folder = tempfile::tempdir().unwrap();
    let games = games();
    let path = write_pgn(folder.path(), &games);
    let Nets { mut file, .. } = nets("piece", &[8]);
    // One neuron is never positive, one always saturated.
    file.net.ft_biases[..2].copy_from_slice(&[-20_000, 20_000]);
    let set = file.origin.feature_set().unwrap();
    let (record, _) = activity(&file, &path, None).unwrap();

    let mut positions = 0u64;
    let mut positive = 0u64;
    let mut full = 0u64;
    let mut ever = [false; 32];
    for moves in &games {
        let mut position = Chess::default();
        for mv in moves {
            positions += 1;
            for pov in Perspective::ALL {
                for (n, sum) in file.net.accumulate(&set.reference(position.board(), pov)).into_iter().enumerate() {
                    positive += u64::from(sum > 0);
                    full += u64::from(sum >= 127);
                    ever[n] |= sum > 0;
                }
            }
            position.play_unchecked(*mv);
        }
    }
    let outputs = (positions * 64) as f64;
    assert_eq!(record.positions, positions);
    let l1 = &record.layers[0];
    assert_eq!((l1.layer.as_str(), l1.neurons, record.layers.len()), ("l1", 32, 2));
    assert!((l1.active - positive as f64 / outputs).abs() < 1e-12);
    assert!((l1.saturated - full as f64 / outputs).abs() < 1e-12);
    assert_eq!(l1.never_active, ever.iter().filter(|seen| !**seen).count());
    assert!(l1.never_active >= 1 && l1.saturated > 1.0 / 32.0);
    assert_eq!((record.layers[1].layer.as_str(), record.layers[1].neurons), ("l2", 8));
    assert!(record.buckets.is_empty());
}

/// The counts of the buckets add up to the total, and a neuron that is dead in one bucket is reported only there.
#[test]
fn activity_is_counted_by_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { mut file, .. } = nets("piece", &[8]);
    file.net.shape.buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
    file.net.stacks = vec![file.net.stacks.remove(0); 8];
    file.net.stacks[7][0].biases[3] = -1_000_000;
    let (record, _) = activity(&file, &path, None).unwrap();
    assert_eq!(record.buckets.len(), 8);
    assert_eq!(record.buckets.iter().map(|bucket| bucket.positions).sum::<u64>(), record.positions);
    for layer in 0..2 {
        let active = |bucket: &BucketActivity| bucket.layers[layer].active * bucket.positions as f64;
        let sum: f64 = record.buckets.iter().map(active).sum();
        assert!((sum / record.positions as f64 - record.layers[layer].active).abs() < 1e-9);
    }
    let never = |bucket: usize| record.buckets[bucket].layers[1].never_active;
    assert!(record.buckets[7].positions > 100 && never(7) > record.layers[1].never_active);
}

/// Values of relu have no upper bound and are never saturated.
#[test]
fn relu_is_never_saturated() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games()[..3]);
    let Nets { mut float, checkpoint, .. } = nets("piece", &[]);
    let measure = |float: &FloatNet| {
        let net = quantise(float, &Scheme::simple()).unwrap();
        activity(&NetFile { origin: checkpoint.origin.clone(), net }, &path, None).unwrap().0.layers.remove(0)
    };
    let crelu = measure(&float);
    float.shape.activation = Activation::Relu;
    let relu = measure(&float);
    assert!(crelu.saturated > 0.0 && relu.saturated == 0.0);
    assert_eq!((crelu.active, crelu.never_active), (relu.active, relu.never_active));
}

#[test]
fn errors_are_small_and_networks_must_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { file, float, checkpoint } = nets("piece", &[8]);
    let (record, _) = quantisation(&file, &float, &checkpoint, &path, QuantisationOptions::default()).unwrap();
    assert!(record.mean > 0.0 && record.mean <= record.p99 && record.p99 <= record.max, "{record:?}");
    assert!(record.within_tolerance > 0.99 && record.accumulator_overflows == 0, "{record:?}");

    let mut wrong = float.clone();
    wrong.stacks[0][1].biases[0] += 0.3;
    let (shifted, _) = quantisation(&file, &wrong, &checkpoint, &path, QuantisationOptions::default()).unwrap();
    assert!(shifted.mean > 0.05 && shifted.within_tolerance < 0.5, "{shifted:?}");

    let mut overflowing = file.clone();
    overflowing.net.ft_biases[0] = i16::MAX;
    let (record, _) = quantisation(&overflowing, &float, &checkpoint, &path, QuantisationOptions::default()).unwrap();
    assert!(record.accumulator_overflows > 0);

    let other = nets("compact", &[8]);
    let refused =
        quantisation(&file, &other.float, &other.checkpoint, &path, QuantisationOptions::default()).unwrap_err();
    let text = refused.to_string();
    let identities = [&file.origin.identity, &other.file.origin.identity].map(ToString::to_string);
    assert!(identities.iter().all(|identity| text.contains(identity)), "{text}");
    let narrow = nets("piece", &[4]);
    let refused =
        quantisation(&file, &narrow.float, &narrow.checkpoint, &path, QuantisationOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("(768 → 32) × 2 → 8 → 1"), "{refused}");
}
