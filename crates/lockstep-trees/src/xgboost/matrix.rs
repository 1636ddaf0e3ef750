//! Rows of numbers, as XGBoost holds them.

use crate::xgboost::XgboostError;
use crate::xgboost::array::interface;
use crate::xgboost::functions::Handle;
use crate::xgboost::library::{Xgboost, text, texts};
use std::ffi::{CStr, c_int};
use std::ptr;

/// Rows that come in blocks, as often as they are asked for. A value that is missing is NaN; a category is its number.
pub trait RowBlocks {
    /// Begins with the first block again.
    fn restart(&mut self);

    /// The next block: whole rows, one after the other. `None` at the end.
    fn next(&mut self) -> Option<&[f32]>;
}

/// Rows that are in memory.
#[derive(Debug)]
pub struct Rows<'a> {
    values: &'a [f32],
    block: usize,
    at: usize,
}

impl<'a> Rows<'a> {
    /// How many rows are handed over at a time.
    const BLOCK: usize = 1 << 16;

    /// These rows of so many columns.
    pub fn new(values: &'a [f32], columns: usize) -> Self {
        Self {
            values,
            block: Self::BLOCK * columns,
            at: 0,
        }
    }
}

impl RowBlocks for Rows<'_> {
    fn restart(&mut self) {
        self.at = 0;
    }

    fn next(&mut self) -> Option<&[f32]> {
        let left = &self.values[self.at..];
        let block = &left[..left.len().min(self.block)];
        self.at += block.len();
        Some(block).filter(|block| !block.is_empty())
    }
}

/// What there is to know of a matrix's columns, and how they are cut.
#[derive(Debug, Clone, Copy)]
pub struct MatrixForm<'a> {
    /// For each column, whether it holds categories.
    pub categorical: &'a [bool],
    /// The most bins of a column.
    pub bins: usize,
    /// Threads that cut.
    pub threads: usize,
}

/// Rows that XGBoost has taken in.
#[derive(Debug)]
pub struct Matrix {
    xgboost: Xgboost,
    pub(crate) handle: Handle,
}

// SAFETY: a matrix is not changed by reading it from another thread, and its handle is used by one thread at a time.
unsafe impl Send for Matrix {}

impl Matrix {
    /// Cuts rows into bins as they stream by: at the cuts of `like`, or where XGBoost finds them.
    ///
    /// # Errors
    /// When the rows do not fit the form.
    pub fn binned(
        xgboost: &Xgboost,
        blocks: &mut dyn RowBlocks,
        form: MatrixForm<'_>,
        like: Option<&Matrix>,
    ) -> Result<Self, XgboostError> {
        let proxy = Proxy::new(xgboost)?;
        let kinds: Vec<&str> = form.categorical.iter().map(|&is| kind(is)).collect();
        let mut feed = Feed {
            xgboost,
            proxy: proxy.0.handle,
            blocks,
            columns: form.categorical.len(),
            kinds: &kinds,
            has_begun: false,
            failure: None,
        };
        let settings = format!(
            r#"{{"missing":NaN,"max_bin":{},"nthread":{}}}"#,
            form.bins, form.threads
        );
        let settings = text(&settings)?;
        let like = like.map_or(ptr::null_mut(), |like| like.handle);
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: the callbacks are given the feed's own address, and nothing else touches it before the call returns;
        // the proxy, the reference and the text outlive the call.
        let code = unsafe {
            (xgboost.functions().quantile_matrix)(
                ptr::from_mut(&mut feed).cast(),
                proxy.0.handle,
                like,
                restart,
                next,
                settings.as_ptr(),
                &mut handle,
            )
        };
        let failure = feed.failure.take();
        let made = xgboost.check("XGQuantileDMatrixCreateFromCallback", code);
        let made = made.map(|()| Self {
            xgboost: xgboost.clone(),
            handle,
        });
        match failure {
            // What went wrong in a callback comes before what XGBoost made of it.
            Some(failure) => Err(failure),
            None => made,
        }
    }

