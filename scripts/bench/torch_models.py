"""The networks of models/ in PyTorch: CIFAR ResNets with shortcut A (He et al. 2015), VGG with
batch norm, and torchvision's ImageNet networks. Parameter names are those of our checkpoints."""

import torch
from torch import nn
from torch.nn import functional as F

CIFAR10_MEAN, CIFAR10_DEVIATION = (0.491, 0.482, 0.447), (0.247, 0.243, 0.262)  # data/cifar

VGG_PLANS = {
    "vgg11": "64 M 128 M 256 256 M 512 512 M 512 512 M",
    "vgg13": "64 64 M 128 128 M 256 256 M 512 512 M 512 512 M",
    "vgg16": "64 64 M 128 128 M 256 256 256 M 512 512 512 M 512 512 512 M",
    "vgg19": "64 64 M 128 128 M 256 256 256 256 M 512 512 512 512 M 512 512 512 512 M",
}
IMAGENET_MODELS = {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "alexnet"}


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.pad = stride, (outputs - inputs) // 2

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.stride > 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(y + x)


class ResNet(nn.Module):
    """depth 6n + 2: three stages of n blocks with 16, 32 and 64 channels."""

    def __init__(self, depth):
        super().__init__()
        n = (depth - 2) // 6
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self.stage(16, 16, n, 1)
        self.layer2 = self.stage(16, 32, n, 2)
        self.layer3 = self.stage(32, 64, n, 2)
        self.linear = nn.Linear(64, 10)

    @staticmethod
    def stage(inputs, outputs, blocks, stride):
        first = BasicBlock(inputs, outputs, stride)
        return nn.Sequential(first, *[BasicBlock(outputs, outputs, 1) for _ in range(blocks - 1)])

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


class Vgg(nn.Module):
    """VGG with batch norm for 32 x 32 images: five pools, then one linear layer."""

    def __init__(self, plan):
        super().__init__()
        layers, channels = [], 3
        for item in plan.split():
            if item == "M":
                layers.append(nn.MaxPool2d(2))
                continue
            layers += [nn.Conv2d(channels, int(item), 3, 1, 1), nn.BatchNorm2d(int(item)),
                       nn.ReLU(inplace=True)]
            channels = int(item)
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(channels, 10)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def build(name, classes=10):
    """resnet20, 32, 44, 56, 110; vgg11, 13, 16, 19; torchvision's: resnet18, 34, 50, 101, 152,
    alexnet, vgg*_imagenet, vgg*_bn_imagenet."""
    if name in IMAGENET_MODELS or name.endswith("_imagenet"):
        import torchvision  # only these networks need it
        return torchvision.models.get_model(name.removesuffix("_imagenet"), weights=None,
                                            num_classes=classes)
    if name.startswith("resnet"):
        return ResNet(int(name[len("resnet"):]))
    return Vgg(VGG_PLANS[name])
