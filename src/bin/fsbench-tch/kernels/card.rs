//! Whether a GPU can train a network, asked before anything is allocated: driver, NVRTC, the card's age, its memory.

use fsbench::train::TrainError;

use super::memory_plan::MemoryPlan;

/// Compute capability of the oldest cards: those before have other atomics.
const OLDEST: (i32, i32) = (7, 5);

/// What the program asks of CUDA's libraries.
pub trait CudaLibraries {
    /// Whether the driver's library is there.
    fn has_driver(&self) -> bool;
    fn has_nvrtc(&self) -> bool;
    /// The newest CUDA that the driver knows.
    ///
    /// # Errors
    /// The driver's reason, here and below.
    fn driver_version(&self) -> Result<CudaVersion, String>;
    /// The CUDA to which NVRTC belongs.
    ///
    /// # Errors
    /// NVRTC's reason.
    fn nvrtc_version(&self) -> Result<CudaVersion, String>;
    /// # Errors
    /// As [`CudaLibraries::driver_version`].
    fn card(&self, number: usize) -> Result<Card, String>;
    /// Free bytes and all bytes of a card's memory.
    ///
    /// # Errors
    /// As [`CudaLibraries::driver_version`].
    fn memory(&self, number: usize) -> Result<(usize, usize), String>;
}

/// A version of CUDA: 13.0 is (13, 0).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CudaVersion(pub i32, pub i32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    pub number: usize,
    pub name: String,
    pub capability: (i32, i32),
    pub multiprocessors: usize,
}

/// Why there is no GPU to train on, if its libraries show that.
///
/// # Errors
/// A sentence without its full stop.
pub fn check_libraries(libraries: &dyn CudaLibraries) -> Result<(), String> {
    if !libraries.has_driver() {
        return Err("NVIDIA's driver is not installed (its library libcuda.so is missing)".into());
    }
    if !libraries.has_nvrtc() {
        return Err(
            "NVRTC, which compiles the kernels, is missing (libnvrtc.so). It comes with PyTorch's CUDA packages; \
                    or `pip install --target FOLDER nvidia-cuda-nvrtc` and set FSBENCH_NVRTC to that folder"
                .into(),
        );
    }
    let driver = libraries.driver_version().map_err(|why| format!("the driver does not answer: {why}"))?;
    let nvrtc = libraries.nvrtc_version().map_err(|why| format!("NVRTC does not answer: {why}"))?;
    // A driver runs what any minor version of its CUDA compiled.
    if driver.0 < nvrtc.0 {
        return Err(format!(
            "NVIDIA's driver knows CUDA {}.{} at most, and libtorch's packages are of CUDA {}.{}: update the driver, or \
             install a PyTorch for CUDA {}",
            driver.0, driver.1, nvrtc.0, nvrtc.1, driver.0
        ));
    }
    Ok(())
}

/// The card that trains.
///
/// # Errors
/// [`TrainError::NoGpu`] when a library is missing, the driver or the card too old, or its memory too small.
pub fn check_card(libraries: &dyn CudaLibraries, number: usize, plan: &MemoryPlan) -> Result<Card, TrainError> {
    let refused = |why: String| TrainError::NoGpu(format!("cannot train on GPU {number}: {why}"));
    check_libraries(libraries).map_err(refused)?;
    let card = libraries.card(number).map_err(|why| refused(format!("the driver does not show it: {why}")))?;
    if card.capability < OLDEST {
        let (major, minor) = card.capability;
        let (oldest_major, oldest_minor) = OLDEST;
        return Err(refused(format!(
            "the {} has compute capability {major}.{minor}, and training needs {oldest_major}.{oldest_minor} or later \
             (Turing, 2018). Train with --device cpu",
            card.name
        )));
    }
    let memory = libraries.memory(number);
    let (free, all) = memory.map_err(|why| refused(format!("its memory is unknown: {why}")))?;
    plan.check(free).map_err(|why| refused(format!("{why}, and of the {}'s {} are free", card.name, mib(all))))?;
    Ok(card)
}

