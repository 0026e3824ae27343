//! The rows of the feature transformer in memory: padded, of eight or sixteen bits, in huge pages.

use super::aligned::HugePageTable;
use crate::net::QuantNet;

/// The feature transformer's weights, one row per feature: first the rows of eight bits, which need half the memory
/// traffic, then the others.
pub(super) struct FtRows {
    pub(super) narrow: HugePageTable<i8>,
    pub(super) narrow_rows: u32,
    pub(super) wide: HugePageTable<i16>,
}

impl FtRows {
    pub(super) fn bytes(&self) -> usize {
        self.narrow.len() + self.wide.len() * size_of::<i16>()
    }

    pub(super) fn new(net: &QuantNet, layout: RowLayout, buckets: usize) -> FtRows {
        let l1 = net.shape.l1;
        let fit =
            |features: u32| net.ft_weights[..features as usize * l1].iter().all(|weight| i8::try_from(*weight).is_ok());
        let candidates = [net.shape.features, net.shape.narrow];
        let narrow_rows = candidates.into_iter().find(|features| fit(*features)).unwrap_or(0);
        let (narrow, wide) = net.ft_weights.split_at(narrow_rows as usize * l1);
        let (narrow_sums, wide_sums) = net.psqt_weights.split_at(narrow_rows as usize * buckets);
        FtRows {
            narrow: layout.table(narrow, narrow_sums, buckets, |weight| weight as i8),
            narrow_rows,
            wide: layout.table(wide, wide_sums, buckets, |weight| weight),
        }
    }
}

/// The layout of a row: `neurons` in parts of `part`, each padded to `padded`, make `words` elements of an
/// accumulator's `width`.
#[derive(Copy, Clone)]
pub(super) struct RowLayout {
    pub(super) neurons: usize,
    pub(super) part: usize,
    pub(super) padded: usize,
    pub(super) words: usize,
    pub(super) width: usize,
}

impl RowLayout {
    pub(super) fn write<W>(self, row: &mut [W], numbers: &[i16], element: impl Fn(i16) -> W) {
        for (to, from) in row[..self.words].chunks_exact_mut(self.padded).zip(numbers.chunks_exact(self.part)) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = element(*from));
        }
    }

    /// Elements of a row in a table of `W`: the PSQT sums take as many bytes as in an accumulator.
    const fn stride<W>(self) -> usize {
        self.words + (self.width - self.words) * size_of::<i16>() / size_of::<W>()
    }

    /// The table of rows with these weights and PSQT sums, `buckets` a row.
    fn table<W: bytemuck::Pod>(
        self,
        weights: &[i16],
        sums: &[i32],
        buckets: usize,
        element: impl Fn(i16) -> W,
    ) -> HugePageTable<W> {
        let rows = weights.chunks_exact(self.neurons);
        let mut table = HugePageTable::zeroed(rows.len() * self.stride::<W>());
        for (number, (row, weights)) in table.chunks_exact_mut(self.stride::<W>()).zip(rows).enumerate() {
            self.write(row, weights, &element);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut row[self.words..]);
            let sums: &[u8] = bytemuck::cast_slice(&sums[number * buckets..][..buckets]);
            bytes[..sums.len()].copy_from_slice(sums);
        }
        table
    }
}
