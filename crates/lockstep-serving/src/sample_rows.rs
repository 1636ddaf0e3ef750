//! Rows of a request for a model that takes samples of one shape: vectors, pixels, or pictures.
//!
//! Pixels are whole numbers from 0 to 255, line by line, the channels of a pixel beside each other, as they lie in files.
//! Pictures are decoded and transformed as those were that the model was trained on.

use crate::Refusal;
use crate::content::Content;
use crate::json::Json;
use crate::pictures;
use lockstep_data::{SampleValues, StoredElement};
use lockstep_resolve::PictureInput;

/// What a sample is.
#[derive(Debug)]
pub(crate) struct SampleForm {
    /// How it is stored.
    pub(crate) element: StoredElement,
    /// Channels, height, width.
    pub(crate) shape: [usize; 3],
    pictures: Option<PictureInput>,
}

/// The values of a row, and where they are wrong.
struct RowValues<'a> {
    form: &'a SampleForm,
    row: usize,
    out: &'a mut SampleValues,
}

impl SampleForm {
    pub(crate) fn new(
        element: StoredElement,
        shape: [usize; 3],
        pictures: Option<PictureInput>,
    ) -> Self {
        Self {
            element,
            shape,
            pictures,
        }
    }

    /// How many values a sample has.
    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The shapes that a row may have.
    pub(crate) fn row_shapes(&self) -> Vec<Vec<usize>> {
        let [channels, height, width] = self.shape;
        let mut shapes = vec![vec![self.len()]];
        if self.len() == 1 {
            shapes.push(Vec::new());
        }
        if height > 1 || width > 1 {
            if channels == 1 {
                shapes.push(vec![height, width]);
            }
            shapes.push(vec![height, width, channels]);
        }
        shapes
    }

    /// What a row must be, in words.
    fn right(&self) -> String {
        let shapes = self.row_shapes();
        let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
        let shapes = shapes.join(" or ");
        let what = match self.element {
            StoredElement::U8 => "whole numbers from 0 to 255",
            StoredElement::F32 => "numbers",
        };
        match self.takes_pictures() {
            true => format!("a row is a picture, or {what} of the shape {shapes}"),
            false => format!("a row is {what} of the shape {shapes}"),
        }
    }

    /// Whether a row may be a picture.
    pub(crate) fn takes_pictures(&self) -> bool {
        self.transform().is_ok()
    }

    /// What is done to pictures.
    fn transform(&self) -> Result<&lockstep_image::Transform, Refusal> {
        match &self.pictures {
            Some(PictureInput {
                transform,
                encoder: None,
            }) => Ok(transform),
            Some(_) => Err(Refusal::bad(
                "this model was trained on vectors that an encoder made of pictures; send the vectors",
            )),
            None => Err(Refusal::bad(
                "this model was not trained on files of pictures; send the values of its samples",
            )),
        }
    }

    /// The samples that the rows of a request are.
    pub(crate) fn read(&self, content: Content, max_pixels: u64) -> Result<SampleValues, Refusal> {
        let rows = match content {
            Content::Pictures(files) => return self.pictures(&files, max_pixels),
            Content::Tensor(tensor) => {
                let shape = &tensor.shape[1..];
                if !self.row_shapes().iter().any(|right| right == shape) {
                    return Err(Refusal::bad(format!(
                        "rows have the shape {shape:?}; {}",
                        self.right()
                    )));
                }
                let mut out = SampleValues::new(self.element);
                for (row, values) in tensor.values.chunks_exact(self.len()).enumerate() {
                    self.row(row, &mut out).numbers(values)?;
                }
                return Ok(out);
            }
            Content::Rows(rows) => rows,
            Content::Table { rows, columns } => match columns.len() {
                // Each cell is a sample.
                1 if self.len() > 1 => rows.into_iter().map(only_item).collect(),
                _ => rows,
            },
            Content::Columns(mut columns) => match (columns.pop(), columns.len()) {
                (Some((_, values)), 0) => {
                    let found = values.words();
                    values.into_items().ok_or_else(|| {
                        Refusal::bad(format!("the input is {found}; it must be a list of rows"))
                    })?
                }
                _ => {
                    return Err(Refusal::bad(format!(
                        "this model takes one input, not columns of a table; {}",
                        self.right()
                    )));
                }
            },
        };
        if rows.iter().any(is_picture) {
            let files = rows.into_iter().enumerate();
            let files: Vec<Vec<u8>> = files
                .map(|(row, value)| self.file(row, value))
                .collect::<Result<_, _>>()?;
            return self.pictures(&files, max_pixels);
        }
        let mut out = SampleValues::new(self.element);
        for (row, value) in rows.iter().enumerate() {
            let mut shape = Vec::new();
            shape_of(value, &mut shape);
            if !self.row_shapes().contains(&shape) {
                return Err(Refusal::bad(format!(
                    "row {row} is {}; {}",
                    described(value, &shape),
                    self.right()
                )));
            }
            self.row(row, &mut out).nested(value, &shape)?;
        }
        Ok(out)
    }

