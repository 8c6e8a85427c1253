"""Weights to and from Python: weights.py SLUICE.

Out: one step of training, exported, must load into torchvision's network with the checkpoint's very bytes.
In: torchvision's networks with random weights, saved in the ways people save them, must come back through
`sluice train` (one step with a learning rate of nothing) and `sluice export`.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import torchvision

from one_step import CONFIG

TYPES = {"f32": torch.float32, "i64": torch.int64}

sluice = pathlib.Path(sys.argv[1]).resolve()
passed = failed = 0


def check(what, fault):
    global passed, failed
    passed, failed = passed + (not fault), failed + bool(fault)
    print("ok  " if not fault else "BAD ", what, fault or "")


def run(folder, *words):
    return subprocess.run([sluice, *words], cwd=folder, capture_output=True, text=True)


def train(folder, name, *sets):
    words = [word for key in (f"log.name={name}", *sets) for word in ("--set", key)]
    ended = run(folder, "train", "one.toml", *words)
    return folder / "runs" / name / "checkpoints" / "last.ckpt", ended


def stored(path, prefix="model."):
    """A checkpoint's tensors, read from its bytes."""
    raw = bytearray(path.read_bytes())
    assert raw[:8] == b"SLUICECK"
    size = struct.unpack("<Q", raw[16:24])[0]
    header = json.loads(raw[24:24 + size])
    tensors = {}
    for entry in header["tensors"]:
        if entry["name"].startswith(prefix):
            shape = entry["shape"]
            count = torch.Size(shape).numel()
            values = torch.frombuffer(raw, dtype=TYPES[entry["dtype"]], count=count, offset=24 + size + entry["offset"])
            tensors[entry["name"].removeprefix(prefix)] = values.reshape(shape)
    return tensors


def load(path):
    if path.suffix == ".safetensors":
        return safetensors.torch.load_file(path)
    return torch.load(path, weights_only=True)


def difference(ours, theirs, but=lambda name: False):
    """What tells two dictionaries of tensors apart, to the last bit."""
    if ours.keys() != theirs.keys():
        return "names: " + " ".join(sorted(ours.keys() ^ theirs.keys())[:5])
    for name, tensor in ours.items():
        other = theirs[name]
        if tensor.dtype != other.dtype or tensor.shape != other.shape:
            return f"{name}: {tensor.dtype} {tuple(tensor.shape)}, not {other.dtype} {tuple(other.shape)}"
        if not but(name) and not torch.equal(tensor, other):
            at = (tensor != other).nonzero()
            first = tuple(at[0])
            return f"{name}: {len(at)} other values, the first {tensor[first].item()!r}, not {other[first].item()!r}"
    return ""


def randomised(arch, classes):
    network = torchvision.models.get_model(arch, num_classes=classes)
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5) if "running_var" in name else tensor.normal_(0, 0.05)
            tensor[tensor.abs() < 1e-3] = 1e-3  # even a step of 1e-30 changes a zero
    return network


def out(folder, arch):
    checkpoint, ended = train(folder, arch, f"model.arch={arch}", "optim.lr=0.01", "optim.ema=0.9")
    if ended.returncode:
        return check(f"{arch} trains", ended.stderr)
    trained, averages = stored(checkpoint), stored(checkpoint, "ema.")
    check(f"{arch} has averages of its own", "" if difference(averages, {n: trained[n] for n in averages}) else "same as trained")
    for ending in ("safetensors", "pt", "pth"):
        for flags, expected in (((), trained), (("--ema",), {**trained, **averages})):
            file = folder / f"{arch}.{ending}"
            ended = run(folder, "export", checkpoint, "-o", file, *flags)
            if ended.returncode:
                check(f"{arch} {ending} {flags} exported", ended.stderr)
                continue
            weights = load(file)
            network = torchvision.models.get_model(arch, num_classes=3)
            network.load_state_dict(weights, strict=True)
            check(f"{arch} {ending} {' '.join(flags)} out", difference(dict(weights), expected))
            size = file.stat().st_size
            told = f"{arch}, {'averaged weights, ' if flags else ''}3 classes, {len(expected)} tensors, {size} bytes"
            check(f"{arch} {ending} {' '.join(flags)} told", "" if told in ended.stdout else ended.stdout)


def steps_made(name):
    """Batch norm's statistics move with any step, whatever the learning rate."""
    return any(part in name for part in ("running_mean", "running_var", "num_batches_tracked"))


