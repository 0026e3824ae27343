//! Network files and checkpoints: safetensors files that hold everything needed to use them.
//!
//! A network file holds these integer tensors; with several output buckets the layers of bucket B are
//! `stacks.B.layers.N`:
//!
//! | tensor | dimensions | type |
//! |---|---|---|
//! | `ft.weight`, `ft.bias` | [features, l1], [l1] | i16 |
//! | `psqt.weight`, if the shape has PSQT outputs | [features, buckets] | i32 |
//! | `layers.N.weight` | [outputs, inputs] | i8, or the scheme's i16 |
//! | `layers.N.bias` | [outputs] | i32 |
//!
//! The metadata entry `fsbench` is a JSON object with `version, kind, name, definition, identity, shape, scheme`. A
//! checkpoint holds f32 tensors of the same names and the trainer's own; PSQT values are the last columns of
//! `ft.weight`, and there is no scheme. The metadata are one entry because safetensors writes several in random order,
//! and a network always gives the same bytes.

use std::path::Path;

use safetensors::{Dtype, View};
use serde::{Deserialize, Serialize};

use super::container::{Container, FileKind, NetHeader, TensorBytes, VERSION, matrix, read, vector, write};
use super::{FloatNet, NetError, QuantDense, QuantNet, WeightType, nnue};
use crate::features::{FeatureSet, Identity};
use crate::json;

/// The feature set of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub name: String,
    /// Self-contained TOML text.
    pub definition: String,
    pub identity: Identity,
}

impl Origin {
    #[must_use]
    pub fn of(set: &FeatureSet) -> Origin {
        Origin { name: set.name().into(), definition: set.definition().into(), identity: set.identity().clone() }
    }

    /// The feature set, rebuilt from its definition.
    ///
    /// # Errors
    /// When the definition does not compile, or its identity differs from the file's.
    pub fn feature_set(&self) -> Result<FeatureSet, NetError> {
        let set = FeatureSet::from_definition(&self.definition).map_err(NetError::Definition)?;
        if *set.identity() == self.identity {
            Ok(set)
        } else {
            Err(NetError::Inconsistent {
                name: self.name.clone(),
                stored: self.identity.clone(),
                rebuilt: set.identity().clone(),
            })
        }
    }

    /// Checks that the network belongs to `set`.
    ///
    /// # Errors
    /// When it belongs to another set; names both identities.
    pub fn expect(&self, set: &FeatureSet) -> Result<(), NetError> {
        if *set.identity() == self.identity {
            Ok(())
        } else {
            Err(NetError::OtherSet {
                name: self.name.clone(),
                stored: self.identity.clone(),
                wanted: set.name().into(),
                identity: set.identity().clone(),
            })
        }
    }
}

/// A quantised network with its feature set.
///
/// ```
/// use fsbench::features::FeatureSet;
/// use fsbench::net::{FloatNet, NetFile, Origin, Scheme, Shape, quantise};
///
/// let set = FeatureSet::resolve("piece")?;
/// let net = quantise(&FloatNet::zeros(&Shape::plain(set.num_features(), 16, vec![])), &Scheme::stockfish())?;
/// let path = std::env::temp_dir().join("zeros.safetensors");
/// NetFile { origin: Origin::of(&set), net }.save(&path)?;
///
/// let file = NetFile::load(&path)?;
/// assert_eq!(file.origin.feature_set()?.identity(), set.identity());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NetFile {
    pub origin: Origin,
    pub net: QuantNet,
}

/// The metadata of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub origin: Origin,
    /// The trainer's own state (step, epoch, configuration…); null if there is none.
    pub training: serde_json::Value,
}

