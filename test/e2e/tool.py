"""What the Python tests that run the command line share. In: the build folder as the script's first argument. Out: tare(...) runs it and gives its JSON object; Checker collects what
does not hold and prints it.
"""
import json
import pathlib
import subprocess
import sys

TARE = pathlib.Path(sys.argv[1]) / "bin" / "tare"


def tare(*arguments):
    """The command's JSON object, or None when it prints none; a failing command ends the test with its messages."""
    result = subprocess.run([TARE, *map(str, arguments), "--json"], capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"tare {' '.join(map(str, arguments))} gave {result.returncode}:\n{result.stdout}{result.stderr}")
    return json.loads(result.stdout) if result.stdout else None


class Checker:
    """check(good, text) prints a line; `quiet` prints only what does not hold."""

    def __init__(self):
        self.failures = []

    def __call__(self, good, text, quiet=False):
        if not good or not quiet:
            print(("ok    " if good else "WRONG ") + text, flush=True)
        if not good:
            self.failures.append(text)
