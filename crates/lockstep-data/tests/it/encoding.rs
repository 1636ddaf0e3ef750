//! How the rows of a table become the input of a network: by the training rows alone, and with an answer to what these did
//! not have.

use lockstep_base::fs::CacheDir;
use lockstep_data::{
    ColumnNames, CsvFormat, Dataset, Encoding, Normaliser, Source, TableFormat, TableSource,
};
use lockstep_place::{Access, Place};
use std::fs;
use std::path::Path;

fn csv(folder: &Path, name: &str, text: &str) -> Source {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    Source::Table(TableSource {
        place: Place::parse(path.to_str().unwrap(), &Access::default()).unwrap(),
        format: TableFormat::Csv(CsvFormat::default()),
        columns: ColumnNames::default(),
        target: None,
        memory: 1 << 20,
    })
}

fn inputs(set: &Dataset, encoding: &Encoding) -> Vec<Vec<f32>> {
    let normaliser = Normaliser::encoded(set.sample_len(), encoding.clone());
    let width = encoding.width();
    let mut out = vec![9.0; set.len() * width];
    let rows: Vec<u32> = (0..set.len() as u32).collect();
    set.gather(&rows, &normaliser, &mut out);
    out.chunks(width).map(<[f32]>::to_vec).collect()
}

#[test]
fn rows_are_encoded_by_the_rows_that_are_trained_on() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheDir::at(&folder.path().join("cache")).unwrap();
    let text = "town,size,label\nUlm,1,x\nBonn,3,y\n,,x\nKiel,100,y\n";
    let train = csv(folder.path(), "train.csv", text);
    let train = Dataset::open(&train, &cache).unwrap();
    assert!(!train.table().is_plain());
    // Of the last row, which is not trained on, nothing is known: neither its town nor its size.
    let encoding = Encoding::fit(&train, &[0, 1, 2], true, &[]).unwrap();
    assert_eq!(
        inputs(&train, &encoding),
        [
            [-1.0, 0.0, 1.0, 0.0, 0.0],
            [1.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0, 1.0],
            [98.0, 0.0, 0.0, 0.0, 0.0],
        ]
    );
    let json = serde_json::to_string(&encoding).unwrap();
    assert_eq!(serde_json::from_str::<Encoding>(&json).unwrap(), encoding);

    // A test set is read by the columns of the training set; what is new in it is a gap, and counted.
    let test = csv(
        folder.path(),
        "test.csv",
        "size,town,label\n2,Jena,x\n,Ulm,y\n",
    );
    let test = Dataset::open_beside(&test, &train, &cache, &mut |_| {}).unwrap();
    assert_eq!(
        inputs(&test, &encoding),
        [[0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0]]
    );
    let town = &test.table().columns[0];
    assert_eq!(
        (town.unseen, town.first_unseen.as_deref()),
        (1, Some("Jena"))
    );
    let kept = Encoding::fit(&train, &[0, 1, 2], false, &[]).unwrap();
    assert_eq!(inputs(&train, &kept)[2][0], 2.0);
}

#[test]
fn an_embedded_category_is_the_place_of_its_value_and_0_where_it_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheDir::at(&folder.path().join("cache")).unwrap();
    let text = "town,colour,size,label\nUlm,red,1,x\nBonn,blue,3,y\n,red,2,x\nKiel,red,2,y\nAachen,blue,2,x\n";
    let train = Dataset::open(&csv(folder.path(), "train.csv", text), &cache).unwrap();
    let rows = [0, 1, 2, 4];
    let encoding = Encoding::fit(&train, &rows, false, &["town".to_owned()]).unwrap();
    // The size, both colours, and the town among Aachen, Bonn and Ulm; Kiel is not trained on.
    assert_eq!(
        inputs(&train, &encoding),
        [
            [1.0, 0.0, 1.0, 3.0],
            [3.0, 1.0, 0.0, 2.0],
            [2.0, 0.0, 1.0, 0.0],
            [2.0, 0.0, 1.0, 0.0],
            [2.0, 1.0, 0.0, 1.0],
        ]
    );
    let town = &encoding.embedded[0];
    assert_eq!((town.vectors(), town.width), (4, 2));
    assert!(encoding.fits(3) && !encoding.fits(0));
    let json = serde_json::to_string(&encoding).unwrap();
    assert_eq!(serde_json::from_str::<Encoding>(&json).unwrap(), encoding);
}

#[test]
fn plain_numbers_need_an_encoding_only_to_be_standardised() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheDir::at(&folder.path().join("cache")).unwrap();
    let plain = csv(folder.path(), "a.csv", "a,b,label\n1,5,x\n3,5,y\n");
    let plain = Dataset::open(&plain, &cache).unwrap();
    assert!(plain.table().is_plain());
    assert_eq!(Encoding::fit(&plain, &[0, 1], false, &[]), None);
    let encoding = Encoding::fit(&plain, &[0, 1], true, &[]).unwrap();
    // What is the same everywhere only loses its mean.
    assert_eq!(inputs(&plain, &encoding), [[-1.0, 0.0], [1.0, 0.0]]);
    // A set beside it may have no gaps.
    let gap = csv(folder.path(), "b.csv", "a,b,label\n1,,x\n");
    let error = Dataset::open_beside(&gap, &plain, &cache, &mut |_| {}).unwrap_err();
    let expected = "line 2: the column `b` is empty; every sample needs its numbers";
    assert!(error.to_string().contains(expected), "{error}");
}
