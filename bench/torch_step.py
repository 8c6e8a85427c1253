"""The training step of eager PyTorch, as `sluice bench step` measures ours: the same network, batch, loss and
optimiser, from a batch in memory. Prints one JSON object. Usage: torch_step.py --arch resnet50 --batch 32 --size 224
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="resnet50")
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--warm", type=int, default=1)
parser.add_argument("--optim", choices=["foreach", "fused", "loop"], default="foreach")
a = parser.parse_args()

torch.set_num_threads(a.threads)
torch.manual_seed(0)
network = getattr(torchvision.models, a.arch)(num_classes=1000).to(memory_format=torch.channels_last).train()
optimiser = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9, weight_decay=1e-4,
                            foreach=a.optim == "foreach", fused=a.optim == "fused")
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
images = torch.randn(a.batch, 3, a.size, a.size).to(memory_format=torch.channels_last)
labels = torch.randint(0, 1000, (a.batch,))


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def step():
    begin = time.perf_counter()
    optimiser.zero_grad(set_to_none=True)
    loss_of(network(images), labels).backward()
    optimiser.step()
    return 1000 * (time.perf_counter() - begin)


for _ in range(a.warm):
    step()
before = faults()
times = [step() for _ in range(a.steps)]
print(json.dumps({
    "step_ms": round(statistics.median(times), 1),
    "min_ms": round(min(times), 1),
    "max_ms": round(max(times), 1),
    "images_per_s": round(1000 * a.batch / statistics.median(times), 1),
    "faults_per_step": (faults() - before) // a.steps,
    "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "torch": torch.__version__,
}))
