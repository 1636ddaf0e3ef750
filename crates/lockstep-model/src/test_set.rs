//! The samples that a trained model is shown.

use crate::Outputs;
use lockstep_base::fs::CacheDir;
use lockstep_data::{DataError, Dataset, InputColumn, Source, UnseenClasses};
use lockstep_resolve::TestSource;

/// Whether it must be known what is right to say of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleUse<'a> {
    /// The model is measured on them: it must.
    Measure,
    /// The model says what they are: it need not.
    Predict {
        /// The names of the pictures that are meant, where not all of their folder are.
        pictures: Option<&'a [String]>,
    },
}

/// Where the samples of a test set come from that a model with these outputs is to look at, which was trained on these
/// columns of a table; with `gaps`, values may be missing from them.
pub fn test_source(
    test: &TestSource,
    outputs: &Outputs,
    (columns, gaps): (&[InputColumn], bool),
    samples: SampleUse<'_>,
) -> Source {
    let source = test.source.clone().labelled_as(outputs.kind);
    let source = source.with_columns(columns, gaps);
    match samples {
        SampleUse::Measure => source,
        SampleUse::Predict { pictures } => Source::Samples {
            source: Box::new(source),
            // Of those that are embedded, only the vectors of these are there.
            pictures: pictures
                .map(<[String]>::to_vec)
                .filter(|_| test.embedding.is_none()),
        },
    }
}

/// Opens a [test set](test_source) for a model with these outputs. Says through `progress` what may take a while.
/// Samples of other classes have labels beyond them.
///
/// # Errors
/// When the set is missing or damaged.
pub fn open_test(
    source: &Source,
    outputs: &Outputs,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<Dataset, DataError> {
    let set = Dataset::open_telling(source, cache, progress)?;
    set.with_classes(&outputs.names, UnseenClasses::List)
}
