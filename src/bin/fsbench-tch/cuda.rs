//! Loads libtorch's CUDA half at run time. The program is linked with the CPU half alone, so that one build serves
//! machines with and without a GPU.
#![allow(unsafe_code, reason = "dlopen")]

use std::ffi::{CStr, CString};
use std::path::Path;

/// Registers CUDA with libtorch when loaded; afterwards `tch::Cuda` tells whether there is a device.
const LIBRARY: &str = "libtorch_cuda.so";

/// Loads the library from `folder` if one is given, else from the loader's search path, which begins with the libtorch
/// that the program was built with and LD_LIBRARY_PATH.
///
/// The library's code runs in this process: whoever sets `FSBENCH_LIBTORCH_CUDA` or LD_LIBRARY_PATH is trusted like
/// whoever starts the program. Only the loader checks the file, for the symbols that libtorch 2.11 needs; a library of
/// another version may misbehave in any way.
///
/// # Errors
/// The loader's reason.
pub fn load(folder: Option<&Path>) -> Result<(), String> {
    let file = folder.map_or_else(|| LIBRARY.into(), |folder| folder.join(LIBRARY));
    let name = CString::new(file.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: `name` is a string that ends in zero. Loading runs the library's constructors, which cannot be checked
    // here: the file is trusted to be the CUDA half of the libtorch 2.11 that the program is linked with, as the
    // documentation above says. Its constructors only register CUDA's functions. It is never unloaded, so that no
    // registered function dangles.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(());
    }
    // SAFETY: after a failed dlopen on this thread, dlerror returns a string that is valid until the next call.
    let reason = unsafe {
        let reason = libc::dlerror();
        if reason.is_null() { None } else { Some(CStr::from_ptr(reason).to_string_lossy().into_owned()) }
    };
    Err(reason.unwrap_or_else(|| format!("cannot load {LIBRARY}")))
}
