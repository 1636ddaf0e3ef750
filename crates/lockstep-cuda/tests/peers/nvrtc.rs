//! NVIDIA's compiler at run time, of PyPI: it needs neither a GPU nor a driver.

use libloading::Library;
use libloading::os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_NOW};
use lockstep_cuda::{HEADERS, KernelFile};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr;

/// The oldest that writes PTX 8.0, which drivers of version 525 take.
const PACKAGE: &str = "nvidia-cuda-nvrtc-cu12==12.0.140";

/// What is not written as fused is not fused.
const OPTIONS: [&CStr; 2] = [c"--fmad=false", c"--std=c++17"];

/// For any GPU since Ampere; and for what only an H100 and its like have.
pub(crate) const AMPERE: &CStr = c"--gpu-architecture=compute_80";
pub(crate) const HOPPER: &CStr = c"--gpu-architecture=compute_90a";

type Program = *mut c_void;

lockstep_base::c_functions! {
    /// The compiler's functions.
    create = "nvrtcCreateProgram":
        fn(
            *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
        ) -> c_int;
    compile = "nvrtcCompileProgram": fn(Program, c_int, *const *const c_char) -> c_int;
    log_size = "nvrtcGetProgramLogSize": fn(Program, *mut usize) -> c_int;
    log = "nvrtcGetProgramLog": fn(Program, *mut c_char) -> c_int;
    ptx_size = "nvrtcGetPTXSize": fn(Program, *mut usize) -> c_int;
    ptx = "nvrtcGetPTX": fn(Program, *mut c_char) -> c_int;
}

/// The compiler.
pub(crate) struct Nvrtc {
    functions: Functions,
    _libraries: ManuallyDrop<[Library; 2]>,
}

impl Nvrtc {
    /// Brings it, unless it is in the cache.
    pub(crate) fn new() -> Self {
        let folder = lockstep_testkit::wheel(PACKAGE).join("nvidia/cuda_nvrtc/lib");
        // The compiler looks for the other one by its name only.
        let builtins = open(&folder.join("libnvrtc-builtins.so.12.0"));
        let library = open(&folder.join("libnvrtc.so.12"));
        // SAFETY: the types are those of `nvrtc.h`, and it is not unloaded.
        let functions = unsafe { Functions::of(&library) }.expect("NVRTC's functions");
        Self {
            functions,
            _libraries: ManuallyDrop::new([builtins, library]),
        }
    }

    /// The PTX of a file for some GPUs.
    ///
    /// # Panics
    /// When it cannot be compiled, with the compiler's words.
    pub(crate) fn ptx(&self, file: &KernelFile, gpus: &CStr) -> String {
        let text = |text: &str| CString::new(text).expect("a text without zeros");
        let (name, source) = (text(&format!("{}.cu", file.name)), text(file.source));
        let headers: Vec<[CString; 2]> = HEADERS
            .iter()
            .map(|(name, content)| [text(name), text(content)])
            .collect();
        let part = |i: usize| headers.iter().map(move |header| header[i].as_ptr());
        let (names, contents): (Vec<_>, Vec<_>) = (part(0).collect(), part(1).collect());
        let [fmad, standard] = OPTIONS;
        let options = [gpus, fmad, standard].map(CStr::as_ptr);
        let mut program = ptr::null_mut();
        // SAFETY: all texts end with a zero and outlive the calls, and there are as many as is said.
        let compiled = unsafe {
            let created = (self.functions.create)(
                &raw mut program,
                source.as_ptr(),
                name.as_ptr(),
                headers.len() as c_int,
                contents.as_ptr(),
                names.as_ptr(),
            );
            assert_eq!(created, 0, "{}", file.name);
            (self.functions.compile)(program, options.len() as c_int, options.as_ptr())
        };
        let log = self.text(program, self.functions.log_size, self.functions.log);
        assert_eq!(compiled, 0, "{}: {log}", file.name);
        let ptx = self.text(program, self.functions.ptx_size, self.functions.ptx);
        // The compiler numbers calls on from file to file: without that, a file's text hangs on no other.
        let lines = ptx.split('\n');
        let lines = lines.map(|line| line.split(" // callseq").next().unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// A text of a program, without the zero at its end.
    fn text(
        &self,
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> String {
        let mut length = 0;
        // SAFETY: a place for a number; then room for so many characters.
        let text = unsafe {
            assert_eq!(size(program, &raw mut length), 0);
            let mut text = vec![0u8; length];
            assert_eq!(get(program, text.as_mut_ptr().cast()), 0);
            text
        };
        let text = text.strip_suffix(&[0]).unwrap_or(&text);
        String::from_utf8(text.to_vec()).expect("PTX is ASCII")
    }
}

/// Loads a library so that others find it.
fn open(path: &Path) -> Library {
    // SAFETY: NVIDIA's own, of PyPI.
    let library = unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    let library = library.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    library.into()
}
