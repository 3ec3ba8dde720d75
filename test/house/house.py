#!/usr/bin/env python3
"""House rules as tests (docs/architecture.md, "Edges" and the phase table; CONTRIBUTING in one file). In: the tree this file lies in. Out: exit 1 and one
line per breach, exit 0 and a summary otherwise. Usage: house.py RULE with RULE one of edges, files, passes, text, docs. Standard library only.
"""
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = {".cpp", ".h", ".c", ".cuh", ".td", ".py", ".sh", ".fbs", ".cmake", ".inc"}
# What a folder may include of ours; the runtime's schema and ABI are all that the compiler may see of it, and of the kernels only their declarations (the kernel
# benchmark under tools calls them too).
EDGES = {
    "tools": {"tools", "passes", "compiler", "runtime", "kernels/cpu/kernels.h"},
    "passes": {"passes", "compiler"},
    "compiler": {"compiler", "kernels/cpu/kernels.h", "runtime/engine_generated.h", "runtime/engine.fbs", "runtime/code_abi.h", "runtime/format.h", "runtime/tare.h"},
    "runtime": {"runtime"},
    "kernels": {"kernels"},
}


def tracked():
    """All files of the tree: git's list where there is a repository, a walk without build folders where there is none."""
    try:
        names = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
        return sorted(ROOT / n for n in names if n and (ROOT / n).is_file())
    except (OSError, subprocess.CalledProcessError):
        return sorted(p for p in ROOT.rglob("*") if p.is_file() and not any(part.startswith(("build", ".git", ".cache")) for part in p.relative_to(ROOT).parts))


def text_of(path):
    return path.read_text(encoding="utf-8", errors="replace")


def name(path):
    return path.relative_to(ROOT).as_posix()


def sources():
    return [p for p in tracked() if p.suffix in SOURCE and not name(p).startswith("test/data/")]


def edges():
    """Includes between folders go one way: tools -> passes -> compiler -> runtime; kernels and runtime include nothing of ours."""
    ours = set(EDGES) | {"test"}
    for path in sources():
        folder = name(path).split("/")[0]
        if folder not in EDGES:
            continue
        for line, content in enumerate(text_of(path).split("\n"), 1):
            found = re.match(r'\s*(?:#\s*)?include\s*"([^"]+)"', content)
            if not found:
                continue
            target = found.group(1)
            if target.split("/")[0] not in ours or (folder == "runtime" and "/" not in target):
                continue
            if target.split("/")[0] not in EDGES[folder] and target not in EDGES[folder]:
                yield f"{name(path)}:{line}: {folder} must not include {target}"
    for path in sources():
        if name(path).startswith("kernels/") and path.suffix in {".c", ".h", ".cuh"}:
            for line, content in enumerate(text_of(path).split("\n"), 1):
                if re.match(r"\s*#\s*include\s*<(stdio|stdlib|string|math|assert)\.h>", content):
                    yield f"{name(path)}:{line}: kernels are freestanding: no libc header"


def opening_comment(path):
    lines = text_of(path).split("\n")
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    head = "\n".join(lines[:12]).lstrip()
    return head.startswith(("//", "/*", "#", '"""', "//===")) and not head.startswith(("#pragma", "#include", "#ifndef"))


def files():
    """Length: median <= 150 lines, 90 % <= 400, none over 600. Every source file opens with a comment."""
    lengths = {}
    for path in sources():
        lengths[name(path)] = text_of(path).count("\n")
        if not opening_comment(path):
            yield f"{name(path)}: no opening comment (what comes in, what goes out, what must hold)"
    for path, length in lengths.items():
        if length > 600:
            yield f"{path}: {length} lines, the ceiling is 600"
    ordered = sorted(lengths.values())
    if ordered and statistics.median(ordered) > 150:
        yield f"median file length {statistics.median(ordered)}, at most 150"
    if ordered and ordered[int(0.9 * (len(ordered) - 1))] > 400:
        yield f"90th percentile of file lengths {ordered[int(0.9 * (len(ordered) - 1))]}, at most 400"


