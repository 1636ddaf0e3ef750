//! The model: trees that were added a round at a time.

use crate::xgboost::array::interface;
use crate::xgboost::functions::Handle;
use crate::xgboost::library::{Xgboost, text};
use crate::xgboost::{Matrix, XgboostError};
use std::ffi::{CStr, c_char, c_int};
use std::ops::Range;
use std::ptr;
use std::slice;

/// A model in training or in use.
#[derive(Debug)]
pub struct Booster {
    xgboost: Xgboost,
    handle: Handle,
}

// SAFETY: a booster has no thread of its own, and its handle is used by one thread at a time.
unsafe impl Send for Booster {}

/// How a model is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFormat {
    /// Universal binary JSON, as `.ubj` files have it.
    Ubj,
    /// JSON.
    Json,
}

/// How the use of a column is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    /// The mean gain of the splits that use it.
    Gain,
    /// The gain of all splits that use it.
    TotalGain,
    /// How many splits use it.
    Weight,
}

impl Importance {
    fn word(self) -> &'static str {
        match self {
            Importance::Gain => "gain",
            Importance::TotalGain => "total_gain",
            Importance::Weight => "weight",
        }
    }
}

/// What is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicted {
    /// What the objective makes of the margin: a probability, a number.
    Value,
    /// The sum of the trees' leaves, before that.
    Margin,
    /// What each column adds to the margin (SHAP), and last what is left without any.
    Contributions,
}

impl Predicted {
    fn number(self) -> u8 {
        match self {
            Predicted::Value => 0,
            Predicted::Margin => 1,
            Predicted::Contributions => 2,
        }
    }
}

impl Booster {
    /// A model without trees. What it will be trained and measured on is told here, so that XGBoost keeps their
    /// predictions from round to round.
    ///
    /// # Errors
    /// When XGBoost has no memory for it.
    pub fn new(xgboost: &Xgboost, seen: &[&Matrix]) -> Result<Self, XgboostError> {
        let handles: Vec<Handle> = seen.iter().map(|matrix| matrix.handle).collect();
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: the handles are those of matrices that live, and as many as is said.
        let code = unsafe {
            (xgboost.functions().booster_create)(
                handles.as_ptr(),
                handles.len() as u64,
                &mut handle,
            )
        };
        xgboost.check("XGBoosterCreate", code)?;
        Ok(Self {
            xgboost: xgboost.clone(),
            handle,
        })
    }

