//! Round trips of random networks, damaged files, and files with a wrong header.

use rand::RngExt;

use super::*;
use crate::net::{BucketRule, QuantDense};
use crate::units::Seed;

/// A network with small weights, so that sums stay in range. Its numbers have all compressed lengths.
fn random(architecture: Architecture, seed: u64) -> Nnue {
    let mut rng = Seed(seed).stream("random .nnue", 0);
    let shape = architecture.shape();
    let rows = shape.features as usize;
    let ft_biases = (0..shape.l1).map(|_| rng.random::<i16>()).collect();
    let narrow = shape.narrow as usize * shape.l1;
    let weight =
        |at| if at < narrow { i16::from(rng.random::<i8>()) } else { rng.random::<i16>() >> rng.random_range(4..15) };
    let ft_weights = (0..rows * shape.l1).map(weight).collect();
    let sums = if shape.psqt { rows * shape.buckets.count } else { 0 };
    let psqt_weights = (0..sums).map(|_| rng.random::<i32>() >> rng.random_range(0..31)).collect();
    let stacks = (0..shape.buckets.count).map(|_| {
        let layers = shape.layer_sizes().into_iter().map(|(inputs, outputs)| QuantDense {
            inputs,
            outputs,
            weights: (0..inputs * outputs).map(|_| i16::from(rng.random::<i8>())).collect(),
            biases: (0..outputs).map(|_| rng.random_range(-100_000..100_000)).collect(),
        });
        layers.collect()
    });
    let stacks = stacks.collect();
    let net = QuantNet { scheme: architecture.scheme(), shape, ft_weights, ft_biases, psqt_weights, stacks };
    Nnue { architecture, description: b"a test".to_vec(), net }
}

#[test]
fn hashes_are_those_of_the_published_networks() {
    let check = |architecture: Architecture, header: u32, transformer: u32| {
        assert_eq!((architecture.hash(), architecture.transformer_hash()), (header, transformer), "{architecture}");
        assert_eq!(architecture.name().parse(), Ok(architecture));
        assert!(architecture.shape().validate().is_ok() && architecture.scheme().validate().is_ok());
        assert!(architecture.feature_set().is_ok(), "{architecture}");
    };
    // From nn-82215d0fd0df, nn-26abeed38351, nn-6877cd24400e and nn-ad9b42354671.
    check(Architecture::Sf12, 0x3E5A_A6EE, 0x5D69_D7B8);
    check(Architecture::Sf14, 0x3C10_3E72, 0x5F23_48B8);
    check(Architecture::Sf15, 0x1C10_2EF2, 0x7F23_44B8);
    check(Architecture::Sf15_1, 0x1C10_2EF2, 0x7F23_44B8);
    // From nn-1c0000000000 of Stockfish 17.1.
    check(Architecture::Sf17_1, 0x1C10_20F2, 0x7F23_54B8);
    // From nn-c288c895ea92, nn-37f18f62d772 and nn-9067e33176e8 of Stockfish 18.
    check(Architecture::Sf18, 0xEC10_2EF2, 0x8F23_44B8);
    check(Architecture::Sf16_1Small, 0x1C10_3C92, 0x7F23_4DB8);
    check(Architecture::Sf18Lite, 0x1C10_3EB2, 0x7F23_4EB8);
    // From nn-1a298aa575a0 and nn-61e7af4bb97d of Stockfish 19.
    check(Architecture::Sf19, 0xA85B_2205, 0xCB68_5313);
    check(Architecture::Sf19Lite, 0x0C10_35AE, 0x6F23_44B8);
    assert!("stockfish-11".parse::<Architecture>().is_err());
}

#[test]
fn every_architecture_round_trips() {
    for architecture in Architecture::ALL {
        // The largest are slow; their layers equal the small ones'.
        if [Architecture::Sf16_1, Architecture::Sf17_1, Architecture::Sf18].contains(&architecture) {
            continue;
        }
        let nnue = random(architecture, 1);
        let bytes = nnue.to_bytes();
        let back = Nnue::parse(&bytes, Some(architecture)).expect("whole");
        assert_eq!(back.to_bytes(), bytes, "{architecture}");
        assert!(back == nnue, "{architecture}");
        let file = back.into_file().expect("the shipped definition");
        assert!(Nnue::from_file(file, "a test").expect("an architecture") == nnue, "{architecture}");
    }
}

