//! The kernels compiled as C++ for the CPU, for tests: `emulate.h`.
#![allow(unsafe_code, reason = "a library that is compiled and loaded in the test")]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use fsbench::net::{Scheme, Shape};
use fsbench::train::TrainError;

use super::{Argument, Kernels, macros, places};

type Launch = unsafe extern "C" fn(*const c_char, *const c_uint, *const c_uint, *mut *mut c_void) -> bool;

/// The kernels of one shape. Its grid and block are variables of the library, so that one launch runs at a time.
pub struct EmulatedKernels(&'static Mutex<Launch>);

impl EmulatedKernels {
    pub fn new(shape: &Shape, scheme: &Scheme) -> EmulatedKernels {
        static LIBRARIES: OnceLock<Mutex<HashMap<Vec<String>, &'static Mutex<Launch>>>> = OnceLock::new();
        let flags: Vec<String> =
            macros(shape, scheme).into_iter().map(|(name, value)| format!("-D{name}={value}")).collect();
        let mut libraries = LIBRARIES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        EmulatedKernels(
            libraries.entry(flags).or_insert_with_key(|flags| Box::leak(Box::new(Mutex::new(compiled(flags))))),
        )
    }
}

fn compiled(flags: &[String]) -> Launch {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("kernels.so");
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bin/fsbench-tch/kernels/emulate.h");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-Wno-unknown-pragmas"]).args(flags);
    let status = compiler.args(["-x", "c++", header, "-o"]).arg(&library).status().expect("a C++ compiler");
    assert!(status.success(), "the kernels do not compile as C++");
    let name = CString::new(library.as_os_str().as_encoded_bytes()).expect("no zero in it");
    // SAFETY: the library was compiled above from emulate.h, which defines `launch` so; it is never unloaded.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!handle.is_null(), "the compiled kernels do not load");
        let launch = libc::dlsym(handle, c"launch".as_ptr());
        assert!(!launch.is_null(), "no function `launch`");
        std::mem::transmute::<*mut c_void, Launch>(launch)
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
        let launch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as the caller promises.
        let found = unsafe { launch(kernel.as_ptr(), grid.as_ptr(), block.as_ptr(), places(arguments).as_mut_ptr()) };
        assert!(found, "no kernel {kernel:?}");
        Ok(())
    }

    fn multiprocessors(&self) -> usize {
        1
    }
}
