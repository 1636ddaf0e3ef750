//! How good a classifier is: precision, recall, F1, confusion, and pictures of it.
