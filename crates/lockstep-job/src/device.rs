//! `device`: what a network is computed on, or what trees are grown on.

use crate::field::Field;
use crate::keys::{FromField, as_text};
use std::fmt;

/// What a job is computed on. Networks have the same bits on every device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobDevice {
    /// A GPU where there is one that can be used, else the processor.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// A GPU: that of this number, or for each worker of a machine the next one.
    Cuda(Option<u32>),
}

/// What can be written.
const EXAMPLE: &str =
    "write \"auto\", \"cpu\", \"cuda\", or \"cuda:1\" for the second GPU of the machine";

impl JobDevice {
    /// The device that a text names.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(None)),
            other => {
                let number = other.strip_prefix("cuda:").map(str::parse);
                match number {
                    Some(Ok(number)) => Ok(Self::Cuda(Some(number))),
                    _ => Err(EXAMPLE),
                }
            }
        }
    }
}

impl FromField for JobDevice {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        let text = field.text()?;
        match Self::parse(text) {
            Ok(device) => Some(device),
            Err(right) => field.reject(format!("cannot be {text:?}"), right),
        }
    }
}

impl fmt::Display for JobDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(number)) => write!(f, "cuda:{number}"),
        }
    }
}

as_text!(JobDevice, Self::parse, {
    "type": "string",
    "pattern": "^(auto|cpu|cuda(:[0-9]+)?)$",
    "examples": ["auto", "cpu", "cuda", "cuda:1"],
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_written_as_it_is_read_and_anything_else_is_refused() {
        for text in ["auto", "cpu", "cuda", "cuda:0", "cuda:7"] {
            assert_eq!(JobDevice::parse(text).unwrap().to_string(), text);
        }
        for text in ["gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA", ""] {
            assert_eq!(JobDevice::parse(text), Err(EXAMPLE), "{text}");
        }
    }
}
