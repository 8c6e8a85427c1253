"""What the comparisons with PyTorch share: where its Python is, and what its malloc is told."""
import json
import os
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent

# Never back to the kernel, and huge pages for what grows: what model/cpu_memory does for sluice.
KEEP = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=8589934592:glibc.malloc.trim_threshold=34359738368:"
                          "glibc.malloc.top_pad=67108864:glibc.malloc.hugetlb=1"}

# OpenMP's threads spin for microseconds instead of milliseconds, as ./sluice sets it.
SHORT_WAIT = {"GOMP_SPINCOUNT": "1000"}


def find_python():
    if os.environ.get("SLUICE_PYTHON"):
        return os.environ["SLUICE_PYTHON"]
    default = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sluice"
    cache = pathlib.Path(os.environ.get("SLUICE_CACHE") or default)
    for ready in sorted(cache.glob("cuda-*/.complete")):
        return str(ready.parent / "bin" / "python")
    sys.exit("bench: no Python with torch: set SLUICE_PYTHON, or build once with `./sluice build --cuda`")


def run_json(words, environment=None):
    """The object on the last line that the command prints."""
    done = subprocess.run([str(word) for word in words], env={**os.environ, **(environment or {})},
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {words[0]} {words[1]} ended with exit code {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])
