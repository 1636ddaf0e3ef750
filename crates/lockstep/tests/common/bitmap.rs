//! Pictures that need no encoder, and a way to put them into a bucket.

use std::io::{Read, Write};
use std::net::TcpStream;

/// A bitmap of so many pixels, in stripes and a colour that its class and number decide.
pub(crate) fn bitmap(width: u32, height: u32, class: u32, number: u32) -> Vec<u8> {
    let row = (width * 3).next_multiple_of(4);
    let size = 54 + row * height;
    let mut bytes = b"BM".to_vec();
    for word in [size, 0, 54, 40, width, height] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    for word in [0, row * height, 2835, 2835, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for y in 0..height {
        let start = bytes.len();
        for x in 0..width {
            let stripe = if class == 0 { x } else { y } / (3 + number % 3) % 2;
            let light = (stripe * 150 + number * 7 % 100) as u8;
            bytes.extend([light, light / 2, 200 - light / 2]);
        }
        bytes.resize(start + row as usize, 0);
    }
    bytes
}

/// Puts an object into a server that takes anything from anyone.
pub(crate) fn put(address: &str, url: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = bytes.len();
    let head = format!(
        "PUT {url} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
