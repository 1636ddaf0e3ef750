//! Pictures in, pixels out: decoders behind one door, and the transforms that models expect.
