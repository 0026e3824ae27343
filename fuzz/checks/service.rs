//! What a service writes, as its client reads it: the JSON line, the control bytes, and a slot's header and arrays.

use std::process::Command;

use fsbench::service::{Client, Layout};

use super::{file, split_at_zero};

/// The shared memory has at least this many bytes; what the input lacks is zero.
const MEMORY: usize = 16 << 10;

/// The most batches that are read.
const BATCHES: usize = 300;

/// The input: the JSON line up to a zero byte, in which `@` stands for the path of the shared memory; the number of
/// control bytes and the bytes; the shared memory.
pub fn service_client(bytes: &[u8]) {
    let (line, rest) = split_at_zero(bytes);
    let (count, rest) = rest.split_first().map_or((0, rest), |(count, rest)| (usize::from(*count), rest));
    let (control, slots) = rest.split_at(count.min(rest.len()));
    let mut memory = slots.to_vec();
    memory.resize(memory.len().max(MEMORY), 0);
    let memory = file("memory", &memory);
    let line = String::from_utf8_lossy(line).replace('@', &memory.display().to_string());
    let output = file("output", &[line.as_bytes(), b"\n", control].concat());
    let mut command = Command::new("sh");
    command.args(["-c", "cat \"$0\"; cat > /dev/null"]).arg(output).env_clear().env("PATH", "/usr/bin:/bin");
    let Ok(mut client) = Client::start(command) else { return };
    let features = client.description().num_features;
    let layout = client.description().layout;
    for _ in 0..BATCHES {
        let Ok(Some(batch)) = client.next() else { return };
        for side in [batch.stm(), batch.nstm()] {
            if layout == Layout::Csr {
                assert_eq!(side.offsets.len(), batch.positions() + 1);
                let rows = side.offsets.windows(2).map(|pair| &side.indices[pair[0] as usize..pair[1] as usize]);
                assert!(rows.flatten().all(|index| (*index as u32) < features));
            }
        }
        assert_eq!(batch.piece_counts().len(), batch.positions());
        assert_eq!(batch.plies().len(), batch.samples());
    }
}
