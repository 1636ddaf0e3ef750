//! Pictures become vectors: the parts, the encoder, and what each finished part promises.
