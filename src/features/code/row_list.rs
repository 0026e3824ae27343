//! Lists of rows in a layout that machine code knows.
#![allow(unsafe_code, reason = "owns memory that machine code fills")]

use std::mem::{ManuallyDrop, offset_of, take};
use std::ops::{Deref, DerefMut};

/// Rows, as in a `Vec<u32>`, which it may become and come from at no cost. Machine code writes rows behind the end and
/// moves the end.
///
/// ```
/// use fsbench::features::RowList;
///
/// let mut list = RowList::from(vec![3, 1]);
/// list.vec().push(2);
/// list.sort_unstable();
/// assert_eq!(list, [1, 2, 3]);
/// ```
pub struct RowList {
    /// This, the length and the capacity are those of a `Vec<u32>`.
    start: *mut u32,
    /// Behind the last row.
    end: *mut u32,
    capacity: usize,
}

// SAFETY: it owns its memory, as a `Vec<u32>` does.
unsafe impl Send for RowList {}
// SAFETY: as before; behind a shared reference nothing changes.
unsafe impl Sync for RowList {}

impl RowList {
    /// Where machine code finds the fields.
    #[cfg(feature = "jit")]
    pub(super) const START_OFFSET: usize = offset_of!(RowList, start);
    #[cfg(feature = "jit")]
    pub(super) const END_OFFSET: usize = offset_of!(RowList, end);

    #[inline(always)]
    pub const fn clear(&mut self) {
        self.end = self.start;
    }

    /// Everything else that a vector can do.
    pub fn vec(&mut self) -> RowVec<'_> {
        RowVec { vec: take(self).into(), list: self }
    }

    /// Whether there is room for so many rows in all.
    #[inline(always)]
    pub(super) const fn has_room(&self, rows: usize) -> bool {
        self.capacity >= rows
    }

    /// Makes room for so many rows in all.
    #[inline(always)]
    pub(super) fn make_room(&mut self, rows: usize) {
        if !self.has_room(rows) {
            self.grow(rows);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, rows: usize) {
        let mut vec = self.vec();
        let more = rows - vec.len();
        vec.reserve(more);
    }

    #[inline(always)]
    fn length(&self) -> usize {
        // SAFETY: both point into one allocation, or `end` is `start`.
        unsafe { self.end.offset_from_unsigned(self.start) }
    }
}

/// A list as a vector.
pub struct RowVec<'a> {
    list: &'a mut RowList,
    vec: Vec<u32>,
}

impl Deref for RowVec<'_> {
    type Target = Vec<u32>;

    fn deref(&self) -> &Vec<u32> {
        &self.vec
    }
}

impl DerefMut for RowVec<'_> {
    fn deref_mut(&mut self) -> &mut Vec<u32> {
        &mut self.vec
    }
}

impl Drop for RowVec<'_> {
    fn drop(&mut self) {
        *self.list = take(&mut self.vec).into();
    }
}

impl From<Vec<u32>> for RowList {
    fn from(vec: Vec<u32>) -> RowList {
        let mut vec = ManuallyDrop::new(vec);
        let capacity = vec.capacity();
        let rows = vec.as_mut_ptr_range();
        RowList { start: rows.start, end: rows.end, capacity }
    }
}

impl From<RowList> for Vec<u32> {
    fn from(list: RowList) -> Vec<u32> {
        let list = ManuallyDrop::new(list);
        // SAFETY: they are a vector's parts, which nobody else uses any more; rows up to the end were written.
        unsafe { Vec::from_raw_parts(list.start, list.length(), list.capacity) }
    }
}

impl Drop for RowList {
    fn drop(&mut self) {
        // SAFETY: as above.
        drop(unsafe { Vec::from_raw_parts(self.start, self.length(), self.capacity) });
    }
}

impl Deref for RowList {
    type Target = [u32];

    #[inline(always)]
    fn deref(&self) -> &[u32] {
        // SAFETY: so many rows were written there.
        unsafe { std::slice::from_raw_parts(self.start, self.length()) }
    }
}

impl DerefMut for RowList {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length()) }
    }
}

impl Default for RowList {
    fn default() -> RowList {
        Vec::new().into()
    }
}

impl Clone for RowList {
    fn clone(&self) -> RowList {
        self.to_vec().into()
    }
}

impl<Rows: AsRef<[u32]>> PartialEq<Rows> for RowList {
    fn eq(&self, other: &Rows) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for RowList {}

impl AsRef<[u32]> for RowList {
    fn as_ref(&self) -> &[u32] {
        self
    }
}

impl std::fmt::Debug for RowList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