def back(folder, arch, what, file, expected):
    checkpoint, ended = train(folder, what, f"model.arch={arch}", f"model.weights={file}")
    if ended.returncode:
        return check(f"{arch} {what} in", ended.stderr[-600:])
    exported = folder / f"back-{what}.safetensors"
    ended = run(folder, "export", checkpoint, "-o", exported)
    if ended.returncode:
        return check(f"{arch} {what} in", ended.stderr)
    weights = load(exported)
    fault = difference(weights, expected, steps_made)
    if not fault:  # one step from what was given: 0.9 old + 0.1 new
        old, new = expected["bn1.running_mean"], weights["bn1.running_mean"]
        fault = "" if (new - 0.9 * old).abs().max() < 0.5 else "bn1.running_mean did not start from the file's"
        if not fault and weights["bn1.num_batches_tracked"] != expected["bn1.num_batches_tracked"] + 1:
            fault = "bn1.num_batches_tracked is not one more than the file's"
    check(f"{arch} {what} in", fault)


def into(folder, arch):
    network = randomised(arch, 3)
    weights = network.state_dict()
    weights["bn1.num_batches_tracked"].fill_(41)
    torch.save(weights, folder / "plain.pt")
    back(folder, arch, f"{arch}-plain-pt", "plain.pt", weights)
    safetensors.torch.save_file(weights, folder / "plain.safetensors")
    back(folder, arch, f"{arch}-plain-safetensors", "plain.safetensors", weights)
    if arch != "resnet18":
        return
    wrapped = {f"module.{name}": tensor for name, tensor in weights.items()}
    torch.save({"model": wrapped, "epoch": 3, "optimizer": torch.optim.SGD(network.parameters(), 0.1).state_dict()},
               folder / "nested.pth")
    back(folder, arch, "nested", "nested.pth", weights)
    parameters = {f"_orig_mod.{name}": torch.nn.Parameter(t, requires_grad=t.is_floating_point()) if t.is_floating_point() else t
                  for name, t in weights.items()}
    torch.save({"state_dict": parameters}, folder / "parameters.pt")
    back(folder, arch, "parameters", "parameters.pt", weights)
    torch.save(network.to(memory_format=torch.channels_last).state_dict(), folder / "strided.pt")
    back(folder, arch, "strided", "strided.pt", weights)
    for half in (torch.float16, torch.bfloat16):
        narrow = {name: t.to(half).contiguous() if t.is_floating_point() else t for name, t in weights.items()}
        wide = {name: t.float() if t.is_floating_point() else t for name, t in narrow.items()}
        name = str(half).removeprefix("torch.")
        torch.save(narrow, folder / f"{name}.pt")
        back(folder, arch, f"{name}-pt", f"{name}.pt", wide)
        safetensors.torch.save_file(narrow, folder / f"{name}.safetensors")
        back(folder, arch, f"{name}-safetensors", f"{name}.safetensors", wide)
    refused(folder, network)


def refused(folder, network):
    torch.save(network, folder / "module.pt")
    torch.save([1, 2], folder / "list.pt")
    (folder / "empty.pt").write_bytes(b"")
    (folder / "text.safetensors").write_text("not weights at all")
    for file, cause in (("module.pt", "torchvision.models.resnet.ResNet"), ("list.pt", "a list"), ("empty.pt", "empty.pt"),
                        ("text.safetensors", "text.safetensors"), ("nowhere.pt", "nowhere.pt")):
        _, ended = train(folder, f"refused-{file}", "model.arch=resnet18", f"model.weights={file}")
        sound = ended.returncode == 2 and cause in ended.stderr and file in ended.stderr
        check(f"{file} refused", "" if sound else f"exit {ended.returncode}: {ended.stderr[-600:]}")


torch.manual_seed(1)
with tempfile.TemporaryDirectory() as place:
    place = pathlib.Path(place)
    subprocess.run([sluice, "synth", "tree", "--classes", "3", "--train-per-class", "2", "--val-per-class", "1", "--size", "100"],
                   cwd=place, check=True, stderr=subprocess.DEVNULL)
    (place / "one.toml").write_text(CONFIG)
    for network in ("resnet18", "resnet50"):
        out(place, network)
        into(place, network)
print(f"[interop] test cases: {passed + failed} | {passed} passed | {failed} failed")
sys.exit(failed > 0)
