//! libtorch's CUDA half, loaded when it is asked for: the program is linked with the CPU's half alone, and is the same on
//! machines with and without a GPU.
#![allow(unsafe_code, reason = "dlopen")]

use std::ffi::{CStr, CString};
use std::path::Path;

/// Registers CUDA with libtorch; whether there is a device then tells `tch::Cuda`.
const LIBRARY: &str = "libtorch_cuda.so";

/// Loads the library: from `folder` where one is named, else from where the loader looks, which begins with the folder of
/// libtorch that the program was built with and that of LD_LIBRARY_PATH.
///
/// Its code runs in this process with this process's rights: who sets `FSBENCH_LIBTORCH_CUDA` or LD_LIBRARY_PATH is trusted
/// as who starts the program is. Nothing about the file is checked but what the loader checks, whether it has the symbols
/// that libtorch 2.11 needs; another version's library may misbehave in any way.
///
/// # Errors
/// The loader's reason.
pub fn load(folder: Option<&Path>) -> Result<(), String> {
    let file = folder.map_or_else(|| LIBRARY.into(), |folder| folder.join(LIBRARY));
    let name = CString::new(file.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: `name` is a string that ends in zero. Loading runs the library's constructors, which nothing here can check:
    // this trusts the file found under that name to be the CUDA half of the libtorch 2.11 that the program is linked with,
    // as the caller's documentation says. That one's constructors register CUDA's functions and start nothing. It is never
    // unloaded, so that nothing it registered dangles.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(());
    }
    // SAFETY: after a failed dlopen of this thread, dlerror gives a string that lives until the next call.
    let reason = unsafe {
        let reason = libc::dlerror();
        if reason.is_null() { None } else { Some(CStr::from_ptr(reason).to_string_lossy().into_owned()) }
    };
    Err(reason.unwrap_or_else(|| format!("cannot load {LIBRARY}")))
}
