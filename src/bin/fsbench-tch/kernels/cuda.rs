//! The kernels on an NVIDIA GPU: compiled by NVRTC, started on the legacy default stream, which is libtorch's, too.
//! Both libraries are loaded at run time; libtorch's CUDA packages bring NVRTC.
#![allow(unsafe_code, reason = "CUDA's driver and NVRTC")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};

use cudarc::driver::result as driver;
use cudarc::driver::sys::{self as cuda, CUdevice_attribute_enum as Attribute};
use cudarc::nvrtc::result as nvrtc;
use cudarc::nvrtc::sys as nvrtc_sys;
use fsbench::net::{Scheme, Shape};
use fsbench::train::TrainError;

use crate::device::CUDA_FOLDER;

use super::{Argument, Kernels, macros, places, source};

/// Compute capability of the oldest cards: those before have other atomics.
const OLDEST: (i32, i32) = (7, 5);

/// The kernels of one shape, loaded into the device's primary context, which is libtorch's, too.
pub struct CudaKernels {
    context: cuda::CUcontext,
    module: cuda::CUmodule,
    functions: RefCell<HashMap<CString, cuda::CUfunction>>,
    multiprocessors: usize,
}

impl CudaKernels {
    /// Compiles the kernels of a shape for a device.
    ///
    /// # Errors
    /// When a library is missing or the device too old.
    pub fn new(shape: &Shape, scheme: &Scheme, device: usize) -> Result<CudaKernels, TrainError> {
        preload_nvrtc();
        // SAFETY: loading the driver and NVRTC runs their constructors, as libtorch has done before.
        let present = unsafe { (cuda::is_culib_present(), nvrtc_sys::is_culib_present()) };
        if !present.0 {
            return Err(failed("CUDA", &"the driver's library, libcuda.so, is missing"));
        }
        if !present.1 {
            let why = "its library, libnvrtc.so, is missing. It comes with PyTorch's CUDA packages \
                       (nvidia-cuda-nvrtc); LD_LIBRARY_PATH must name its folder";
            return Err(failed("NVRTC", &why));
        }
        let ordinal = i32::try_from(device).map_err(|error| failed("CUDA", &error))?;
        let handle = driver::device::get(ordinal).map_err(|error| failed("CUDA", &error))?;
        let attribute = |attribute| {
            // SAFETY: `handle` is a device.
            unsafe { driver::device::get_attribute(handle, attribute) }.map_err(|error| failed("CUDA", &error))
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if (major, minor) < OLDEST {
            let why = format!(
                "the GPU has compute capability {major}.{minor}; training needs {}.{} or later. Train with --device cpu",
                OLDEST.0, OLDEST.1
            );
            return Err(TrainError::Config(why));
        }
        let code = compile(&format!("sm_{major}{minor}"), shape, scheme)?;
        // SAFETY: `handle` is a device; its primary context is kept until the process ends.
        let context = unsafe { driver::primary_ctx::retain(handle) }.map_err(|error| failed("CUDA", &error))?;
        make_current(context)?;
        // SAFETY: `code` is machine code from NVRTC.
        let module =
            unsafe { driver::module::load_data(code.as_ptr().cast()) }.map_err(|error| failed("CUDA", &error))?;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(CudaKernels {
            context,
            module,
            functions: RefCell::default(),
            multiprocessors: multiprocessors.max(1) as usize,
        })
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
fn make_current(context: cuda::CUcontext) -> Result<(), TrainError> {
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

/// Loads NVRTC from the packages beside libtorch, where the loader does not look; once loaded, its name suffices.
fn preload_nvrtc() {
    let folders = [CUDA_FOLDER, "LD_LIBRARY_PATH"].into_iter().filter_map(std::env::var_os);
    for folder in folders.flat_map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>()) {
        let pattern = folder.join("../../nvidia/*/lib/libnvrtc.so.*");
        let Ok(files) = glob::glob(&pattern.to_string_lossy()) else { continue };
        for file in files.flatten() {
            let Ok(name) = CString::new(file.as_os_str().as_encoded_bytes()) else { continue };
            // SAFETY: `name` ends in zero. Whoever names the folder of libtorch trusts the packages beside it.
            if !unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) }.is_null() {
                return;
            }
        }
    }
}

fn failed(library: &'static str, why: &dyn std::fmt::Display) -> TrainError {
    TrainError::Device { library, why: why.to_string() }
}
