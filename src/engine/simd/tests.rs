//! Compares every operation of every back end with plain arithmetic.

use proptest::prelude::*;

use super::*;

/// Operands as i16; operations on other types reinterpret the bytes.
#[derive(Copy, Clone, Debug)]
struct Operands {
    a: [i16; 32],
    b: [i16; 32],
}

#[derive(Copy, Clone, Debug)]
enum Operation {
    Add16,
    Sub16,
    Add32,
    Sub32,
    Clip16,
    Min8,
    Mul16,
    Dot2,
    Product16(u32),
    Dot4,
}

/// Runs an operation over 64 bytes.
struct Apply {
    operation: Operation,
    operands: Operands,
}

impl VectorKernel for Apply {
    type Output = [i16; 32];

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> [i16; 32] {
        let Operands { a, b } = self.operands;
        let mut out = [0i16; 32];
        let mut at = 0;
        while at < 32 {
            let x = V::load(proof, &a[at..]);
            let y = V::load(proof, &b[at..]);
            let result = match self.operation {
                Operation::Add16 => x.add16(y),
                Operation::Sub16 => x.sub16(y),
                Operation::Add32 => x.add32(y),
                Operation::Sub32 => x.sub32(y),
                Operation::Clip16 => x.clip16(y),
                Operation::Min8 => x.min8(y),
                Operation::Mul16 => x.mul16(y),
                Operation::Dot2 => x.dot2(y),
                Operation::Product16(shift) => x.product16(y, shift),
                Operation::Dot4 => V::splat32(proof, 7).dot4(x, y),
            };
            result.store(&mut out[at..]);
            at += V::WORDS;
        }
        out
    }
}

/// [`Vector::dot4_all`] of four times 64 bytes, added to 7.
struct Dot4All {
    x: [[u8; 64]; 4],
    w: [[i8; 64]; 4],
}

impl VectorKernel for Dot4All {
    type Output = [i32; 16];

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> [i32; 16] {
        let mut out = [0; 16];
        let mut at = 0;
        while at < 16 {
            let mut x = [V::zero(proof); 4];
            let mut w = x;
            for n in 0..4 {
                x[n] = V::load(proof, &self.x[n][4 * at..]);
                w[n] = V::load(proof, &self.w[n][4 * at..]);
            }
            V::splat32(proof, 7).dot4_all(x, w).store(&mut out[at..]);
            at += V::DOUBLES;
        }
        out
    }
}

struct Pack([i16; 64]);

impl VectorKernel for Pack {
    type Output = [u8; 64];

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> [u8; 64] {
        let mut out = [0; 64];
        let mut at = 0;
        while at < 64 {
            let high = V::load(proof, &self.0[at + V::WORDS..]);
            V::load(proof, &self.0[at..]).pack(high).store(&mut out[at..]);
            at += V::BYTES;
        }
        out
    }
}

/// Returns the sum of all i32 modulo 2^32, and their sum without overflow.
struct Fold([i32; 16]);

impl VectorKernel for Fold {
    type Output = (i32, i64);

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> (i32, i64) {
        let mut sum = 0i32;
        let mut total = 0;
        let mut at = 0;
        while at < 16 {
            let x = V::load(proof, &self.0[at..]);
            sum = sum.wrapping_add(x.add32(V::zero(proof)).sum32());
            total += x.total32();
            at += V::DOUBLES;
        }
        (sum, total)
    }
}

/// Four times 64 bytes, taken a vector at a time.
struct SumQuarters([[i32; 16]; 4]);

impl VectorKernel for SumQuarters {
    type Output = [i32; 16];

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> [i32; 16] {
        let mut out = [0; 16];
        let mut at = 0;
        let [a, b, c, d] = self.0;
        while at < 16 {
            let four = [
                V::load(proof, &a[at..]),
                V::load(proof, &b[at..]),
                V::load(proof, &c[at..]),
                V::load(proof, &d[at..]),
            ];
            V::sum_quarters(four).store(&mut out[at..]);
            at += V::DOUBLES;
        }
        out
    }
}

struct Splat([u8; 16]);

impl VectorKernel for Splat {
    type Output = [u8; 64];

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> [u8; 64] {
        let mut out = [0; 64];
        let mut at = 0;
        while at < 64 {
            V::splat128(proof, &self.0).store(&mut out[at..]);
            at += V::BYTES;
        }
        out
    }
}

struct Widen([i8; 32]);

impl VectorKernel for Widen {
    type Output = [i16; 32];

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> [i16; 32] {
        let mut out = [0; 32];
        let mut at = 0;
        while at < 32 {
            V::widen(proof, &self.0[at..]).store(&mut out[at..]);
            at += V::WORDS;
        }
        out
    }
}

/// Returns the indices of the i32 that are not 0.
struct Nonzero([i32; 64]);

