//! Making parts: an encoder, the buffers for a batch, and the folders that pictures and vectors lie in.

use crate::part::part_name;
use crate::reading::{Bunch, ahead};
use crate::{EmbedError, EmbedRecipe, EncoderModel, FinishedPart, PartTask, SkippedPicture};
use lockstep_image::{ByteNormaliser, Limits, Transformer};
use lockstep_nn::encoder::Encoder;
use lockstep_place::Place;
use lockstep_table::{EmbeddingPart, write_part};
use std::thread;

/// Of the memory for reading, each bunch of files may take this part: two wait and one is worked on.
const BUNCH_SHARE: u64 = 6;

/// Makes parts, one after the other.
pub struct PartMaker {
    recipe: EmbedRecipe,
    encoder: Encoder,
    transformer: Transformer,
    normaliser: ByteNormaliser,
    batch: usize,
    memory: u64,
    pixels: Vec<f32>,
}

impl PartMaker {
    /// An encoder for `batch` pictures at a time, that reads them within `memory` bytes.
    ///
    /// # Errors
    /// When the model is no longer the recipe's, or cannot be built.
    pub fn open(recipe: &EmbedRecipe, batch: usize, memory: u64) -> Result<PartMaker, EmbedError> {
        let model = EncoderModel::open(&recipe.model, &mut |_| {})?;
        if model.sha256 != recipe.model_sha256 {
            return Err(EmbedError::ModelChanged {
                encoder: recipe.model.clone(),
            });
        }
        let encoder = model.encoder(batch)?;
        // The other half is for files that wait to be decoded.
        let limits = Limits {
            max_memory: memory / 2,
            ..Limits::default()
        };
        let transformer = Transformer::new(&recipe.transform, limits).map_err(EmbedError::Image)?;
        Ok(PartMaker {
            recipe: recipe.clone(),
            pixels: vec![0.0; batch * transformer.output_len()],
            normaliser: ByteNormaliser::new(&recipe.normalise),
            encoder,
            transformer,
            batch,
            memory,
        })
    }

    /// Makes one part of the pictures in `folder` and commits it to `store`. `progress` hears of every
    /// batch how many pictures are done.
    ///
    /// # Errors
    /// When a place fails. A picture that cannot be read is not an error: it is listed in what is returned.
    pub fn make(
        &mut self,
        task: &PartTask,
        folder: &Place,
        store: &Place,
        progress: &mut dyn FnMut(usize),
    ) -> Result<FinishedPart, EmbedError> {
        let width = self.encoder.width();
        let mut made = Made::default();
        thread::scope(|scope| {
            let room = self.memory / BUNCH_SHARE;
            let bunches = ahead(scope, folder, &task.pictures, self.batch, room);
            for bunch in bunches {
                let bunch = bunch?;
                let done = bunch.pictures.end;
                self.encode(task, folder, bunch, &mut made);
                progress(done);
            }
            Ok::<(), EmbedError>(())
        })?;
        let finished = FinishedPart {
            rows: made.paths.len(),
            skipped: made.skipped,
        };
        let metadata = task.metadata(&self.recipe, &finished, self.memory)?;
        let metadata: Vec<_> = metadata
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        let part = EmbeddingPart {
            paths: &made.paths,
            labels: &made.labels,
            width,
            embeddings: &made.vectors,
        };
        let bytes = write_part(&part, &metadata)?;
        store.join(&part_name(task.number))?.write(&bytes)?;
        Ok(finished)
    }

    /// Decodes and encodes a bunch, of at most a batch, and adds what came of it.
    fn encode(&mut self, task: &PartTask, folder: &Place, bunch: Bunch, made: &mut Made) {
        // All of a part are known, or none.
        let labelled = task
            .pictures
            .iter()
            .all(|picture| picture.class().is_some());
        let len = self.transformer.output_len();
        let mut rows = 0;
        for (picture, bytes) in task.pictures[bunch.pictures].iter().zip(bunch.bytes) {
            let path = format!("{folder}/{}", picture.path);
            let out = &mut self.pixels[rows * len..][..len];
            let decoded = bytes.and_then(|bytes| {
                let applied = (self.transformer).apply_normalised(&bytes, &self.normaliser, out);
                applied.map_err(|error| (error.kind(), error.to_string()))
            });
            match decoded {
                Ok(()) => {
                    let class = picture.class().filter(|_| labelled);
                    made.labels.push(class.map(str::to_owned));
                    made.paths.push(path);
                    rows += 1;
                }
                Err((kind, reason)) => made.skipped.push(SkippedPicture {
                    path,
                    kind: kind.to_owned(),
                    reason,
                }),
            }
        }
        let start = made.vectors.len();
        made.vectors
            .resize(start + rows * self.encoder.width(), 0.0);
        self.encoder
            .encode(rows, &self.pixels[..rows * len], &mut made.vectors[start..]);
    }
}

/// What has come of a part so far.
#[derive(Default)]
struct Made {
    paths: Vec<String>,
    labels: Vec<Option<String>>,
    vectors: Vec<f32>,
    skipped: Vec<SkippedPicture>,
}