#[test]
fn architectures_with_one_header_are_told_apart() {
    let mut nnue = random(Architecture::Sf15_1, 2);
    let check = |nnue: &Nnue, wanted, expected| {
        assert_eq!(Nnue::parse(&nnue.to_bytes(), wanted).expect("whole").architecture, expected);
    };
    check(&nnue, None, Architecture::Sf15_1);
    check(&nnue, Some(Architecture::Sf15), Architecture::Sf15);
    for layer in nnue.net.stacks.iter_mut().map(|stack| &mut stack[1]) {
        let columns = layer.inputs;
        layer.weights.chunks_exact_mut(columns).for_each(|row| row[15..].fill(0));
    }
    check(&nnue, None, Architecture::Sf15);
    check(&nnue, Some(Architecture::Sf15_1), Architecture::Sf15_1);
    let error = Nnue::parse(&nnue.to_bytes(), Some(Architecture::Sf14)).expect_err("another").to_string();
    assert_eq!(error, "byte 4: the file is of architecture stockfish-15 or stockfish-15.1, not stockfish-14");
}

#[test]
fn truncated_and_too_long_files_are_refused() {
    let mut rng = Seed(3).stream("cuts", 0);
    for architecture in [Architecture::Sf16_1Small, Architecture::Sf12] {
        let mut bytes = random(architecture, 3).to_bytes();
        let all = bytes.len();
        let somewhere: Vec<usize> = (0..60).map(|_| rng.random_range(0..all)).collect();
        for cut in (0..200).chain(somewhere).chain(all - 40..all) {
            let error = Nnue::parse(&bytes[..cut], None).expect_err("cut");
            let size = cut;
            assert!(matches!(error, NnueError::Truncated { size: found, .. } if found == size), "{cut}: {error}");
        }
        bytes.push(0);
        assert_eq!(Nnue::parse(&bytes, None), Err(NnueError::LeftOver { at: all, count: 1 }));
    }
}

/// The offsets of all numbers, arrays and layers of a file, and its length.
fn offsets(nnue: &Nnue) -> Vec<usize> {
    let shape = &nnue.net.shape;
    let mut at = 12 + nnue.description.len();
    let mut offsets = vec![0, 4, 8, 12, at];
    let mut next = |bytes: usize| {
        at += bytes;
        offsets.push(at);
    };
    next(4);
    next(2 * nnue.net.ft_biases.len());
    next(2 * nnue.net.ft_weights.len());
    next(4 * nnue.net.psqt_weights.len());
    for _ in 0..shape.buckets.count {
        next(4);
        for (inputs, outputs) in shape.layer_sizes() {
            next(4 * outputs);
            next(outputs * inputs.next_multiple_of(PADDING));
        }
    }
    offsets
}

#[test]
fn files_truncated_at_a_boundary_are_refused() {
    let nnue = random(Architecture::Sf14, 7);
    let bytes = nnue.to_bytes();
    let offsets = offsets(&nnue);
    assert_eq!(offsets.last(), Some(&bytes.len()));
    for offset in &offsets {
        for cut in offset.saturating_sub(1)..(offset + 2).min(bytes.len()) {
            let error = Nnue::parse(&bytes[..cut], None).expect_err("cut");
            assert!(matches!(error, NnueError::Truncated { size, .. } if size == cut), "{cut}: {error}");
        }
    }
}

/// The hashes of the file, of the transformer and of each bucket.
#[test]
fn every_hash_is_checked() {
    let nnue = random(Architecture::Sf14, 8);
    let mut bytes = nnue.to_bytes();
    let offsets = offsets(&nnue);
    let layers = 1 + 2 * nnue.net.shape.layer_sizes().len();
    let hashes = [4, offsets[4]].into_iter().chain((0..8).map(|bucket| offsets[8 + bucket * layers]));
    for at in hashes {
        bytes[at + 3] ^= 0x40;
        let error = Nnue::parse(&bytes, None).expect_err("damaged").to_string();
        assert!(error.starts_with(&format!("byte {at}: ")) && error.contains("hash"), "{error}");
        bytes[at + 3] ^= 0x40;
    }
    assert!(Nnue::parse(&bytes, None).is_ok());
}

