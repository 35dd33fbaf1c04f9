#!/usr/bin/env python3
"""Checks the names of types and modules against docs/glossary.md's rules. Fails with each name that breaks one.

1. No type or module is called by a participle or a metaphor (Told, Purse, Door …).
2. No type name has more than three definitions outside tests; `Error` and `Args` may have more.
3. No doc comment begins with What, Whether, So many and the like.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BANNED = (
    "asked told said given made seen kept held found tried wanted taken counted shown known standing answering asking doing"
    " deed deeds door purse errand courier crier desk workshop around passage talk bell news letter word words"
).split()
MAY_REPEAT = {"Error", "Args"}
# The application layer replaces these; until then they keep their names.
TO_BE_REPLACED = {"Deeds", "Desk", "Around"}
ITEM = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?(?:unsafe )?(struct|enum|trait|type|union|mod) (?:r#)?(\w+)", re.M)
RIDDLE = re.compile(r"^\s*//[/!] (What|Whether|So (?:many|much|long|often)|Whoever|All that)\b")


def sources():
    listed = subprocess.run(["git", "ls-files", "crates/*.rs"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split("\n") if path and (ROOT / path).exists()]


def is_test(path):
    return "/tests/" in path or path.endswith("tests.rs")


def without_tests(text):
    """Removes test modules. A test module with its own file is one line; an inline one ends at the next `}` in column 0."""
    return re.sub(r"#\[cfg\(test\)\]\nmod \w+(?:;| \{.*?^\})", "", text, flags=re.M | re.S)


def main():
    problems, places = [], collections.defaultdict(list)
    for path in sources():
        text = (ROOT / path).read_text()
        for number, line in enumerate(text.split("\n"), 1):
            if RIDDLE.match(line):
                problems.append(f"{path}:{number}: doc comment must state what the item is or does: {line.strip()}")
        if is_test(path):
            continue
        for match in ITEM.finditer(without_tests(text)):
            indent, kind, name = match.groups()
            if name.lower() in BANNED and name not in TO_BE_REPLACED:
                problems.append(f"{path}: {kind} {name}: use a standard noun (docs/glossary.md)")
            # An indented `type` is an associated type, whose name its trait decides.
            if kind != "mod" and not (kind == "type" and indent):
                places[name].append(path)
    for name, paths in places.items():
        if len(paths) > 3 and name not in MAY_REPEAT:
            problems.append(f"{name} is defined {len(paths)} times: {', '.join(paths)}")
    print("\n".join(problems))
    print(f"{len(problems)} problems in the names and comments of {sum(map(len, places.values()))} types")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
