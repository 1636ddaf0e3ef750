//! The functions of NVIDIA's driver that are used, found by name: those of CUDA 12.0, as `cuda.h` declares them.

use super::ahead::LaunchConfig;
use crate::driver::MemoryHandle;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// What every function returns: 0, or the number of an error.
pub(super) type Code = c_int;
/// A context, module, function, stream, event or graph of the driver's.
pub(super) type Handle = *mut c_void;
/// The number of a device.
pub(super) type DeviceNumber = c_int;
/// A place in a device's memory.
pub(super) type DevicePlace = u64;

lockstep_base::c_functions! {
    /// The functions, under shorter names.
    init = "cuInit": fn(c_uint) -> Code;
    driver_version = "cuDriverGetVersion": fn(*mut c_int) -> Code;
    error_name = "cuGetErrorName": fn(Code, *mut *const c_char) -> Code;
    error_text = "cuGetErrorString": fn(Code, *mut *const c_char) -> Code;
    device_count = "cuDeviceGetCount": fn(*mut c_int) -> Code;
    device = "cuDeviceGet": fn(*mut DeviceNumber, c_int) -> Code;
    device_name = "cuDeviceGetName": fn(*mut c_char, c_int, DeviceNumber) -> Code;
    device_memory = "cuDeviceTotalMem_v2": fn(*mut usize, DeviceNumber) -> Code;
    device_attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, DeviceNumber) -> Code;
    device_uuid = "cuDeviceGetUuid_v2": fn(*mut [u8; 16], DeviceNumber) -> Code;
    retain_context = "cuDevicePrimaryCtxRetain": fn(*mut Handle, DeviceNumber) -> Code;
    release_context = "cuDevicePrimaryCtxRelease_v2": fn(DeviceNumber) -> Code;
    set_context = "cuCtxSetCurrent": fn(Handle) -> Code;
    memory_info = "cuMemGetInfo_v2": fn(*mut usize, *mut usize) -> Code;
    allocate = "cuMemAlloc_v2": fn(*mut DevicePlace, usize) -> Code;
    free = "cuMemFree_v2": fn(DevicePlace) -> Code;
    export = "cuIpcGetMemHandle": fn(*mut MemoryHandle, DevicePlace) -> Code;
    open_exported = "cuIpcOpenMemHandle_v2": fn(*mut DevicePlace, MemoryHandle, c_uint) -> Code;
    close_exported = "cuIpcCloseMemHandle": fn(DevicePlace) -> Code;
    allocate_pinned = "cuMemHostAlloc": fn(*mut *mut c_void, usize, c_uint) -> Code;
    free_pinned = "cuMemFreeHost": fn(*mut c_void) -> Code;
    copy_in = "cuMemcpyHtoDAsync_v2": fn(DevicePlace, *const c_void, usize, Handle) -> Code;
    copy_out = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, DevicePlace, usize, Handle) -> Code;
    fill = "cuMemsetD8Async": fn(DevicePlace, u8, usize, Handle) -> Code;
    load_module = "cuModuleLoadData": fn(*mut Handle, *const c_void) -> Code;
    function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char) -> Code;
    set_function_attribute = "cuFuncSetAttribute": fn(Handle, c_int, c_int) -> Code;
    launch = "cuLaunchKernelEx": fn(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void) -> Code;
    create_stream = "cuStreamCreate": fn(*mut Handle, c_uint) -> Code;
    destroy_stream = "cuStreamDestroy_v2": fn(Handle) -> Code;
    ask_stream = "cuStreamQuery": fn(Handle) -> Code;
    wait_on_stream = "cuStreamWaitEvent": fn(Handle, Handle, c_uint) -> Code;
    begin_capture = "cuStreamBeginCapture_v2": fn(Handle, c_int) -> Code;
    end_capture = "cuStreamEndCapture": fn(Handle, *mut Handle) -> Code;
    create_event = "cuEventCreate": fn(*mut Handle, c_uint) -> Code;
    destroy_event = "cuEventDestroy_v2": fn(Handle) -> Code;
    record_event = "cuEventRecord": fn(Handle, Handle) -> Code;
    ask_event = "cuEventQuery": fn(Handle) -> Code;
    instantiate_graph = "cuGraphInstantiateWithFlags": fn(*mut Handle, Handle, u64) -> Code;
    launch_graph = "cuGraphLaunch": fn(Handle, Handle) -> Code;
    destroy_graph = "cuGraphDestroy": fn(Handle) -> Code;
    destroy_executable = "cuGraphExecDestroy": fn(Handle) -> Code;
}

/// The errors that have an answer of their own.
pub(super) mod code {
    use super::Code;

    pub(in super::super) const OUT_OF_MEMORY: Code = 2;
    pub(in super::super) const DEVICE_UNAVAILABLE: Code = 46;
    pub(in super::super) const NO_DEVICE: Code = 100;
    pub(in super::super) const NO_BINARY_FOR_GPU: Code = 209;
    pub(in super::super) const ECC_UNCORRECTABLE: Code = 214;
    pub(in super::super) const INVALID_PTX: Code = 218;
    pub(in super::super) const NVLINK_UNCORRECTABLE: Code = 220;
    pub(in super::super) const UNSUPPORTED_PTX_VERSION: Code = 222;
    pub(in super::super) const JIT_COMPILER_NOT_FOUND: Code = 221;
    /// What was asked for is not done yet.
    pub(in super::super) const NOT_READY: Code = 600;
    pub(in super::super) const ILLEGAL_ADDRESS: Code = 700;
    pub(in super::super) const LAUNCH_OUT_OF_RESOURCES: Code = 701;
    pub(in super::super) const LAUNCH_TIMEOUT: Code = 702;
    pub(in super::super) const CONTEXT_IS_DESTROYED: Code = 709;
    pub(in super::super) const ASSERTED: Code = 710;
    pub(in super::super) const HARDWARE_STACK: Code = 714;
    pub(in super::super) const ILLEGAL_INSTRUCTION: Code = 715;
    pub(in super::super) const MISALIGNED_ADDRESS: Code = 716;
    pub(in super::super) const INVALID_ADDRESS_SPACE: Code = 717;
    pub(in super::super) const INVALID_COUNTER: Code = 718;
    pub(in super::super) const LAUNCH_FAILED: Code = 719;
    pub(in super::super) const SYSTEM_NOT_READY: Code = 802;
    pub(in super::super) const SYSTEM_DRIVER_MISMATCH: Code = 803;
    pub(in super::super) const UNKNOWN: Code = 999;
}

/// Numbers of attributes and flags.
pub(super) mod number {
    use std::ffi::{c_int, c_uint};

    pub(in super::super) const CAPABILITY_MAJOR: c_int = 75;
    pub(in super::super) const CAPABILITY_MINOR: c_int = 76;
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
    pub(in super::super) const MOST_SHARED: c_int = 8;
    /// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`: another device's memory may be read from now on.
    pub(in super::super) const READABLE_BY_PEERS: c_uint = 1;
    /// `CU_STREAM_NON_BLOCKING`: it does not wait for the default stream.
    pub(in super::super) const NON_BLOCKING: c_uint = 1;
    /// `CU_EVENT_DISABLE_TIMING`.
    pub(in super::super) const WITHOUT_TIME: c_uint = 2;
    /// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: what other threads do is not looked at.
    pub(in super::super) const THIS_THREAD: c_int = 1;
}
