//! The kernels compiled as C++ for the CPU by `emulate.h`, for tests and for trying the program without a GPU.
#![allow(unsafe_code, reason = "a library that is compiled and loaded")]

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::process::Command;
use std::rc::Rc;
use std::sync::{Mutex, OnceLock, PoisonError};

use fsbench::net::{Scheme, Shape};
use fsbench::train::TrainError;

use super::emulated_streams::EmulatedStreams;
use super::{Argument, Kernels, macros, places, source};

type Launch = unsafe extern "C" fn(*const c_char, *const c_uint, *const c_uint, *mut *mut c_void) -> bool;

/// The kernels of one shape. Its grid and block are variables of the library, so that one launch runs at a time.
pub struct EmulatedKernels {
    launch: &'static Mutex<Launch>,
    /// Kernels started so far.
    started: Rc<Cell<u64>>,
}

impl EmulatedKernels {
    /// # Errors
    /// When there is no C++ compiler.
    pub fn new(shape: &Shape, scheme: &Scheme) -> Result<EmulatedKernels, TrainError> {
        static LIBRARIES: OnceLock<Mutex<HashMap<Vec<String>, &'static Mutex<Launch>>>> = OnceLock::new();
        let flags: Vec<String> =
            macros(shape, scheme).into_iter().map(|(name, value)| format!("-D{name}={value}")).collect();
        let mut libraries = LIBRARIES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let known = libraries.get(&flags).copied();
        let launch = match known {
            Some(launch) => launch,
            None => &*Box::leak(Box::new(Mutex::new(compiled(&flags).map_err(|why| failed(&why))?))),
        };
        libraries.insert(flags, launch);
        Ok(EmulatedKernels { launch, started: Rc::default() })
    }

    /// The device's queues.
    pub fn streams(&self) -> EmulatedStreams {
        EmulatedStreams::new(Rc::clone(&self.started))
    }

    /// The queues of a device that pins no memory.
    #[cfg(test)]
    pub fn streams_without_pins(&self) -> EmulatedStreams {
        EmulatedStreams::without_pins(Rc::clone(&self.started))
    }
}

fn failed(why: &dyn std::fmt::Display) -> TrainError {
    TrainError::Device { library: "emulated GPU", why: why.to_string() }
}

fn compiled(flags: &[String]) -> Result<Launch, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let header = folder.path().join("emulate.h");
    let files = [("emulate.h", include_str!("emulate.h")), ("kernels.cu", &*source())];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).map_err(|error| error.to_string())?;
    }
    let library = folder.path().join("kernels.so");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-Wno-unknown-pragmas"]).args(flags);
    let status = compiler.args(["-x", "c++"]).arg(&header).arg("-o").arg(&library).status();
    let status = status.map_err(|error| format!("cannot start a C++ compiler (c++): {error}"))?;
    if !status.success() {
        return Err("the kernels do not compile as C++".into());
    }
    let name = CString::new(library.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the library was compiled above from emulate.h, which defines `launch` so; it is never unloaded.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            return Err("the compiled kernels do not load".into());
        }
        let launch = libc::dlsym(handle, c"launch".as_ptr());
        if launch.is_null() {
            return Err("the compiled kernels have no function `launch`".into());
        }
        Ok(std::mem::transmute::<*mut c_void, Launch>(launch))
    }
}

impl Kernels for EmulatedKernels {
    unsafe fn launch(
        &self,
        kernel: &CStr,
        grid: [usize; 2],
        block: [usize; 2],
        arguments: &[Argument<'_>],
    ) -> Result<(), TrainError> {
        let [grid, block] = [grid, block].map(|sizes| sizes.map(|size| size as c_uint));
        self.started.set(self.started.get() + 1);
        let launch = self.launch.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as the caller promises.
        let found = unsafe { launch(kernel.as_ptr(), grid.as_ptr(), block.as_ptr(), places(arguments).as_mut_ptr()) };
        if found { Ok(()) } else { Err(failed(&format!("no kernel {kernel:?}"))) }
    }

    fn multiprocessors(&self) -> usize {
        1
    }
}
