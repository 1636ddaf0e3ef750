//! Tables on a server are read by ranges of bytes: few requests, and no more bytes than needed.

use crate::tables::{all, columns};
use lockstep_place::{Access, Place};
use lockstep_table::{
    CsvFormat, EmbeddingPart, TableError, TableFormat, TableReader, footer, write_part,
};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A web server of one file.
struct Server {
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    file: Vec<u8>,
    version: u32,
    /// Replaces the file after so many more requests for its bytes.
    change_after: Option<u32>,
    requests: u32,
    bytes: usize,
}

impl Server {
    fn start(file: Vec<u8>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State {
            file,
            version: 1,
            change_after: None,
            requests: 0,
            bytes: 0,
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(connection.unwrap(), &state));
            }
        });
        Server { address, state }
    }

    fn place(&self, name: &str) -> Place {
        let url = format!("http://{}/{name}", self.address);
        Place::parse(&url, &Access::default()).unwrap()
    }

    /// Requests for bytes and bytes served since the last time.
    fn taken(&self) -> (u32, usize) {
        let mut state = self.state.lock().unwrap();
        (
            std::mem::take(&mut state.requests),
            std::mem::take(&mut state.bytes),
        )
    }
}

fn serve(connection: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut writer = connection;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_lowercase());
        }
        let mut state = state.lock().unwrap();
        let range = lines
            .iter()
            .find_map(|line| line.strip_prefix("range: bytes="));
        let size = state.file.len();
        let (first, end) = range.map_or((0, size), |range| {
            let (first, last) = range.split_once('-').unwrap();
            (first.parse().unwrap(), last.parse::<usize>().unwrap() + 1)
        });
        let end = end.min(size);
        let head = lines[0].starts_with("head");
        let mut answer = match range {
            Some(_) => format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{}/{size}\r\n",
                end - 1
            ),
            None => "HTTP/1.1 200 OK\r\n".to_owned(),
        };
        answer += &format!(
            "Content-Length: {}\r\nETag: \"{}\"\r\nLast-Modified: Sun, 15 Nov 2026 09:00:00 GMT\r\n\r\n",
            end - first,
            state.version
        );
        writer.write_all(answer.as_bytes()).unwrap();
        if !head {
            writer.write_all(&state.file[first..end]).unwrap();
            state.requests += 1;
            state.bytes += end - first;
            if let Some(left) = &mut state.change_after {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    state.version += 1;
                }
            }
        }
    }
}

/// A part of about 8 MiB, and its numbers.
fn part() -> (Vec<u8>, Vec<f32>) {
    let (rows, width) = (4096, 512);
    let paths: Vec<_> = (0..rows).map(|row| format!("{row}.jpg")).collect();
    let labels: Vec<_> = (0..rows).map(|row| Some((row % 9).to_string())).collect();
    let embeddings: Vec<f32> = (0..(rows * width) as u32)
        .map(|i| i.wrapping_mul(2_654_435_761) as f32 / u32::MAX as f32)
        .collect();
    let part = EmbeddingPart {
        paths: &paths,
        labels: &labels,
        width,
        embeddings: &embeddings,
    };
    (write_part(&part, &[("key", "value")]).unwrap(), embeddings)
}

#[test]
fn a_footer_takes_one_request() {
    let server = Server::start(part().0);
    let footer = footer(&server.place("part.parquet")).unwrap();
    assert_eq!(
        (footer.rows, footer.metadata["key"].as_str()),
        (4096, "value")
    );
    let (requests, bytes) = server.taken();
    assert_eq!(requests, 1);
    assert!(bytes <= 64 << 10, "{bytes} bytes");
}

#[test]
fn a_column_is_read_in_large_pieces_and_the_others_are_not() {
    let (file, embeddings) = part();
    let size = file.len();
    let server = Server::start(file);
    let place = server.place("part.parquet");
    let read = |features: &[&str], label, memory| {
        let columns = columns(features, label, None);
        let batch = all(TableReader::open(&place, TableFormat::Parquet, &columns, memory).unwrap())
            .unwrap();
        (batch, server.taken())
    };
    let (batch, (requests, bytes)) = read(&["embedding"], Some("label"), 64 << 20);
    assert_eq!(batch.features, embeddings);
    assert_eq!(batch.labels.unwrap()[4095], "0");
    assert!(requests <= 8, "{requests} requests");
    assert!(bytes <= size + (8 << 20), "{bytes} of {size} bytes");
    // With little memory there are more and smaller ones, and the same numbers.
    let (batch, (more, _)) = read(&["embedding"], None, 1 << 20);
    assert_eq!(batch.features, embeddings);
    assert!(more > requests, "{more} requests");
}

#[test]
fn a_csv_file_is_read_once_from_its_beginning_to_its_end() {
    let mut text = String::from("x,label\n");
    for row in 0..50_000 {
        text += &format!("{row},{}\n", row % 5);
    }
    let server = Server::start(text.into_bytes());
    let columns = columns(&["x"], Some("label"), None);
    let reader = TableReader::open(
        &server.place("a.csv"),
        TableFormat::Csv(CsvFormat::default()),
        &columns,
        1 << 20,
    );
    let batch = all(reader.unwrap()).unwrap();
    assert_eq!((batch.rows, batch.features[49_999]), (50_000, 49_999.0));
    let (requests, bytes) = server.taken();
    let size = server.state.lock().unwrap().file.len();
    assert!(
        requests <= 4 && bytes <= size + (64 << 10),
        "{requests} requests, {bytes} of {size} bytes"
    );
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_is_not_used() {
    let server = Server::start(part().0);
    server.state.lock().unwrap().change_after = Some(3);
    let columns = columns(&["embedding"], None, None);
    let reader = TableReader::open(
        &server.place("part.parquet"),
        TableFormat::Parquet,
        &columns,
        1 << 20,
    );
    let error = all(reader.unwrap()).unwrap_err();
    assert!(matches!(error, TableError::Changed { .. }), "{error}");
}
