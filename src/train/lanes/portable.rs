//! Floats in plain Rust: the reference of every operation, and the back end of CPUs without a better one.

use super::{Kernel, LANES, Lanes};

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Scalar;

impl Scalar {
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run::<Portable>(self)
    }
}

#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Portable([f32; LANES]);

impl Lanes for Portable {
    type Proof = Scalar;
    const GROUPS: usize = 8;

    #[inline(always)]
    fn splat(_: Scalar, value: f32) -> Portable {
        Portable([value; LANES])
    }

    #[inline(always)]
    fn load(_: Scalar, from: &[f32; LANES]) -> Portable {
        Portable(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        *to = self.0;
    }

    #[inline(always)]
    fn add(self, summand: Portable) -> Portable {
        Portable(std::array::from_fn(|lane| self.0[lane] + summand.0[lane]))
    }

    #[inline(always)]
    fn mul(self, factor: Portable) -> Portable {
        Portable(std::array::from_fn(|lane| self.0[lane] * factor.0[lane]))
    }

    #[inline(always)]
    fn clamped(self) -> Portable {
        Portable(self.0.map(|value| value.clamp(0.0, 1.0)))
    }

    #[inline(always)]
    fn where_positive(self, place: Portable) -> Portable {
        Portable(std::array::from_fn(|lane| if place.0[lane] > 0.0 { self.0[lane] } else { 0.0 }))
    }

    #[inline(always)]
    fn where_inside(self, place: Portable) -> Portable {
        let inside = |lane: usize| place.0[lane] > 0.0 && place.0[lane] < 1.0;
        Portable(std::array::from_fn(|lane| if inside(lane) { self.0[lane] } else { 0.0 }))
    }

    #[inline(always)]
    fn mul_add(self, factor: Portable, summand: Portable) -> Portable {
        Portable(std::array::from_fn(|lane| self.0[lane].mul_add(factor.0[lane], summand.0[lane])))
    }
}
