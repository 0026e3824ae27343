//! Reads a network from bytes. Nothing is allocated before its bytes are known to exist.

use super::architecture::{Encoding, WeightRange};
use super::{Architecture, Nnue, NnueError, PADDING, leb128, unread};
use crate::net::{QuantDense, QuantNet, Shape};
use crate::text::excerpt;

/// A cursor over the bytes of a file. `what` names the next part of the file for error messages.
struct NnueReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> NnueReader<'a> {
    fn take(&mut self, count: u64, what: &'static str) -> Result<&'a [u8], NnueError> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(count).ok().and_then(|count| rest.get(..count)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(NnueError::Truncated { what, at: self.at, needed: count, size: self.bytes.len() }),
        }
    }

    fn number(&mut self, what: &'static str) -> Result<u32, NnueError> {
        let bytes = self.take(4, what)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn numbers<T, const N: usize>(
        &mut self,
        count: usize,
        what: &'static str,
        from: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, NnueError> {
        let bytes = self.take((count * N) as u64, what)?;
        Ok(bytes.as_chunks::<N>().0.iter().map(|bytes| from(*bytes)).collect())
    }

    fn hash(&mut self, expected: u32, what: &'static str) -> Result<(), NnueError> {
        let at = self.at;
        match self.number(what)? {
            found if found == expected => Ok(()),
            found => Err(NnueError::Hash { what, at, found, expected }),
        }
    }

    /// Reads `count` compressed numbers of `bits` bits. Each takes at least a byte.
    fn compressed<T>(
        &mut self,
        count: usize,
        what: &'static str,
        bits: u32,
        from: fn(i32) -> T,
    ) -> Result<Vec<T>, NnueError> {
        let start = self.at;
        if self.take(leb128::MAGIC.len() as u64, what)? != leb128::MAGIC {
            return Err(NnueError::NotCompressed { what, at: start });
        }
        let stated = self.number(what)?;
        let data_start = self.at;
        let bytes = self.take(u64::from(stated), what)?;
        let stated = bytes.len();
        if stated < count {
            return Err(NnueError::CompressedLength { what, at: data_start, stated, used: count });
        }
        let mut numbers = Vec::with_capacity(count);
        let mut used = 0;
        while numbers.len() < count {
            let (value, length) =
                leb128::read(&bytes[used..], bits).ok_or(NnueError::Number { what, at: data_start + used, bits })?;
            used += length;
            numbers.push(from(value));
        }
        if used == stated {
            Ok(numbers)
        } else {
            Err(NnueError::CompressedLength { what, at: data_start, stated, used })
        }
    }
}

pub fn parse(bytes: &[u8], wanted: Option<Architecture>) -> Result<Nnue, NnueError> {
    let mut reader = NnueReader { bytes, at: 0 };
    let candidates = candidates(&mut reader, wanted)?;
    let first = candidates[0];
    let length = reader.number("the description's length")?;
    let description = reader.take(u64::from(length), "the description")?.to_vec();

    // The candidates differ only in the inputs of the second layer.
    let shape = first.shape();
    reader.hash(first.transformer_hash(), "the feature transformer")?;
    let rows = shape.features as usize;
    let buckets = shape.buckets.count;
    let psqt = if shape.psqt { rows * buckets } else { 0 };
    let biases = "the feature transformer's biases";
    let weights = "the feature transformer's weights";
    let sums = "PSQT";
    let (ft_biases, ft_weights, psqt_weights) = match first.encoding() {
        Encoding::Compressed => (
            reader.compressed(shape.l1, biases, 16, |value| value as i16)?,
            reader.compressed(rows * shape.l1, weights, 16, |value| value as i16)?,
            reader.compressed(psqt, sums, 32, |value| value)?,
        ),
        Encoding::Plain => (
            reader.numbers(shape.l1, biases, i16::from_le_bytes)?,
            reader.numbers(rows * shape.l1, weights, i16::from_le_bytes)?,
            reader.numbers(psqt, sums, i32::from_le_bytes)?,
        ),
        Encoding::ByRange { ranges, psqt_by_range } => {
            let own = reader.compressed(shape.l1, biases, 16, |value| value as i16)?;
            let mut all = Vec::new();
            let mut values = Vec::new();
            for WeightRange { features, is_narrow } in *ranges {
                let rows = *features as usize;
                all.extend(if *is_narrow {
                    reader.numbers(rows * shape.l1, weights, |[byte]: [u8; 1]| i16::from(byte as i8))?
                } else {
                    reader.compressed(rows * shape.l1, weights, 16, |value| value as i16)?
                });
                if *psqt_by_range {
                    values.extend(reader.compressed(rows * buckets, sums, 32, |value| value)?);
                }
            }
            if !psqt_by_range {
                values = reader.compressed(psqt, sums, 32, |value| value)?;
            }
            (own, all, values)
        }
    };
    let mut padded = Vec::with_capacity(buckets);
    for _ in 0..buckets {
        reader.hash(first.layers_hash(), "the dense layers")?;
        let layers = shape.layer_sizes().into_iter().map(|sizes| layer(&mut reader, sizes));
        padded.push(layers.collect::<Result<Vec<_>, _>>()?);
    }
    if reader.at < bytes.len() {
        return Err(NnueError::LeftOver { at: reader.at, count: bytes.len() - reader.at });
    }

    let architecture = choose(&candidates, &padded);
    let shape = architecture.shape();
    let stacks = padded.into_iter().map(|stack| unpadded(stack, &shape)).collect();
    let net = QuantNet { scheme: architecture.scheme(), shape, ft_weights, ft_biases, psqt_weights, stacks };
    for (bucket, stack) in net.stacks.iter().enumerate() {
        for (index, layer) in stack.iter().enumerate() {
            let checked = layer.check_biases(&format!("bucket {bucket}, layer {index}"), &net.scheme);
            checked.map_err(|error| NnueError::Bias(error.to_string()))?;
        }
    }
    Ok(Nnue { architecture, description, net })
}

/// The architectures with the header's version and hash; at least one.
fn candidates(reader: &mut NnueReader<'_>, wanted: Option<Architecture>) -> Result<Vec<Architecture>, NnueError> {
    let version = reader.number("the version")?;
    if !Architecture::ALL.iter().any(|one| one.version() == version) {
        return Err(NnueError::Version(version));
    }
    let hash = reader.number("the hash")?;
    if let Some(network) = unread::describe(reader.bytes, version, hash) {
        return Err(NnueError::Unread { network });
    }
    let matches = |one: &Architecture| one.version() == version && one.hash() == hash;
    let found: Vec<Architecture> = Architecture::ALL.into_iter().filter(matches).collect();
    if found.is_empty() {
        let known = Architecture::ALL.map(|one| format!("{one} ({:08x}, {:08x})", one.version(), one.hash()));
        let description = describe_unknown(reader);
        return Err(NnueError::Unknown { version, hash, description, known: known.join(", ") });
    }
    match wanted {
        None => Ok(found),
        Some(wanted) if found.contains(&wanted) => Ok(vec![wanted]),
        Some(wanted) => {
            let found = found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
            Err(NnueError::Other { found, wanted })
        }
    }
}

/// The file's own description, for an error message.
fn describe_unknown(reader: &mut NnueReader<'_>) -> String {
    let length = reader.number("the description's length").unwrap_or(0);
    match reader.take(u64::from(length), "the description") {
        Ok(text) if !text.is_empty() => format!("; it calls itself \"{}\"", excerpt(text, 300)),
        _ => String::new(),
    }
}

/// Reads a layer with its padding: `inputs` becomes a multiple of 32.
fn layer(reader: &mut NnueReader<'_>, (inputs, outputs): (usize, usize)) -> Result<QuantDense, NnueError> {
    let inputs = inputs.next_multiple_of(PADDING);
    let biases = reader.numbers(outputs, "a dense layer's biases", i32::from_le_bytes)?;
    let weights =
        reader.numbers(inputs * outputs, "a dense layer's weights", |[byte]: [u8; 1]| i16::from(byte as i8))?;
    Ok(QuantDense { inputs, outputs, weights, biases })
}

/// Chooses between architectures with the same header: the first that leaves no non-zero weight unused.
fn choose(candidates: &[Architecture], padded: &[Vec<QuantDense>]) -> Architecture {
    let uses_all_weights = |architecture: &Architecture| {
        let sizes = architecture.shape().layer_sizes();
        padded.iter().all(|stack| {
            stack.iter().zip(&sizes).all(|(layer, (inputs, _))| {
                layer.weights.chunks_exact(layer.inputs).all(|row| row[*inputs..].iter().all(|weight| *weight == 0))
            })
        })
    };
    let last = candidates[candidates.len() - 1];
    candidates.iter().copied().find(uses_all_weights).unwrap_or(last)
}

/// Removes the padding of the layers' inputs.
fn unpadded(stack: Vec<QuantDense>, shape: &Shape) -> Vec<QuantDense> {
    let mut layers = Vec::new();
    for (layer, (inputs, _)) in stack.into_iter().zip(shape.layer_sizes()) {
        let mut weights = Vec::new();
        for row in layer.weights.chunks_exact(layer.inputs) {
            weights.extend_from_slice(&row[..inputs]);
        }
        layers.push(QuantDense { inputs, weights, ..layer });
    }
    layers
}