def snake(camel):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", camel).lower()


def passes():
    """One pass, one file, one lit test, one name; and no pass file without a def."""
    table = text_of(ROOT / "passes" / "Passes.td")
    defined = re.findall(r'^def\s+(\w+)Pass\s*:\s*\w+<\s*"([^"]+)"', table, re.M)
    for camel, argument in defined:
        words = snake(camel).replace("_", "-")
        if argument not in (words, "graph-" + words, "plan-" + words):
            yield f"passes/Passes.td: {camel}Pass has the argument {argument}, expected graph-{words}"
        if not (ROOT / "passes" / f"{camel}.cpp").is_file():
            yield f"passes/{camel}.cpp is missing ({argument})"
        test = ROOT / "test" / "passes" / f"{snake(camel)}.mlir"
        if not test.is_file():
            yield f"{name(test)} is missing ({argument})"
        elif argument not in text_of(test) or "FileCheck" not in text_of(test):
            yield f"{name(test)} does not run {argument} through FileCheck"
    known = {camel for camel, _ in defined}
    for path in (ROOT / "passes").glob("*.cpp"):
        if "GEN_PASS_DEF_" in text_of(path) and path.stem not in known:
            yield f"{name(path)} defines a pass that Passes.td does not have under that name"


def text():
    """No machine's paths, no tabs, no trailing blanks, no over-long code lines, no registry hosts, nothing postponed without a word."""
    machine = re.compile(r"(?<![\w.])/(?:work|root|home|farm)/[A-Za-z]|/tmp/[a-z_]+\.[0-9]+")
    host = re.compile(r"https?://(?!(?:www\.)?(?:apache\.org|w3\.org|json\.schemastore\.org|github\.com|json-schema\.org|onnx\.ai|arxiv\.org|opensource\.org)\b)[\w.-]+")
    for path in sources() + [p for p in tracked() if p.suffix in {".md", ".txt", ".yaml", ".yml", ".json"} and not name(p).startswith(("test/data/", "examples/"))]:
        if path.name in {"house.py", "self_test.py", "LICENSE"}:
            continue
        for line, content in enumerate(text_of(path).split("\n"), 1):
            where = f"{name(path)}:{line}"
            if machine.search(content):
                yield f"{where}: a path of one machine: {content.strip()[:80]}"
            if host.search(content) and path.suffix != ".md":
                yield f"{where}: a host: {content.strip()[:80]}"
            if path.suffix in SOURCE and "\t" in content:
                yield f"{where}: tab"
            if path.suffix in SOURCE and content != content.rstrip():
                yield f"{where}: trailing blank"
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", content):
                yield f"{where}: postponed work belongs into an issue: {content.strip()[:80]}"
            if "DISABLED_" in content or "GTEST_SKIP()" in content and "<<" not in content:
                yield f"{where}: a test is switched off without a reason"


def docs():
    """Files that README.md and docs/*.md link to exist; the two commands are executable; licence is there."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if not path.is_file():
            yield f"{name(path)} is missing"
            continue
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(path)):
            if "://" not in target and not (path.parent / target).exists():
                yield f"{name(path)}: link to {target}, which does not exist"
    for page in "architecture engine-format cli reports training security performance add-an-op add-a-pass add-a-kernel ops passes".split():
        if not (ROOT / "docs" / f"{page}.md").is_file():
            yield f"docs/{page}.md is missing"
    for script in ["tools/quickstart.sh", "tools/test.sh", ".ci/run"]:
        if not (ROOT / script).is_file() or not (ROOT / script).stat().st_mode & 0o100:
            yield f"{script} is missing or not executable"
    if not (ROOT / "LICENSE").is_file():
        yield "LICENSE is missing"


def main():
    rules = {"edges": edges, "files": files, "passes": passes, "text": text, "docs": docs}
    if len(sys.argv) != 2 or sys.argv[1] not in rules:
        print(__doc__)
        return 2
    breaches = list(rules[sys.argv[1]]())
    print("\n".join(breaches) if breaches else f"house rule {sys.argv[1]}: holds for {len(tracked())} files")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
