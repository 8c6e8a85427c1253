"""What the comparisons share: where Python with torch is, what its malloc is told, how a run's result is read."""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent

# Never back to the kernel, and huge pages for what grows: what model/device/cpu_memory does for sluice.
KEEP = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=8589934592:glibc.malloc.trim_threshold=34359738368:"
                          "glibc.malloc.top_pad=67108864:glibc.malloc.hugetlb=1"}

# OpenMP's threads spin for microseconds instead of milliseconds, as ./sluice sets it.
SHORT_WAIT = {"GOMP_SPINCOUNT": "1000"}


class Failed(Exception):
    """A run that gave no result; the text says why, in one line."""


def cache_folder():
    default = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sluice"
    return pathlib.Path(os.environ.get("SLUICE_CACHE") or default)


def ready_python():
    """The Python that is said or known to have torch, if there is one."""
    if os.environ.get("SLUICE_PYTHON"):
        return os.environ["SLUICE_PYTHON"]
    for ready in sorted(cache_folder().glob("cuda-*/.complete")):
        return str(ready.parent / "bin" / "python")
    return None


def find_python():
    return ready_python() or sys.exit(
        "bench: no Python with torch: set SLUICE_PYTHON, or build once with `./sluice build --cuda`")


def run_json(words, environment=None):
    """The object on the last line that the command prints."""
    done = subprocess.run([str(word) for word in words], env={**os.environ, **(environment or {})},
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {words[0]} {words[1]} ended with exit code {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def attempt(words, seconds):
    """What the command prints, all of it; Failed if it ends badly or takes longer. Nothing that it started is left."""
    words = [str(word) for word in words]
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, errors="replace", start_new_session=True)
    except OSError as error:
        raise Failed(f"{words[0]}: {error.strerror}") from None
    try:
        out, messages = process.communicate(timeout=seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise Failed(f"no end after {seconds:.0f} s") from None
        raise
    if process.returncode != 0:
        lines = [line.strip() for line in messages.splitlines() if line.strip()]
        why = next((line for line in reversed(lines) if "rror" in line), lines[-1] if lines else shlex.join(words))
        raise Failed(f"exit code {process.returncode}: {why[:300]}")
    return out


def attempt_json(words, seconds):
    """The object on the last line that the command prints; Failed without one."""
    out = attempt(words, seconds)
    try:
        return json.loads(out.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise Failed(f"no result in what it printed: {out[-200:]!r}") from None