    /// Takes rows in as they are, for predictions.
    ///
    /// # Errors
    /// When XGBoost refuses them.
    pub fn plain(
        xgboost: &Xgboost,
        rows: &[f32],
        columns: usize,
        threads: usize,
    ) -> Result<Self, XgboostError> {
        let data = interface(rows, &[rows.len() / columns, columns]);
        let settings = text(&format!(r#"{{"missing":NaN,"nthread":{threads}}}"#))?;
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: the rows and texts outlive the call, which copies them.
        let code = unsafe {
            (xgboost.functions().dense_matrix)(data.as_ptr(), settings.as_ptr(), &mut handle)
        };
        xgboost.check("XGDMatrixCreateFromDense", code)?;
        Ok(Self {
            xgboost: xgboost.clone(),
            handle,
        })
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// When XGBoost cannot say.
    pub fn rows(&self) -> Result<usize, XgboostError> {
        let mut rows = 0;
        // SAFETY: the handle is this matrix's, and there is a place for the number.
        let code = unsafe { (self.xgboost.functions().matrix_rows)(self.handle, &mut rows) };
        self.xgboost.check("XGDMatrixNumRow", code)?;
        Ok(rows as usize)
    }

    /// Says the target of each row; with several outputs, all of a row's beside each other.
    ///
    /// # Errors
    /// When there are not as many as rows.
    pub fn set_labels(&mut self, labels: &[f32], outputs: usize) -> Result<(), XgboostError> {
        let shape = [labels.len() / outputs.max(1), outputs];
        match outputs {
            1 => self.set(c"label", labels, &shape[..1]),
            _ => self.set(c"label", labels, &shape),
        }
    }

    /// Says how much each row counts.
    ///
    /// # Errors
    /// When there are not as many as rows.
    pub fn set_weights(&mut self, weights: &[f32]) -> Result<(), XgboostError> {
        self.set(c"weight", weights, &[weights.len()])
    }

    /// Says how many rows each group has: groups follow each other, and a group's rows too.
    ///
    /// # Errors
    /// When they are not all rows.
    pub fn set_groups(&mut self, sizes: &[f32]) -> Result<(), XgboostError> {
        self.set(c"group", sizes, &[sizes.len()])
    }

    /// Says how likely each column is to be chosen where columns are sampled.
    ///
    /// # Errors
    /// When there are not as many as columns.
    pub fn set_column_weights(&mut self, weights: &[f32]) -> Result<(), XgboostError> {
        self.set(c"feature_weights", weights, &[weights.len()])
    }

    fn set(&mut self, field: &CStr, values: &[f32], shape: &[usize]) -> Result<(), XgboostError> {
        let values = interface(values, shape);
        // SAFETY: the handle is this matrix's; the numbers are copied before the call returns.
        let code = unsafe {
            (self.xgboost.functions().matrix_set_numbers)(
                self.handle,
                field.as_ptr(),
                values.as_ptr(),
            )
        };
        self.xgboost.check("XGDMatrixSetInfoFromInterface", code)
    }
}

impl Drop for Matrix {
    fn drop(&mut self) {
        // SAFETY: the handle is this matrix's alone.
        unsafe { (self.xgboost.functions().matrix_free)(self.handle) };
    }
}

/// XGBoost's word for what a column holds: quantities or categories.
fn kind(categorical: bool) -> &'static str {
    match categorical {
        true => "c",
        false => "q",
    }
}

/// What stands for the block at hand while a matrix is made.
struct Proxy(Matrix);

impl Proxy {
    fn new(xgboost: &Xgboost) -> Result<Self, XgboostError> {
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: a place for the handle, which is freed as a matrix is.
        let code = unsafe { (xgboost.functions().proxy_create)(&mut handle) };
        xgboost.check("XGProxyDMatrixCreate", code)?;
        Ok(Self(Matrix {
            xgboost: xgboost.clone(),
            handle,
        }))
    }
}

/// What the callbacks work on.
struct Feed<'a> {
    xgboost: &'a Xgboost,
    proxy: Handle,
    blocks: &'a mut dyn RowBlocks,
    columns: usize,
    kinds: &'a [&'a str],
    /// Whether a block was handed over: XGBoost wants one also from a rank that has no rows.
    has_begun: bool,
    failure: Option<XgboostError>,
}

impl Feed<'_> {
    /// Shows the next block to XGBoost; `false` at the end.
    fn show_next(&mut self) -> Result<bool, XgboostError> {
        let rows: &[f32] = match self.blocks.next() {
            Some(rows) => rows,
            None if self.has_begun => return Ok(false),
            None => &[],
        };
        self.has_begun = true;
        let functions = self.xgboost.functions();
        let data = interface(rows, &[rows.len() / self.columns, self.columns]);
        // SAFETY: the proxy lives until the matrix is made, and XGBoost reads the block before it asks for another,
        // which is when the block may go.
        let code = unsafe { (functions.proxy_set_dense)(self.proxy, data.as_ptr()) };
        self.xgboost.check("XGProxyDMatrixSetDataDense", code)?;
        let (_kinds, addresses) = texts(self.kinds)?;
        // SAFETY: as above; the texts live to the end of this function.
        let code = unsafe {
            (functions.matrix_set_texts)(
                self.proxy,
                c"feature_type".as_ptr(),
                addresses.as_ptr(),
                addresses.len() as u64,
            )
        };
        self.xgboost.check("XGDMatrixSetStrFeatureInfo", code)?;
        Ok(true)
    }
}

/// Begins the blocks anew.
///
/// # Safety
/// `feed` is the address of a [`Feed`] that nothing else uses.
unsafe extern "C" fn restart(feed: Handle) {
    // SAFETY: the caller's promise.
    let feed = unsafe { &mut *feed.cast::<Feed<'_>>() };
    feed.blocks.restart();
    feed.has_begun = false;
}

/// Hands over the next block.
///
/// # Safety
/// `feed` is the address of a [`Feed`] that nothing else uses.
unsafe extern "C" fn next(feed: Handle) -> c_int {
    // SAFETY: the caller's promise.
    let feed = unsafe { &mut *feed.cast::<Feed<'_>>() };
    if feed.failure.is_some() {
        return 0;
    }
    match feed.show_next() {
        Ok(more) => c_int::from(more),
        Err(failure) => {
            feed.failure = Some(failure);
            0
        }
    }
}
