//! Number arrays that start on a cache line, so that a row whose length is a multiple of 64 bytes touches no extra
//! line.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::{Pod, Zeroable};
use memmap2::MmapMut;

use crate::system;

#[derive(Copy, Clone, Pod, Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

/// A fixed number of `T`, 64-byte aligned. The size of `T` divides 64.
#[derive(Clone)]
pub struct AlignedVec<T> {
    lines: Vec<CacheLine>,
    len: usize,
    numbers: PhantomData<T>,
}

impl<T: Pod> AlignedVec<T> {
    #[must_use]
    pub fn zeroed(len: usize) -> AlignedVec<T> {
        const { assert!(64 % size_of::<T>() == 0) };
        let lines = vec![CacheLine::zeroed(); (len * size_of::<T>()).div_ceil(size_of::<CacheLine>())];
        AlignedVec { lines, len, numbers: PhantomData }
    }

    /// Copies rows of `columns` values and pads each with zeros to `stride`.
    #[must_use]
    pub fn padded(values: &[T], columns: usize, stride: usize) -> AlignedVec<T> {
        let mut padded = AlignedVec::zeroed(values.len() / columns * stride);
        for (to, from) in padded.chunks_exact_mut(stride).zip(values.chunks_exact(columns)) {
            to[..columns].copy_from_slice(from);
        }
        padded
    }
}

impl<T> Default for AlignedVec<T> {
    fn default() -> AlignedVec<T> {
        AlignedVec { lines: Vec::new(), len: 0, numbers: PhantomData }
    }
}

impl<T: Pod> Deref for AlignedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl<T: Pod> DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

/// A large table of numbers, in huge pages where the system has them. Its rows are read in random order, and small
/// pages would cost a page-table walk per row.
pub struct HugePageTable<T> {
    memory: TableMemory<T>,
    len: usize,
}

enum TableMemory<T> {
    Mapped(MmapMut),
    /// For systems that cannot map memory.
    Plain(AlignedVec<T>),
}

impl<T: Pod> HugePageTable<T> {
    #[must_use]
    pub fn zeroed(len: usize) -> HugePageTable<T> {
        let memory = match MmapMut::map_anon((len * size_of::<T>()).max(1)) {
            Ok(map) => {
                // Best effort: without huge pages the table works all the same.
                system::want_large_pages(map.as_ptr(), map.len());
                TableMemory::Mapped(map)
            }
            Err(_) => TableMemory::Plain(AlignedVec::zeroed(len)),
        };
        HugePageTable { memory, len }
    }
}

impl<T: Pod> Deref for HugePageTable<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.memory {
            TableMemory::Mapped(map) => &bytemuck::cast_slice(&map[..self.len * size_of::<T>()])[..self.len],
            TableMemory::Plain(numbers) => numbers,
        }
    }
}

impl<T: Pod> DerefMut for HugePageTable<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            TableMemory::Mapped(map) => {
                &mut bytemuck::cast_slice_mut(&mut map[..self.len * size_of::<T>()])[..self.len]
            }
            TableMemory::Plain(numbers) => numbers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_padded_and_aligned() {
        let rows = AlignedVec::padded(&[1i16, 2, 3, 4, 5, 6], 3, 32);
        assert_eq!(rows.len(), 64);
        assert_eq!((&rows[..4], &rows[32..36]), (&[1, 2, 3, 0][..], &[4, 5, 6, 0][..]));
        assert_eq!(rows.as_ptr().addr() % 64, 0);
    }

    #[test]
    fn tables_are_zero_aligned_and_writable() {
        let mut table = HugePageTable::<i32>::zeroed(1000);
        assert_eq!((table.len(), table.as_ptr().addr() % 64), (1000, 0));
        assert!(table.iter().all(|number| *number == 0));
        table[999] = 7;
        assert_eq!(table[998..], [0, 7]);
        assert!(HugePageTable::<i32>::zeroed(0).is_empty());
    }
}
