//! The shape of one row of an activation.

use std::fmt;

/// An image of so many pixels and channels, channels innermost; a vector is an image of one pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims {
    /// Pixels from top to bottom.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
    /// Numbers a pixel.
    pub channels: usize,
}

impl Dims {
    /// A vector of so many numbers.
    pub fn vector(channels: usize) -> Self {
        Self {
            height: 1,
            width: 1,
            channels,
        }
    }

    /// An image of so many pixels and channels.
    pub fn image(height: usize, width: usize, channels: usize) -> Self {
        Self {
            height,
            width,
            channels,
        }
    }

    /// Numbers in a row.
    pub fn len(self) -> usize {
        self.pixels() * self.channels
    }

    /// Whether a row has no numbers.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Pixels in a row.
    pub fn pixels(self) -> usize {
        self.height * self.width
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pixels() {
            1 => write!(f, "{}", self.channels),
            _ => write!(f, "{} x {} x {}", self.height, self.width, self.channels),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_vectors_read_as_what_they_are() {
        let image = Dims {
            height: 32,
            width: 16,
            channels: 3,
        };
        assert_eq!(image.to_string(), "32 x 16 x 3");
        assert_eq!(Dims::vector(512).to_string(), "512");
    }
}