impl NetFile {
    /// Writes the network atomically: `path` keeps its old content until the new file is complete.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), NetError> {
        self.save_with_description(path, None)
    }

    /// [`NetFile::save`] with a description, which [`read_description`] reads.
    ///
    /// # Errors
    /// As [`NetFile::save`].
    pub fn save_with_description(&self, path: &Path, description: Option<&str>) -> Result<(), NetError> {
        let (header, tensors) = self.parts(description);
        write(path, &header, &tensors)
    }

    /// A hash of all that determines the network's output: features, shape, scheme and weights. In hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        let (header, tensors) = self.parts(None);
        let mut hasher = blake3::Hasher::new();
        // Plain structures serialise.
        let reads_tables = header.shape.buckets.rule.expression().is_some();
        hasher.update(&json::to_bytes(&(header.shape, header.scheme, &self.origin.identity)).unwrap_or_default());
        if reads_tables {
            // The identity does not cover bucket tables that only the rule of the output buckets reads.
            hasher.update(self.origin.definition.as_bytes());
        }
        for tensor in &tensors {
            hasher.update(tensor.0.as_bytes()).update(&(&tensor.1).data());
        }
        hasher.finalize().to_hex().to_string()
    }

    fn parts(&self, description: Option<&str>) -> (NetHeader, Vec<(String, TensorBytes)>) {
        let net = &self.net;
        let header = NetHeader {
            version: VERSION,
            kind: FileKind::Network,
            origin: self.origin.clone(),
            description: description.map(str::to_owned),
            shape: net.shape.clone(),
            scheme: Some(net.scheme.clone()),
            training: serde_json::Value::Null,
        };
        let mut tensors = vec![
            matrix("ft.weight", &net.ft_weights, i16::to_le_bytes, Dtype::I16, net.shape.l1),
            vector("ft.bias", &net.ft_biases, i16::to_le_bytes, Dtype::I16),
        ];
        if net.shape.psqt {
            let buckets = net.shape.buckets.count;
            tensors.push(matrix("psqt.weight", &net.psqt_weights, i32::to_le_bytes, Dtype::I32, buckets));
        }
        for (bucket, stack) in net.stacks.iter().enumerate() {
            for (index, layer) in stack.iter().enumerate() {
                let name = net.shape.layer_name(bucket, index);
                let weight = format!("{name}.weight");
                tensors.push(match net.scheme.weights {
                    WeightType::I8 => {
                        let to_byte = |value: i16| [value as u8];
                        matrix(&weight, &layer.weights, to_byte, Dtype::I8, layer.inputs)
                    }
                    WeightType::I16 => matrix(&weight, &layer.weights, i16::to_le_bytes, Dtype::I16, layer.inputs),
                });
                tensors.push(vector(&format!("{name}.bias"), &layer.biases, i32::to_le_bytes, Dtype::I32));
            }
        }
        (header, tensors)
    }

    /// Loads an fsbench network or a `.nnue` file; the first bytes tell which. The feature set is not rebuilt here: see
    /// [`Origin::feature_set`].
    ///
    /// # Errors
    /// When the file cannot be read, is truncated or foreign, or its tensors do not have the shape of its header.
    pub fn load(path: &Path) -> Result<NetFile, NetError> {
        if nnue::is_nnue(path)? { Ok(nnue::Nnue::load(path, None)?.into_file()?) } else { NetFile::load_own(path) }
    }

    fn load_own(path: &Path) -> Result<NetFile, NetError> {
        let bytes = read(path)?;
        let file = Container::new(path, &bytes, FileKind::Network)?;
        let shape = file.header.shape.clone();
        let scheme = file.header.scheme.clone().ok_or_else(|| file.foreign())?;
        scheme.validate().and_then(|()| scheme.admits(&shape)).map_err(|error| file.content(error))?;
        let layer = |bucket: usize, index: usize, (inputs, outputs): (usize, usize)| {
            let name = shape.layer_name(bucket, index);
            let biases = file.tensor(&format!("{name}.bias"), Dtype::I32, &[outputs], i32::from_le_bytes)?;
            let weight = format!("{name}.weight");
            let sizes = [outputs, inputs];
            let weights = match scheme.weights {
                WeightType::I8 => file.tensor(&weight, Dtype::I8, &sizes, |[byte]: [u8; 1]| i16::from(byte as i8))?,
                WeightType::I16 => file.tensor(&weight, Dtype::I16, &sizes, i16::from_le_bytes)?,
            };
            let layer = QuantDense { inputs, outputs, weights, biases };
            let checked = layer.check_biases(&name, &scheme);
            checked.map_err(|error| file.content(error))?;
            if scheme.weights == WeightType::I16 {
                let checked = layer.check_weights(&name, &scheme, shape.input_activation(index));
                checked.map_err(|error| file.content(error))?;
            }
            Ok(layer)
        };
        let stack = |bucket| {
            let layers = shape.layer_sizes().into_iter().enumerate();
            layers.map(|(index, sizes)| layer(bucket, index, sizes)).collect::<Result<Vec<_>, NetError>>()
        };
        let stacks = (0..shape.buckets.count).map(stack).collect::<Result<_, NetError>>()?;
        let rows = [shape.features as usize, shape.l1];
        let ft_weights = file.tensor("ft.weight", Dtype::I16, &rows, i16::from_le_bytes)?;
        let ft_biases = file.tensor("ft.bias", Dtype::I16, &[shape.l1], i16::from_le_bytes)?;
        let psqt = [shape.features as usize, shape.buckets.count];
        let psqt_weights =
            if shape.psqt { file.tensor("psqt.weight", Dtype::I32, &psqt, i32::from_le_bytes)? } else { Vec::new() };
        let net = QuantNet { scheme, ft_weights, ft_biases, psqt_weights, stacks, shape };
        Ok(NetFile { origin: file.header.origin, net })
    }
}