impl VectorKernel for Nonzero {
    type Output = Vec<u16>;

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> Vec<u16> {
        let mut indices = vec![0; 64 + NNZ_SLACK];
        let mut masks = Vec::new();
        let mut at = 0;
        while at < 64 {
            masks.push(V::load(proof, &self.0[at..]).nonzero32() as u16);
            at += V::DOUBLES;
        }
        let count = V::nnz(proof, &masks, &mut indices);
        indices.truncate(count);
        indices
    }
}

/// Checks the inputs and weights that [`Nnz::iter`] gives. `spare`: groups beyond the groups of the masks and the last
/// one of zeros.
struct NnzInputs {
    masks: Vec<u16>,
    spare: isize,
}

impl NnzInputs {
    /// Bits of a mask beyond `doubles` do not count.
    fn expected(&self, doubles: usize) -> Vec<u16> {
        let groups = 0..self.masks.len() * doubles;
        groups
            .filter(|group| self.masks[group / doubles] >> (group % doubles) & 1 != 0)
            .map(|group| group as u16)
            .collect()
    }

    fn check<V: Vector, const C: usize>(&self, proof: V::Proof) {
        let groups = self.masks.len() * V::DOUBLES;
        let mut buffer = vec![u16::MAX; groups + NNZ_SLACK];
        let nnz = Nnz::find::<V>(proof, &self.masks, &mut buffer);
        let expected = self.expected(V::DOUBLES);
        assert_eq!(nnz.count(), expected.len());
        let available = (groups as isize + 1 + self.spare) as usize;
        let inputs: Vec<[u8; 4]> = (0..available).map(|group| (group as u32).to_le_bytes()).collect();
        // A row is a vector to skip, then a vector filled with the group's index.
        let stride = 2 * V::BYTES;
        let weights: Vec<i8> =
            (0..available * stride).map(|at| if at % stride < V::BYTES { -1 } else { (at / stride) as i8 }).collect();
        let mut found: Vec<u16> = Vec::new();
        let weights = GroupWeights { rows: &weights, stride, at: V::BYTES };
        for (x, [weights]) in nnz.iter::<V, 1, C>(proof, &inputs, weights).flatten() {
            let mut numbers = [0i32; 16];
            let mut bytes = [0i8; 64];
            x.store(&mut numbers);
            weights.store(&mut bytes);
            let group = numbers[0];
            assert!(numbers[..V::DOUBLES].iter().all(|number| *number == group));
            assert!(bytes[..V::BYTES].iter().all(|byte| *byte == group as i8));
            found.push(group as u16);
        }
        assert!(
            found.len().is_multiple_of(4) && found[expected.len()..].iter().all(|group| usize::from(*group) == groups)
        );
        assert_eq!(found[..expected.len()], expected);
    }
}

impl VectorKernel for NnzInputs {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) {
        self.check::<V, 4>(proof);
        self.check::<V, 2>(proof);
    }
}

fn check<K: VectorKernel>(kernel: impl Fn() -> K, expected: &K::Output)
where
    K::Output: PartialEq + std::fmt::Debug,
{
    for back_end in BackEnd::available() {
        assert_eq!(kernel().run_on(back_end), *expected, "{}", back_end.name());
    }
}

fn words(operands: &Operands, operation: impl Fn(i16, i16) -> i16) -> [i16; 32] {
    std::array::from_fn(|n| operation(operands.a[n], operands.b[n]))
}

fn doubles(operands: &Operands, operation: impl Fn(i32, i32) -> i32) -> [i16; 32] {
    let a: [i32; 16] = bytemuck::cast(operands.a);
    let b: [i32; 16] = bytemuck::cast(operands.b);
    bytemuck::cast::<[i32; 16], _>(std::array::from_fn(|n| operation(a[n], b[n])))
}

fn dot2(operands: &Operands) -> [i16; 32] {
    let product = |n: usize| i32::from(operands.a[n]) * i32::from(operands.b[n]);
    bytemuck::cast::<[i32; 16], _>(std::array::from_fn(|n| product(2 * n).wrapping_add(product(2 * n + 1))))
}

fn dot4(operands: &Operands) -> [i16; 32] {
    let x: [u8; 64] = bytemuck::cast(operands.a);
    let w: [i8; 64] = bytemuck::cast(operands.b);
    let product = |n: usize| i32::from(x[n]) * i32::from(w[n]);
    bytemuck::cast::<[i32; 16], _>(std::array::from_fn(|n| 7 + (4 * n..4 * n + 4).map(product).sum::<i32>()))
}

prop_compose! {
    fn operands()(
        a in prop::collection::vec(prop_oneof![any::<i16>(), Just(i16::MIN), Just(i16::MAX)], 32),
        b in prop::collection::vec(prop_oneof![any::<i16>(), Just(i16::MIN), Just(i16::MAX)], 32),
    ) -> Operands {
        Operands { a: a.try_into().expect("32"), b: b.try_into().expect("32") }
    }
}

