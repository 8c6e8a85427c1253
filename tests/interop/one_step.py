"""One step that changes no weight, on a tree made by `sluice synth tree`."""
CONFIG = """
[data]
train = "tree/train"
val = "tree/val"
image_size = 64
val_resize = 72
max_file = "1MiB"
max_scratch = "8MiB"
[budget]
ram = "64MiB"
[model]
device = "cpu"
[train]
epochs = 1
max_steps = 1
batch = 6
[optim]
lr = 1e-30
momentum = 0
weight_decay = 0
[schedule]
warmup_epochs = 0
"""
