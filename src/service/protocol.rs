//! The contract of the two sides: the JSON line, a slot's header and the layout of its arrays.

use bytemuck::{Pod, Zeroable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_BITSET_SLOT, Request, ServiceError, Shard};
use crate::data::{Method, ScoreUnit};
use crate::features::{FeatureSet, Identity, Multiplicity};

/// How the active features of a batch are stored.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Offsets and indices, as `embedding_bag` takes them.
    #[default]
    Csr,
    /// One bit per feature.
    Bitset,
}

/// Element type of an array; little-endian.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    U8,
    U16,
    U32,
    U64,
    I32,
    F32,
}

impl Dtype {
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Dtype::U8 => 1,
            Dtype::U16 => 2,
            Dtype::U32 | Dtype::I32 | Dtype::F32 => 4,
            Dtype::U64 => 8,
        }
    }
}

/// Description of an array in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Array {
    /// The array's name.
    pub name: String,
    pub dtype: Dtype,
    /// Bytes from the slot's start; a multiple of 64.
    pub offset: usize,
    /// Maximum number of elements.
    pub len: usize,
    /// Name of the header field that holds the number of elements in this batch.
    pub count: String,
}

/// Description of a number in a slot's header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// The field's name.
    pub name: String,
    pub dtype: Dtype,
    /// Bytes from the slot's start.
    pub offset: usize,
}

/// The first 64 bytes of a slot.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SlotHeader {
    pub samples: u32,
    /// samples × positions_per_sample.
    pub positions: u32,
    /// Elements of each offsets array: positions + 1.
    pub offsets: u32,
    pub stm_indices: u32,
    pub nstm_indices: u32,
    /// Words of each bitset array: positions × words per position.
    pub words: u32,
    /// From 0.
    pub epoch: u32,
    pub reserved: u32,
    /// From 0, counted over all epochs.
    pub batch: u64,
    pub reserved_too: [u64; 3],
}

const _: () = assert!(size_of::<SlotHeader>() == 64);

impl SlotHeader {
    /// The fields as the JSON line describes them.
    #[must_use]
    pub fn fields() -> Vec<Field> {
        let field = |name: &str, dtype, offset| Field { name: name.into(), dtype, offset };
        vec![
            field("samples", Dtype::U32, std::mem::offset_of!(SlotHeader, samples)),
            field("positions", Dtype::U32, std::mem::offset_of!(SlotHeader, positions)),
            field("offsets", Dtype::U32, std::mem::offset_of!(SlotHeader, offsets)),
            field("stm_indices", Dtype::U32, std::mem::offset_of!(SlotHeader, stm_indices)),
            field("nstm_indices", Dtype::U32, std::mem::offset_of!(SlotHeader, nstm_indices)),
            field("words", Dtype::U32, std::mem::offset_of!(SlotHeader, words)),
            field("epoch", Dtype::U32, std::mem::offset_of!(SlotHeader, epoch)),
            field("batch", Dtype::U64, std::mem::offset_of!(SlotHeader, batch)),
        ]
    }

    /// The value of the field that an array's `count` names.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u32> {
        Some(match name {
            "samples" => self.samples,
            "positions" => self.positions,
            "offsets" => self.offsets,
            "stm_indices" => self.stm_indices,
            "nstm_indices" => self.nstm_indices,
            "words" => self.words,
            _ => return None,
        })
    }
}

/// The JSON line that a service writes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// A path to open and map while the service runs.
    pub shm: String,
    /// Slots of the shared memory.
    pub slots: usize,
    /// Bytes of a slot.
    pub slot_bytes: usize,
    /// Samples per batch; the last batch of an epoch may be shorter.
    pub batch_size: usize,
    /// 1 for eval, 3 for pqr.
    pub positions_per_sample: usize,
    pub layout: Layout,
    pub method: Method,
    pub identity: Identity,
    /// Inputs per perspective.
    pub num_features: u32,
    /// Unit of the data's scores; batches have them in centipawns.
    pub score_unit: ScoreUnit,
    pub arrays: Vec<Array>,
    pub header: Vec<Field>,
    /// Version of the protocol.
    pub version: u32,
    /// The set's name.
    pub set: String,
    /// Words per position and side in the bitset layout, else 0.
    pub words_per_position: usize,
    /// Different samples that the stream has.
    #[serde(default)]
    pub samples: u64,
    /// The same with the samples of training games beyond the share that is read.
    #[serde(default)]
    pub samples_of_split: u64,
    /// Samples of a pass over the data.
    pub samples_per_epoch: u64,
    /// Batches of a pass over the data.
    pub batches_per_epoch: u64,
    /// Number of batches from batch 0, not `start_batch`, to the end of the last epoch; `None` = without end.
    pub batches: Option<u64>,
    /// The number of the first batch delivered.
    pub start_batch: u64,
    /// This stream's number among several that divide the batches.
    pub shard: Shard,
}

