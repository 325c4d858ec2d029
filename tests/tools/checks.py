#!/usr/bin/env python3
"""The checks must be able to fail: each gets a small tree with one fault and one without."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LONG_BODY = "    x++;\n" * 90
BASE = {"core/base/base.h": "", "core/graph/graph.h": "", "core/graph/inner.h": "", "abi/ent_types.h": ""}

CASES = [
    # (check, files, must pass)
    ("include_check", {"core/graph/a.c": '#include "core/base/base.h"\n#include "inner.h"\n'}, True),
    ("include_check", {"core/base/a.c": '#include "core/graph/graph.h"\n'}, False),
    ("include_check", {"core/rewrite/a.c": '#include "core/graph/graph.h"\n'}, True),
    ("include_check", {"core/rewrite/a.c": '#include "core/graph/inner.h"\n'}, False),
    ("include_check", {"core/rewrite/a.c": '#include "../graph/inner.h"\n'}, False),
    ("include_check", {"core/rewrite/a.c": '#include "core/gone/gone.h"\n'}, False),
    ("include_check", {"abi/a.h": "#include <stdint.h>\n"}, True),
    ("include_check", {"abi/a.h": "#include <stdlib.h>\n"}, False),
    ("include_check", {"plugins/one/a.c": '#include "abi/ent_types.h"\n'}, True),
    ("include_check", {"plugins/one/a.c": '#include "core/base/base.h"\n'}, False),
    ("include_check", {"plugins/one/a.c": '#include "plugins/two/b.h"\n', "plugins/two/b.h": ""}, False),
    ("size_check", {"core/base/a.c": "int f(int x)\n{\n    x++;\n    return x;\n}\n"}, True),
    ("size_check", {"core/base/a.c": "int f(int x)\n{\n" + LONG_BODY + "}\n"}, False),
    ("size_check", {"core/base/a.c": "int f(int x) {\n" + LONG_BODY + "}\n"}, False),
    ("size_check", {"core/base/a.c": "static int f(int x,\n             int y)\n{\n" + LONG_BODY + "}\n"}, False),
    ("size_check", {"core/base/a.c": "/* size: table */\nint f(int x)\n{\n" + LONG_BODY + "}\n"}, True),
    ("size_check", {"core/base/a.c": "static const int t[] = {\n" + "    1,\n" * 90 + "};\n"}, True),
    ("size_check", {"core/base/a.c": "int a;\n" * 801}, False),
]


def main():
    failed = 0
    for number, (check, files, must_pass) in enumerate(CASES):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**BASE, **files}.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            result = subprocess.run([ROOT / "tools" / check, folder], capture_output=True, text=True)
        if (result.returncode == 0) != must_pass:
            failed += 1
            print(f"case {number}: {check} on {list(files)}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
