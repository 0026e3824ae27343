//! The kernels on an NVIDIA GPU: compiled by NVRTC, started on the legacy default stream, which is libtorch's, too.
//! Both libraries are loaded at run time; libtorch's CUDA packages bring NVRTC.
#![allow(unsafe_code, reason = "CUDA's driver and NVRTC")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::path::Path;

use cudarc::driver::result as driver;
use cudarc::driver::sys::{self as cuda, CUdevice_attribute_enum as Attribute};
use cudarc::nvrtc::result as nvrtc;
use cudarc::nvrtc::sys as nvrtc_sys;
use fsbench::net::{Scheme, Shape};
use fsbench::train::TrainError;

use crate::device::CUDA_FOLDER;

use super::card::{Card, CudaLibraries, CudaVersion};
use super::cuda_streams::CudaStreams;
use super::{Argument, Kernels, macros, places, source};

/// Environment variable with a folder into which pip installed the package nvidia-cuda-nvrtc.
const NVRTC_FOLDER: &str = "FSBENCH_NVRTC";

/// The kernels of one shape, loaded into the device's primary context, which is libtorch's, too.
pub struct CudaKernels {
    context: cuda::CUcontext,
    module: cuda::CUmodule,
    functions: RefCell<HashMap<CString, cuda::CUfunction>>,
    multiprocessors: usize,
}

impl CudaKernels {
    /// Compiles the kernels of a shape for a card.
    ///
    /// # Errors
    /// When a library fails.
    pub fn new(shape: &Shape, scheme: &Scheme, card: &Card) -> Result<CudaKernels, TrainError> {
        let (major, minor) = card.capability;
        let code = compile(&format!("sm_{major}{minor}"), shape, scheme)?;
        let context = primary_context(card.number).map_err(|why| failed("CUDA", &why))?;
        // SAFETY: `code` is machine code from NVRTC.
        let module =
            unsafe { driver::module::load_data(code.as_ptr().cast()) }.map_err(|error| failed("CUDA", &error))?;
        Ok(CudaKernels { context, module, functions: RefCell::default(), multiprocessors: card.multiprocessors })
    }

    /// The device's queues.
    ///
    /// # Errors
    /// When the device fails.
    pub fn streams(&self) -> Result<CudaStreams, TrainError> {
        CudaStreams::new(self.context)
    }

    fn function(&self, kernel: &CStr) -> Result<cuda::CUfunction, TrainError> {
        if let Some(function) = self.functions.borrow().get(kernel) {
            return Ok(*function);
        }
        // SAFETY: the module stays loaded as long as `self` lives.
        let function = unsafe { driver::module::get_function(self.module, kernel.to_owned()) };
        let function = function.map_err(|error| failed("CUDA", &format!("{}: {error}", kernel.to_string_lossy())))?;
        self.functions.borrow_mut().insert(kernel.to_owned(), function);
        Ok(function)
    }
}

impl Kernels for CudaKernels {
    unsafe fn launch(
        &self,
        kernel: &CStr,
        grid: [usize; 2],
        block: [usize; 2],
        arguments: &[Argument<'_>],
    ) -> Result<(), TrainError> {
        make_current(self.context)?;
        let function = self.function(kernel)?;
        let dimensions = |size: [usize; 2]| (size[0] as u32, size[1] as u32, 1);
        let stream = std::ptr::null_mut();
        let mut places = places(arguments);
        // SAFETY: as the caller promises.
        let started =
            unsafe { driver::launch_kernel(function, dimensions(grid), dimensions(block), 0, stream, &mut places) };
        started.map_err(|error| failed("CUDA", &format!("{}: {error}", kernel.to_string_lossy())))
    }

    fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }
}

/// What this thread asks of the driver goes to this context. A thread has none until it asked libtorch for something.
pub(super) fn make_current(context: cuda::CUcontext) -> Result<(), TrainError> {
    // SAFETY: the context was retained and never released.
    unsafe { driver::ctx::set_current(context) }.map_err(|error| failed("CUDA", &error))
}

/// Machine code for an architecture such as `sm_90`.
///
/// # Errors
/// NVRTC's log.
pub fn compile(architecture: &str, shape: &Shape, scheme: &Scheme) -> Result<Vec<u8>, TrainError> {
    let source = CString::new(source()).map_err(|error| failed("NVRTC", &error))?;
    let mut options = vec![format!("--gpu-architecture={architecture}"), "--std=c++17".into()];
    options.extend(macros(shape, scheme).into_iter().map(|(name, value)| format!("-D{name}={value}")));
    let program = nvrtc::create_program(&source, Some(c"kernels.cu")).map_err(|error| failed("NVRTC", &error))?;
    // SAFETY: `program` was created above and is destroyed once, at the end.
    unsafe {
        let compiled = nvrtc::compile_program(program, &options).map_err(|error| {
            let log = nvrtc::get_program_log(program).unwrap_or_default();
            let log: Vec<u8> = log.into_iter().map(|letter| letter as u8).collect();
            failed("NVRTC", &format!("{error}: {}", String::from_utf8_lossy(&log)))
        });
        let code = compiled.and_then(|()| machine_code(program));
        let _ = nvrtc::destroy_program(program);
        code
    }
}

/// # Safety
/// `program` is compiled for a real architecture and not yet destroyed.
unsafe fn machine_code(program: nvrtc_sys::nvrtcProgram) -> Result<Vec<u8>, TrainError> {
    let mut size = 0;
    // SAFETY: as the caller promises; the code has the size that NVRTC names.
    unsafe {
        nvrtc_sys::nvrtcGetCUBINSize(program, &raw mut size).result().map_err(|error| failed("NVRTC", &error))?;
        let mut code = vec![0u8; size];
        let to = code.as_mut_ptr().cast();
        nvrtc_sys::nvrtcGetCUBIN(program, to).result().map_err(|error| failed("NVRTC", &error))?;
        Ok(code)
    }
}

