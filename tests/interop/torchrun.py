"""Runs the program under torchrun, as it is: torchrun.py SLUICE.

Two ranks to the end; and two ranks of which one is killed, which torchrun starts again by itself.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

CONFIG = """
[data]
train = "tree/train"
val = "tree/val"
image_size = 32
val_resize = 36
[budget]
ram = "256MiB"
[model]
arch = "resnet18"
device = "cpu"
[train]
epochs = 3
batch = 2
threads = 1
[schedule]
warmup_epochs = 0
[dist]
heartbeat = 3
[checkpoint]
every_steps = 2
[log]
every = 1
"""
CLOCK = ("step_ms", "images_per_s", "data_wait", "peak_ledger_bytes", "diagnosis")
sluice = pathlib.Path(sys.argv[1]).resolve()
results = []


def check(what, good):
    results.append(bool(good))
    print(("ok    " if good else "FAIL  ") + what)


def torchrun(folder, name, *options):
    return [sys.executable, "-m", "torch.distributed.run", "--no-python", "--standalone", "--nproc-per-node", "2", *options,
            str(sluice), "train", "tiny.toml", "--set", f"log.name={name}", "--resume", "auto"]


def records(folder, name):
    lines = [json.loads(line) for line in (folder / "runs" / name / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in CLOCK} for line in lines]


def rank_process(name, rank):
    """The process of this rank that trains the run of this name."""
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            variables = (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == str(sluice).encode() and f"log.name={name}".encode() in words and f"RANK={rank}".encode() in variables:
            return int(place.name)
    return None


def kill_rank(folder, name, rank, after):
    file = folder / "runs" / name / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if file.exists() and file.read_bytes().count(b"\n") >= after:
            process = rank_process(name, rank)
            if process:
                os.kill(process, signal.SIGKILL)
            return process
        time.sleep(0.02)
    return None


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    subprocess.run([sluice, "synth", "tree", "--classes", "2", "--train-per-class", "12", "--val-per-class", "6", "--size", "80"],
                   cwd=folder, check=True, stderr=subprocess.DEVNULL)
    (folder / "tiny.toml").write_text(CONFIG)
    whole = subprocess.run(torchrun(folder, "whole"), cwd=folder, capture_output=True, text=True, timeout=300)
    check("two ranks under torchrun", whole.returncode == 0 and "rank 0 of 2" in whole.stderr)
    if whole.returncode:
        print(whole.stderr)

    with open(folder / "killed.txt", "w") as err:
        run = subprocess.Popen(torchrun(folder, "killed", "--max-restarts", "1"), cwd=folder, stdout=err, stderr=err)
        check("a rank was there to be killed", kill_rank(folder, "killed", 1, 4))
        code = run.wait(timeout=300)
    text = (folder / "killed.txt").read_text()
    check("killed once, torchrun starts it again, and it ends well", code == 0)
    check("it went on from a checkpoint", "going on from" in text)
    if code:
        print(text)
    else:
        check("its records are those of a run that was never killed", records(folder, "whole") == records(folder, "killed"))
print(f"[interop] test cases: {len(results)} | {sum(results)} passed | {len(results) - sum(results)} failed")
sys.exit(not all(results))
