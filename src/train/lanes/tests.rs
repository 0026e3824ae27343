//! Compares every operation of every back end with plain floats, to the bit.

use proptest::prelude::*;

use super::*;

/// Three groups of operands.
#[derive(Copy, Clone, Debug)]
struct Floats([[f32; LANES]; 3]);

/// The results of every operation.
impl LanesKernel for Floats {
    type Output = [[f32; LANES]; 7];

    #[inline(always)]
    fn run<V: Lanes>(self, proof: V::Proof) -> Self::Output {
        let [x, y, z] = [V::load(proof, &self.0[0]), V::load(proof, &self.0[1]), V::load(proof, &self.0[2])];
        let results = [
            x.add(y),
            x.mul(y),
            x.clamped(),
            x.where_positive(y),
            x.where_inside(y),
            x.mul_add(y, z),
            V::splat(proof, self.0[0][0]),
        ];
        let mut stored = [[0.0; LANES]; 7];
        for n in 0..7 {
            results[n].store(&mut stored[n]);
        }
        stored
    }
}

impl Floats {
    fn expected(&self) -> [[f32; LANES]; 7] {
        let by_lane = |operation: fn(f32, f32, f32) -> f32| {
            std::array::from_fn(|n| operation(self.0[0][n], self.0[1][n], self.0[2][n]))
        };
        [
            by_lane(|x, y, _| x + y),
            by_lane(|x, y, _| x * y),
            by_lane(|x, _, _| x.clamp(0.0, 1.0)),
            by_lane(|x, y, _| if y > 0.0 { x } else { 0.0 }),
            by_lane(|x, y, _| if y > 0.0 && y < 1.0 { x } else { 0.0 }),
            by_lane(f32::mul_add),
            [self.0[0][0]; LANES],
        ]
    }
}

/// Bits; of a computed not-a-number only that it is one, since CPUs choose its sign.
fn bits(results: &[[f32; LANES]; 7]) -> Vec<u32> {
    let of = |x: &f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    results.iter().flatten().map(of).collect()
}

prop_compose! {
    /// Any bits; and numbers whose sums and products round, with the ends of the clipped range.
    fn floats()(values in prop::collection::vec(
        prop_oneof![
            any::<u32>().prop_map(f32::from_bits),
            -2.0f32..2.0,
            prop::sample::select(vec![0.0, -0.0, 1.0, 0.999_999_94, f32::INFINITY, f32::NAN, 1e-40, -1e-40]),
        ],
        3 * LANES,
    )) -> Floats {
        Floats(std::array::from_fn(|group| std::array::from_fn(|lane| values[group * LANES + lane])))
    }
}

proptest! {
    #[test]
    fn lanes_are_plain_floats(floats in floats()) {
        let expected = bits(&floats.expected());
        for back_end in BackEnd::available() {
            assert_eq!(bits(&floats.run_on(back_end)), expected, "{}", back_end.name());
        }
    }
}
