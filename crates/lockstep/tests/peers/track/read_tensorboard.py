"""Reads a folder of event files by TensorBoard's own reader: read_tensorboard.py FOLDER."""

import json
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

sizes = {"scalars": 0, "images": 0, "histograms": 0, "tensors": 0}
board = EventAccumulator(sys.argv[1], size_guidance=sizes)
board.Reload()
tags = board.Tags()
hparams = {}
for tag, content in board.PluginTagToContent("hparams").items():
    data = plugin_data_pb2.HParamsPluginData.FromString(content)
    if data.HasField("experiment"):
        hparams["metrics"] = [metric.name.tag for metric in data.experiment.metric_infos]
        hparams["infos"] = {info.name: info.type for info in data.experiment.hparam_infos}
    if data.HasField("session_start_info"):
        values = data.session_start_info.hparams
        hparams["values"] = {
            name: getattr(value, value.WhichOneof("kind")) for name, value in values.items()
        }
    if data.HasField("session_end_info"):
        hparams["status"] = data.session_end_info.status
print(
    json.dumps(
        {
            "scalars": {
                tag: [[event.step, event.value] for event in board.Scalars(tag)]
                for tag in tags["scalars"]
            },
            "images": {
                tag: [
                    [event.step, event.width, event.height]
                    + list(struct.unpack(">II", event.encoded_image_string[16:24]))
                    for event in board.Images(tag)
                ]
                for tag in tags["images"]
            },
            "histograms": {
                tag: [[event.step, event.histogram_value.num] for event in board.Histograms(tag)]
                for tag in tags["histograms"]
            },
            "hparams": hparams,
        }
    )
)
