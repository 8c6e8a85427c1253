"""One rank of PyTorch's DistributedDataParallel over Gloo, as tests/ranks/worker.cpp --timed is one of ours: the same
network, batch, loss and optimiser. Prints one JSON object. Usage: torch_ddp.py --rank 0 --world 2 --port 29500
"""
import argparse
import json
import os
import statistics
import time

import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, required=True)
parser.add_argument("--world", type=int, required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--arch", default="resnet18")
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--classes", type=int, default=1000)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--warm", type=int, default=3)
parser.add_argument("--bucket-view", action="store_true", help="gradients are views of the buckets, as ours are")
a = parser.parse_args()

torch.set_num_threads(a.threads)
torch.manual_seed(0)
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{a.port}", rank=a.rank, world_size=a.world)
network = getattr(torchvision.models, a.arch)(num_classes=a.classes).to(memory_format=torch.channels_last).train()
network = torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=a.bucket_view)
optimiser = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
images = torch.randn(a.batch, 3, a.size, a.size).to(memory_format=torch.channels_last)
labels = torch.randint(0, a.classes, (a.batch,))


def step():
    begin = time.perf_counter()
    optimiser.zero_grad(set_to_none=True)
    loss_of(network(images), labels).backward()
    optimiser.step()
    return 1000 * (time.perf_counter() - begin)


for _ in range(a.warm):
    step()
times = [step() for _ in range(a.steps)]
print(json.dumps({"step_ms": round(statistics.median(times), 1), "min_ms": round(min(times), 1),
                  "torch": torch.__version__}))
torch.distributed.destroy_process_group()
