"""Compares our loss scaler with torch.amp.GradScaler, step by step: grad_scaler.py SCALER_TRACE.

Both train one weight with the same gradients, some of them infinite or NaN. Scale, good steps in a row and the
weight itself (which shows the steps left out) must be equal after each step.
"""
import random
import subprocess
import sys

import torch


def theirs(gradients):
    weight = torch.ones(1, requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=0.25, momentum=0.5)
    scaler = torch.amp.GradScaler("cpu")
    for gradient in gradients:
        optimiser.zero_grad()
        scaler.scale((weight * torch.full((1,), float(gradient))).sum()).backward()
        scaler.step(optimiser)
        scaler.update()
        yield scaler.get_scale(), scaler._get_growth_tracker(), weight.item()


def ours(program, gradients):
    done = subprocess.run([program], input=" ".join(gradients), text=True, check=True, stdout=subprocess.PIPE)
    for line in done.stdout.splitlines():
        scale, good, weight = line.split()
        yield float(scale), int(good), float(weight)


random.seed(3)
small = ["1", "-2", "0.5", "0", "3e-5"]
CASES = {
    "finite": random.choices(small, k=50),
    "one overflow": ["1", "1", "inf", "1", "1"],
    "back-off after back-off": ["-inf", "nan", "inf", "1", "nan", "nan", "1", "1"],
    "overflow by the scale alone": ["1e35", "1e34", "1e33", "1"],
    "growth": ["0.5"] * 1999 + ["-0.5"] * 2003,
    "an overflow starts the count anew": ["0.5"] * 1500 + ["inf"] + ["-0.5"] * 2100 + ["nan"] + ["0.25"] * 2001,
    "growth until it overflows": ["3e33"] * 2001 + ["1"] * 2001,
    "any order": random.choices(small + ["inf", "nan"], weights=[40] * 5 + [1, 1], k=1000),
    "until no scale is left": random.choices(small + ["inf", "nan"], weights=[3] * 5 + [1, 1], k=1500),
}
passed = failed = 0
for name, gradients in CASES.items():
    a, b = list(theirs(gradients)), list(ours(sys.argv[1], gradients))
    skips = sum(1 for x, y in zip([(65536.0,)] + a, a) if y[0] < x[0])
    same = repr(a) == repr(b)  # as text, NaN is equal to NaN
    passed, failed = passed + same, failed + (not same)
    print(f"{name}: {len(a)} steps, {skips} left out, last scale {a[-1][0]}:", "same" if same else "DIFFERENT")
    if not same:
        print("  first difference:", next(((i, x, y) for i, (x, y) in enumerate(zip(a, b)) if repr(x) != repr(y)), "in length"))
print(f"[interop] test cases: {passed + failed} | {passed} passed | {failed} failed")
sys.exit(failed > 0)
