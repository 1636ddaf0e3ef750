//! From the body of a request to what the model says of its rows.

use crate::answer::Said;
use crate::content::Asked;
use crate::live::Live;
use crate::{HeldModels, Refusal};
use bytes::Bytes;
use lockstep_data::SampleValues;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

/// A body that is longer than this is read where it holds up nobody else, as pictures are.
const LONG: usize = 64 << 10;

/// Reads a body with `read`, and asks the model.
///
/// # Errors
/// When the body is wrong, too many are waiting, or it takes too long.
pub(crate) async fn predict(
    models: &HeldModels,
    live: Arc<Live>,
    body: Bytes,
    read: impl FnOnce(&[u8]) -> Result<Asked, Refusal> + Send + 'static,
) -> Result<Said, Refusal> {
    let until = Instant::now() + models.settings().timeout;
    let asking = async {
        let coming = live.coming();
        let is_slow = body.len() > LONG || live.about.takes.is_slow();
        let values = move |live: &Live, settings: &crate::ServingSettings| {
            let asked = read(&body)?;
            let values = live.about.takes.read(asked.content, settings)?;
            Ok::<(SampleValues, bool), Refusal>((values, asked.probabilities))
        };
        let (values, probabilities) = match is_slow {
            false => values(&live, models.settings())?,
            true => {
                let room = models.reading().acquire().await;
                let _room = room.map_err(Refusal::internal)?;
                let (live, settings) = (Arc::clone(&live), models.settings().clone());
                let read = spawn_blocking(move || values(&live, &settings)).await;
                read.map_err(Refusal::internal)??
            }
        };
        // Before it is sent: a batch does not wait for the request that it begins with.
        drop(coming);
        let answer = live.ask(values, probabilities, until)?;
        match answer.await {
            Ok(said) => said,
            // The thread passes over what is too late.
            Err(_) => Err(Refusal::late()),
        }
    };
    let answered = timeout_at(until.into(), asking).await;
    answered.unwrap_or_else(|_| Err(Refusal::late()))
}
