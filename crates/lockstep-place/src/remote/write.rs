//! Writing objects, also under the condition that nobody else has done so meanwhile.
//!
//! An answer may be lost on the way. A condition that fails on a later attempt is therefore looked into:
//! if what is there is what was sent, the first attempt had arrived.

use super::failure::AttemptFailure;
use super::{Remote, StoreKind};
use crate::{PlaceError, Version};
use bytes::Bytes;
use object_store::{GetOptions, PutMode, PutOptions, UpdateVersion};
use std::cell::Cell;

impl Remote {
    /// Replaces the object by `bytes`, in one request.
    pub(super) fn put(&self, bytes: Bytes) -> Result<(), PlaceError> {
        self.repeat("write", async || {
            self.put_once(&bytes, PutMode::Overwrite).await?;
            Ok(())
        })
    }

    /// Writes the object if there is none.
    pub(crate) fn create_new(&self, bytes: &[u8]) -> Result<Option<Version>, PlaceError> {
        self.put_if(bytes, PutMode::Create)
    }

    /// Replaces the object if it is the one of `version`.
    pub(crate) fn replace_if(
        &self,
        version: &Version,
        bytes: &[u8],
    ) -> Result<Option<Version>, PlaceError> {
        let mode = PutMode::Update(UpdateVersion {
            e_tag: version.tag.clone(),
            version: version.number.clone(),
        });
        self.put_if(bytes, mode)
    }

    fn put_if(&self, bytes: &[u8], mode: PutMode) -> Result<Option<Version>, PlaceError> {
        self.not_on_the_web("write")?;
        let payload = Bytes::copy_from_slice(bytes);
        let tries = Cell::new(0);
        let put = self.repeat("write", async || {
            tries.set(tries.get() + 1);
            match self.put_once(&payload, mode.clone()).await {
                Err(AttemptFailure::Answer(answer)) if answer.is_about_a_condition() => Ok(None),
                put => put.map(Some),
            }
        });
        let put = match (put, &mode) {
            (Err(PlaceError::NotFound { .. }), PutMode::Update(_)) => None,
            (put, _) => put?,
        };
        if put.is_none() && tries.get() > 1 {
            let found = self.read_versioned();
            return match found {
                Ok((found, version)) if found == bytes => Ok(Some(version)),
                Ok(_) | Err(PlaceError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            };
        }
        Ok(put)
    }

    async fn put_once(&self, bytes: &Bytes, mode: PutMode) -> Result<Version, AttemptFailure> {
        let options = PutOptions {
            mode,
            ..PutOptions::default()
        };
        let payload = bytes.clone().into();
        let done = self
            .objects()
            .put_opts(&self.path, payload, options)
            .await?;
        Ok(Version {
            tag: done.e_tag,
            number: done.version,
        })
    }

    /// The whole of a small object, and its version.
    pub(crate) fn read_versioned(&self) -> Result<(Vec<u8>, Version), PlaceError> {
        self.repeat("read", async || {
            let options = GetOptions::default();
            let answer = self.objects().get_opts(&self.path, options).await?;
            let version = Version {
                tag: answer.meta.e_tag.clone(),
                number: answer.meta.version.clone(),
            };
            let wanted = answer.meta.size;
            let bytes = answer.bytes().await?;
            match bytes.len() as u64 {
                got if got == wanted => Ok((bytes.to_vec(), version)),
                got => Err(AttemptFailure::Short { got, wanted }),
            }
        })
    }

    /// The names of what lies below and has something below itself.
    pub(crate) fn folders(&self) -> Result<Vec<String>, PlaceError> {
        if self.store.kind == StoreKind::Web {
            let place = self.to_string();
            return Err(PlaceError::NoListing { place });
        }
        let listed = self.repeat("list", async || {
            Ok(self.objects().list_with_delimiter(Some(&self.path)).await?)
        })?;
        let prefixes = listed.common_prefixes.iter();
        Ok(prefixes
            .filter_map(|prefix| Some(prefix.filename()?.to_owned()))
            .collect())
    }
}