/// CUDA's libraries of this machine.
pub struct Libraries {
    driver: bool,
    nvrtc: bool,
}

impl Libraries {
    /// Loads the libraries.
    #[must_use]
    pub fn load() -> Libraries {
        preload_nvrtc();
        // SAFETY: loading the driver and NVRTC runs their constructors, as libtorch has done before.
        unsafe { Libraries { driver: cuda::is_culib_present(), nvrtc: nvrtc_sys::is_culib_present() } }
    }
}

impl CudaLibraries for Libraries {
    fn has_driver(&self) -> bool {
        self.driver
    }

    fn has_nvrtc(&self) -> bool {
        self.nvrtc
    }

    fn driver_version(&self) -> Result<CudaVersion, String> {
        let mut version = 0;
        // SAFETY: the call writes an integer. It needs no device.
        unsafe { cuda::cuDriverGetVersion(&raw mut version) }.result().map_err(|error| error.to_string())?;
        Ok(CudaVersion(version / 1000, version % 1000 / 10))
    }

    fn nvrtc_version(&self) -> Result<CudaVersion, String> {
        let [mut major, mut minor] = [0; 2];
        // SAFETY: the call writes two integers.
        let read = unsafe { nvrtc_sys::nvrtcVersion(&raw mut major, &raw mut minor) };
        read.result().map_err(|error| error.to_string())?;
        Ok(CudaVersion(major, minor))
    }

    fn card(&self, number: usize) -> Result<Card, String> {
        let handle = device(number)?;
        let attribute = |attribute| {
            // SAFETY: `handle` is a device.
            unsafe { driver::device::get_attribute(handle, attribute) }.map_err(|error| error.to_string())
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(Card {
            number,
            name: driver::device::get_name(handle).map_err(|error| error.to_string())?,
            capability: (major, minor),
            multiprocessors: multiprocessors.max(1) as usize,
        })
    }

    fn memory(&self, number: usize) -> Result<(usize, usize), String> {
        primary_context(number)?;
        driver::mem_get_info().map_err(|error| error.to_string())
    }
}

fn device(number: usize) -> Result<cuda::CUdevice, String> {
    driver::init().map_err(|error| error.to_string())?;
    let ordinal = i32::try_from(number).map_err(|error| error.to_string())?;
    driver::device::get(ordinal).map_err(|error| error.to_string())
}

/// The device's context that libtorch uses, made this thread's. It is kept until the process ends.
fn primary_context(number: usize) -> Result<cuda::CUcontext, String> {
    let handle = device(number)?;
    // SAFETY: `handle` is a device.
    let context = unsafe { driver::primary_ctx::retain(handle) }.map_err(|error| error.to_string())?;
    make_current(context).map_err(|error| error.to_string())?;
    Ok(context)
}

/// Loads NVRTC from the packages beside libtorch, or from those in [`NVRTC_FOLDER`], where the loader does not look; once
/// loaded, its name suffices. It finds the library with its built-in functions by name, too.
fn preload_nvrtc() {
    let packages = |variable: &str, up: &str| {
        let paths = std::env::var_os(variable).unwrap_or_default();
        std::env::split_paths(&paths).map(|path| path.join(up)).collect::<Vec<_>>()
    };
    let mut folders = packages(NVRTC_FOLDER, "");
    folders.extend(packages(CUDA_FOLDER, "../.."));
    folders.extend(packages("LD_LIBRARY_PATH", "../.."));
    let load = |folder: &Path, name: &str| {
        let pattern = folder.join("nvidia/*/lib").join(name);
        let Ok(files) = glob::glob(&pattern.to_string_lossy()) else { return false };
        files.flatten().any(|file| {
            let Ok(name) = CString::new(file.as_os_str().as_encoded_bytes()) else { return false };
            // SAFETY: `name` ends in zero. Whoever names the folder trusts the packages in it.
            !unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) }.is_null()
        })
    };
    for folder in folders.iter().filter(|folder| !folder.as_os_str().is_empty()) {
        if load(folder, "libnvrtc-builtins.so.*") && load(folder, "libnvrtc.so.*") {
            return;
        }
    }
}

pub(super) fn failed(library: &'static str, why: &dyn std::fmt::Display) -> TrainError {
    TrainError::Device { library, why: why.to_string() }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "tests")]
mod tests {
    use fsbench::net::{OutputBuckets, Shape};

    use super::super::tests::shape_with_every_option;
    use super::*;
    use crate::tests::skip::skip;

    /// NVRTC compiles without a GPU: for the oldest cards, and for those with other atomics.
    #[test]
    fn the_kernels_compile_for_every_generation_of_cards() {
        if !Libraries::load().has_nvrtc() {
            skip("nvrtc", "no NVRTC: FSBENCH_NVRTC names no folder with nvidia-cuda-nvrtc");
            return;
        }
        let buckets = OutputBuckets { count: 8, ..OutputBuckets::default() };
        let shapes = [
            Shape::plain(768, 256, vec![]),
            Shape { psqt: true, buckets, ..Shape::plain(22528, 1024, vec![15, 32]) },
            shape_with_every_option(),
        ];
        for shape in &shapes {
            for architecture in ["sm_75", "sm_80", "sm_90", "sm_100"] {
                let code = compile(architecture, shape, &Scheme::stockfish()).expect("compiles");
                assert_eq!(&code[..4], b"\x7fELF", "{architecture} {shape}");
            }
        }
        let unknown = compile("sm_1", &shapes[0], &Scheme::stockfish()).expect_err("no such card").to_string();
        assert!(unknown.contains("NVRTC"), "{unknown}");
    }
}
