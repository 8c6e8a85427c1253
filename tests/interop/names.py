"""Compares names and shapes of our networks with torchvision's: names.py SLUICE.

Trains one step of each network on a tree made here and reads the names out of the checkpoint's header.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import torchvision

from one_step import CONFIG


def stored(path):
    with open(path, "rb") as file:
        assert file.read(8) == b"SLUICECK"
        _, header_size = struct.unpack("<QQ", file.read(16))
        header = json.loads(file.read(header_size))
    names = {t["name"].removeprefix("model."): tuple(t["shape"]) for t in header["tensors"] if t["name"].startswith("model.")}
    return names, header["classes"]


sluice = pathlib.Path(sys.argv[1]).resolve()
passed = failed = 0
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    subprocess.run([sluice, "synth", "tree", "--classes", "3", "--train-per-class", "2", "--val-per-class", "1", "--size", "100"],
                   cwd=folder, check=True)
    (folder / "one.toml").write_text(CONFIG)
    for arch in ("resnet18", "resnet34", "resnet50", "resnet101"):
        subprocess.run([sluice, "train", "one.toml", "--set", f"model.arch={arch}", "--set", f"log.name={arch}"], cwd=folder,
                       check=True, stderr=subprocess.DEVNULL)
        ours, classes = stored(folder / "runs" / arch / "checkpoints" / "last.ckpt")
        theirs = {name: tuple(t.shape) for name, t in torchvision.models.get_model(arch, num_classes=classes).state_dict().items()}
        good = ours == theirs
        passed, failed = passed + good, failed + (not good)
        print(arch, "same names and shapes:", good, len(ours))
        for name in sorted(ours.keys() ^ theirs.keys()):
            print("  only in", "ours:" if name in ours else "torchvision:", name)
print(f"[interop] test cases: {passed + failed} | {passed} passed | {failed} failed")
sys.exit(failed > 0)
