//! What can go wrong with XGBoost.

use crate::xgboost::Version;
use std::path::PathBuf;

/// Why something with XGBoost failed.
#[derive(Debug, thiserror::Error)]
pub enum XgboostError {
    /// There is no library.
    #[error(
        "XGBoost's library is not here. Looked for it in: {looked}. `lockstep data get xgboost` brings it, \
         `pip install xgboost-cpu` does too, and LOCKSTEP_XGBOOST names a file"
    )]
    NotFound {
        /// Where it was looked for, as a list.
        looked: String,
    },
    /// There is none, and none can be brought.
    #[error(
        "there is no package of XGBoost for this kind of machine; `pip install xgboost`, or name the library with \
         LOCKSTEP_XGBOOST"
    )]
    NoPackage,
    /// There is none, and it may not be brought.
    #[error(
        "XGBoost's library is not here, and --offline or LOCKSTEP_OFFLINE forbids to download it from {address}; install \
         `xgboost-cpu`, or name the library with LOCKSTEP_XGBOOST"
    )]
    Offline {
        /// Where it is published.
        address: &'static str,
    },
    /// The package cannot be had.
    #[error("XGBoost's library cannot be downloaded")]
    Download(#[from] lockstep_place::PlaceError),
    /// The cache cannot be found.
    #[error(transparent)]
    Cache(#[from] lockstep_base::fs::FsError),
    /// `LOCKSTEP_XGBOOST` names no file.
    #[error(
        "LOCKSTEP_XGBOOST is {path:?}, and there is no such file; it must be the path of libxgboost.so"
    )]
    Named {
        /// What the variable says.
        path: PathBuf,
    },
    /// The program has no loader of libraries.
    #[error(
        "this is the static program, which cannot load libraries, and so not XGBoost's; the one in the Python wheel and \
         the one in the archive whose name has glibc in it can"
    )]
    Static,
    /// The file is not a library that can be loaded.
    #[error("{path}: cannot be loaded: {source}", path = path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// Why.
        source: libloading::Error,
    },
    /// The library is none of XGBoost's, or too old for what is needed.
    #[error(
        "{path}: has no function {function}, so it is not XGBoost's library, or an old one; at least {oldest} is needed",
        path = path.display()
    )]
    NoFunction {
        /// The file.
        path: PathBuf,
        /// The function that is missing.
        function: &'static str,
        /// What would be new enough.
        oldest: Version,
    },
    /// The library is too old.
    #[error("{path}: is XGBoost {found}; at least {oldest} is needed", path = path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: Version,
        /// What would be new enough.
        oldest: Version,
    },
    /// XGBoost says that a call failed.
    #[error("XGBoost: {message} ({function})")]
    Call {
        /// The function of its C interface.
        function: &'static str,
        /// What it says, without its stack trace.
        message: String,
    },
    /// A GPU is wanted, and the library cannot use one.
    #[error(
        "{path}: is XGBoost for processors alone, and train.device asks for a GPU; leave LOCKSTEP_XGBOOST out, let it name \
         the library of `pip install xgboost`, or say `device = \"cpu\"`",
        path = path.display()
    )]
    NoCuda {
        /// The file.
        path: PathBuf,
    },
    /// A GPU is wanted, and XGBoost finds none.
    #[error(
        "train.device asks for a GPU, and XGBoost finds none that it can use; `lockstep doctor` says which there are, and \
         `device = \"cpu\"` grows the trees on the processor"
    )]
    NoGpu,
    /// A text with a zero byte cannot be told to XGBoost.
    #[error("{text:?} has a zero byte in it")]
    ZeroByte {
        /// The text.
        text: String,
    },
    /// XGBoost returned something else than its documentation says.
    #[error("XGBoost's {function} returned {found}, which is not what its documentation says")]
    Unexpected {
        /// The function of its C interface.
        function: &'static str,
        /// What it returned.
        found: String,
    },
}