    fn row<'a>(&'a self, row: usize, out: &'a mut SampleValues) -> RowValues<'a> {
        RowValues {
            form: self,
            row,
            out,
        }
    }

    fn pictures(&self, files: &[Vec<u8>], max_pixels: u64) -> Result<SampleValues, Refusal> {
        let transform = self.transform()?;
        let mut bytes = Vec::with_capacity(files.len() * self.len());
        pictures::decode(transform, files, max_pixels, &mut bytes)?;
        match bytes.len() == files.len() * self.len() {
            true => Ok(SampleValues::Bytes(bytes)),
            false => Err(Refusal::internal(
                "the transform of pictures does not lead to the samples of the model",
            )),
        }
    }

    /// The file of a picture that came as text.
    fn file(&self, row: usize, value: Json) -> Result<Vec<u8>, Refusal> {
        self.transform()?;
        match picture_text(&value) {
            Some(text) => pictures::of_text(row, text),
            None => Err(Refusal::bad(format!(
                "row {row} is {}, where other rows are pictures",
                value.words()
            ))),
        }
    }
}

impl RowValues<'_> {
    fn nested(&mut self, value: &Json, shape: &[usize]) -> Result<(), Refusal> {
        match (value, shape) {
            (Json::Numbers(numbers), [length]) if numbers.len() == *length => self.numbers(numbers),
            (Json::List(items), [length, rest @ ..]) if items.len() == *length => {
                items.iter().try_for_each(|item| self.nested(item, rest))
            }
            (Json::Number(number), []) => self.numbers(&[*number]),
            (Json::Text(text), []) => match text.parse() {
                Ok(number) => self.numbers(&[number]),
                Err(_) => Err(self.wrong("text that is no number")),
            },
            (value, _) => Err(self.wrong(value.words())),
        }
    }

    fn wrong(&self, found: &str) -> Refusal {
        let (row, right) = (self.row, self.form.right());
        Refusal::bad(format!(
            "row {row} holds {found} where it should not; {right}"
        ))
    }

    fn numbers(&mut self, numbers: &[f64]) -> Result<(), Refusal> {
        match &mut self.out {
            SampleValues::Bytes(out) => {
                let is_byte =
                    |&&number: &&f64| !((0.0..=255.0).contains(&number) && number.fract() == 0.0);
                if let Some(wrong) = numbers.iter().find(is_byte) {
                    return Err(self.wrong(&format!("{wrong}")));
                }
                out.extend(numbers.iter().map(|&number| number as u8));
            }
            SampleValues::Numbers(out) => {
                let is_none = |&&number: &&f64| !(number as f32).is_finite();
                if let Some(wrong) = numbers.iter().find(is_none) {
                    return Err(self.wrong(&format!("{wrong}")));
                }
                out.extend(numbers.iter().map(|&number| number as f32));
            }
        }
        Ok(())
    }
}

/// The only item of a list; anything else as it is.
fn only_item(value: Json) -> Json {
    match value {
        Json::List(mut items) if items.len() == 1 => items.pop().unwrap_or(Json::Null),
        value => value,
    }
}

/// The text of a picture: base64, or `{"b64": base64}`, also below one more key.
fn picture_text(value: &Json) -> Option<&str> {
    match value {
        Json::Text(text) => Some(text),
        Json::Object(keys) => match &keys[..] {
            [(key, Json::Text(text))] if key == "b64" => Some(text),
            [(_, inner @ Json::Object(_))] => picture_text(inner),
            _ => None,
        },
        _ => None,
    }
}

