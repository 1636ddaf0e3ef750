"""Writes the small files that tests/it/formats.rs reads: `python make_files.py files`. Needs torch and safetensors."""

import collections
import pathlib
import sys

import torch
from safetensors.torch import save_file

folder = pathlib.Path(sys.argv[1])
matrix = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 4 - 1
tensors = collections.OrderedDict(
    matrix=matrix,
    turned=matrix.t(),
    column=matrix[:, 1],
    scalar=torch.tensor(2.5),
    empty=torch.zeros(0, 3),
    half=matrix.half(),
    brain=matrix.bfloat16(),
    double=matrix.double(),
    parameter=torch.nn.Parameter(matrix[1]),
    count=torch.tensor(7),
)
tensors._metadata = {"": {"version": 1}}
checkpoint = {"epoch": 3, "state_dict": tensors, "optimizer": {"state": {0: {"momentum": matrix + 1}}, "groups": [{"lr": 0.1}]}}

torch.save(tensors, folder / "plain.pt")
torch.save(tensors, folder / "legacy.pth", _use_new_zipfile_serialization=False)
torch.save(checkpoint, folder / "checkpoint.pt")
torch.save(checkpoint, folder / "checkpoint.pth", _use_new_zipfile_serialization=False)
torch.save(torch.nn.Linear(2, 2), folder / "module.pt")
save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, folder / "plain.safetensors")
