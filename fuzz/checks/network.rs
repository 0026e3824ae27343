//! Network files: a loaded network is written and loaded again to the same network, and the engine computes what the
//! reference does.

use std::collections::HashMap;

use fsbench::chess::{Chess, Color, Perspective};
use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
use fsbench::features::FeatureSet;
use fsbench::net::bullet::OutputOrder;
use fsbench::net::nnue::{Architecture, Nnue};
use fsbench::net::{
    Activation, FloatNet, NetFile, QuantNet, bullet, forward_integer, load_float, load_quantised, quantise,
    read_description,
};

use fsbench::output::checked::{envelope, open_envelope};
use safetensors::SafeTensors;

use super::file;

/// Compares the engine with the reference at the initial position.
fn evaluate(net: &QuantNet, set: &FeatureSet) {
    let model = Model::new(net);
    let Ok(mut evaluator) = Evaluator::new(set, &model, Strategy::LazyCached, BackEnd::best()) else { return };
    let board = Chess::default();
    let board = shakmaty::Position::board(&board);
    let active = |pov| set.reference(board, pov);
    evaluator.set(board);
    let found = evaluator.raw(Color::White);
    let stm = active(Perspective::White);
    let nstm = active(Perspective::Black);
    let expected = forward_integer(net, net.shape.buckets.of(32), &stm, &nstm);
    assert_eq!(found, expected.sum());
}

/// The input: the activation (the highest bit: output weights input by input), the number of output buckets, the width
/// or 0, then the file.
pub fn bullet_raw(bytes: &[u8]) {
    let [activation, buckets, width, content @ ..] = bytes else { return };
    let activations = [Activation::Relu, Activation::Crelu, Activation::Screlu, Activation::Pairwise, Activation::Dual];
    let layout = bullet::BulletLayout {
        activation: activations[usize::from(*activation & 127) % activations.len()],
        buckets: usize::from(*buckets),
        l1: Some(usize::from(*width)).filter(|width| *width > 0),
        output_order: if activation & 128 == 0 { OutputOrder::Bucket } else { OutputOrder::Input },
    };
    thread_local! {
        static SET: FeatureSet = FeatureSet::resolve("file(P) * rank(P) for P in pieces").expect("a definition");
    }
    SET.with(|set| {
        let path = file("quantised.bin", content);
        let Ok((loaded, _)) = bullet::load(&path, set, layout) else { return };
        evaluate(&loaded.net, set);
        bullet::save(&path, &loaded.net).expect("a network of bullet's format");
        let output_order = OutputOrder::Bucket;
        let layout = bullet::BulletLayout { l1: Some(loaded.net.shape.l1), output_order, ..layout };
        assert_eq!(bullet::load(&path, set, layout).expect("just written").0, loaded);
    });
}

/// The input is read as it is, and with its checksum repaired.
pub fn safetensors(bytes: &[u8]) {
    check_safetensors(bytes);
    if let Some(repaired) = repaired(bytes) {
        check_safetensors(&repaired);
    }
}

/// The file with the checksum that src/net/container.rs describes; `None` where there is no place for one.
fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let file = SafeTensors::deserialize(bytes).ok()?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    let (json, _) = open_envelope(metadata.metadata().as_ref()?.get("fsbench")?).ok()?;
    let mut tensors: Vec<_> = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hasher = blake3::Hasher::new();
    hasher.update(json.as_bytes());
    for (name, tensor) in &tensors {
        hasher.update(format!("\n{name} {:?} {:?}\n", tensor.dtype(), tensor.shape()).as_bytes());
        hasher.update(tensor.data());
    }
    let metadata = HashMap::from([("fsbench".to_owned(), envelope(json, hasher.finalize()))]);
    safetensors::serialize(tensors, Some(metadata)).ok()
}

fn check_safetensors(bytes: &[u8]) {
    let path = file("net.safetensors", bytes);
    let _ = read_description(&path);
    if let Ok(network) = NetFile::load(&path) {
        let copy = file("copy.safetensors", b"");
        network.save(&copy).expect("a loaded network can be saved");
        assert_eq!(NetFile::load(&copy).expect("just written"), network);
        if let Ok(set) = network.origin.feature_set() {
            evaluate(&network.net, &set);
        }
    }
    if let Ok((net, _)) = load_float(&path) {
        net.validate().expect("validated when loaded");
    }
    let _ = load_quantised(&path, None);
}

/// The input: a byte, then either the file (an even byte) or edits of a valid file (an odd one). Edits, because the
/// smallest valid file has 800,000 bytes, which mutations of whole files would hardly get past.
pub fn nnue(bytes: &[u8]) {
    let Some((&mode, rest)) = bytes.split_first() else { return };
    let wanted = Architecture::ALL.get(usize::from(mode / 2)).copied();
    if mode % 2 == 0 {
        check_nnue(rest, wanted);
        return;
    }
    thread_local! {
        static WHOLE: Vec<u8> = {
            let architecture = Architecture::Sf19Lite;
            let net = quantise(&FloatNet::zeros(&architecture.shape()), &architecture.scheme()).expect("zeros fit");
            Nnue { architecture, description: b"A network".to_vec(), net }.to_bytes()
        };
    }
    let edited = WHOLE.with(|whole| edited(whole, rest));
    check_nnue(&edited, None);
}

fn check_nnue(bytes: &[u8], wanted: Option<Architecture>) {
    let Ok(nnue) = Nnue::parse(bytes, wanted) else { return };
    let written = nnue.to_bytes();
    assert_eq!(Nnue::parse(&written, Some(nnue.architecture)).as_ref(), Ok(&nnue));
    let features = nnue.net.shape.features;
    for bucket in 0..nnue.net.shape.buckets.count {
        let _ = forward_integer(&nnue.net, bucket, &[0, features / 2, features - 1], &[1]);
    }
}

/// Applies edits of six bytes each: the place from which an offset counts (the start, the end, or the start of a
/// compressed array), the offset (i16), what to do (overwrite, insert, delete, truncate), and the value or count.
fn edited(whole: &[u8], edits: &[u8]) -> Vec<u8> {
    let magic = b"COMPRESSED_LEB128";
    let arrays = memchr_all(whole, magic);
    let mut bytes = whole.to_vec();
    for edit in edits.chunks_exact(6).take(64) {
        let start = match edit[0] {
            0 => 0,
            1 => bytes.len(),
            other => arrays[usize::from(other) % arrays.len()],
        };
        let offset = isize::from(i16::from_le_bytes([edit[1], edit[2]]));
        let at = start.saturating_add_signed(offset).min(bytes.len());
        let value = edit[4];
        let end = (at + usize::from(edit[5]).max(1)).min(bytes.len());
        match edit[3] % 4 {
            0 => bytes[at..end].fill(value),
            1 => drop(bytes.splice(at..at, vec![value; end - at])),
            2 => drop(bytes.drain(at..end)),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Where `pattern` begins in `bytes`; at least one place.
fn memchr_all(bytes: &[u8], pattern: &[u8]) -> Vec<usize> {
    let found = bytes.windows(pattern.len()).enumerate().filter(|(_, window)| *window == pattern);
    let places: Vec<usize> = found.map(|(at, _)| at).collect();
    if places.is_empty() { vec![0] } else { places }
}
