"""Prints the expected values of resample_test.cpp and jpeg_test.cpp, computed by Pillow.

    pip install "pillow==12.0.0"
    python tests/nodes/pillow_golden.py
"""

import io

from PIL import Image


def formula_image(width, height):
    image = Image.new("RGB", (width, height))
    image.putdata(
        [
            tuple((x * 7 + y * 13 + c * 29 + (x * y) % 31 * 5) & 255 for c in range(3))
            for y in range(height)
            for x in range(width)
        ]
    )
    return image


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


# region (x, y, width, height), to (width, height), window (x, y, width, height)
VIEWS = [
    ((0, 0, 97, 61), (97, 61), (0, 0, 97, 61)),
    ((0, 0, 97, 61), (24, 24), (0, 0, 24, 24)),
    ((11, 7, 50, 40), (32, 32), (0, 0, 32, 32)),
    ((90, 55, 7, 6), (40, 40), (0, 0, 40, 40)),
    ((0, 0, 97, 61), (61, 38), (13, 3, 32, 32)),
    ((3, 0, 94, 61), (32, 90), (5, 50, 20, 33)),
    ((0, 0, 97, 61), (1, 1), (0, 0, 1, 1)),
    ((96, 60, 1, 1), (5, 5), (0, 0, 5, 5)),
]


def main():
    image = formula_image(97, 61)
    for region, to, window in VIEWS:
        x, y, width, height = region
        part = image.crop((x, y, x + width, y + height)).resize(to, Image.Resampling.BILINEAR)
        x, y, width, height = window
        part = part.crop((x, y, x + width, y + height))
        print(f"{region} {to} {window}: {part.getpixel((0, 0))} 0x{fnv(part.tobytes()):016x}")

    cmyk = Image.new("CMYK", (12, 8))
    cmyk.putdata([(x * 21, y * 32, (x + y) * 12, (x * y) * 3) for y in range(8) for x in range(12)])
    file = io.BytesIO()
    cmyk.save(file, "JPEG", quality=70, optimize=True)
    for keep_adobe in (True, False):
        data = file.getvalue()
        if not keep_adobe:
            start = data.index(b"\xff\xee")
            data = data[:start] + data[start + 2 + int.from_bytes(data[start + 2 : start + 4], "big") :]
        rgb = Image.open(io.BytesIO(data)).convert("RGB")
        print(f"CMYK, Adobe marker {keep_adobe}: 0x{fnv(rgb.tobytes()):016x}\n{data.hex()}")


if __name__ == "__main__":
    main()
