//! A run's metrics as a TensorBoard event file.
//!
//! The file is a sequence of records (TensorFlow's `TFRecord`): length (8 bytes, little-endian), its masked CRC-32C,
//! the content, its masked CRC-32C. Each content is a protocol buffer `Event`: 1 wall time (double, seconds since
//! 1970), 2 step (varint), 3 file version (text, first record only), 5 summary, which is a list of values (1): 1 tag
//! (text), 2 number (float) or 5 histogram (1 minimum, 2 maximum, 3 count, 4 sum, 5 sum of squares, 6 each bin's upper
//! end, 7 each bin's count; all doubles).

use super::{EpochMetrics, WeightHistogram};

/// The event file of all epochs; `now` is when the last one ended, in seconds since 1970.
#[must_use]
pub fn encode(metrics: &[EpochMetrics], now: f64) -> Vec<u8> {
    let mut out = Vec::new();
    let duration: f64 = metrics.iter().map(|epoch| epoch.seconds).sum();
    let mut time = now - duration;
    let mut first = double_field(1, time);
    first.extend(bytes_field(3, b"brain.Event:2"));
    write_record(&first, &mut out);
    for epoch in metrics {
        time += epoch.seconds;
        let mut event = double_field(1, time);
        event.extend(varint_field(2, epoch.step));
        let mut summary = Vec::new();
        for (tag, value) in scalars(epoch) {
            summary.extend(bytes_field(1, &scalar(tag, value)));
        }
        for weights in &epoch.weights {
            summary.extend(bytes_field(1, &histogram(weights)));
        }
        event.extend(bytes_field(5, &summary));
        write_record(&event, &mut out);
    }
    out
}

fn scalars(epoch: &EpochMetrics) -> Vec<(&'static str, f64)> {
    let mut all = vec![
        ("loss/train", epoch.train_loss),
        ("loss/validation", epoch.validation_loss),
        ("learning_rate", epoch.learning_rate),
    ];
    all.extend(epoch.samples_per_second.map(|rate| ("samples_per_second", rate)));
    all.extend(epoch.validation_accuracy.map(|accuracy| ("accuracy/validation", accuracy)));
    if let Some(second) = &epoch.second {
        all.extend([("loss/train-second", second.train_loss), ("loss/validation-second", second.validation_loss)]);
        all.extend(second.validation_accuracy.map(|accuracy| ("accuracy/validation-second", accuracy)));
    }
    if let Some(neurons) = &epoch.neurons {
        all.extend([
            ("neurons/positive", neurons.positive),
            ("neurons/saturated", neurons.saturated),
            ("neurons/dead", neurons.dead),
        ]);
    }
    all
}

fn histogram(weights: &WeightHistogram) -> Vec<u8> {
    let WeightHistogram { name, min, max, sum, sum_of_squares, counts } = weights;
    let count = counts.iter().sum::<u64>() as f64;
    let width = (max - min) / counts.len().max(1) as f64;
    let mut content = Vec::new();
    for (value, field) in [*min, *max, count, *sum, *sum_of_squares].into_iter().zip(1..) {
        content.extend(double_field(field, value));
    }
    let mut limits = Vec::new();
    let mut packed_counts = Vec::new();
    for (bin, count) in counts.iter().enumerate() {
        limits.extend((min + width * (bin + 1) as f64).to_le_bytes());
        packed_counts.extend((*count as f64).to_le_bytes());
    }
    content.extend(bytes_field(6, &limits));
    content.extend(bytes_field(7, &packed_counts));
    [bytes_field(1, format!("weights/{name}").as_bytes()), bytes_field(5, &content)].concat()
}

fn scalar(tag: &str, value: f64) -> Vec<u8> {
    let mut out = bytes_field(1, tag.as_bytes());
    out.push(2 << 3 | 5);
    out.extend((value as f32).to_le_bytes());
    out
}

/// A field of type double.
fn double_field(field: u8, value: f64) -> Vec<u8> {
    let mut out = vec![field << 3 | 1];
    out.extend(value.to_le_bytes());
    out
}

/// A field of type varint.
fn varint_field(field: u8, value: u64) -> Vec<u8> {
    let mut out = vec![field << 3];
    write_varint(value, &mut out);
    out
}

/// A field of bytes, with their number.
fn bytes_field(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    write_varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

/// Seven bits per byte, the lowest first; the top bit is set if another byte follows.
fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write_record(content: &[u8], out: &mut Vec<u8>) {
    let length = (content.len() as u64).to_le_bytes();
    out.extend(length);
    out.extend(masked_crc(&length));
    out.extend_from_slice(content);
    out.extend(masked_crc(content));
}

/// TensorFlow stores checksums rotated and offset, since the content may hold checksums itself.
fn masked_crc(content: &[u8]) -> [u8; 4] {
    crc32c(content).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// CRC-32C (Castagnoli), bit by bit: the files are small.
fn crc32c(content: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (POLYNOMIAL & (crc & 1).wrapping_neg()))
    };
    !content.iter().fold(!0, byte)
}

#[cfg(test)]
mod tests {
    use super::super::NeuronActivity;
    use super::*;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    /// The records of a file, their checksums verified.
    fn records(mut file: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while !file.is_empty() {
            let (length, rest) = file.split_at(8);
            let count = u64::from_le_bytes(length.try_into().expect("8 bytes")) as usize;
            assert_eq!(rest[..4], masked_crc(length));
            let content = &rest[4..4 + count];
            assert_eq!(rest[4 + count..8 + count], masked_crc(content));
            all.push(content.to_vec());
            file = &rest[8 + count..];
        }
        all
    }

    #[test]
    fn every_epoch_is_an_event() {
        let epoch = |epoch: u32| EpochMetrics {
            epoch,
            step: 300 * u64::from(epoch),
            samples: 0,
            learning_rate: 0.001,
            train_loss: 0.25,
            validation_loss: 0.5,
            validation_accuracy: None,
            samples_per_second: Some(1000.0),
            second: None,
            weights: vec![WeightHistogram {
                name: "ft.bias".into(),
                min: -1.0,
                max: 3.0,
                sum: 2.0,
                sum_of_squares: 10.0,
                counts: vec![1, 1],
            }],
            neurons: Some(NeuronActivity { positive: 0.25, saturated: 0.125, dead: 0.0 }),
            seconds: 10.0,
        };
        let all = records(&encode(&[epoch(1), epoch(2)], 1_000.0));
        assert_eq!(all.len(), 3);
        assert_eq!(all[0][..9], [&[9][..], &980f64.to_le_bytes()].concat());
        assert!(all[0].ends_with(b"brain.Event:2"));
        // The time, and step 600 as 88 | 128, 4.
        assert_eq!(all[2][..12], [&[9][..], &1000f64.to_le_bytes(), &[16, 0xd8, 4]].concat());
        let value = [&[0x0a, 15][..], b"loss/validation", &[0x15], &0.5f32.to_le_bytes()].concat();
        assert!(all[2].windows(value.len()).any(|window| window == value));
        assert!(all[2].windows(12).any(|window| window == b"neurons/dead"));
        let bins =
            [&[0x32, 16][..], &1f64.to_le_bytes(), &3f64.to_le_bytes(), &[0x3a, 16], &[1f64.to_le_bytes(); 2].concat()];
        let bins = bins.concat();
        assert!(all[2].windows(bins.len()).any(|window| window == bins));
        assert!(all[2].windows(15).any(|window| window == b"weights/ft.bias"));
        assert!(!all[2].windows(8).any(|window| window == b"accuracy"));
    }
}
