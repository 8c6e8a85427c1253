"""Compares a run's TensorBoard events, as TensorBoard itself reads them, with its metrics.jsonl: tensorboard_events.py SLUICE.

The runs are stopped, killed and resumed: what a resumed run does again must not be there twice.
"""
import json
import logging
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

CONFIG = """
[data]
train = "tree/train"
val = "tree/val"
image_size = 32
val_resize = 36
max_file = "1MiB"
max_scratch = "8MiB"
[budget]
ram = "64MiB"
[model]
arch = "resnet18"
device = "cpu"
[train]
epochs = 2
batch = 4
threads = 1
[optim]
lr = 0.01
[schedule]
warmup_epochs = 0
[log]
every = 1
"""

sluice = pathlib.Path(sys.argv[1]).resolve()
outcomes = []
logging.getLogger("tensorboard").setLevel(logging.ERROR)  # it warns of each restart


def check(what, good):
    outcomes.append(bool(good))
    print("passed:" if good else "FAILED:", what)


def start(folder, name, *more):
    words = [sluice, "train", "tiny.toml", "--set", f"log.name={name}"]
    for word in more:
        words += word.split()
    return subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL)


def records(run):
    path = run / "metrics.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def stop_after(process, run, signal_number, enough):
    """Sends the signal once the records say so; whether the program was still at work then."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if enough(records(run)):
            process.send_signal(signal_number)
            break
        time.sleep(0.005)
    return process.wait(timeout=120)


def in_metrics(run):
    values = {}
    for record in records(run):
        for key, value in record.items():
            if key not in ("epoch", "step") and isinstance(value, (int, float)):
                values.setdefault(key, []).append((record["step"], numpy.float32(value)))
    return values


def in_events(run):
    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, numpy.float32(e.value)) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def compare(what, run):
    theirs, ours = in_events(run), in_metrics(run)
    check(f"{what}: the same tags ({len(ours)})", ours and theirs.keys() == ours.keys())
    for tag in sorted(ours):
        if theirs.get(tag) != ours[tag]:
            print("  ", tag, "metrics.jsonl:", ours[tag], "events:", theirs.get(tag))
    check(f"{what}: the same values", theirs == ours)
    steps = [step for step, _ in theirs.get("train/loss", [])]
    check(f"{what}: each step once ({len(steps)})", steps == list(range(1, len(steps) + 1)))


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    subprocess.run([sluice, "synth", "tree", "--classes", "3", "--train-per-class", "16", "--val-per-class", "4", "--size", "64"],
                   cwd=folder, check=True)
    (folder / "tiny.toml").write_text(CONFIG)  # 12 steps an epoch

    run = folder / "runs" / "stopped"
    code = stop_after(start(folder, "stopped"), run, signal.SIGINT, lambda r: len(r) >= 3)
    check("SIGINT in mid-epoch", code == 130 and records(run)[-2]["step"] % 12 != 0)
    compare("stopped", run)
    check("resumed to the end", start(folder, "stopped", "--resume auto").wait() == 0)
    check("two event files", len(list(run.glob("events.out.tfevents.*"))) == 2)
    compare("resumed", run)
    check("resumed once more", start(folder, "stopped", "--resume auto").wait() == 0)
    compare("resumed with nothing left to do", run)

    run = folder / "runs" / "killed"
    saves = "--set checkpoint.every_steps=5"
    code = stop_after(start(folder, "killed", saves), run, signal.SIGKILL, lambda r: len(r) >= 9)
    check("killed some steps after a checkpoint", code == -signal.SIGKILL)
    check("resumed from that checkpoint", start(folder, "killed", saves, "--resume auto").wait() == 0)
    compare("killed and resumed", run)

    # Step 12 is saved before its validation and again after it. Killed while that is written, a run goes on
    # from the first and validates anew: at the same step.
    run = folder / "runs" / "twice"
    saves = "--set checkpoint.every_steps=12"
    code = stop_after(start(folder, "twice", saves), run, signal.SIGKILL, lambda r: any("val/loss" in x for x in r))
    check("killed at the end of a validation", code == -signal.SIGKILL)
    check("validated anew", start(folder, "twice", saves, "--resume auto").wait() == 0)
    compare("validated anew", run)

    run = folder / "runs" / "anew"
    code = stop_after(start(folder, "anew"), run, signal.SIGKILL, lambda r: len(r) >= 2)
    check("killed before its first checkpoint", code == -signal.SIGKILL)
    check("begun again", start(folder, "anew", "--resume auto").wait() == 0)
    compare("begun again", run)

    check("log.tensorboard=false", start(folder, "none", "--set log.tensorboard=false --set train.max_steps=2").wait() == 0)
    check("no event file then", not list((folder / "runs" / "none").glob("events*")))
print(f"[interop] test cases: {len(outcomes)} | {sum(outcomes)} passed | {outcomes.count(False)} failed")
sys.exit(False in outcomes)
