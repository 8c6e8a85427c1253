"""Weights, images and labels from a formula on integers, the same here and in tests/model/parity_test.cpp.

All values are exact in fp32. The shifts of the norms keep activations clear of zero, two channels in four above it and two below:
a value that rounding pushes over the edge of a ReLU changes gradients by far more than rounding itself. Neighbouring channels have
opposite weights, so that the shifts nearly cancel in the next layer: a norm that takes away a large mean magnifies rounding. For the
same reason the images are made of large squares that differ between images.
"""
import math

import numpy as np
import torch
import torchvision

CLASSES, BATCH, SIZE, CELL = 1000, 8, 64, 16
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
STEPS, RATE, MOMENTUM, DECAY, SMOOTHING = 3, 0.002, 0.9, 2e-5, 0.1
SHIFT = 3
SALT = 40  # gives images that keep every activation clear of zero; golden.py checks it
LAST_NORM = {"resnet18": ".bn2.", "resnet34": ".bn2.", "resnet50": ".bn3.", "resnet101": ".bn3."}


def seed_of(name):
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 % 2**32
    return seed


def bits(name, count):
    x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(seed_of(name))
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def uniform(name, count):
    """Odd multiples of 2^-16 between -1 and 1."""
    return ((bits(name, count) >> np.uint32(16)).astype(np.int32) * 2 - 65535).astype(np.float32) / np.float32(65536)


def tensor(arch, name, shape):
    """The weight or running statistic of this name in torchvision's state_dict."""
    count = math.prod(shape)
    u = uniform(name, count)
    size = 0.25 if LAST_NORM[arch] in name else 1  # of what a block adds to its shortcut
    if name.endswith("running_mean"):
        u = u / 8
    elif name.endswith("running_var"):
        u = 1 + u / 4
    elif len(shape) > 1:
        if shape[1] > 3:
            u = u.reshape(shape[0], shape[1] // 2, 2, -1)
            u[:, :, 1] = -u[:, :, 0]
        u = u / 2 ** (math.prod(shape[1:]).bit_length() // 2)
    elif name == "fc.bias":
        u = u / 16
    elif name.endswith("weight"):
        u = size * (1 + u / 4)
    else:
        u = size * (np.where(np.arange(count) % 4 > 1, -SHIFT, SHIFT) + u / 8)
    return torch.from_numpy(u.astype(np.float32).reshape(shape))


def network(arch):
    """torchvision's network with these weights, in the memory format that sluice computes in."""
    made = torchvision.models.get_model(arch, num_classes=CLASSES)
    state = made.state_dict()
    for name, value in state.items():
        if value.dim() > 0:
            state[name] = tensor(arch, name, value.shape)
    made.load_state_dict(state)
    return made.to(memory_format=torch.channels_last)


def batch(number):
    """Images as the network gets them, and labels."""
    cells = SIZE // CELL
    squares = (bits(f"squares{SALT + number}", BATCH * cells * cells * 3) >> np.uint32(24)).reshape(BATCH, cells, cells, 3)
    squares = squares.repeat(CELL, 1).repeat(CELL, 2)
    noise = (bits(f"noise{SALT + number}", BATCH * SIZE * SIZE * 3) >> np.uint32(24)).reshape(BATCH, SIZE, SIZE, 3)
    pixels = torch.from_numpy(((squares * 7 + noise) // 8).astype(np.float32))
    # (b / 255 - mean) / std as one multiplication and one addition, which is how sluice rounds it.
    scale, shift = 1 / (255 * np.float32(STD).astype(np.float64)), -np.float32(MEAN).astype(np.float64) / np.float32(STD)
    images = pixels * torch.from_numpy(scale.astype(np.float32)) + torch.from_numpy(shift.astype(np.float32))
    labels = torch.from_numpy((bits("labels", BATCH) % np.uint32(CLASSES)).astype(np.int64))
    return images.permute(0, 3, 1, 2), labels


def train(arch, nesterov, after_step):
    """Trains STEPS steps; calls after_step(step, network, logits, loss, optimiser) after each."""
    net = network(arch).train()
    optimiser = torch.optim.SGD(net.parameters(), RATE, MOMENTUM, weight_decay=DECAY, nesterov=nesterov)
    for step in range(STEPS):
        images, labels = batch(step)
        optimiser.zero_grad()
        logits = net(images)
        loss = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=SMOOTHING)
        loss.backward()
        optimiser.step()
        after_step(step, net, logits, loss, optimiser)
