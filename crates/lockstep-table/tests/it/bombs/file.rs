//! Parquet files written byte by byte, so that they can say what no writer would.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    #[default]
    Float,
    FloatList,
    Text,
}

/// How the values of a page are stored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Encoding {
    #[default]
    Dictionary = 8,
    DeltaTexts = 7,
}

/// How pages are packed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Codec {
    #[default]
    None = 0,
    Snappy = 1,
    Gzip = 2,
    Zstd = 6,
}

/// A column of the one row group: perhaps a dictionary, and a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chunk {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) dictionary: Option<Vec<u8>>,
    /// Values of the page, with those that lists are made of.
    pub(crate) values: u64,
    pub(crate) encoding: Encoding,
    pub(crate) page: Vec<u8>,
    pub(crate) codec: Codec,
    /// Bytes that the page says it unpacks to, if not as many as it has.
    pub(crate) unpacked: Option<u64>,
}

/// A run of `count` times a number, which is given by its bytes.
pub(crate) fn run(count: u64, number: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(&mut bytes, count << 1);
    bytes.extend(number);
    bytes
}

/// Levels that are stored as runs, after their length.
pub(crate) fn level_runs(runs: &[u8]) -> Vec<u8> {
    [&(runs.len() as u32).to_le_bytes(), runs].concat()
}

/// `count` numbers as their differences: `first`, and then all the same, `second`.
pub(crate) fn differences(count: u64, first: u64, second: u64) -> Vec<u8> {
    let mut bytes = vec![128, 1, 4];
    varint(&mut bytes, count);
    varint(&mut bytes, 2 * first);
    let mut left = count - 1;
    let mut step = second - first;
    while left > 0 {
        // The least difference is 0; of the first block, the first number alone has another one.
        bytes.push(0);
        if step > 0 {
            bytes.extend([64, 0, 0, 0]);
            bytes.extend(std::mem::take(&mut step).to_le_bytes());
            bytes.resize(bytes.len() + 31 * 8, 0);
        } else {
            bytes.extend([0; 4]);
        }
        left = left.saturating_sub(128);
    }
    bytes
}

pub(crate) fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A file of `rows` rows.
pub(crate) fn parquet(rows: u64, chunks: &[Chunk]) -> Vec<u8> {
    let mut file = b"PAR1".to_vec();
    let mut described = Vec::new();
    for chunk in chunks {
        let begin = file.len() as u64;
        let codec = chunk.codec as u64;
        if let Some(dictionary) = &chunk.dictionary {
            let count = match chunk.kind {
                Kind::Text => 1,
                _ => dictionary.len() as u64 / 4,
            };
            let about = Struct::default().number(1, count).number(2, 0);
            let size = dictionary.len() as u64;
            let header = Struct::default().number(1, 2).number(2, size);
            file.extend(header.number(3, size).part(7, about).end());
            file.extend(dictionary);
        }
        let data = file.len() as u64;
        let about = Struct::default().number(1, chunk.values);
        let about = about.number(2, chunk.encoding as u64);
        let about = about.number(3, 3).number(4, 3);
        let packed = chunk.page.len() as u64;
        let header = Struct::default().number(1, 0);
        let header = header.number(2, chunk.unpacked.unwrap_or(packed));
        file.extend(header.number(3, packed).part(5, about).end());
        file.extend(&chunk.page);
        let size = file.len() as u64 - begin;
        let (physical, path) = match chunk.kind {
            Kind::Float => (4, vec![chunk.name]),
            Kind::FloatList => (4, vec![chunk.name, "list", "element"]),
            Kind::Text => (6, vec![chunk.name]),
        };
        let texts = path.iter().map(|name| text(name)).collect();
        let mut about = Struct::default().number(1, physical);
        about = about.list(2, 5, vec![vec![2 * chunk.encoding as u8]]);
        about = about
            .list(3, 8, texts)
            .number(4, codec)
            .long(5, chunk.values);
        about = about.long(6, size).long(7, size).long(9, data);
        if chunk.dictionary.is_some() {
            about = about.long(11, begin);
        }
        described.push(Struct::default().long(2, begin).part(3, about).end());
    }
    let mut schema = vec![element("schema", None, Some(chunks.len() as u64), None)];
    for chunk in chunks {
        match chunk.kind {
            Kind::Float => schema.push(element(chunk.name, Some((4, 0)), None, None)),
            Kind::Text => schema.push(element(chunk.name, Some((6, 0)), None, Some(0))),
            Kind::FloatList => {
                schema.push(group(chunk.name, 0, Some(3)));
                schema.push(group("list", 2, None));
                schema.push(element("element", Some((4, 0)), None, None));
            }
        }
    }
    let size = file.len() as u64;
    let groups = Struct::default().list(1, 12, described);
    let groups = groups.long(2, size).long(3, rows).end();
    let footer = Struct::default().number(1, 1).list(2, 12, schema);
    let footer = footer.long(3, rows).list(4, 12, vec![groups]).end();
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    file
}

fn element(
    name: &str,
    leaf: Option<(u64, u64)>,
    children: Option<u64>,
    converted: Option<u64>,
) -> Vec<u8> {
    let mut about = Struct::default();
    if let Some((physical, repetition)) = leaf {
        about = about.number(1, physical).number(3, repetition);
    }
    about = about.bytes(4, &text(name));
    if let Some(children) = children {
        about = about.number(5, children);
    }
    if let Some(converted) = converted {
        about = about.number(6, converted);
    }
    about.end()
}

fn group(name: &str, repetition: u64, converted: Option<u64>) -> Vec<u8> {
    let about = Struct::default().number(3, repetition);
    let about = about.bytes(4, &text(name)).number(5, 1);
    match converted {
        Some(converted) => about.number(6, converted).end(),
        None => about.end(),
    }
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(&mut bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
    bytes
}

/// A structure of Thrift's compact protocol.
#[derive(Default)]
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn field(mut self, id: u8, kind: u8, content: &[u8]) -> Struct {
        self.bytes.push((id - self.last) << 4 | kind);
        self.bytes.extend(content);
        self.last = id;
        self
    }

    fn number(self, id: u8, number: u64) -> Struct {
        let mut content = Vec::new();
        varint(&mut content, number << 1);
        self.field(id, 5, &content)
    }

    fn long(self, id: u8, number: u64) -> Struct {
        let mut content = Vec::new();
        varint(&mut content, number << 1);
        self.field(id, 6, &content)
    }

    fn bytes(self, id: u8, content: &[u8]) -> Struct {
        self.field(id, 8, content)
    }

    fn part(self, id: u8, part: Struct) -> Struct {
        self.field(id, 12, &part.end())
    }

    fn list(self, id: u8, kind: u8, items: Vec<Vec<u8>>) -> Struct {
        let mut content = vec![(items.len() as u8) << 4 | kind];
        content.extend(items.concat());
        self.field(id, 9, &content)
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}
