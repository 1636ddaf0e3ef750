//! Files of kernels compiled as C++, once: what was compiled is kept in a folder, under a name that is a hash of all that
//! it depends on.

use crate::error::CudaError;
use crate::kernels::{HEADERS, KernelFile};
use libloading::Library;
use lockstep_base::fs::sha256;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The header that stands in for a GPU.
const EMULATOR: (&str, &str) = ("emulator.h", include_str!("emulator.h"));

/// How files are compiled. Nothing is contracted but what is written so, and that is one instruction.
const FLAGS: &[&str] = &[
    "-x",
    "c++",
    "-std=c++17",
    "-O2",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-Wno-unknown-pragmas",
    "-DEMULATED",
    #[cfg(target_arch = "x86_64")]
    "-mfma",
];

/// A kernel of a library, as `emulator.h` has it.
#[repr(C)]
pub(super) struct EmulatedKernel {
    pub(super) argument_bytes: u64,
    pub(super) threads: u32,
    run: unsafe extern "C" fn(*const c_void),
}

/// Runs all blocks of a kernel, and says what went wrong.
pub(super) type LaunchAll =
    unsafe extern "C" fn(*const EmulatedKernel, *const c_void, *const u32) -> *const c_char;

/// A file of kernels, compiled and loaded. It is never unloaded.
pub(super) struct CompiledFile {
    library: Library,
    path: PathBuf,
    pub(super) launch: LaunchAll,
}

impl CompiledFile {
    /// The kernels of a file, which are loaded once a process.
    pub(super) fn get(
        folder: &Path,
        file: &'static KernelFile,
    ) -> Result<&'static Self, CudaError> {
        type Loaded = HashMap<(PathBuf, &'static str), &'static CompiledFile>;
        static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_default();
        let key = (folder.to_owned(), file.name);
        if let Some(compiled) = loaded.get(&key) {
            return Ok(compiled);
        }
        let compiled: &'static Self = Box::leak(Box::new(Self::new(folder, file)?));
        loaded.insert(key, compiled);
        Ok(compiled)
    }

    /// The kernels of a file, from the folder if they are there already.
    fn new(folder: &Path, file: &KernelFile) -> Result<Self, CudaError> {
        let compiler = compiler()?;
        let source = format!("{}.cu", file.name);
        let own = [(&source[..], file.source), EMULATOR];
        let texts: Vec<(&str, &str)> = HEADERS.iter().copied().chain(own).collect();
        let folder = folder.join(format!("{}-{}", file.name, hash(compiler, &texts)));
        let path = folder.join("kernels.so");
        if !path.is_file() {
            compile(compiler, &folder, &texts, &source, &path)?;
        }
        let failed = |error: libloading::Error| wrong(&path, error.to_string());
        // SAFETY: it was compiled of our own files, and has no initialisers.
        let library = unsafe { Library::new(&path) }.map_err(failed)?;
        // SAFETY: `emulator.h` has this function, of this type.
        let launch = *unsafe { library.get::<LaunchAll>("emulator_launch") }.map_err(failed)?;
        Ok(Self {
            library,
            path,
            launch,
        })
    }

    /// A kernel of it.
    pub(super) fn kernel(&self, name: &str) -> Result<&'static EmulatedKernel, CudaError> {
        // SAFETY: what has the name of a kernel is one, by the macro that declares kernels. The library is never unloaded.
        let found = unsafe { self.library.get::<&'static EmulatedKernel>(name) };
        match found {
            Ok(found) => Ok(&found),
            Err(_) => Err(wrong(&self.path, format!("has no kernel {name}"))),
        }
    }
}

/// Compiles a file, in a folder that has all texts.
fn compile(
    compiler: &Compiler,
    folder: &Path,
    texts: &[(&str, &str)],
    source: &str,
    to: &Path,
) -> Result<(), CudaError> {
    let failed = |error: std::io::Error| wrong(folder, error.to_string());
    fs::create_dir_all(folder).map_err(failed)?;
    for (name, text) in texts {
        fs::write(folder.join(name), text).map_err(failed)?;
    }
    // Under a name of its own until it is whole: others may be at it too.
    let unique = folder.join(format!("{}.part", std::process::id()));
    let output = Command::new(compiler.name)
        .args(FLAGS)
        .arg(folder.join(source))
        .arg("-o")
        .arg(&unique)
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(wrong(&folder.join(source), words.into_owned()));
    }
    fs::rename(&unique, to).map_err(failed)
}

/// A hash of everything that what is compiled depends on.
fn hash(compiler: &Compiler, texts: &[(&str, &str)]) -> String {
    let mut all = format!("{}\n{}\n", compiler.version, FLAGS.join(" "));
    for (name, text) in texts {
        all += &format!("{name} {}\n{text}\n", text.len());
    }
    sha256(all.as_bytes())[..16].to_owned()
}

/// A C++ compiler of the system.
struct Compiler {
    name: &'static str,
    version: String,
}

/// The first C++ compiler that runs.
fn compiler() -> Result<&'static Compiler, CudaError> {
    static FOUND: OnceLock<Option<Compiler>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        ["c++", "g++", "clang++"].into_iter().find_map(|name| {
            let output = Command::new(name).arg("--version").output().ok()?;
            let version = String::from_utf8_lossy(&output.stdout).into_owned();
            output
                .status
                .success()
                .then_some(Compiler { name, version })
        })
    });
    found.as_ref().ok_or(CudaError::NoCompiler)
}

pub(super) fn wrong(path: &Path, reason: String) -> CudaError {
    CudaError::Emulation {
        path: path.to_owned(),
        reason,
    }
}