/// Bytes in words.
pub(super) fn mib(bytes: usize) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "tests")]
mod tests {
    use fsbench::net::Shape;

    use super::super::KernelLayout;
    use super::super::memory_plan::PlannedRun;
    use super::*;

    /// A machine that is described.
    struct Described {
        driver: Option<CudaVersion>,
        nvrtc: Option<CudaVersion>,
        card: Result<(i32, i32), String>,
        free: usize,
    }

    impl CudaLibraries for Described {
        fn has_driver(&self) -> bool {
            self.driver.is_some()
        }

        fn has_nvrtc(&self) -> bool {
            self.nvrtc.is_some()
        }

        fn driver_version(&self) -> Result<CudaVersion, String> {
            self.driver.ok_or_else(|| "no driver".into())
        }

        fn nvrtc_version(&self) -> Result<CudaVersion, String> {
            self.nvrtc.ok_or_else(|| "no NVRTC".into())
        }

        fn card(&self, number: usize) -> Result<Card, String> {
            let capability = self.card.clone()?;
            Ok(Card { number, name: "Fake 9000".into(), capability, multiprocessors: 1 })
        }

        fn memory(&self, _number: usize) -> Result<(usize, usize), String> {
            Ok((self.free, 8 << 30))
        }
    }

    fn able() -> Described {
        let version = Some(CudaVersion(13, 0));
        Described { driver: version, nvrtc: version, card: Ok((9, 0)), free: 8 << 30 }
    }

    fn plan(batch_size: usize) -> MemoryPlan {
        let shape = Shape::plain(22528, 1024, vec![32]);
        let run =
            PlannedRun { batch_size, positions_per_sample: 1, max_active: 64, factor_rows: 704, lookahead: false };
        MemoryPlan::new(&KernelLayout::new(&shape), &run)
    }

    #[test]
    fn an_able_machine_is_taken() {
        let card = check_card(&able(), 1, &plan(16384)).expect("able");
        assert_eq!((card.number, card.capability), (1, (9, 0)));
        let newer = Described { driver: Some(CudaVersion(14, 1)), ..able() };
        check_card(&newer, 0, &plan(16384)).expect("drivers run what older compilers made");
        let minor = Described { nvrtc: Some(CudaVersion(13, 5)), ..able() };
        check_card(&minor, 0, &plan(16384)).expect("of the same major version");
        check_card(&Described { card: Ok((7, 5)), ..able() }, 0, &plan(16384)).expect("old enough");
    }

    #[test]
    fn each_fault_has_its_sentence() {
        let check = |machine: Described, expected: &str| {
            let error = check_card(&machine, 0, &plan(16384)).expect_err(expected);
            assert!(error.is_request(), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(Described { driver: None, ..able() }, "NVIDIA's driver is not installed");
        check(Described { nvrtc: None, ..able() }, "set FSBENCH_NVRTC");
        check(Described { driver: Some(CudaVersion(12, 4)), ..able() }, "knows CUDA 12.4 at most");
        check(Described { card: Err("no CUDA-capable device".into()), ..able() }, "no CUDA-capable device");
        check(Described { card: Ok((7, 0)), ..able() }, "has compute capability 7.0, and training needs 7.5");
    }

    /// The batch size that a refusal names fits, and twice as much does not.
    #[test]
    fn a_batch_that_fits_is_named() {
        let small = || Described { free: 1 << 30, ..able() };
        let text = check_card(&small(), 0, &plan(1 << 20)).expect_err("too large").to_string();
        let named = text.split("--batch-size ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a batch size");
        let named: usize = named.parse().expect("a number");
        check_card(&small(), 0, &plan(named)).expect("fits");
        assert!(check_card(&small(), 0, &plan(2 * named)).is_err());
        let none = Described { free: 300 << 20, ..able() };
        let text = check_card(&none, 0, &plan(16384)).expect_err("too large").to_string();
        assert!(text.contains("no batch size fits"), "{text}");
    }
}