impl Description {
    /// The protocol's version.
    pub const VERSION: u32 = 1;

    /// The array called `name`, if this stream has it.
    #[must_use]
    pub fn array(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|array| array.name == name)
    }
}

/// The offsets and sizes of a slot's arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotLayout {
    pub(super) arrays: Vec<Array>,
    pub(super) slot_bytes: usize,
    pub(super) words_per_position: usize,
    /// Capacity of each index array.
    pub(super) indices_per_side: usize,
}

/// Slots begin on a page.
const SLOT_ALIGN: u64 = 4096;
/// Arrays begin on a cache line.
const ARRAY_ALIGN: u64 = 64;

impl SlotLayout {
    /// Reserves room for `indices_per_position` active features per position and side, averaged over a batch.
    pub(super) fn new(
        request: &Request,
        set: &FeatureSet,
        indices_per_position: usize,
    ) -> Result<SlotLayout, ServiceError> {
        SlotLayout::check(request, set)?;
        let refused = |text: String| Err(ServiceError::Request(text));
        let samples = request.batch_size as u64;
        let positions = samples.saturating_mul(request.positions_per_sample() as u64);
        let words = u64::from(set.num_features()).div_ceil(64);
        let indices = positions.saturating_mul(indices_per_position as u64);
        if positions >= u64::from(u32::MAX) || (request.layout == Layout::Csr && indices > i32::MAX as u64) {
            return refused(format!(
                "a batch of {samples} samples may have {indices} active features per side, more than the 2^31-1 that \
                 i32 offsets reach; use a smaller batch size"
            ));
        }
        let mut packer = ArrayPacker { arrays: Vec::new(), end: size_of::<SlotHeader>() as u64 };
        match request.layout {
            Layout::Csr => {
                for side in ["stm", "nstm"] {
                    packer.add(&format!("{side}_offsets"), Dtype::I32, positions + 1, "offsets");
                    let name = format!("{side}_indices");
                    packer.add(&name, Dtype::I32, indices, &name);
                }
            }
            Layout::Bitset => {
                for side in ["stm", "nstm"] {
                    packer.add(&format!("{side}_bits"), Dtype::U64, positions.saturating_mul(words), "words");
                }
            }
        }
        packer.add("piece_count", Dtype::U8, positions, "positions");
        if request.bucket_rule.is_some() {
            packer.add("bucket", Dtype::U8, positions, "positions");
        }
        if request.method == Method::Eval {
            packer.add("score", Dtype::F32, samples, "samples");
            packer.add("result", Dtype::F32, samples, "samples");
        }
        packer.add("ply", Dtype::U16, samples, "samples");
        packer.add("sample_index", Dtype::U32, samples, "samples");
        let slot_bytes = packer.end.div_ceil(SLOT_ALIGN).saturating_mul(SLOT_ALIGN);
        if request.layout == Layout::Bitset && slot_bytes > MAX_BITSET_SLOT {
            let per_sample = words * 16 * request.positions_per_sample() as u64;
            return refused(format!(
                "the bitset layout of {} features needs {slot_bytes} bytes per slot, more than {MAX_BITSET_SLOT}; use \
                 --layout csr or a batch size of at most {}",
                set.num_features(),
                (MAX_BITSET_SLOT - 2 * SLOT_ALIGN) / (per_sample + 32)
            ));
        }
        Ok(SlotLayout {
            arrays: packer.arrays,
            slot_bytes: slot_bytes as usize,
            words_per_position: if request.layout == Layout::Bitset { words as usize } else { 0 },
            indices_per_side: indices as usize,
        })
    }

    /// Whether a request's layout suits the set.
    fn check(request: &Request, set: &FeatureSet) -> Result<(), ServiceError> {
        let bag = set.blocks().iter().find(|block| block.spec().multiplicity == Multiplicity::Bag);
        match bag.filter(|_| request.layout == Layout::Bitset) {
            Some(block) => Err(ServiceError::Request(format!(
                "the block {} of {} has multiplicity \"bag\": one bit per feature cannot hold its repeats; use \
                 --layout csr",
                block.name,
                set.name()
            ))),
            None => Ok(()),
        }
    }

    /// Byte offset in the slot of an array, if the layout has it.
    pub(super) fn offset(&self, name: &str) -> Option<usize> {
        self.arrays.iter().find(|array| array.name == name).map(|array| array.offset)
    }
}

/// Appends arrays to a layout.
struct ArrayPacker {
    arrays: Vec<Array>,
    end: u64,
}

impl ArrayPacker {
    fn add(&mut self, name: &str, dtype: Dtype, len: u64, count: &str) {
        let offset = self.end.div_ceil(ARRAY_ALIGN) * ARRAY_ALIGN;
        self.end = offset.saturating_add(len.saturating_mul(dtype.bytes() as u64));
        self.arrays.push(Array {
            name: name.into(),
            dtype,
            offset: offset as usize,
            len: len as usize,
            count: count.into(),
        });
    }
}
