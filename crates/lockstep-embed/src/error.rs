//! What can go wrong between pictures and vectors.

use lockstep_base::known_encoders::EncoderRef;
use lockstep_cuda::CudaError;
use lockstep_image::ImageError;
use lockstep_nn::encoder::EncoderError;
use lockstep_place::PlaceError;
use lockstep_table::TableError;
use lockstep_tensors::TensorError;
use std::path::PathBuf;

/// Why pictures could not be embedded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// A place could not be read or written.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] lockstep_base::fs::FsError),
    /// A Parquet file could not be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A file of weights could not be read.
    #[error(transparent)]
    Tensors(#[from] TensorError),
    /// The GPU cannot encode.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// A precision that GPUs have no kernels for.
    #[error(
        "embed.device: \"fixed16\" is computed on processors only for now; use `device = \"cpu\"`, or `precision = \"f32\"`"
    )]
    PrecisionOnGpu,
    /// There is nothing where the encoder should be.
    #[error(
        "embed.model: there is no {}; it must be the name of a known encoder ({known}), or the folder or the file of an \
         encoder's weights on this machine. `hf download openai/clip-vit-base-patch32 config.json pytorch_model.bin \
         --local-dir FOLDER` brings those of a CLIP, after `pip install huggingface_hub`", path.display()
    )]
    NoModel {
        /// Where it should be.
        path: PathBuf,
        /// The encoders that are known by name.
        known: String,
    },
    /// The weights of a known encoder in the cache are not those that were published.
    #[error(
        "{} is damaged: its SHA-256 is {found}, and that of the published weights is {wanted}; remove its folder to have \
         them brought again", path.display()
    )]
    DamagedEncoder {
        /// The file.
        path: PathBuf,
        /// The hash of the published weights.
        wanted: &'static str,
        /// The hash of this file.
        found: String,
    },
    /// The encoder's weights are those of no encoder that is known.
    #[error("{path}: {reason}")]
    Model {
        /// The encoder's file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The encoder could not be built from its weights.
    #[error("{path}: {source}")]
    Encoder {
        /// The encoder's file or folder.
        path: PathBuf,
        /// What is wrong with them.
        source: EncoderError,
    },
    /// The pictures' transform does not fit the encoder.
    #[error("data.transform: {0}")]
    Transform(String),
    /// The transform cannot be done.
    #[error("data.transform: {0}")]
    Image(ImageError),
    /// Another encoder than the one whose vectors a model learned from.
    #[error(
        "{encoder} is not the encoder that the model was trained with: its SHA-256 is {found}, and that was {wanted}; name \
         the right one with --set embed.model=PATH"
    )]
    OtherEncoder {
        /// The encoder.
        encoder: EncoderRef,
        /// The hash of the right one.
        wanted: String,
        /// The hash of this one.
        found: String,
    },
    /// The weights changed after the parts were planned.
    #[error("{encoder} has changed since this job began; run it again")]
    ModelChanged {
        /// The encoder.
        encoder: EncoderRef,
    },
    /// A picture changed after the parts were planned.
    #[error("{path} has changed since it was listed; run the job again when nobody writes there")]
    Changed {
        /// The picture.
        path: String,
    },
    /// A folder could not be listed.
    #[error("cannot list {folder}: {source}")]
    List {
        /// The folder.
        folder: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder of a class without a picture.
    #[error(
        "the folder of the class `{class}` in {folder} has no picture in it (.jpg, .png, .webp, .bmp); put some there, \
         or remove it"
    )]
    EmptyClass {
        /// The folder of the set.
        folder: String,
        /// The class.
        class: String,
    },
    /// The system refuses to start threads.
    #[error("cannot start threads to compute with")]
    Threads(#[source] std::io::Error),
    /// A folder without pictures.
    #[error(
        "{folder} holds no pictures (jpg, jpeg, png, webp, bmp) in folders named after their classes{hint}"
    )]
    NoPictures {
        /// The folder.
        folder: String,
        /// What there is instead.
        hint: String,
    },
    /// A picture that is in no folder of a class.
    #[error(
        "{folder}: {path} is in no folder, and the class of a picture is the folder that it is in"
    )]
    NoClass {
        /// The folder.
        folder: String,
        /// The picture.
        path: String,
    },
    /// More pictures than allowed could not be read.
    #[error(
        "{bad} of {all} pictures in {folder} could not be read, more than data.max_bad = {max_bad}; \
         {list} lists them; the first is {first}"
    )]
    TooManyBad {
        /// The folder.
        folder: String,
        /// Pictures that could not be read.
        bad: usize,
        /// All pictures.
        all: usize,
        /// The share that is allowed.
        max_bad: f64,
        /// Where they are listed.
        list: String,
        /// The first of them, and its reason.
        first: String,
    },
    /// What a part says of itself makes no sense.
    #[error(
        "{file} is not a part that this program wrote: {reason}; remove it to have it made again"
    )]
    Part {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl EmbedError {
    /// Whether this process can do nothing more on its GPU, where another one may.
    pub fn is_of_process(&self) -> bool {
        matches!(self, Self::Cuda(error) if error.is_of_process())
    }
}