    /// Sets a parameter by XGBoost's name of it. XGBoost checks it when training begins.
    ///
    /// # Errors
    /// When it is refused at once.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), XgboostError> {
        let (name, value) = (text(name)?, text(value)?);
        // SAFETY: the handle is this booster's; the texts outlive the call.
        let code = unsafe {
            (self.xgboost.functions().booster_set)(self.handle, name.as_ptr(), value.as_ptr())
        };
        self.xgboost.check("XGBoosterSetParam", code)
    }

    /// Takes the trees and all that belongs to them from a model that was written, in either format.
    ///
    /// # Errors
    /// When it is not one.
    pub fn load(&mut self, model: &[u8]) -> Result<(), XgboostError> {
        // SAFETY: the handle is this booster's; the bytes are as many as is said, and outlive the call.
        let code = unsafe {
            (self.xgboost.functions().booster_load)(
                self.handle,
                model.as_ptr().cast(),
                model.len() as u64,
            )
        };
        self.xgboost.check("XGBoosterLoadModelFromBuffer", code)
    }

    /// The model in this format.
    ///
    /// # Errors
    /// When XGBoost cannot write it.
    pub fn save(&mut self, format: ModelFormat) -> Result<Vec<u8>, XgboostError> {
        let settings = match format {
            ModelFormat::Ubj => c"{\"format\":\"ubj\"}",
            ModelFormat::Json => c"{\"format\":\"json\"}",
        };
        let (mut length, mut bytes) = (0, ptr::null());
        // SAFETY: the handle is this booster's; places for both results.
        let code = unsafe {
            (self.xgboost.functions().booster_save)(
                self.handle,
                settings.as_ptr(),
                &mut length,
                &mut bytes,
            )
        };
        self.xgboost.check("XGBoosterSaveModelToBuffer", code)?;
        // SAFETY: the call succeeded, and the bytes are the booster's until its next call; they are copied now.
        Ok(unsafe { slice::from_raw_parts(bytes, length as usize) }.to_vec())
    }

    /// How many rounds it was trained.
    ///
    /// # Errors
    /// When XGBoost cannot say.
    pub fn rounds(&self) -> Result<usize, XgboostError> {
        let mut rounds: c_int = 0;
        // SAFETY: the handle is this booster's; a place for the number.
        let code = unsafe { (self.xgboost.functions().booster_rounds)(self.handle, &mut rounds) };
        self.xgboost.check("XGBoosterBoostedRounds", code)?;
        Ok(usize::try_from(rounds).unwrap_or(0))
    }

    /// How many columns it knows.
    ///
    /// # Errors
    /// When XGBoost cannot say.
    pub fn columns(&self) -> Result<usize, XgboostError> {
        let mut columns = 0;
        // SAFETY: the handle is this booster's; a place for the number.
        let code = unsafe { (self.xgboost.functions().booster_columns)(self.handle, &mut columns) };
        self.xgboost.check("XGBoosterGetNumFeature", code)?;
        Ok(columns as usize)
    }

    /// The trees of the first rounds alone.
    ///
    /// # Errors
    /// When there are not so many rounds.
    pub fn first_rounds(&self, rounds: usize) -> Result<Self, XgboostError> {
        self.rounds_in(0..rounds)
    }

    /// The trees of these rounds alone.
    ///
    /// # Errors
    /// When there are no such rounds.
    pub fn rounds_in(&self, rounds: Range<usize>) -> Result<Self, XgboostError> {
        let mut handle: Handle = ptr::null_mut();
        let (begin, end) = (number(rounds.start), number(rounds.end));
        // SAFETY: the handle is this booster's; the new one is freed when it is dropped.
        let code = unsafe {
            (self.xgboost.functions().booster_slice)(self.handle, begin, end, 1, &mut handle)
        };
        // The end of the range is told by a code of its own.
        if code != 0 {
            self.xgboost.check("XGBoosterSlice", code)?;
        }
        Ok(Self {
            xgboost: self.xgboost.clone(),
            handle,
        })
    }

    /// The margins of the rows of a matrix that it is trained on: a row after the other, all outputs beside each other.
    /// They are kept from round to round, so only the newest trees are looked at.
    ///
    /// # Errors
    /// When the matrix does not fit.
    pub fn margins(&mut self, matrix: &Matrix) -> Result<&[f32], XgboostError> {
        let settings =
            c"{\"type\":1,\"training\":true,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":false}";
        let (values, _) = self.predict_with(matrix, settings)?;
        Ok(values)
    }

    /// Predicts rows, with how many numbers there are for each.
    ///
    /// # Errors
    /// When the rows have other columns than the model.
    pub fn predict(
        &mut self,
        matrix: &Matrix,
        what: Predicted,
    ) -> Result<(Vec<f32>, usize), XgboostError> {
        let settings = format!(
            r#"{{"type":{},"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":true}}"#,
            what.number()
        );
        let settings = text(&settings)?;
        let (values, width) = self.predict_with(matrix, &settings)?;
        Ok((values.to_vec(), width))
    }

    /// The leaf that each row comes to in a model of one tree: the number of its node.
    ///
    /// # Errors
    /// When the rows have other columns than the model.
    pub fn leaves(&mut self, matrix: &Matrix) -> Result<Vec<u32>, XgboostError> {
        let settings =
            c"{\"type\":6,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":false}";
        let (values, _) = self.predict_with(matrix, settings)?;
        Ok(values.iter().map(|&node| node as u32).collect())
    }

    fn predict_with(
        &mut self,
        matrix: &Matrix,
        settings: &CStr,
    ) -> Result<(&[f32], usize), XgboostError> {
        let (mut shape, mut dimensions, mut values) = (ptr::null(), 0, ptr::null());
        // SAFETY: both handles are of things that live; places for all three results.
        let code = unsafe {
            (self.xgboost.functions().booster_predict)(
                self.handle,
                matrix.handle,
                settings.as_ptr(),
                &mut shape,
                &mut dimensions,
                &mut values,
            )
        };
        self.xgboost.check("XGBoosterPredictFromDMatrix", code)?;
        if dimensions == 0 || shape.is_null() {
            return Ok((&[], 0));
        }
        // SAFETY: the call succeeded: the shape has so many numbers, and lives until the booster's next call, which
        // needs `self` to be borrowed anew.
        let shape = unsafe { slice::from_raw_parts(shape, dimensions as usize) };
        let width = shape[1..].iter().product::<u64>() as usize;
        let length = shape.iter().product::<u64>() as usize;
        if length == 0 || values.is_null() {
            return Ok((&[], width));
        }
        // SAFETY: as above; there are as many values as the shape says.
        let values = unsafe { slice::from_raw_parts(values, length) };
        Ok((values, width))
    }

    /// Adds a round of trees that follow these gradients and second derivatives: one for each row and output.
    ///
    /// # Errors
    /// When a parameter is wrong, or a peer was lost.
    pub fn boost(
        &mut self,
        matrix: &Matrix,
        round: usize,
        (gradients, hessians): (&[f32], &[f32]),
        outputs: usize,
    ) -> Result<(), XgboostError> {
        let shape = [gradients.len() / outputs, outputs];
        let shape = match outputs {
            1 => &shape[..1],
            _ => &shape[..],
        };
        let gradients = interface(gradients, shape);
        let hessians = interface(hessians, shape);
        // SAFETY: both handles are of things that live; the numbers outlive the call.
        let code = unsafe {
            (self.xgboost.functions().booster_boost)(
                self.handle,
                matrix.handle,
                number(round),
                gradients.as_ptr(),
                hessians.as_ptr(),
            )
        };
        self.xgboost.check("XGBoosterTrainOneIter", code)
    }

    /// Adds a round of trees as the objective wants them.
    ///
    /// # Errors
    /// When a parameter is wrong, or a peer was lost.
    pub fn update(&mut self, matrix: &Matrix, round: usize) -> Result<(), XgboostError> {
        // SAFETY: both handles are of things that live.
        let code = unsafe {
            (self.xgboost.functions().booster_update)(self.handle, number(round), matrix.handle)
        };
        self.xgboost.check("XGBoosterUpdateOneIter", code)
    }

    /// Measures by the metrics that were set: the name of each, as XGBoost writes it, and its value.
    ///
    /// # Errors
    /// When a metric is unknown, or a peer was lost.
    pub fn measure(
        &mut self,
        matrix: &Matrix,
        round: usize,
    ) -> Result<Vec<(String, f64)>, XgboostError> {
        let mut handles = [matrix.handle];
        let mut names: [*const c_char; 1] = [c"it".as_ptr()];
        let mut said = ptr::null();
        // SAFETY: one handle and one name, which outlive the call.
        let code = unsafe {
            (self.xgboost.functions().booster_evaluate)(
                self.handle,
                number(round),
                handles.as_mut_ptr(),
                names.as_mut_ptr(),
                1,
                &mut said,
            )
        };
        self.xgboost.check("XGBoosterEvalOneIter", code)?;
        // SAFETY: the call succeeded, so it is a text that lives until the booster's next call.
        let said = unsafe { CStr::from_ptr(said) }.to_string_lossy();
        // `[3]\tit-auc:0.5\tit-logloss:0.3`
        let measured = said.split('\t').skip(1).filter_map(|one| {
            let (name, value) = one.rsplit_once(':')?;
            let name = name.strip_prefix("it-").unwrap_or(name);
            Some((name.to_owned(), value.parse().ok()?))
        });
        Ok(measured.collect())
    }

    /// The names of the columns; none if the model was never told.
    ///
    /// # Errors
    /// When XGBoost cannot say.
    pub fn column_names(&self) -> Result<Vec<String>, XgboostError> {
        let (mut count, mut names) = (0, ptr::null());
        // SAFETY: the handle is this booster's; places for both results.
        let code = unsafe {
            (self.xgboost.functions().booster_texts)(
                self.handle,
                c"feature_name".as_ptr(),
                &mut count,
                &mut names,
            )
        };
        self.xgboost.check("XGBoosterGetStrFeatureInfo", code)?;
        // SAFETY: the call succeeded: so many texts, which live until the booster's next call.
        Ok(unsafe { owned_texts(names, count) })
    }

    /// Notes something in the model, for whoever loads it: Python's XGBoost knows `best_iteration`.
    ///
    /// # Errors
    /// When XGBoost refuses it.
    pub fn note(&mut self, name: &str, value: &str) -> Result<(), XgboostError> {
        let (name, value) = (text(name)?, text(value)?);
        // SAFETY: the handle is this booster's; the texts outlive the call.
        let code = unsafe {
            (self.xgboost.functions().booster_set_attribute)(
                self.handle,
                name.as_ptr(),
                value.as_ptr(),
            )
        };
        self.xgboost.check("XGBoosterSetAttr", code)
    }

    /// All of its settings, as XGBoost's own JSON.
    ///
    /// # Errors
    /// When XGBoost cannot say.
    pub fn settings(&mut self) -> Result<String, XgboostError> {
        let (mut length, mut said) = (0, ptr::null());
        // SAFETY: the handle is this booster's; places for both results.
        let code = unsafe {
            (self.xgboost.functions().booster_config)(self.handle, &mut length, &mut said)
        };
        self.xgboost.check("XGBoosterSaveJsonConfig", code)?;
        // SAFETY: the call succeeded, so it is a text that lives until the booster's next call.
        Ok(unsafe { CStr::from_ptr(said) }
            .to_string_lossy()
            .into_owned())
    }

    /// Whether it computes on a GPU: asked for one where there is none, XGBoost takes the processor.
    ///
    /// # Errors
    /// When XGBoost does not say.
    pub fn is_on_gpu(&mut self) -> Result<bool, XgboostError> {
        let config = self.settings()?;
        let unexpected = |found: &str| XgboostError::Unexpected {
            function: "XGBoosterSaveJsonConfig",
            found: found.to_owned(),
        };
        let config: serde_json::Value =
            serde_json::from_str(&config).map_err(|_| unexpected(&config))?;
        let device = &config["learner"]["generic_param"]["device"];
        let device = device.as_str().ok_or_else(|| unexpected("no device"))?;
        Ok(device.starts_with("cuda"))
    }

    /// How much each column is used: its name, or `f` and its number, and the measure. Unused columns are left out.
    ///
    /// # Errors
    /// When XGBoost cannot say.
    pub fn importance(&mut self, measure: Importance) -> Result<Vec<(String, f32)>, XgboostError> {
        let settings = text(&format!(r#"{{"importance_type":"{}"}}"#, measure.word()))?;
        let (mut count, mut names) = (0, ptr::null());
        let (mut dimensions, mut shape, mut scores) = (0, ptr::null(), ptr::null());
        // SAFETY: the handle is this booster's; places for all five results.
        let code = unsafe {
            (self.xgboost.functions().booster_score)(
                self.handle,
                settings.as_ptr(),
                &mut count,
                &mut names,
                &mut dimensions,
                &mut shape,
                &mut scores,
            )
        };
        self.xgboost.check("XGBoosterFeatureScore", code)?;
        if count == 0 || scores.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the call succeeded: so many names and, for trees, as many scores, until the booster's next call.
        let (names, scores) = unsafe {
            (
                owned_texts(names, count),
                slice::from_raw_parts(scores, count as usize),
            )
        };
        Ok(names.into_iter().zip(scores.iter().copied()).collect())
    }
}

impl Drop for Booster {
    fn drop(&mut self) {
        // SAFETY: the handle is this booster's alone.
        unsafe { (self.xgboost.functions().booster_free)(self.handle) };
    }
}

fn number(round: usize) -> c_int {
    c_int::try_from(round).unwrap_or(c_int::MAX)
}

/// Copies texts.
///
/// # Safety
/// There are so many of them, or the address is null and there are none.
unsafe fn owned_texts(texts: *const *const c_char, count: u64) -> Vec<String> {
    if texts.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    let texts = unsafe { slice::from_raw_parts(texts, count as usize) };
    let owned = texts.iter().map(|&text| {
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    });
    owned.collect()
}