proptest! {
    #[test]
    fn arithmetic(operands in operands(), shift in 0u32..9) {
        let apply = |operation, expected: [i16; 32], operands: Operands| {
            check(|| Apply { operation, operands }, &expected);
        };
        apply(Operation::Add16, words(&operands, i16::wrapping_add), operands);
        apply(Operation::Sub16, words(&operands, i16::wrapping_sub), operands);
        apply(Operation::Add32, doubles(&operands, i32::wrapping_add), operands);
        apply(Operation::Sub32, doubles(&operands, i32::wrapping_sub), operands);
        let bytes = [operands.a, operands.b].map(bytemuck::cast::<[i16; 32], [u8; 64]>);
        let smaller: [u8; 64] = std::array::from_fn(|n| bytes[0][n].min(bytes[1][n]));
        apply(Operation::Min8, bytemuck::cast(smaller), operands);
        apply(Operation::Mul16, words(&operands, i16::wrapping_mul), operands);
        apply(Operation::Dot2, dot2(&operands), operands);
        let positive = Operands { b: operands.b.map(|value| value & i16::MAX), ..operands };
        apply(Operation::Clip16, words(&positive, |value, most| value.clamp(0, most)), positive);
        let small = Operands { a: operands.a.map(|value| value & 127), b: operands.b.map(|value| value & 127) };
        apply(Operation::Product16(shift), words(&small, |a, b| (a * b) >> shift), small);
        let bytes: [u8; 64] = bytemuck::cast(operands.a);
        let activations = Operands { a: bytemuck::cast(bytes.map(|byte| byte & 127)), ..operands };
        apply(Operation::Dot4, dot4(&activations), activations);
    }

    #[test]
    fn joined_products(values in prop::collection::vec((0u8..128, -32i8..=32), 256)) {
        // 4 · 2 · 127 · 32 fits i16.
        let x = std::array::from_fn(|n| std::array::from_fn(|at| values[64 * n + at].0));
        let w = std::array::from_fn(|n| std::array::from_fn(|at| values[64 * n + at].1));
        let product = |at: usize| (0..4).map(|n: usize| i32::from(x[n][at]) * i32::from(w[n][at])).sum::<i32>();
        let expected: [i32; 16] = std::array::from_fn(|at| 7 + (4 * at..4 * at + 4).map(product).sum::<i32>());
        check(|| Dot4All { x, w }, &expected);
    }

    #[test]
    fn packing(values in prop::collection::vec(prop_oneof![any::<i16>(), -300i16..300], 64)) {
        let values: [i16; 64] = values.try_into().expect("64");
        check(|| Pack(values), &values.map(|value| value.clamp(0, 255) as u8));
        let bytes: [i8; 32] = std::array::from_fn(|n| values[n] as i8);
        check(|| Widen(bytes), &bytes.map(i16::from));
    }

    #[test]
    fn nnz_indices(values in prop::collection::vec(prop_oneof![Just(0), any::<i32>()], 64)) {
        let values: [i32; 64] = values.try_into().expect("64");
        check(|| Nonzero(values), &(0..64).filter(|n| values[usize::from(*n)] != 0).collect());
    }

    #[test]
    fn nnz_inputs_and_weights(
        masks in prop::collection::vec(prop_oneof![Just(0), Just(u16::MAX), any::<u16>()], 0..9),
    ) {
        check(|| NnzInputs { masks: masks.clone(), spare: 1 }, &());
        check(|| NnzInputs { masks: masks.clone(), spare: 0 }, &());
    }

    #[test]
    fn folds(values in prop::collection::vec(prop_oneof![Just(0), any::<i32>()], 16)) {
        let values: [i32; 16] = values.try_into().expect("16");
        let sum = values.iter().fold(0, |sum: i32, value| sum.wrapping_add(*value));
        check(|| Fold(values), &(sum, values.iter().copied().map(i64::from).sum()));
        let rows = [1, -3, 5, i32::MAX].map(|factor| values.map(|value| value.wrapping_mul(factor)));
        let quarter = |n: usize| rows[n % 4][n / 4 * 4..][..4].iter().fold(0i32, |sum, value| sum.wrapping_add(*value));
        check(|| SumQuarters(rows), &std::array::from_fn(quarter));
        let bytes: [u8; 16] = std::array::from_fn(|n| values[n] as u8);
        check(|| Splat(bytes), &std::array::from_fn(|n| bytes[n % 16]));
    }
}

#[test]
#[should_panic(expected = "not enough groups")]
fn too_few_groups_are_refused() {
    NnzInputs { masks: vec![1], spare: -1 }.run_on(BackEnd::best());
}
