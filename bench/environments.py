"""Virtual environments for what is compared, in sluice's cache: one folder `peers-NAME` each, made once.

`.complete` is written last and holds the pins and the Python: a folder without it, or with others, is made again.
"""
import fcntl
import platform
import shutil
import sys

from comparison import Failed, attempt, cache_folder, ready_python, root

INSTALL_SECONDS = 3600


def has(python, modules):
    try:
        attempt([python, "-c", "import " + ", ".join(modules)], 120)
        return True
    except Failed:
        return False


def pins_of(name):
    """What setup/versions lists for `peer-NAME`."""
    lines = (line.split("#")[0].split() for line in (root / "setup" / "versions").read_text().splitlines())
    return [words[1] for words in lines if len(words) >= 2 and f"peer-{name}" in words[0].split(",")]


def python_for(name, megabytes, modules):
    """A Python that has the modules: the one at hand with torch if that will do, or else that of `peers-NAME`."""
    ready = ready_python()
    if ready and "torch" in modules and has(ready, modules):
        return ready
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"peers-{name}"
    with open(cache / f"peers-{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(folder, pins_of(name), megabytes)
    return str(folder / "bin" / "python")


def make(folder, pins, megabytes):
    wish = "\n".join([platform.python_version(), *pins, ""])
    complete = folder / ".complete"
    if complete.exists() and complete.read_text() == wish:
        return
    shutil.rmtree(folder, ignore_errors=True)
    free = shutil.disk_usage(folder.parent).free / 1e6
    if free < 2 * megabytes:  # what is downloaded, beside what is unpacked
        raise Failed(f"{folder} needs {2 * megabytes} MB to install, {free:.0f} MB are free")
    print(f"bench: installing {' '.join(pins)} into {folder} (about {megabytes} MB)", file=sys.stderr, flush=True)
    try:
        attempt([sys.executable, "-m", "venv", folder], INSTALL_SECONDS)
        attempt([folder / "bin" / "python", "-I", "-m", "pip", "--disable-pip-version-check", "install", "--quiet",
                 "--no-cache-dir", "--only-binary", ":all:", *pins], INSTALL_SECONDS)
    except Failed as failure:
        shutil.rmtree(folder, ignore_errors=True)
        raise Failed(f"cannot be installed: {failure}") from None
    complete.write_text(wish)