/// Each of the three compressed arrays, with numbers that do not end and with wrong lengths.
#[test]
fn compressed_arrays_are_checked() {
    let nnue = random(Architecture::Sf16_1Small, 9);
    let mut bytes = nnue.to_bytes();
    let mut at = 22;
    for (what, bits) in [("biases", 16), ("weights", 16), ("PSQT", 32)] {
        let length = at + leb128::MAGIC.len();
        let stated = u32::from_le_bytes(bytes[length..length + 4].try_into().expect("four"));
        let first = length + 4;
        let end = length + 4 + stated as usize;
        let mut check = |at: usize, new: &[u8], expected: &str| {
            let old = bytes[at..at + new.len()].to_vec();
            bytes[at..at + new.len()].copy_from_slice(new);
            let error = Nnue::parse(&bytes, None).expect_err("damaged").to_string();
            assert!(error.contains(what) && error.contains(expected), "{error}");
            bytes[at..at + new.len()].copy_from_slice(&old);
        };
        check(first, &[0x80; 12], &format!("byte {first}: a number of"));
        check(first, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00], &format!("does not end or does not fit {bits} bits"));
        check(end - 1, &[0x80], "does not end or does not fit");
        check(length, &(stated - 1).to_le_bytes(), "does not end or does not fit");
        check(length, &(stated + 1).to_le_bytes(), &format!("should have {} compressed bytes", stated + 1));
        check(length, &1u32.to_le_bytes(), "should have 1 compressed bytes");
        check(length, &u32::MAX.to_le_bytes(), "needs 4294967295 bytes");
        check(at, b"D", "should begin with COMPRESSED_LEB128");
        at = end;
    }
}

#[test]
fn errors_name_the_damaged_byte() {
    let nnue = random(Architecture::Sf16_1Small, 4);
    let whole = nnue.to_bytes();
    let check = |at: usize, new: &[u8], expected: &str| {
        let mut bytes = whole.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        let error = Nnue::parse(&bytes, None).expect_err("damaged").to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    // The header has 12 bytes and the description 6. The transformer's hash is at 18, its biases start at 22.
    check(0, &[1], "byte 0: version 7af32f01 is not");
    check(4, &[0, 0, 0, 0], "byte 4: version 7af32f20 with hash 00000000 is no Stockfish network");
    check(8, &[0xff; 4], "the file ends at byte");
    check(8, &[0xf0, 0xff, 0xff, 0xff], "the file ends at byte");
    check(18, &[0], "byte 18: the hash of the feature transformer is");
    check(22, b"K", "byte 22: the feature transformer's biases should begin with COMPRESSED_LEB128");
    check(39, &[0xff; 4], "the file ends at byte");
    check(39, &[0; 4], "byte 43: the feature transformer's biases should have 0 compressed bytes");
    check(43, &[0x80; 6], "byte 43: a number of the feature transformer's biases does not end or does not fit 16 bits");
    let layers = whole.len() - nnue.net.shape.buckets.count * (4 + 4 * (16 + 32 + 1) + 128 * 16 + 32 * 32 + 32);
    check(layers, &[1, 2, 3, 4], &format!("byte {layers}: the hash of the dense layers is 04030201"));
    check(layers + 4, &[0xff, 0xff, 0xff, 0x7f], "bucket 0, layer 0: the integer bias of neuron 0 is 2147483647");
}

#[test]
fn the_first_bytes_tell_the_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("net.nnue");
    let nnue = random(Architecture::Sf16_1Small, 5);
    nnue.save(&path).expect("saved");
    assert!(is_nnue(&path).expect("there"));
    let file = NetFile::load(&path).expect("loads");
    assert_eq!((file.origin.name.as_str(), &file.net), ("HALF-KA-V2-HM", &nnue.net));
    // A round trip through an fsbench file gives the same network.
    let own = folder.path().join("net.safetensors");
    file.save(&own).expect("saved");
    assert_eq!(NetFile::load(&own).expect("loads"), file);

    std::fs::write(&path, [0x20]).expect("written");
    assert!(!is_nnue(&path).expect("there"));
    std::fs::write(&path, 0x7AF3_2F20u32.to_le_bytes()).expect("written");
    let error = NetFile::load(&path).expect_err("cut").to_string();
    assert!(
        error.ends_with("the file ends at byte 4, but the hash needs 4 bytes from byte 4; was it only partly copied?")
    );
    std::fs::File::create(&path).and_then(|file| file.set_len(1 << 33)).expect("a sparse file");
    let error = Nnue::load(&path, None).expect_err("too large");
    assert!(matches!(error, NetError::Nnue { reason: NnueError::TooLarge { size, .. }, .. } if size == 1 << 33));
}

#[test]
fn networks_without_a_matching_architecture_are_refused() {
    let check = |change: fn(&mut Shape), expected: &str| {
        let mut file = random(Architecture::Sf16_1Small, 6).into_file().expect("the shipped definition");
        change(&mut file.net.shape);
        let error = Nnue::from_file(file, "").expect_err("no such architecture").to_string();
        let start = "no Stockfish architecture has features HALF-KA-V2-HM and shape (22528 → 128) × 2";
        assert!(error.starts_with(start) && error.contains(expected), "{error}");
    };
    check(|shape| shape.skip = false, "(15, dual → 32 → 1)");
    check(|shape| shape.buckets.rule = BucketRule::Expression("file(K)".into()), "bucket by file(K)");
}
