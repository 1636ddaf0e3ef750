//! The functions of XGBoost's C interface that are used, found by name.

use std::ffi::{c_char, c_int, c_void};

/// A matrix, booster, proxy or tracker of XGBoost's.
pub(crate) type Handle = *mut c_void;
/// Begins an iteration over blocks anew.
pub(crate) type Restart = unsafe extern "C" fn(Handle);
/// Hands over the next block: 1, or 0 at the end.
pub(crate) type Next = unsafe extern "C" fn(Handle) -> c_int;

/// Hears what XGBoost would print.
pub(crate) type Listen = unsafe extern "C" fn(*const c_char);

type Text = *const c_char;

lockstep_base::c_functions! {
    /// The functions, under shorter names.
    version = "XGBoostVersion": fn(*mut c_int, *mut c_int, *mut c_int) -> ();
    build_info = "XGBuildInfo": fn(*mut Text) -> c_int;
    last_error = "XGBGetLastError": fn() -> Text;
    on_log = "XGBRegisterLogCallback": fn(Listen) -> c_int;
    set_global = "XGBSetGlobalConfig": fn(Text) -> c_int;
    proxy_create = "XGProxyDMatrixCreate": fn(*mut Handle) -> c_int;
    proxy_set_dense = "XGProxyDMatrixSetDataDense": fn(Handle, Text) -> c_int;
    quantile_matrix = "XGQuantileDMatrixCreateFromCallback":
        fn(Handle, Handle, Handle, Restart, Next, Text, *mut Handle) -> c_int;
    dense_matrix = "XGDMatrixCreateFromDense": fn(Text, Text, *mut Handle) -> c_int;
    matrix_free = "XGDMatrixFree": fn(Handle) -> c_int;
    matrix_rows = "XGDMatrixNumRow": fn(Handle, *mut u64) -> c_int;
    matrix_set_texts = "XGDMatrixSetStrFeatureInfo": fn(Handle, Text, *const Text, u64) -> c_int;
    matrix_set_numbers = "XGDMatrixSetInfoFromInterface": fn(Handle, Text, Text) -> c_int;
    booster_create = "XGBoosterCreate": fn(*const Handle, u64, *mut Handle) -> c_int;
    booster_free = "XGBoosterFree": fn(Handle) -> c_int;
    booster_set = "XGBoosterSetParam": fn(Handle, Text, Text) -> c_int;
    booster_predict = "XGBoosterPredictFromDMatrix":
        fn(Handle, Handle, Text, *mut *const u64, *mut u64, *mut *const f32) -> c_int;
    booster_boost = "XGBoosterTrainOneIter": fn(Handle, Handle, c_int, Text, Text) -> c_int;
    booster_update = "XGBoosterUpdateOneIter": fn(Handle, c_int, Handle) -> c_int;
    booster_evaluate = "XGBoosterEvalOneIter":
        fn(Handle, c_int, *mut Handle, *mut Text, u64, *mut Text) -> c_int;
    booster_save = "XGBoosterSaveModelToBuffer": fn(Handle, Text, *mut u64, *mut *const u8) -> c_int;
    booster_load = "XGBoosterLoadModelFromBuffer": fn(Handle, *const c_void, u64) -> c_int;
    booster_config = "XGBoosterSaveJsonConfig": fn(Handle, *mut u64, *mut Text) -> c_int;
    booster_rounds = "XGBoosterBoostedRounds": fn(Handle, *mut c_int) -> c_int;
    booster_columns = "XGBoosterGetNumFeature": fn(Handle, *mut u64) -> c_int;
    booster_slice = "XGBoosterSlice": fn(Handle, c_int, c_int, c_int, *mut Handle) -> c_int;
    booster_score = "XGBoosterFeatureScore":
        fn(Handle, Text, *mut u64, *mut *const Text, *mut u64, *mut *const u64, *mut *const f32) -> c_int;
    booster_texts = "XGBoosterGetStrFeatureInfo": fn(Handle, Text, *mut u64, *mut *const Text) -> c_int;
    booster_set_attribute = "XGBoosterSetAttr": fn(Handle, Text, Text) -> c_int;
    join = "XGCommunicatorInit": fn(Text) -> c_int;
    leave = "XGCommunicatorFinalize": fn() -> c_int;
    rank = "XGCommunicatorGetRank": fn() -> c_int;
    ranks = "XGCommunicatorGetWorldSize": fn() -> c_int;
    all_reduce = "XGCommunicatorAllreduce": fn(*mut c_void, usize, c_int, c_int) -> c_int;
    tracker_create = "XGTrackerCreate": fn(Text, *mut Handle) -> c_int;
    tracker_run = "XGTrackerRun": fn(Handle, Text) -> c_int;
    tracker_arguments = "XGTrackerWorkerArgs": fn(Handle, *mut Text) -> c_int;
    tracker_wait = "XGTrackerWaitFor": fn(Handle, Text) -> c_int;
    tracker_free = "XGTrackerFree": fn(Handle) -> c_int;
}
