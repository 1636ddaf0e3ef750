//! Named tensors in files: safetensors, and PyTorch's own.
