"""Saves a PyTorch file from before 1.6 as safetensors, without PyTorch: lite.py FROM.pth TO.safetensors"""

import collections
import json
import pickle
import struct
import sys

source, target = sys.argv[1:]
KINDS = {"FloatStorage": ("F32", 4), "LongStorage": ("I64", 8)}


class Unpickler(pickle.Unpickler):
    """Makes tensors into tuples, and calls nothing else."""

    def persistent_load(self, reference):
        return reference

    def find_class(self, module, name):
        known = {"OrderedDict": collections.OrderedDict, "_rebuild_tensor_v2": lambda *facts: facts}
        return known.get(name) or name


with open(source, "rb") as file:
    _magic, _version, _machine, state, keys = (Unpickler(file).load() for _ in range(5))
    kinds = {tensor[0][2]: KINDS[tensor[0][1]] for tensor in state.values()}
    storages = {}
    for key in keys:
        (count,) = struct.unpack("<q", file.read(8))
        storages[key] = file.read(count * kinds[key][1])

header, numbers = {}, b""
for name, ((_, kind, key, *_), offset, shape, *_) in state.items():
    dtype, size = KINDS[kind]
    count = 1
    for side in shape:
        count *= side
    part = storages[key][offset * size :][: count * size]
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(numbers), len(numbers) + len(part)]}
    numbers += part
header = json.dumps(header).encode()
header += b" " * (-len(header) % 8)
with open(target, "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + numbers)
