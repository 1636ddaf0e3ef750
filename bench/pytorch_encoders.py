"""The encoders in PyTorch, as fast as it has them: attention in one call, batch normalisation folded into convolutions."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, hidden, heads, inner):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attend, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x):
        rows, tokens, hidden = x.shape
        parts = self.attend(self.norm1(x)).view(rows, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, tokens, hidden))
        wide = self.up(self.norm2(x))
        return x + self.down(wide * torch.sigmoid(1.702 * wide))


class Clip(nn.Module):
    """The image encoder of CLIP ViT-B/32."""

    def __init__(self, hidden=768, heads=12, inner=3072, layers=12, side=224, patch=32, width=512):
        super().__init__()
        self.patches = nn.Conv2d(3, hidden, patch, patch, bias=False)
        self.token = nn.Parameter(torch.randn(1, 1, hidden))
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, hidden))
        self.before, self.after = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.blocks = nn.Sequential(*(Block(hidden, heads, inner) for _ in range(layers)))
        self.projection = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), patches], 1) + self.places
        return self.projection(self.after(self.blocks(self.before(x))[:, 0]))


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride, widening):
        super().__init__()
        inner, self.skip = inputs * widening, stride == 1 and inputs == outputs
        expand = [nn.Conv2d(inputs, inner, 1), nn.ReLU6(inplace=True)] if widening > 1 else []
        depthwise = nn.Conv2d(inner, inner, kernel, stride, kernel // 2, groups=inner)
        self.layers = nn.Sequential(*expand, depthwise, nn.ReLU6(inplace=True), nn.Conv2d(inner, outputs, 1))

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.skip else y


def lite0():
    """EfficientNet-Lite0 without its classifier."""
    stages = [
        (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80),
        (3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320),
    ]  # fmt: skip
    layers, channels = [nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU6(inplace=True)], 32
    for count, kernel, stride, widening, outputs in stages:
        for i in range(count):
            layers.append(Bottleneck(channels, outputs, kernel, stride if i == 0 else 1, widening))
            channels = outputs
    head = [nn.Conv2d(320, 1280, 1), nn.ReLU6(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *head)


ENCODERS = {"clip": Clip, "lite0": lite0}