/// The description in an fsbench network or a `.nnue` file, if there is one.
///
/// # Errors
/// As [`NetFile::load`].
pub fn read_description(path: &Path) -> Result<Option<String>, NetError> {
    if nnue::is_nnue(path)? {
        let nnue = nnue::Nnue::load(path, None)?;
        return Ok(Some(String::from_utf8_lossy(&nnue.description).into_owned()));
    }
    let bytes = read(path)?;
    Ok(Container::new(path, &bytes, FileKind::Network)?.header.description)
}

/// Writes a checkpoint, atomically as [`NetFile::save`]: the float network under the names of
/// [`super::Shape::tensors`], and the trainer's `extra` f32 tensors (name, dimensions, values).
///
/// # Errors
/// When the file cannot be written.
pub fn save_float(
    path: &Path,
    checkpoint: &Checkpoint,
    net: &FloatNet,
    extra: &[(String, Vec<usize>, &[f32])],
) -> Result<(), NetError> {
    let header = NetHeader {
        version: VERSION,
        kind: FileKind::Checkpoint,
        origin: checkpoint.origin.clone(),
        description: None,
        shape: net.shape.clone(),
        scheme: None,
        training: checkpoint.training.clone(),
    };
    let own = net.shape.tensors().into_iter().zip(net.tensors());
    let own = own.map(|((name, dimensions), values)| (name, dimensions, values));
    let extra = extra.iter().map(|(name, dimensions, values)| (name.clone(), dimensions.clone(), *values));
    let tensors = own.chain(extra).map(|(name, dimensions, values)| {
        let mut tensor = vector(&name, values, f32::to_le_bytes, Dtype::F32);
        tensor.1.shape = dimensions;
        tensor
    });
    write(path, &header, &tensors.collect::<Vec<_>>())
}

