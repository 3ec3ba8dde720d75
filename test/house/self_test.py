#!/usr/bin/env python3
"""The house rules must be able to fail. In: house.py. Out: exit 0 when each rule finds the breach that is planted in a small tree, 1 otherwise."""
import pathlib
import subprocess
import sys
import tempfile

HOUSE = pathlib.Path(__file__).resolve().parent / "house.py"
# Per rule: files of a tree that breaks it, and a word of the line that must say so.
BREACHES = {
    "edges": [({"runtime/a.cpp": '// x\n#include "compiler/graph/Graph.h"\n'}, "runtime must not include"),
              ({"compiler/a.cpp": '// x\n#include "passes/Passes.h"\n'}, "compiler must not include"),
              ({"compiler/a.cpp": '// x\n#include "runtime/Context.h"\n'}, "compiler must not include"),
              ({"kernels/cpu/a.c": "// x\n#include <string.h>\n"}, "freestanding")],
    "files": [({"passes/a.cpp": "int x;\n"}, "no opening comment"), ({"passes/a.cpp": "// x\n" * 601}, "the ceiling is 600")],
    "passes": [({"passes/Passes.td": 'def FooBarPass : TarePass<"graph-foo-bar"> {}\n'}, "passes/FooBar.cpp is missing"),
               ({"passes/Passes.td": 'def FooBarPass : TarePass<"graph-bar"> {}\n', "passes/FooBar.cpp": "// x\n"}, "has the argument graph-bar"),
               ({"passes/Passes.td": 'def FooPass : TarePass<"graph-foo"> {}\n', "passes/Foo.cpp": "// x\n", "test/passes/foo.mlir": "// RUN: true\n"}, "through FileCheck")],
    "text": [({"tools/a.sh": "#!/bin/sh\n# x\ncd /wo" + "rk/here\n"}, "a path of one machine"), ({"passes/a.cpp": "// x\n\tint x;\n"}, "tab"),
             ({"passes/a.cpp": "// x \n"}, "trailing blank"), ({"passes/a.cpp": "// TO" + "DO later\n"}, "postponed work")],
    "docs": [({"README.md": "see [x](docs/absent.md)\n"}, "docs/absent.md, which does not exist"), ({"README.md": "x\n"}, "tools/quickstart.sh is missing")],
}


def main():
    wrong = 0
    for rule, cases in BREACHES.items():
        for files, word in cases:
            with tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                for name, content in {"passes/Passes.td": "// x\n", **files, "test/house/house.py": HOUSE.read_text(encoding="utf-8")}.items():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(content, encoding="utf-8")
                result = subprocess.run([sys.executable, root / "test/house/house.py", rule], capture_output=True, text=True)
                if result.returncode != 1 or word not in result.stdout:
                    wrong += 1
                    print(f"rule {rule} does not find '{word}':\n{result.stdout}{result.stderr}")
    print("house rules: every planted breach is found" if not wrong else f"{wrong} breaches were missed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
