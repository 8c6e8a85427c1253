"""One loader of `bench/peers` by itself: loaders.py NAME --data TREE --threads N --images N. Prints one JSON object.

The standard ImageNet training transform: decode, random resized crop to 224, flip, uint8 batches of 64 in whichever
layout the loader has by itself, shuffled. Some batches warm it up, `--images` are timed, a few more show the memory.
"""
import argparse
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import resource
import time

BATCH, SIZE, WARM, TAIL = 64, 224, 10, 5
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
SHAPES = ((BATCH, SIZE, SIZE, 3), (BATCH, 3, SIZE, SIZE))


def is_jpeg(path):
    return str(path).lower().endswith((".jpeg", ".jpg"))


def listed(tree):
    """Files and the numbers of their classes."""
    folders = sorted(path for path in pathlib.Path(tree).iterdir() if path.is_dir())
    return [(str(path), label) for label, folder in enumerate(folders) for path in sorted(folder.iterdir()) if is_jpeg(path)]


def torch_batches(a, count, loader, transform):
    import torch
    import torchvision

    torch.set_num_threads(1)
    images = torchvision.datasets.ImageFolder(a.data, transform, loader=loader, is_valid_file=is_jpeg)
    order = [i for _ in range(-(-count * BATCH // len(images))) for i in torch.randperm(len(images)).tolist()]
    loader = torch.utils.data.DataLoader(images, BATCH, sampler=order[:count * BATCH], num_workers=a.threads)
    return (batch.numpy() for batch, _ in loader)


def torchvision_pillow(a, count):
    from torchvision import datasets, transforms

    return torch_batches(a, count, datasets.folder.pil_loader, transforms.Compose([
        transforms.RandomResizedCrop(SIZE, AREA, RATIO), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]))


def torchvision_io(a, count):
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2

    return torch_batches(a, count, lambda path: decode_jpeg(read_file(path), mode=ImageReadMode.RGB), v2.Compose([
        v2.RandomResizedCrop(SIZE, AREA, RATIO, antialias=True), v2.RandomHorizontalFlip()]))


def dali(a, count):
    import numpy
    from nvidia.dali import fn, pipeline_def, types

    files, labels = zip(*listed(a.data))

    @pipeline_def(batch_size=BATCH, num_threads=a.threads, device_id=None, prefetch_queue_depth=2)
    def steps():
        data, label = fn.readers.file(files=list(files), labels=list(labels), random_shuffle=True, initial_fill=1024)
        image = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB, random_area=list(AREA),
                                              random_aspect_ratio=list(RATIO))
        image = fn.resize(image, size=(SIZE, SIZE), interp_type=types.INTERP_TRIANGULAR)
        return fn.flip(image, horizontal=fn.random.coin_flip()), label

    pipeline = steps()
    pipeline.build()
    for _ in range(count):
        yield numpy.asarray(pipeline.run()[0].as_tensor())


def mlx_data(a, count):
    import mlx.data

    rows = [{"image": path.encode(), "label": label} for path, label in listed(a.data)]
    rows *= -(-count * BATCH // len(rows))
    stream = mlx.data.buffer_from_vector(rows).shuffle().to_stream().load_image("image")
    stream = stream.image_random_area_crop("image", AREA, RATIO).image_resize("image", SIZE, SIZE)
    stream = stream.image_random_h_flip("image", 0.5).prefetch(2 * BATCH, a.threads).batch(BATCH)
    return (batch["image"] for batch in stream)


def tf_data(a, count):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(a.threads)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    whole = tf.constant([[[0.0, 0.0, 1.0, 1.0]]])

    def sample(path, label):
        data = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(data), whole, min_object_covered=0.0, aspect_ratio_range=RATIO, area_range=AREA,
            max_attempts=10)
        image = tf.io.decode_and_crop_jpeg(data, tf.concat([begin[:2], size[:2]], 0), channels=3,
                                           dct_method="INTEGER_ACCURATE")
        image = tf.cast(tf.round(tf.image.resize(image, [SIZE, SIZE])), tf.uint8)
        return tf.image.random_flip_left_right(image), label

    files, labels = zip(*listed(a.data))
    options = tf.data.Options()
    options.threading.private_threadpool_size = a.threads
    options.deterministic = False
    batches = tf.data.Dataset.from_tensor_slices((list(files), list(labels))).shuffle(len(files)).repeat()
    batches = batches.map(sample, num_parallel_calls=a.threads).batch(BATCH, drop_remainder=True).prefetch(2)
    return (image for image, _ in batches.take(count).with_options(options).as_numpy_iterator())


LOADERS = {  # and the package that names the version
    "torchvision": (torchvision_pillow, "torchvision"),
    "torchvision-io": (torchvision_io, "torchvision"),
    "dali": (dali, "nvidia-dali-cuda130"),
    "mlx-data": (mlx_data, "mlx-data"),
    "tf.data": (tf_data, "tensorflow-cpu"),
}


def cpu_seconds(pids):
    """User and system time of these processes, all their threads."""
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def shared_out_memory(pids):
    """Bytes that these processes hold, pages that they share counted once."""
    lines = [line for pid in pids for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def measure(batches, timed):
    for _ in range(WARM):
        batch = next(batches)
    if batch.shape not in SHAPES or batch.dtype != "uint8":
        raise SystemExit(f"error: a batch is {batch.dtype} {batch.shape}, not uint8 {SHAPES[0]}")
    mean = float(batch.mean())  # of pixels: alike for all loaders if they show the same images
    del batch
    pids = [os.getpid(), *(child.pid for child in multiprocessing.active_children())]
    cpu, begin = cpu_seconds(pids), time.perf_counter()
    for _ in range(timed):
        next(batches)
    seconds, cpu = time.perf_counter() - begin, cpu_seconds(pids) - cpu
    peak = 0
    for _ in range(TAIL):
        peak = max(peak, shared_out_memory(pids))
        next(batches)
    if len(pids) == 1:
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"images_per_s": timed * BATCH / seconds, "cpu_ms": 1e3 * cpu / (timed * BATCH), "peak_rss_bytes": peak,
            "mean": mean}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=LOADERS)
    parser.add_argument("--data", required=True, help="class folders with JPEGs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--images", type=int, default=1536)
    a = parser.parse_args()
    make, package = LOADERS[a.name]
    timed = -(-a.images // BATCH)
    result = measure(iter(make(a, WARM + timed + TAIL)), timed)
    print(json.dumps({"loader": a.name, "version": importlib.metadata.version(package), **result}), flush=True)
