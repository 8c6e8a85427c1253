"""Sums up meson's test logs: the summary lines of each test, and last `N passed, N failed`.

A program that prints `[name] test cases: ... N passed | N failed` counts with its cases, any other test as one.
One that dies, is stopped or fails without naming a failed case counts as one failure.
"""

import json
import re
import sys

CASES = re.compile(r"^\[(?:\w+)\] test cases: .*?(\d+) passed \| +(\d+) failed", re.MULTILINE)
SUMMARY = re.compile(r"^\[\w+\] (?:test cases|assertions):.*$", re.MULTILINE)


def counts(entry):
    """Passed and failed cases of one test."""
    ok = entry["result"] in ("OK", "EXPECTEDFAIL")
    if entry["result"] == "SKIP":
        return 0, 0
    found = CASES.findall(entry.get("stdout") or "")
    if not found:
        return int(ok), int(not ok)
    passed, failed = (sum(int(pair[i]) for pair in found) for i in (0, 1))
    return passed, failed if ok else max(failed, 1)


def main(arguments):
    passed = failed = 0
    for argument in arguments:
        build, path = argument.split("=", 1)
        try:
            with open(path, encoding="utf-8", errors="replace") as log:
                entries = [json.loads(line) for line in log]
        except OSError as error:
            print(f"{build}: no test log: {error}")
            entries = []
        if not entries:
            print(f"{build}: no test ran")
            failed += 1
        for entry in entries:
            good, bad = counts(entry)
            passed, failed = passed + good, failed + bad
            name = f"{build}: {entry['name'].rsplit(':', 1)[-1]}"
            lines = SUMMARY.findall(entry.get("stdout") or "")
            for line in lines or [entry["result"]]:
                print(f"{name}: {line}")
            if bad and entry["result"] != "OK":
                print(f"{name}: {entry['result']}, exit status {entry.get('returncode')}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
