//! Floats in plain Rust: the reference of every operation, and the back end of CPUs without a better one.

use super::{LANES, Lanes, LanesKernel};
use crate::cpu::Scalar;

#[inline(never)]
pub(super) fn run<K: LanesKernel>(proof: Scalar, kernel: K) -> K::Output {
    kernel.run::<PortableLanes>(proof)
}

#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PortableLanes([f32; LANES]);

impl Lanes for PortableLanes {
    type Proof = Scalar;
    const GROUPS: usize = 8;

    #[inline(always)]
    fn splat(_: Scalar, value: f32) -> PortableLanes {
        PortableLanes([value; LANES])
    }

    #[inline(always)]
    fn load(_: Scalar, from: &[f32; LANES]) -> PortableLanes {
        PortableLanes(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        *to = self.0;
    }

    #[inline(always)]
    fn add(self, summand: PortableLanes) -> PortableLanes {
        PortableLanes(std::array::from_fn(|lane| self.0[lane] + summand.0[lane]))
    }

    #[inline(always)]
    fn mul(self, factor: PortableLanes) -> PortableLanes {
        PortableLanes(std::array::from_fn(|lane| self.0[lane] * factor.0[lane]))
    }

    #[inline(always)]
    fn clamped(self) -> PortableLanes {
        PortableLanes(self.0.map(|value| value.clamp(0.0, 1.0)))
    }

    #[inline(always)]
    fn where_positive(self, place: PortableLanes) -> PortableLanes {
        PortableLanes(std::array::from_fn(|lane| if place.0[lane] > 0.0 { self.0[lane] } else { 0.0 }))
    }

    #[inline(always)]
    fn where_inside(self, place: PortableLanes) -> PortableLanes {
        let inside = |lane: usize| place.0[lane] > 0.0 && place.0[lane] < 1.0;
        PortableLanes(std::array::from_fn(|lane| if inside(lane) { self.0[lane] } else { 0.0 }))
    }

    #[inline(always)]
    fn mul_add(self, factor: PortableLanes, summand: PortableLanes) -> PortableLanes {
        PortableLanes(std::array::from_fn(|lane| self.0[lane].mul_add(factor.0[lane], summand.0[lane])))
    }
}
