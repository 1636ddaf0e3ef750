//! Gathering a batch takes no memory, augmented or not.

use lockstep_base::fs::CacheDir;
use lockstep_data::{Augment, Augmenter, Dataset, Normaliser, Source};
use lockstep_testkit::peak;
use std::fs;

#[test]
fn gathering_allocates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("images.bin");
    fs::write(&file, vec![5; 8 * 3073]).unwrap();
    let cache = CacheDir::at(&folder.path().join("cache")).unwrap();
    let files = vec![file];
    let set = Dataset::open(&Source::CifarFiles { files }, &cache).unwrap();
    let normaliser = Normaliser::new(&[0.1, 0.2, 0.3], &[0.4], 3).unwrap();
    let augment = Augment {
        crop_padding: 4,
        flip: true,
    };
    let augmenter = Augmenter::new(augment, set.shape(), 1).unwrap();
    let indices = [7, 0, 3, 1];
    let (mut rows, mut labels) = (vec![0.0; 4 * 3072], [0; 4]);
    let ((), bytes) = peak(|| {
        set.gather(&indices, &normaliser, &mut rows);
        set.gather_labels(&indices, &mut labels);
        for step in 0..20 {
            let seen = (&augmenter, step);
            set.gather_augmented(&indices, &normaliser, seen, &mut rows);
        }
    });
    assert_eq!((labels, bytes), ([5; 4], 0));
}
