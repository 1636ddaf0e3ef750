//! Which data sets are known by name: their splits and files, what these decode to, and where they can be had.
//!
//! This is a table and nothing else. The job file checks names against it, and the readers of data bring the
//! files by it, so a set that is added here is known to both.

/// A data set with a public place.
#[derive(Debug)]
pub struct KnownSet {
    /// Its name in job files.
    pub name: &'static str,
    /// Its parts.
    pub splits: &'static [KnownSplit],
    /// The names of its classes.
    pub class_names: &'static [&'static str],
    /// All of its files.
    pub files: &'static [KnownFile],
    /// The Debian package that holds it, if there is one.
    pub debian: Option<Debian>,
    /// Where it can be had from the web.
    pub address: Address,
}

/// A part of a data set.
#[derive(Debug)]
pub struct KnownSplit {
    /// Its name in job files.
    pub name: &'static str,
    /// Its files, and how they are read.
    pub content: Content,
}

/// Which files make a part, and how they are read.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// A pair of IDX files.
    Idx {
        /// The name of the images' file.
        images: &'static str,
        /// The name of the labels' file.
        labels: &'static str,
    },
    /// Files in the binary format of CIFAR-10.
    Cifar10 {
        /// Their names, in the order of the samples.
        files: &'static [&'static str],
    },
}

/// A file and what it decodes to.
#[derive(Debug)]
pub struct KnownFile {
    /// Its name, wherever it lies.
    pub name: &'static str,
    /// Its size once it is decompressed.
    pub decoded_bytes: u64,
    /// The hash of its decompressed bytes, in hexadecimal digits.
    pub decoded_sha256: &'static str,
}

/// The Debian package that holds a set.
#[derive(Debug)]
pub struct Debian {
    /// Its name.
    pub package: &'static str,
    /// Where the package puts the files, from the root.
    pub folder: &'static str,
}

/// Where a set's files can be had from the web.
#[derive(Debug)]
pub enum Address {
    /// A folder that holds them.
    Folder(&'static str),
    /// A gzipped tar archive of them.
    Archive(Archive),
}

/// A gzipped tar archive.
#[derive(Debug)]
pub struct Archive {
    /// Its URL.
    pub address: &'static str,
    /// Its size.
    pub bytes: u64,
    /// The hash of the archive itself, in hexadecimal digits.
    pub sha256: &'static str,
    /// The folder in the archive that holds the files.
    pub folder: &'static str,
}

/// Every data set that is known.
pub const KNOWN: &[KnownSet] = &[FASHION_MNIST, CIFAR_10];

/// The set called `name`, if it is known.
pub fn find(name: &str) -> Option<&'static KnownSet> {
    KNOWN.iter().find(|set| set.name == name)
}

const FASHION_MNIST: KnownSet = KnownSet {
    name: "fashion-mnist",
    splits: &[
        KnownSplit {
            name: "train",
            content: Content::Idx {
                images: "train-images-idx3-ubyte.gz",
                labels: "train-labels-idx1-ubyte.gz",
            },
        },
        KnownSplit {
            name: "test",
            content: Content::Idx {
                images: "t10k-images-idx3-ubyte.gz",
                labels: "t10k-labels-idx1-ubyte.gz",
            },
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
    debian: Some(Debian {
        package: "dataset-fashion-mnist",
        folder: "usr/share/datasets/fashion-mnist",
    }),
    address: Address::Folder("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),
};

const CIFAR_10: KnownSet = KnownSet {
    name: "cifar-10",
    splits: &[
        KnownSplit {
            name: "train",
            content: Content::Cifar10 {
                files: &[
                    "data_batch_1.bin",
                    "data_batch_2.bin",
                    "data_batch_3.bin",
                    "data_batch_4.bin",
                    "data_batch_5.bin",
                ],
            },
        },
        KnownSplit {
            name: "test",
            content: Content::Cifar10 {
                files: &["test_batch.bin"],
            },
        },
    ],
    class_names: &[
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ],
    files: &[
        cifar_10_file(
            "data_batch_1.bin",
            "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        ),
        cifar_10_file(
            "data_batch_2.bin",
            "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        ),
        cifar_10_file(
            "data_batch_3.bin",
            "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        ),
        cifar_10_file(
            "data_batch_4.bin",
            "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        ),
        cifar_10_file(
            "data_batch_5.bin",
            "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        ),
        cifar_10_file(
            "test_batch.bin",
            "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        ),
    ],
    debian: None,
    address: Address::Archive(Archive {
        address: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        bytes: 170_052_171,
        sha256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        folder: "cifar-10-batches-bin",
    }),
};

/// A file of 10,000 records.
const fn cifar_10_file(name: &'static str, decoded_sha256: &'static str) -> KnownFile {
    KnownFile {
        name,
        decoded_bytes: 30_730_000,
        decoded_sha256,
    }
}

/// The name of the file of labels that belongs to a file of images by its name, if that says anything of labels.
pub fn labels_name(images: &str) -> Option<String> {
    let labels = images.replace("images", "labels").replace("idx3", "idx1");
    (labels != images).then_some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_has_its_files() {
        for set in KNOWN {
            let known = |name| set.files.iter().any(|file| file.name == name);
            assert!(set.splits.iter().all(|split| match split.content {
                Content::Idx { images, labels } => known(images) && known(labels),
                Content::Cifar10 { files } => files.iter().all(|name| known(name)),
            }));
        }
    }

    #[test]
    fn no_two_sets_have_one_name() {
        for (index, set) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..index].iter().all(|other| other.name != set.name));
        }
    }
}