/// Loads the float network of a checkpoint and ignores other tensors.
///
/// # Errors
/// As [`NetFile::load`].
pub fn load_float(path: &Path) -> Result<(FloatNet, Checkpoint), NetError> {
    let bytes = read(path)?;
    let file = Container::new(path, &bytes, FileKind::Checkpoint)?;
    let shape = file.header.shape.clone();
    let float = |name: &str, dimensions: &[usize]| file.tensor(name, Dtype::F32, dimensions, f32::from_le_bytes);
    let net = FloatNet::filled(&shape, float)?;
    net.validate().map_err(|error| file.content(error))?;
    Ok((net, Checkpoint { origin: file.header.origin, training: file.header.training }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{random_net, shape};
    use super::super::{Scheme, Shape, forward, forward_integer, quantise};
    use super::*;

    fn example(set: &FeatureSet) -> (FloatNet, NetFile) {
        let float = random_net(&shape(7, 3, &[2]), 3);
        let net = quantise(&float, &Scheme::stockfish()).expect("fits");
        (float, NetFile { origin: Origin::of(set), net })
    }

    fn piece() -> FeatureSet {
        FeatureSet::resolve("square(P) * role(P) * color(P) for P in pieces").expect("a definition")
    }

    #[test]
    fn networks_and_checkpoints_round_trip_to_the_same_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (float, file) = example(&piece());
        let path = |name: &str| folder.path().join(name);
        file.save(&path("a")).expect("saved");
        let back = NetFile::load(&path("a")).expect("loads");
        assert_eq!(back, file);
        assert_eq!(forward_integer(&back.net, 0, &[1, 2], &[0]), forward_integer(&file.net, 0, &[1, 2], &[0]));
        assert!(back.origin.feature_set().is_ok());

        let training = serde_json::json!({ "step": 17, "rate": 0.1 });
        let checkpoint = Checkpoint { origin: file.origin.clone(), training };
        let extra = [("adam.ft.bias".to_owned(), vec![3, 1], &[1.0f32, 2.0, 3.0][..])];
        save_float(&path("c"), &checkpoint, &float, &extra).expect("saved");
        let (net, read) = load_float(&path("c")).expect("loads");
        assert_eq!((&net, &read), (&float, &checkpoint));
        let output = |net| forward(net, &Scheme::stockfish(), 0, &[1], &[2]);
        assert_eq!(output(&net), output(&float));

        for _ in 0..8 {
            file.save(&path("b")).expect("saved");
            save_float(&path("d"), &checkpoint, &float, &extra).expect("saved");
            assert_eq!(std::fs::read(path("a")).ok(), std::fs::read(path("b")).ok());
            assert_eq!(std::fs::read(path("c")).ok(), std::fs::read(path("d")).ok());
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 4, "no temporary file is left");
        assert!(matches!(load_float(&path("a")), Err(NetError::Foreign { kind: "checkpoint", .. })));
        assert!(matches!(NetFile::load(&path("c")), Err(NetError::Foreign { kind: "network", .. })));
    }

    /// With any bit flipped, a network or a checkpoint is refused, or is as it was.
    #[test]
    fn flipped_bits_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("net");
        let (float, file) = example(&piece());
        let checkpoint = Checkpoint { origin: file.origin.clone(), training: serde_json::json!({ "step": 17 }) };
        let read = |is_network: bool| {
            if is_network {
                NetFile::load(&path).map(|file| format!("{file:?}"))
            } else {
                load_float(&path).map(|loaded| format!("{loaded:?}"))
            }
        };
        for is_network in [true, false] {
            if is_network {
                file.save(&path).expect("saved");
            } else {
                save_float(&path, &checkpoint, &float, &[]).expect("saved");
            }
            let mut bytes = std::fs::read(&path).expect("read");
            let expected = read(is_network).expect("loads");
            let mut refused = 0;
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                std::fs::write(&path, &bytes).expect("written");
                match read(is_network) {
                    Ok(found) => assert_eq!(found, expected, "bit {bit}"),
                    Err(_) => refused += 1,
                }
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            assert!(refused > 7 * bytes.len(), "{refused} of {} bits", 8 * bytes.len());
        }
    }

    #[test]
    fn broken_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("net");
        let file = example(&piece()).1;
        file.save(&path).expect("saved");
        let whole = std::fs::read(&path).expect("read");
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("written");
            assert!(NetFile::load(&path).is_err(), "cut at {length}");
        }
        let refused = |expected: &str| {
            let error = NetFile::load(&path).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        let check_text = |old: &str, new: &str, expected: &str| {
            let at = whole.windows(old.len()).position(|window| window == old.as_bytes()).expect("stands in the file");
            let mut bytes = whole.clone();
            bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
            std::fs::write(&path, &bytes).expect("written");
            refused(expected);
        };
        check_text(r#""fsbench""#, r#""another""#, "has no `fsbench` in its metadata");
        check_text(r#""shape":[7,3]"#, r#""shape":[9,9]"#, "is not a complete safetensors file");
        check_text("checksum", "Checksum", "do not match its checksum");
        check_text(r#"l1\":3,"#, r#"l1\":9,"#, "do not match its checksum");
        // With their checksum, but with a header that contradicts the tensors.
        let check = |change: fn(&mut NetHeader), expected: &str| {
            let (mut header, tensors) = file.parts(None);
            change(&mut header);
            write(&path, &header, &tensors).expect("saved");
            refused(expected);
        };
        check(|header| header.shape.features = 8, "tensor `ft.weight` should be I16 [8, 3], but is I16 [7, 3]");
        check(|header| header.shape.l1 = 9, "tensor `layers.0.weight` should be I8 [2, 18], but is I8 [2, 6]");
        check(
            |header| header.scheme = Some(Scheme { divisor: Some(-1), ..Scheme::stockfish() }),
            "scales are 1 to 32768, not -1",
        );
        check(|header| header.version = 2, "has format version 2; this fsbench reads version 1");
    }

    /// The sizes in a header are checked against the file before anything of that size is allocated.
    #[test]
    fn huge_sizes_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("net");
        let (_, file) = example(&piece());
        let check = |change: fn(&mut Shape), expected: &str| {
            let mut changed = file.clone();
            change(&mut changed.net.shape);
            changed.save(&path).expect("saved");
            let error = NetFile::load(&path).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(|s| s.features = u32::MAX, "tensor `ft.weight` should be I16 [4294967295, 3]");
        check(|s| s.hidden = vec![1 << 60], "a hidden layer is 1 to 65536 wide");
        let mut bytes = (u64::MAX).to_le_bytes().to_vec();
        bytes.extend(b"{}");
        std::fs::write(&path, bytes).expect("written");
        assert!(matches!(NetFile::load(&path), Err(NetError::Container { .. })));
        // Two terabytes, which are not read: without a header, and after a header of no tensors.
        for start in [0u64.to_le_bytes().to_vec(), [2u64.to_le_bytes().as_slice(), b"{}"].concat()] {
            std::fs::write(&path, start).expect("written");
            std::fs::File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(1 << 41))
                .expect("a sparse file");
            assert!(matches!(NetFile::load(&path), Err(NetError::Container { .. })));
        }
    }

    #[test]
    fn another_feature_set_is_refused() {
        let set = piece();
        let mut origin = Origin::of(&set);
        assert!(origin.expect(&set).is_ok());
        let other: Identity = serde_json::from_value("f".repeat(64).into()).expect("an identity");
        origin.identity = other.clone();
        let error = origin.expect(&set).expect_err("refused").to_string();
        assert!(error.contains(&other.to_string()) && error.contains(&set.identity().to_string()), "{error}");
        assert!(matches!(origin.feature_set(), Err(NetError::Inconsistent { .. })));
    }
}
