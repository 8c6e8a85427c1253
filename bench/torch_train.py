"""Training as torchvision's reference does it on the CPU: ImageFolder, DataLoader, eager PyTorch. Prints one JSON object:
images/s over the batches after the warm-up. Usage: torch_train.py --data TREE --arch resnet18 --batch 64 --size 64
"""
import argparse
import json
import time

import torch
import torchvision
from torchvision import transforms

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True, help="class folders with images")
parser.add_argument("--arch", default="resnet18")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--workers", type=int, default=1)
parser.add_argument("--batches", type=int, default=40)
parser.add_argument("--warm", type=int, default=5)
a = parser.parse_args()

torch.set_num_threads(a.threads)
torch.manual_seed(0)
images = torchvision.datasets.ImageFolder(a.data, transforms.Compose([
    transforms.RandomResizedCrop(a.size),
    transforms.RandomHorizontalFlip(),
    transforms.PILToTensor(),
    transforms.ConvertImageDtype(torch.float),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
]))
sampler = torch.utils.data.RandomSampler(images, replacement=True, num_samples=a.batch * (a.warm + a.batches))
loader = torch.utils.data.DataLoader(images, a.batch, sampler=sampler, num_workers=a.workers, drop_last=True)
network = getattr(torchvision.models, a.arch)(num_classes=len(images.classes))
network = network.to(memory_format=torch.channels_last).train()
optimiser = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, foreach=True)
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

total = 0.0
for number, (batch, labels) in enumerate(loader):
    if number == a.warm:
        begin = time.perf_counter()
    optimiser.zero_grad(set_to_none=True)
    loss = loss_of(network(batch.to(memory_format=torch.channels_last)), labels)
    loss.backward()
    optimiser.step()
    if number % 10 == 0:  # as often as sluice reads its metrics back
        total += loss.item()
seconds = time.perf_counter() - begin
print(json.dumps({"images_per_s": round(a.batch * a.batches / seconds, 1), "seconds": round(seconds, 1),
                  "loss": round(total, 3), "torch": torch.__version__}))
