"""Compares three steps of all networks with torchvision's, every value of every tensor: parity.py TRAIN [ARCH]...

TRAIN is the program of tests/parity/train.cpp, which trains with the same weights and images as formula.py. All differences are
relative to the norm of a tensor; for gradients and momenta, weight and bias of a norm count as one tensor (see parity_test.cpp).
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

import formula

TOLERANCE = 1e-5


def read(path):
    """Tensors by name, and the loss."""
    data = path.read_bytes()
    assert data[:8] == b"SLUICECK"
    header_size, = struct.unpack_from("<Q", data, 16)
    header = json.loads(data[24:24 + header_size])
    begin = -(-(24 + header_size) // 64) * 64
    tensors = {}
    for t in header["tensors"]:
        if t["dtype"] == "f32":
            count = int(np.prod(t["shape"]))
            tensors[t["name"]] = torch.from_numpy(np.frombuffer(data, np.float32, count, begin + t["offset"]).reshape(t["shape"]).copy())
    return tensors, header["state"]["loss"]


def worst(ours, theirs, together):
    """The largest relative difference of tensors, and its name; weight and bias of the layers in `together` are one."""
    assert ours.keys() == theirs.keys() and ours
    squares = {}
    for name, wanted in theirs.items():
        layer = name.rsplit(".", 1)[0]
        sums = squares.setdefault(layer if layer in together else name, np.zeros(2))
        sums += [(ours[name].double() - wanted.double()).square().sum().item(), wanted.double().square().sum().item()]
    return max((np.sqrt(difference / norm), name) for name, (difference, norm) in squares.items())


def compare(arch, kind, program, folder):
    subprocess.run([program, arch, kind, folder], check=True)
    results = {}

    def after(step, net, _, loss, optimiser):
        ours, our_loss = read(folder / f"step{step}.ckpt")
        results[f"loss {step}"] = abs(our_loss - loss.item()) / loss.item(), ""
        norms = {name for name, module in net.named_modules() if isinstance(module, torch.nn.BatchNorm2d)}
        part = lambda prefix: {name.removeprefix(prefix): t for name, t in ours.items() if name.startswith(prefix)}
        momenta = {name: optimiser.state[p]["momentum_buffer"] for name, p in net.named_parameters()}
        state = {name: t for name, t in net.state_dict().items() if t.dim() > 0}
        # The first momentum is the gradient with weight decay.
        results["gradient" if step == 0 else f"momentum {step}"] = worst(part("momentum."), momenta, norms)
        results[f"state {step}"] = worst(part("model."), state, ())

    formula.train(arch, kind == "nesterov", after)
    for name, (difference, where) in results.items():
        print(f"{arch} {kind} {name}: {difference:.1e} {where}")
    return all(difference < TOLERANCE for difference, _ in results.values())


def main():
    torch.set_num_threads(1)  # as in tests/support/parity.hpp
    passed = failed = 0
    for arch in sys.argv[2:] or formula.LAST_NORM:
        for kind in ("plain", "nesterov"):
            with tempfile.TemporaryDirectory() as folder:
                good = compare(arch, kind, pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
            passed, failed = passed + good, failed + (not good)
    print(f"[interop] test cases: {passed + failed} | {passed} passed | {failed} failed")
    sys.exit(failed > 0)


main()
