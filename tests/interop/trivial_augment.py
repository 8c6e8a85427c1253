"""Compares our TrivialAugmentWide with torchvision's on Pillow images, byte for byte: trivial_augment.py OPS.

OPS is the program made from trivial_augment_ops.cpp. Every change, bin and sign, on images of many sizes and kinds.
With the word "golden" instead of a program: prints the expected values of tests/nodes/trivial_augment_test.cpp.
"""
import struct
import subprocess
import sys

import numpy
from PIL import Image
from torchvision.transforms import InterpolationMode, TrivialAugmentWide
from torchvision.transforms.autoaugment import _apply_op

BINS = 31


def noise(width, height, low=0, high=256):
    return numpy.random.default_rng(width * 1000 + height).integers(low, high, (height, width, 3)).astype(numpy.uint8)


def waves(width, height):
    """Smooth, with another range of values in each channel: what photographs are like."""
    y, x = numpy.mgrid[0:height, 0:width]
    channels = [100 + c * 25 + (60 + 9 * c) * numpy.sin(x / (7 + c) + y / (13 - 2 * c)) for c in range(3)]
    return numpy.stack(channels, axis=2).astype(numpy.uint8)


IMAGES = {
    "noise 224x224": noise(224, 224),
    "waves 224x224": waves(224, 224),
    "waves 225x225": waves(225, 225),
    "noise 160x160": noise(160, 160),
    "narrow noise 64x64": noise(64, 64, 90, 140),
    "noise 97x61": noise(97, 61),
    "waves 61x97": waves(61, 97),
    "noise 33x33": noise(33, 33),
    "one colour 40x40": numpy.full((40, 40, 3), (7, 200, 255), numpy.uint8),
    "two colours 40x40": numpy.repeat(numpy.repeat(noise(2, 1), 40, 0), 20, 1),
    "noise 8x8": noise(8, 8),
    "noise 3x3": noise(3, 3),
    "noise 2x5": noise(2, 5),
    "noise 1x1": noise(1, 1),
}


def ours(program, op, step, sign, image):
    height, width, _ = image.shape
    program.stdin.write(struct.pack("<5i", op, step, sign, width, height) + image.tobytes())
    program.stdin.flush()
    (magnitude,) = struct.unpack("<d", program.stdout.read(8))
    return magnitude, program.stdout.read(image.size)


def theirs(name, magnitude, image):
    changed = _apply_op(Image.fromarray(image), name, magnitude, interpolation=InterpolationMode.NEAREST, fill=None)
    return numpy.asarray(changed).tobytes()


def magnitudes(table, signed):
    for step in range(BINS):
        value = float(table[step]) if table.ndim > 0 else 0.0
        for sign in (0, 1):
            yield step, sign, -value if signed and sign else value


def print_golden():
    """For each change, the FNV hash of its results for all bins and signs, one after the other."""
    y, x, c = numpy.mgrid[0:24, 0:26, 0:3]
    image = (((x * 7 + y * 13 + (x * y) % 31 * 5 & 255) >> c) + c * 10).astype(numpy.uint8)
    for name, (table, signed) in TrivialAugmentWide()._augmentation_space(BINS).items():
        value = 0xCBF29CE484222325
        for _, _, magnitude in magnitudes(table, signed):
            for byte in theirs(name, magnitude, image):
                value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        print(f"    {value:#018x},  // {name}")


if sys.argv[1] == "golden":
    print_golden()
    sys.exit()
passed = failed = 0
with subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
    for op, (name, (table, signed)) in enumerate(TrivialAugmentWide()._augmentation_space(BINS).items()):
        for title, image in IMAGES.items():
            wrong = []
            for step, sign, magnitude in magnitudes(table, signed):
                our_magnitude, pixels = ours(program, op, step, sign, image)
                expected = theirs(name, magnitude, image)
                if our_magnitude != magnitude or pixels != expected:
                    bytes_off = sum(a != b for a, b in zip(pixels, expected))
                    wrong.append(f"{magnitude:+g} (ours {our_magnitude:+g}): {bytes_off} bytes differ")
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"{name}, {title}: {len(wrong)} of {2 * BINS} wrong, first {wrong[0]}")
    program.stdin.close()
print(f"[interop] test cases: {passed + failed} | {passed} passed | {failed} failed")
sys.exit(failed > 0)
