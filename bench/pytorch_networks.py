"""The networks of the benchmark in PyTorch, layer by layer what Lockstep's job files say."""

from torch import nn


def mlp():
    return nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.25),
        nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.25),
        nn.Linear(512, 10),
    )  # fmt: skip


def cnn():
    """Three blocks of two convolutions for images of 32x32."""
    layers, channels = [], 3
    for width, dropout in ((32, 0.2), (64, 0.3), (128, 0.4)):
        for _ in range(2):
            convolution = nn.Conv2d(channels, width, 3, padding=1)
            layers += [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            channels = width
        layers += [nn.MaxPool2d(2), nn.Dropout(dropout)]
    layers += [nn.Flatten(), nn.Linear(128 * 4 * 4, 128), nn.ReLU(inplace=True), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(128, 10))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet18(nn.Module):
    """torchvision's, with its names; a small stem is for images of 32x32 or so."""

    def __init__(self, classes=10, small_stem=False, channels=3):
        super().__init__()
        kernel, stride = (3, 1) if small_stem else (7, 2)
        self.conv1 = nn.Conv2d(channels, 64, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_stem else nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for number, (outputs, stride) in enumerate(((64, 1), (128, 2), (256, 2), (512, 2)), 1):
            blocks = [BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1)]
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
            inputs = outputs
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


NETWORKS = {"mlp": mlp, "cnn": cnn, "resnet18": ResNet18}