fn is_picture(value: &Json) -> bool {
    matches!(value, Json::Text(_) | Json::Object(_))
}

/// The shape of a value, by the first item of each list.
fn shape_of(value: &Json, shape: &mut Vec<usize>) {
    match value {
        Json::Numbers(numbers) => shape.push(numbers.len()),
        Json::List(items) => {
            shape.push(items.len());
            if let Some(first) = items.first() {
                shape_of(first, shape);
            }
        }
        _ => (),
    }
}

fn described(value: &Json, shape: &[usize]) -> String {
    match value.len() {
        Some(_) => format!("a list of the shape {shape:?}"),
        None => value.words().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlflow;
    use crate::tensor::Tensor;
    use StoredElement::{F32, U8};

    fn rows(form: &SampleForm, body: &str) -> Result<SampleValues, String> {
        let asked = mlflow::read("application/json", body.as_bytes()).unwrap();
        let read = form.read(asked.content, 100);
        read.map_err(|refusal| refusal.message)
    }

    #[test]
    fn pixels_come_flat_or_in_lines_and_vectors_as_they_are() {
        let pixels = SampleForm::new(U8, [1, 2, 2], None);
        for body in [
            r#"{"inputs": [[0, 1, 2, 255]]}"#,
            r#"{"instances": [[[0, 1], [2, 255]]]}"#,
            r#"{"inputs": [[[[0], [1]], [[2], [255]]]]}"#,
            r#"{"inputs": {"pixels": [[0, 1, 2, 255]]}}"#,
            r#"{"dataframe_split": {"columns": [0, 1, 2, 3], "data": [[0, 1, 2, 255]]}}"#,
            r#"{"dataframe_split": {"columns": ["pixels"], "data": [[[0, 1, 2, 255]]]}}"#,
        ] {
            let read = rows(&pixels, body);
            assert_eq!(read, Ok(SampleValues::Bytes(vec![0, 1, 2, 255])), "{body}");
        }
        let vectors = SampleForm::new(F32, [2, 1, 1], None);
        let read = rows(&vectors, r#"{"inputs": [[0.1, -2], [3, 4]]}"#);
        assert_eq!(read, Ok(SampleValues::Numbers(vec![0.1, -2.0, 3.0, 4.0])));
        let (shape, values) = (vec![1, 2], vec![5.0, 6.0]);
        let read = vectors.read(Content::Tensor(Tensor { shape, values }), 0);
        assert_eq!(read, Ok(SampleValues::Numbers(vec![5.0, 6.0])));
    }

    #[test]
    fn rows_of_another_shape_or_range_are_named() {
        let pixels = SampleForm::new(U8, [1, 2, 2], None);
        let right = "a row is whole numbers from 0 to 255 of the shape [4] or [2, 2] or [2, 2, 1]";
        for (body, found) in [
            (
                r#"{"inputs": [[0, 0, 0, 0], [1, 2]]}"#,
                "row 1 is a list of the shape [2]",
            ),
            (r#"{"inputs": [3]}"#, "row 0 is a number"),
            (r#"{"inputs": [[0, 1, 2, 256]]}"#, "row 0 holds 256 where"),
            (r#"{"inputs": [[0, 1, 2, 0.5]]}"#, "row 0 holds 0.5 where"),
            (r#"{"inputs": [[0, 1, 2, null]]}"#, "row 0 holds null where"),
            (r#"{"inputs": [[[0, 1], [2]]]}"#, "row 0 holds a list where"),
        ] {
            let said = rows(&pixels, body).unwrap_err();
            assert!(said.contains(found) && said.contains(right), "{said}");
        }
        let said = rows(&pixels, r#"{"instances": [{"b64": "aGVsbG8="}]}"#).unwrap_err();
        assert!(said.contains("not trained on files of pictures"), "{said}");
        let vectors = SampleForm::new(F32, [2, 1, 1], None);
        let said = rows(&vectors, r#"{"inputs": {"a": [1], "b": [2]}}"#).unwrap_err();
        assert!(said.contains("takes one input, not columns"), "{said}");
        assert!(rows(&vectors, r#"{"inputs": [[1e39, 0]]}"#).is_err());
    }
}
