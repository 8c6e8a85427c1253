"""Writes tests/parity/resnet50.json, what torchvision's ResNet-50 makes of the weights in formula.py: golden.py [FILE].

A tensor is told by its norm and by its dot products with four vectors of signs. The root mean square of the differences of such products
is, in expectation, the norm of the tensors' difference, so that nothing large needs to be kept.
"""
import json
import pathlib
import sys

import numpy as np
import torch

import formula

FILE = pathlib.Path(__file__).resolve().parent.parent / "parity" / "resnet50.json"
PROBES = 4
# Rounding differs between machines by less than this share of an activation.
MARGIN = 1e-6


def digest(name, tensor):
    values = tensor.detach().contiguous().numpy().astype(np.float64).ravel()
    signs = formula.bits("probe." + name, values.size)
    products = [values @ (1.0 - 2.0 * ((signs >> np.uint32(k)) & np.uint32(1))) for k in range(PROBES)]
    return [float(f"{x:.8g}") for x in [np.linalg.norm(values), *products]]


class Margin:
    """The smallest activation before a ReLU, as a share of the tensor's root mean square."""

    def __init__(self):
        self.smallest = np.inf
        torch.nn.modules.module.register_module_forward_pre_hook(self.look)

    def look(self, module, inputs):
        if isinstance(module, torch.nn.ReLU):
            x = inputs[0].detach()
            self.smallest = min(self.smallest, (x.abs().min() / x.square().mean().sqrt()).item())


def run(nesterov):
    made = {"losses": [], "gradients": {}, "momenta": {}, "state": {}}

    def after(step, net, logits, loss, optimiser):
        made["losses"].append(loss.item())
        if step == 0:
            made["logits"] = digest("logits", logits)
            made["gradients"] = {name: digest(name, p.grad) for name, p in net.named_parameters()}
        if step == formula.STEPS - 1:
            made["momenta"] = {name: digest(name, optimiser.state[p]["momentum_buffer"]) for name, p in net.named_parameters()}
            made["state"] = {name: digest(name, t) for name, t in net.state_dict().items() if t.dim() > 0}

    formula.train("resnet50", nesterov, after)
    return made


def main():
    margin = Margin()
    plain, nesterov = run(False), run(True)
    with torch.no_grad():
        evaluated = formula.network("resnet50").eval()(formula.batch(0)[0])
    print(f"losses {plain['losses']} {nesterov['losses']}, smallest activation {margin.smallest:.1e}")
    if margin.smallest < MARGIN:
        sys.exit(f"an activation is within {margin.smallest:.1e} of a ReLU's edge; take another number for formula.SALT")
    keys = ("gradients", "momenta", "state")
    tensors = {}
    for name in plain["state"]:
        tensors[name] = {key: plain[key][name] for key in keys if name in plain[key]}
        tensors[name] |= {"nesterov " + key: nesterov[key][name] for key in keys[1:] if name in nesterov[key]}
    lines = ",\n".join(json.dumps(name) + ":" + json.dumps(t, separators=(",", ":")) for name, t in tensors.items())
    head = {"torch": torch.__version__, "losses": plain["losses"], "nesterov losses": nesterov["losses"],
            "training logits": plain["logits"], "evaluation logits": digest("logits", evaluated)}
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    file.write_text(json.dumps(head)[:-1] + ',\n"tensors":{\n' + lines + "}}\n")


if __name__ == "__main__":
    main()
