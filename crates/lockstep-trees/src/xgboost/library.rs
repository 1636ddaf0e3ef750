//! The loaded library.

use crate::xgboost::XgboostError;
use crate::xgboost::functions::Functions;
use crate::xgboost::message::sentence;
use libloading::Library;
use lockstep_base::fs::sha256_of_file;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The oldest XGBoost that has all that is needed.
pub const OLDEST: Version = Version(3, 0, 0);

/// A version of XGBoost: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// XGBoost, loaded. A clone is the same library.
#[derive(Debug, Clone)]
pub struct Xgboost(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    functions: Functions,
    version: Version,
    path: PathBuf,
    /// It is never unloaded: its threads live as long as the process.
    _library: ManuallyDrop<Library>,
}

impl Xgboost {
    /// Loads the library in a file.
    ///
    /// # Errors
    /// When the file is no library, not XGBoost's, or older than [`OLDEST`]. Always in a static program: the library would
    /// bring a second C library, which knows nothing of the first one's memory and threads.
    pub fn load(path: &Path) -> Result<Self, XgboostError> {
        if cfg!(target_feature = "crt-static") {
            return Err(XgboostError::Static);
        }
        // SAFETY: a library's initialisers run. The file is one that the user named or installed as XGBoost.
        let library = unsafe { Library::new(path) };
        let library = library.map_err(|source| XgboostError::Load {
            path: path.to_owned(),
            source,
        })?;
        // SAFETY: it is the user's word that this is XGBoost; the names of its functions bear it out. It is not unloaded.
        let functions = unsafe { Functions::of(&library) };
        let library = ManuallyDrop::new(library);
        let functions = functions.map_err(|function| XgboostError::NoFunction {
            path: path.to_owned(),
            function,
            oldest: OLDEST,
        })?;
        let mut parts = [0 as c_int; 3];
        let [major, minor, patch] = &mut parts;
        // SAFETY: three places for numbers, as the function wants them.
        unsafe { (functions.version)(major, minor, patch) };
        let [major, minor, patch] = parts.map(c_int::unsigned_abs);
        let version = Version(major, minor, patch);
        if version < OLDEST {
            return Err(XgboostError::TooOld {
                path: path.to_owned(),
                found: version,
                oldest: OLDEST,
            });
        }
        let loaded = Self(Arc::new(Loaded {
            functions,
            version,
            path: path.to_owned(),
            _library: library,
        }));
        loaded.be_quiet()?;
        Ok(loaded)
    }

    /// Whether it was built to use GPUs.
    ///
    /// # Errors
    /// When it does not say.
    pub fn has_cuda(&self) -> Result<bool, XgboostError> {
        let mut said: *const c_char = std::ptr::null();
        // SAFETY: a place for the address of a text.
        let code = unsafe { (self.functions().build_info)(&raw mut said) };
        self.check("XGBuildInfo", code)?;
        // SAFETY: the text is this thread's, and lives until the next call in this thread.
        let said = unsafe { CStr::from_ptr(said) }.to_string_lossy();
        let facts: serde_json::Value =
            serde_json::from_str(&said).map_err(|_| XgboostError::Unexpected {
                function: "XGBuildInfo",
                found: said.to_string(),
            })?;
        Ok(facts["USE_CUDA"] == true)
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// SHA-256 of that file; none if the system found the library by its name alone, or it is gone.
    pub fn sha256(&self) -> Option<String> {
        sha256_of_file(self.path()).ok().map(|(_, hash)| hash)
    }

    /// Errors come back from the calls; what XGBoost prints beside them is not for our users' terminals. It counts for
    /// the calling thread alone.
    pub(crate) fn be_quiet(&self) -> Result<(), XgboostError> {
        // SAFETY: the function that hears is there for as long as the program.
        let code = unsafe { (self.functions().on_log)(hear_nothing) };
        self.check("XGBRegisterLogCallback", code)?;
        // SAFETY: a text that outlives the call.
        let code = unsafe { (self.functions().set_global)(c"{\"verbosity\":0}".as_ptr()) };
        self.check("XGBSetGlobalConfig", code)
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.0.functions
    }

    /// Turns the code that a function returned into a result.
    pub(crate) fn check(&self, function: &'static str, code: c_int) -> Result<(), XgboostError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the text is this thread's, and lives until the next call in this thread.
        let said = unsafe { CStr::from_ptr((self.functions().last_error)()) };
        Err(XgboostError::Call {
            function,
            message: sentence(&said.to_string_lossy()),
        })
    }
}

/// Hears what XGBoost would print.
unsafe extern "C" fn hear_nothing(_: *const c_char) {}

/// A text as C wants it.
pub(crate) fn text(text: &str) -> Result<CString, XgboostError> {
    CString::new(text).map_err(|_| XgboostError::ZeroByte {
        text: text.to_owned(),
    })
}

/// Texts as C wants them, and their addresses. The addresses are good for as long as the texts live.
pub(crate) fn texts(
    all: &[impl AsRef<str>],
) -> Result<(Vec<CString>, Vec<*const c_char>), XgboostError> {
    let owned: Vec<CString> = all
        .iter()
        .map(|one| text(one.as_ref()))
        .collect::<Result<_, _>>()?;
    let addresses = owned.iter().map(|one| one.as_ptr()).collect();
    Ok((owned, addresses))
}
