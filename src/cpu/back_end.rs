//! Instruction sets: which of them this CPU has, and values that prove it.

/// A set of instructions that this CPU has. The integer kernels of evaluation and the float kernels of training are
/// compiled once for each (`engine::simd`, `train::lanes`), and give the same bits on all of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BackEnd {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl BackEnd {
    /// The back ends that this CPU supports, slowest first.
    #[must_use]
    pub fn available() -> Vec<BackEnd> {
        [
            Some(BackEnd::Scalar(Scalar)),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(BackEnd::Avx2),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(BackEnd::Avx512),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The fastest back end of this CPU.
    #[must_use]
    pub fn best() -> BackEnd {
        BackEnd::available().pop().unwrap_or(BackEnd::Scalar(Scalar))
    }

    /// Number of vector registers.
    #[must_use]
    pub const fn registers(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx512(_) => 32,
            _ => 16,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BackEnd::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx512(_) => "avx512",
        }
    }
}

/// Plain Rust, which every CPU runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Scalar;

/// Proof that the CPU has AVX2, FMA, BMI1, BMI2, LZCNT and POPCNT (x86-64 since 2013).
#[cfg(target_arch = "x86_64")]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    #[must_use]
    pub fn detect() -> Option<Avx2> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        found.then_some(Avx2(()))
    }
}

/// Proof that the CPU has AVX-512 F, BW and VNNI (Intel since 2019, AMD since 2022), and all that [`Avx2`] proves.
#[cfg(target_arch = "x86_64")]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Avx512 {
    vbmi2: bool,
}

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    #[must_use]
    pub fn detect() -> Option<Avx512> {
        Avx2::detect()?;
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni");
        found.then(|| Avx512 { vbmi2: is_x86_feature_detected!("avx512vbmi2") })
    }

    /// Whether the CPU has VBMI2 too.
    #[inline(always)]
    #[must_use]
    pub const fn has_vbmi2(self) -> bool {
        self.vbmi2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_back_end_is_the_last() {
        let all = BackEnd::available();
        assert_eq!(all[0].name(), "scalar");
        assert_eq!(all.last().copied(), Some(BackEnd::best()));
    }
}
