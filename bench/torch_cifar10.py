"""Trains as a sluice configuration says, with torchvision instead of sluice: torch_cifar10.py RESOLVED.toml

The configuration is what `sluice config` prints. Prints one JSON object per epoch: {"epoch", "val/acc1", "seconds"}.
"""
import json
import math
import sys
import time
import tomllib

import torch
import torchvision
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def loaders(config):
    data, augment, batch = config["data"], config["augment"], config["train"]["batch"]
    to_input = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    crop = v2.RandomResizedCrop(data["image_size"], tuple(augment["scale"]), tuple(augment["ratio"]))
    train = v2.Compose([crop, v2.RandomHorizontalFlip(augment["flip"]), *to_input])
    val = v2.Compose([v2.Resize(data["val_resize"]), v2.CenterCrop(data["image_size"]), *to_input])
    load = lambda root, transform, **options: torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(root, transform), batch, num_workers=1, **options)
    return load(data["train"], train, shuffle=True, drop_last=True), load(data["val"], val)


def rate(config, step, steps_per_epoch):
    """The learning rate at a step, with schedule.interval = "step" and a cosine."""
    optim, schedule = config["optim"], config["schedule"]
    assert schedule["interval"] == "step" and schedule["kind"] == "cosine"
    peak = optim["lr"] * config["train"]["batch"] / optim["base_batch"]
    warmup, total = schedule["warmup_epochs"] * steps_per_epoch, config["train"]["epochs"] * steps_per_epoch
    if step < warmup:
        start = schedule["warmup_start"]
        return peak * (start + (1 - start) * step / (warmup - 1))
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - 1 - warmup)))


def accuracy(net, loader):
    net.eval()
    with torch.inference_mode():
        hits = [(net(images.contiguous(memory_format=torch.channels_last)).argmax(1) == labels).sum().item() for images, labels in loader]
    return 100 * sum(hits) / len(loader.dataset)


def main():
    with open(sys.argv[1], "rb") as file:
        config = tomllib.load(file)
    torch.manual_seed(config["train"]["seed"])
    torch.set_num_threads(config["train"]["threads"])
    train, val = loaders(config)
    net = torchvision.models.get_model(config["model"]["arch"], num_classes=len(train.dataset.classes)).to(memory_format=torch.channels_last)
    optim = config["optim"]
    optimiser = torch.optim.SGD(net.parameters(), 1.0, optim["momentum"], weight_decay=optim["weight_decay"], nesterov=optim["nesterov"])
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=config["train"]["label_smoothing"])
    begin, step = time.monotonic(), 0
    for epoch in range(config["train"]["epochs"]):
        net.train()
        for images, labels in train:
            optimiser.param_groups[0]["lr"] = rate(config, step, len(train))
            optimiser.zero_grad()
            criterion(net(images.contiguous(memory_format=torch.channels_last)), labels).backward()
            optimiser.step()
            step += 1
        print(json.dumps({"epoch": epoch, "val/acc1": accuracy(net, val), "seconds": round(time.monotonic() - begin, 1)}), flush=True)


if __name__ == "__main__":
    main()
