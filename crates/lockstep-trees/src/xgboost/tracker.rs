//! Where the ranks of a communicator meet.

use crate::xgboost::XgboostError;
use crate::xgboost::functions::Handle;
use crate::xgboost::library::{Xgboost, text};
use serde_json::{Value, json};
use std::ffi::CStr;
use std::net::IpAddr;
use std::ptr;
use std::time::Duration;

/// A tracker that runs. It serves one gang, and ends with it.
#[derive(Debug)]
pub struct Tracker {
    xgboost: Xgboost,
    handle: Handle,
    address: String,
    port: u16,
}

// SAFETY: a tracker has a thread of its own and locks inside; its handle is used by one thread at a time.
unsafe impl Send for Tracker {}

impl Tracker {
    /// Listens on a free port of this address for so many ranks; those that do not come within `patience` make it fail.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(
        xgboost: &Xgboost,
        address: IpAddr,
        ranks: usize,
        patience: Duration,
    ) -> Result<Self, XgboostError> {
        let settings = json!({
            "dmlc_communicator": "rabit",
            "host": address.to_string(),
            "n_workers": ranks,
            "port": 0,
            // Ranks are in the order of the names that they join with, not of their coming.
            "sortby": 1,
            "timeout": patience.as_secs().max(1),
        });
        let settings = text(&settings.to_string())?;
        let functions = xgboost.functions();
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: a text and a place for the handle, which outlive the call.
        let code = unsafe { (functions.tracker_create)(settings.as_ptr(), &mut handle) };
        xgboost.check("XGTrackerCreate", code)?;
        let mut tracker = Self {
            xgboost: xgboost.clone(),
            handle,
            address: String::new(),
            port: 0,
        };
        // SAFETY: the handle was just made, and is freed when the tracker is dropped.
        let code = unsafe { (functions.tracker_run)(tracker.handle, c"{}".as_ptr()) };
        xgboost.check("XGTrackerRun", code)?;
        let mut said = ptr::null();
        // SAFETY: as above; the text is the tracker's and is copied at once.
        let code = unsafe { (functions.tracker_arguments)(tracker.handle, &mut said) };
        xgboost.check("XGTrackerWorkerArgs", code)?;
        // SAFETY: the call succeeded, so it is a text.
        let said = unsafe { CStr::from_ptr(said) }
            .to_string_lossy()
            .into_owned();
        let unexpected = || XgboostError::Unexpected {
            function: "XGTrackerWorkerArgs",
            found: said.clone(),
        };
        let arguments: Value = serde_json::from_str(&said).map_err(|_| unexpected())?;
        let address = arguments["dmlc_tracker_uri"].as_str();
        tracker.address = address.ok_or_else(unexpected)?.to_owned();
        let port = arguments["dmlc_tracker_port"].as_u64();
        let port = port.and_then(|port| u16::try_from(port).ok());
        tracker.port = port.ok_or_else(unexpected)?;
        Ok(tracker)
    }

    /// The address that ranks join at.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The port that ranks join at.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let functions = self.xgboost.functions();
        // SAFETY: the handle is this tracker's alone. Freeing waits for the tracker's thread, which ends by itself
        // once all ranks have left; the wait before it is bounded, so that one that never came does not hold us.
        unsafe {
            (functions.tracker_wait)(self.handle, c"{\"timeout\":1}".as_ptr());
            (functions.tracker_free)(self.handle);
        }
    }
}
