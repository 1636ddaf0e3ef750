"""Writes the tensors of a safetensors file as `torch.save` writes a state_dict, without needing torch.

Usage: save_like_torch.py FROM.safetensors TO.pt, or TO.pth for the format before PyTorch 1.6.
"""

import collections
import io
import json
import pickle
import struct
import sys
import types
import zipfile

source, target = sys.argv[1:]
data = open(source, "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8 : 8 + length])
header.pop("__metadata__", None)
numbers = data[8 + length :]

# The objects that a pickle of PyTorch's names.
for name in ["torch", "torch._utils"]:
    sys.modules[name] = types.ModuleType(name)


def _rebuild_tensor_v2(*_):
    pass


_rebuild_tensor_v2.__module__ = "torch._utils"
sys.modules["torch._utils"]._rebuild_tensor_v2 = _rebuild_tensor_v2
storages = {}
for name, element in [("FloatStorage", "F32"), ("LongStorage", "I64")]:
    storages[element] = type(name, (), {"__module__": "torch"})
    setattr(sys.modules["torch"], name, storages[element])


class Storage:
    def __init__(self, key, kind, content, count):
        self.key, self.kind, self.content, self.count = key, kind, content, count


class Tensor:
    def __init__(self, storage, shape):
        self.storage, self.shape = storage, shape

    def __reduce__(self):
        strides = []
        step = 1
        for side in reversed(self.shape):
            strides.insert(0, step)
            step *= side
        hooks = collections.OrderedDict()
        return _rebuild_tensor_v2, (self.storage, 0, tuple(self.shape), tuple(strides), False, hooks)


state = collections.OrderedDict()
stored = []
for i, (name, tensor) in enumerate(header.items()):
    begin, end = tensor["data_offsets"]
    count = 1
    for side in tensor["shape"]:
        count *= side
    storage = Storage(str(i), storages[tensor["dtype"]], numbers[begin:end], count)
    stored.append(storage)
    state[name] = Tensor(storage, tensor["shape"])

legacy = target.endswith(".pth")


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, Storage):
            whole = ("storage", value.kind, value.key, "cpu", value.count)
            return whole + (None,) if legacy else whole
        return None


def pickled(value):
    out = io.BytesIO()
    Pickler(out, protocol=2).dump(value)
    return out.getvalue()


if legacy:
    info = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    parts = [0x1950A86A20F9469CFC6C, 1001, info, state, [storage.key for storage in stored]]
    with open(target, "wb") as file:
        for part in parts:
            file.write(pickled(part))
        for storage in stored:
            file.write(struct.pack("<q", storage.count) + storage.content)
else:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        file.writestr("weights/data.pkl", pickled(state))
        file.writestr("weights/byteorder", "little")
        for storage in stored:
            file.writestr(f"weights/data/{storage.key}", storage.content)
        file.writestr("weights/version", "3\n")
