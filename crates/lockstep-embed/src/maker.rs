//! Making parts: an encoder, the buffers for a batch, and the folders that pictures and vectors lie in.

use crate::encoding::BunchEncoder;
use crate::part::part_name;
use crate::reading::{Bunch, PictureBytes, Unreadable, ahead};
use crate::{EmbedError, EmbedRecipe, EncoderModel, FinishedPart, PartTask, SkippedPicture};
use lockstep_cuda::Gpu;
use lockstep_image::{ByteNormaliser, Limits, Transformer};
use lockstep_nn::Threads;
use lockstep_nn::threads::{pieces, pieces_mut};
use lockstep_place::Place;
use lockstep_table::{EmbeddingPart, write_part};
use std::thread;

/// Of the memory for reading, each bunch of files may take this part: two wait and one is worked on.
const BUNCH_SHARE: u64 = 6;

/// Makes parts, one after the other.
pub struct PartMaker {
    recipe: EmbedRecipe,
    encoder: BunchEncoder,
    threads: Threads,
    /// Each thread's, which share half of the memory. What is too large for them waits for the one that may have it all.
    transformers: Vec<Transformer>,
    transformer: Transformer,
    normaliser: ByteNormaliser,
    memory: u64,
}

impl PartMaker {
    /// An encoder for `batch` pictures at a time, that reads them within `memory` bytes. It decodes on so many threads, and
    /// encodes on them too, or on a GPU: then a bunch is decoded while the one before is encoded, and has at least 64.
    ///
    /// # Errors
    /// When the model is no longer the recipe's, or cannot be built, or the GPU has too little memory.
    pub fn open(
        recipe: &EmbedRecipe,
        batch: usize,
        memory: u64,
        (threads, gpu): (usize, Option<&Gpu>),
    ) -> Result<PartMaker, EmbedError> {
        let threads = &Threads::with_threads(threads).map_err(EmbedError::Threads)?;
        let model = EncoderModel::open(&recipe.model, &mut |_| {})?;
        if model.sha256 != recipe.model_sha256 {
            return Err(EmbedError::ModelChanged {
                encoder: recipe.model.clone(),
            });
        }
        let encoder = BunchEncoder::new(recipe.precision, model.parts()?, batch, threads, gpu)?;
        let transformer = |max_memory| {
            let limits = Limits {
                max_memory,
                ..Limits::default()
            };
            Transformer::new(&recipe.transform, limits).map_err(EmbedError::Image)
        };
        // The other half is for files that wait to be decoded.
        let room = memory / 2;
        let share = room / threads.count() as u64;
        let transformers = (0..threads.count()).map(|_| transformer(share));
        let transformers = transformers.collect::<Result<_, _>>()?;
        let transformer = transformer(room)?;
        Ok(PartMaker {
            recipe: recipe.clone(),
            normaliser: ByteNormaliser::new(&recipe.normalise),
            encoder,
            threads: threads.clone(),
            transformers,
            transformer,
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
        // What a part that failed has left.
        self.encoder.finish(&mut Vec::new())?;
        thread::scope(|scope| {
            let room = self.memory / BUNCH_SHARE;
            let bunches = ahead(scope, folder, &task.pictures, self.encoder.rows(), room);
            for bunch in bunches {
                let bunch = bunch?;
                let done = bunch.pictures.end;
                self.encode(task, folder, bunch, &mut made)?;
                progress(done);
            }
            self.encoder.finish(&mut made.vectors)?;
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

    /// Decodes a bunch and has it encoded, and adds what came of it.
    fn encode(
        &mut self,
        task: &PartTask,
        folder: &Place,
        bunch: Bunch,
        made: &mut Made,
    ) -> Result<(), EmbedError> {
        // All of a part are known, or none.
        let labelled = task
            .pictures
            .iter()
            .all(|picture| picture.class().is_some());
        let len = self.transformer.output_len();
        let decoded = self.decode(&bunch.bytes)?;
        let pixels = self.encoder.pixels()?;
        let pictures = task.pictures[bunch.pictures].iter();
        let mut rows = 0;
        for (place, (picture, decoded)) in pictures.zip(decoded).enumerate() {
            let path = format!("{folder}/{}", picture.path);
            match decoded {
                Ok(()) => {
                    let class = picture.class().filter(|_| labelled);
                    made.labels.push(class.map(str::to_owned));
                    made.paths.push(path);
                    // What was decoded moves up to the place of what could not be.
                    let from = place * len..(place + 1) * len;
                    pixels.copy_within(from, rows * len);
                    rows += 1;
                }
                Err((kind, reason)) => made.skipped.push(SkippedPicture {
                    path,
                    kind: kind.to_owned(),
                    reason,
                }),
            }
        }
        self.encoder.encode(rows, &mut made.vectors)
    }

    /// Decodes pictures, each to its place among the pixels, on all threads.
    fn decode(
        &mut self,
        pictures: &[PictureBytes],
    ) -> Result<Vec<Result<(), Unreadable>>, EmbedError> {
        let Self {
            normaliser,
            encoder,
            ..
        } = self;
        let pixels = encoder.pixels()?;
        let decode = |transformer: &mut Transformer, bytes: &PictureBytes, out: &mut [f32]| {
            let bytes = bytes.as_ref().map_err(Clone::clone)?;
            let applied = transformer.apply_normalised(bytes, normaliser, out);
            applied.map_err(|error| (error.kind(), error.to_string()))
        };
        let len = self.transformer.output_len();
        let mut decoded = vec![Ok(()); pictures.len()];
        let each = pictures.len().div_ceil(self.transformers.len()).max(1);
        let tiles = (
            pieces_mut(&mut self.transformers, 1),
            pieces(pictures, each),
            pieces_mut(&mut *pixels, each * len),
            pieces_mut(&mut decoded, each),
        );
        self.threads
            .each(tiles, |_, (own, pictures, pixels, decoded)| {
                let places = pixels.chunks_exact_mut(len).zip(decoded);
                for (bytes, (out, decoded)) in pictures.iter().zip(places) {
                    *decoded = decode(&mut own[0], bytes, out);
                }
            });
        // One that failed may only have been too large for a thread's share of the memory.
        let places = pixels.chunks_exact_mut(len).zip(&mut decoded);
        for (bytes, (out, decoded)) in pictures.iter().zip(places) {
            if decoded.is_err() {
                *decoded = decode(&mut self.transformer, bytes, out);
            }
        }
        Ok(decoded)
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
