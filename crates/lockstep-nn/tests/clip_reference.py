"""Writes CLIP image encoders with random weights, and what `transformers` makes of some pictures.

    python clip_reference.py small FOLDER    # the fixtures in tests/clip
    python clip_reference.py real FOLDER     # ViT-B/32's configuration, 350 MB

Needs torch, transformers and safetensors. Each model is a folder with config.json and model.safetensors, as
Hugging Face lays it out, and expected.safetensors with `pixels` (channels innermost) and `embeddings`.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

SMALL = {
    # Widths that no vector divides, and patches that leave a rest of the picture over.
    "quick": (torch.float32, dict(hidden_size=48, intermediate_size=100, projection_dim=20, num_hidden_layers=2,
                                  num_attention_heads=3, image_size=40, patch_size=8)),
    "half": (torch.float16, dict(hidden_size=36, intermediate_size=52, projection_dim=17, num_hidden_layers=3,
                                 num_attention_heads=2, image_size=30, patch_size=7, hidden_act="gelu",
                                 layer_norm_eps=1e-6)),
}
REAL = {"vit-b-32": (torch.float32, {})}


def randomise(model):
    """Weights like those of a trained network: nothing is left at zero or one."""
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape)
        if parameter.dim() > 1 and "embedding.weight" not in name.replace("patch_", ""):
            parameter.data = noise / parameter[0].numel() ** 0.5
        elif "norm" in name and name.endswith("weight"):
            parameter.data = 1 + 0.2 * noise
        else:
            parameter.data = 0.2 * noise


def write(folder, element, options, rows):
    folder.mkdir(parents=True, exist_ok=True)
    config = CLIPVisionConfig(**options)
    model = CLIPVisionModelWithProjection(config).eval()
    randomise(model)
    # What the file keeps is what both compute with.
    weights = {name: tensor.to(element).contiguous() for name, tensor in model.state_dict().items()}
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    pixels = torch.randn(rows, 3, config.image_size, config.image_size)
    with torch.no_grad():
        embeddings = model(pixel_values=pixels).image_embeds
    names = {name if name.startswith("visual_projection") or name.startswith("vision_model.")
             else f"vision_model.{name}": tensor for name, tensor in weights.items()}
    save_file(names, folder / "model.safetensors", metadata={"format": "pt"})
    save_file({"pixels": pixels.permute(0, 2, 3, 1).contiguous(), "embeddings": embeddings},
              folder / "expected.safetensors")
    config.save_pretrained(folder)
    print(f"{folder}: {embeddings.shape[0]} embeddings of {embeddings.shape[1]}, "
          f"norm {embeddings.norm(dim=1).mean():.3f}")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("small", "real"):
        sys.exit(__doc__)
    torch.manual_seed(5)
    torch.set_num_threads(1)
    models, rows = (SMALL, 3) if sys.argv[1] == "small" else (REAL, 5)
    for name, (element, options) in models.items():
        write(pathlib.Path(sys.argv[2]) / name, element, options, rows)


if __name__ == "__main__":
    main()
