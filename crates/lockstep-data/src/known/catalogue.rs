//! Which data sets are known: their files, what these decode to, and where they can be had.

/// A data set with a public place.
#[derive(Debug)]
pub struct KnownSet {
    /// Its name in job files.
    pub name: &'static str,
    /// Its parts.
    pub splits: &'static [Split],
    /// The names of its classes.
    pub class_names: &'static [&'static str],
    pub(crate) files: &'static [KnownFile],
    pub(crate) debian: Debian,
    /// The web folder that holds its files.
    pub(crate) address: &'static str,
}

/// A part of a data set.
#[derive(Debug)]
pub struct Split {
    /// Its name in job files.
    pub name: &'static str,
    pub(crate) images: &'static str,
    pub(crate) labels: &'static str,
}

/// A file and what it decodes to.
#[derive(Debug)]
pub(crate) struct KnownFile {
    pub(crate) name: &'static str,
    pub(crate) decoded_bytes: u64,
    pub(crate) decoded_sha256: &'static str,
}

/// The Debian package that holds a set.
#[derive(Debug)]
pub(crate) struct Debian {
    pub(crate) package: &'static str,
    /// Where the package puts the files, from the root.
    pub(crate) folder: &'static str,
}

/// Every data set that is known.
pub const KNOWN: &[KnownSet] = &[KnownSet {
    name: "fashion-mnist",
    splits: &[
        Split {
            name: "train",
            images: "train-images-idx3-ubyte.gz",
            labels: "train-labels-idx1-ubyte.gz",
        },
        Split {
            name: "test",
            images: "t10k-images-idx3-ubyte.gz",
            labels: "t10k-labels-idx1-ubyte.gz",
        },
    ],
    class_names: &[
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ],
    files: &[
        KnownFile {
            name: "train-images-idx3-ubyte.gz",
            decoded_bytes: 47_040_016,
            decoded_sha256: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        },
        KnownFile {
            name: "train-labels-idx1-ubyte.gz",
            decoded_bytes: 60_008,
            decoded_sha256: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        },
        KnownFile {
            name: "t10k-images-idx3-ubyte.gz",
            decoded_bytes: 7_840_016,
            decoded_sha256: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        },
        KnownFile {
            name: "t10k-labels-idx1-ubyte.gz",
            decoded_bytes: 10_008,
            decoded_sha256: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    ],
    debian: Debian {
        package: "dataset-fashion-mnist",
        folder: "usr/share/datasets/fashion-mnist",
    },
    address: "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
}];
