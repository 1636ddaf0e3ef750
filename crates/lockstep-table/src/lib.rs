//! Tables of samples: Parquet in and out, CSV in.
