#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the imports of every crate: no cycles between files, and no import from a higher layer
(floor) of docs/ARCHITECTURE.md.

    tests/lib/floors.py [CRATE ...]       all crates, or some
    tests/lib/floors.py --graph CRATE     what each file imports, and which names

An import is a `use` or a path in the code that leads to an item of another file of the crate. That is
the file that defines the item, not one that re-exports it (`pub use`). Tests, `mod` items and method
calls do not count.
The page lists the floors as code blocks that begin with ```floors CRATE: one row per floor, the highest
first. The files of a row import from their own row and from the rows below. A word of a row is a file
without `.rs`, or a folder with all of its files.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
ITEM = re.compile(
    r"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(?:mut\s+)?(?:r#)?(\w+)"
)
MOD = re.compile(r"((?:#\[[^\]]*\]\s*)*)(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*([;{])")
USE = re.compile(r"((?:#\[[^\]]*\]\s*)*)(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:.$'])((?:\$?[A-Za-z_]\w*\s*::\s*)+)([A-Za-z_]\w*)")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def stripped(text):
    """Returns the text without comments, strings and characters."""
    out, at = [], 0
    token = re.compile(
        r'//[^\n]*|/\*|b?r(#*)"|b?"(?:[^"\\]|\\.)*"|b?\'(?:[^\'\\]|\\.[^\']*)\'', re.DOTALL
    )
    while match := token.search(text, at):
        out.append(text[at : match.start()])
        end = match.end()
        if match.group(0) == "/*":
            depth = 1
            while depth and end < len(text):
                if text.startswith("/*", end):
                    depth, end = depth + 1, end + 2
                elif text.startswith("*/", end):
                    depth, end = depth - 1, end + 2
                else:
                    end += 1
        elif match.group(1) is not None:
            close = '"' + match.group(1)
            end = text.index(close, end) + len(close)
        out.append(re.sub(r"[^\n]", " ", text[match.start() : end]))
        at = end
    return "".join(out) + text[at:]


def closing(text, at):
    """Returns the position after the brace that closes the one at `at`."""
    depth = 0
    for end in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if not depth:
            return end + 1
    return len(text)


def outermost(text):
    """Returns the text without the contents of braces, because methods are not items of a
    module."""
    out, at = [], 0
    while (brace := text.find("{", at)) >= 0:
        out.append(text[at:brace])
        at = closing(text, brace)
    return " ".join(out) + text[at:]


def is_test(attributes):
    return bool(re.search(r"cfg\((?:all\()?(?:test|fuzzing|doc)\b", attributes)) or "loom" in attributes


class Module:
    """A module: a file, or a part of one."""

    def __init__(self, name, parent, file, place):
        self.name, self.parent, self.file, self.place = name, parent, file, place
        self.children, self.items, self.handed_on, self.globs = {}, set(), {}, []
        self.uses, self.text = [], ""

    def read(self, text):
        for attributes, public, tree in self.take(text):
            for path, name in flat(tree, []):
                self.uses.append((path, name, bool(public)))
        for path, name, _ in self.uses:
            if name == "*":
                self.globs.append(path)
            else:
                self.handed_on[name] = path

    def take(self, text):
        """Reads the modules that the text declares or contains, and stores the rest of the text.
        Returns the attributes, the visibility and the tree of each `use`."""
        at = 0
        while match := MOD.search(text, at):
            attributes, name, sign = match.groups()
            end = match.end()
            if sign == "{":
                end = closing(text, match.end() - 1)
                if not is_test(attributes):
                    child = Module(name, self, self.file, self.place / name)
                    child.read(text[match.end() : end - 1])
                    self.children[name] = child
            elif not is_test(attributes):
                path = re.search(r'path\s*=\s*"([^"]+)"', self.raw(match.start(), match.end()))
                self.declare(name, path and path.group(1))
            text = text[: match.start()] + re.sub(r"[^\n]", " ", text[match.start() : end]) + text[end:]
            at = end
        uses = []
        for match in USE.finditer(text):
            if not is_test(match.group(1)):
                uses.append(match.groups())
        self.text = USE.sub(blank, text)
        self.items = set(ITEM.findall(outermost(self.text)))
        return uses

    def raw(self, start, end):
        return self.source[start:end] if hasattr(self, "source") else ""

    def declare(self, name, path):
        where = [self.file.parent / path] if path else [
            self.place / f"{name}.rs",
            self.place / name / "mod.rs",
        ]
        for file in where:
            if file.exists():
                place = file.parent if file.name == "mod.rs" else file.with_suffix("")
                self.children[name] = load(file, name, self, place)
                return
        sys.exit(f"{self.file}: no file of mod {name}")


def load(file, name, parent, place):
    module = Module(name, parent, file, place)
    module.source = re.sub(r"pub\(in [^)]*\)", lambda of: "pub" + " " * (len(of.group(0)) - 3), file.read_text())
    module.read(stripped(module.source))
    return module


def flat(tree, prefix):
    """Yields every path of a `use`, with the name that it introduces."""
    tree = tree.strip()
    depth, start, parts = 0, 0, []
    for at, sign in enumerate(tree + ","):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and not depth:
            parts.append(tree[start:at].strip())
            start = at + 1
    for part in filter(None, parts):
        head, brace, rest = part.partition("{")
        words = prefix + [word.strip() for word in head.split("::") if word.strip()]
        if brace:
            yield from flat(rest.rstrip()[:-1], words)
            continue
        last, _, other = words[-1].partition(" as ")
        path = words[:-1] + ([] if last == "self" and len(words) > 1 else [last])
        yield path, (other.strip() or path[-1])


def target(module, path, seen=()):
    """Returns the file that defines the item of a path, and the item's name. Returns None if this crate
    has no such item."""
    root = module
    while root.parent:
        root = root.parent
    at, words = module, list(path)
    first = words[0].lstrip("$")
    if first == "crate":
        at, words = root, words[1:]
    elif first in ("self", "super"):
        while words and words[0] in ("self", "super"):
            at = at.parent if words[0] == "super" else at
            words = words[1:]
    elif first not in module.children:
        return within(module, words, seen, False)
    return within(at, words, seen, True)


def within(module, words, seen, exact):
    if not words:
        return module.file, "self"
    word, rest = words[0], words[1:]
    if (id(module), word) in seen:
        return None
    seen = (*seen, (id(module), word))
    if word in module.children:
        return within(module.children[word], rest, seen, True)
    if word in module.items:
        return module.file, word
    if word in module.handed_on:
        path = module.handed_on[word]
        if path[:1] != [word]:
            return target(module, path + rest, seen)
    for path in module.globs:
        found = target(module, [*path[:-1], word, *rest], seen) if path[-1] == "*" else None
        if found:
            return found
    return None


def imports(module, found):
    """Adds the imports of a module and its children to `found`, which maps each file to the files that it
    imports and their imported names. Returns `found`."""
    paths = [(path, name) for path, name, _ in module.uses]
    for match in PATH.finditer(module.text):
        words = [word.strip() for word in match.group(1).split("::")[:-1]] + [match.group(2)]
        paths.append((words, words[-1]))
    for path, name in paths:
        if name == "*":
            path = path[:-1]
            if not path:
                continue
        hit = target(module, path)
        if hit and hit[0] != module.file:
            found.setdefault(module.file, {}).setdefault(hit[0], set()).add(hit[1])
    for child in module.children.values():
        imports(child, found)
    return found


def files_of(module):
    files = {module.file}
    for child in module.children.values():
        files |= files_of(child)
    return files


def circles(graph):
    """Returns the groups of files that import each other, directly or through other files. These
    are the strongly connected components of more than one file (Tarjan's algorithm)."""
    number, low, stack, out = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            circle = stack[stack.index(node) :]
            del stack[-len(circle) :]
            if len(circle) > 1:
                out.append(sorted(circle))

    sys.setrecursionlimit(10_000)
    for node in list(graph):
        if node not in number:
            visit(node)
    return out


def floors(crate):
    """Returns the rows of a crate, the highest first, or None if the page does not list them."""
    block = re.search(rf"```floors {crate}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return block and [row.split() for row in block.group(1).strip().splitlines()]


def floor_of(file, source, rows):
    name = file.relative_to(source).with_suffix("").as_posix()
    name = name.removesuffix("/mod")
    best = None
    for at, row in enumerate(rows):
        for word in row:
            if name == word or name.startswith(word + "/"):
                if best is None or len(word) > best[1]:
                    best = (at, len(word))
    return best and best[0]


def check(crate):
    source = ROOT / crate / "src"
    root = next(source / name for name in ("main.rs", "lib.rs") if (source / name).exists())
    tree = load(root, "crate", None, source)
    graph, files = imports(tree, {}), files_of(tree)
    short = lambda file: file.relative_to(source).as_posix()
    bad = []
    for circle in circles(graph):
        bad.append(f"{crate}: a circle of {len(circle)} files")
        for file in circle:
            for other in sorted(set(graph[file]) & set(circle)):
                names = ", ".join(sorted(graph[file][other]))
                bad.append(f"  {short(file)} -> {short(other)}: {names}")
    rows = floors(crate) or []
    if not rows:
        bad.append(f"{crate}: docs/ARCHITECTURE.md lists no floors of it")
    for word in sum(rows, []):
        if not any((source / name).exists() for name in (word, f"{word}.rs")):
            bad.append(f"{crate}: {word} is a floor in docs/ARCHITECTURE.md and no file")
    for file in sorted(files) if rows else ():
        own = floor_of(file, source, rows)
        if own is None:
            bad.append(f"{crate}: {short(file)} is on no floor of docs/ARCHITECTURE.md")
            continue
        for other, names in sorted(graph.get(file, {}).items()):
            below = floor_of(other, source, rows)
            if below is not None and below < own:
                bad.append(f"{crate}: {short(file)} imports upwards from {short(other)}: {', '.join(sorted(names))}")
    return bad, graph, short


def main():
    arguments = sys.argv[1:]
    crates = [file.parent.name for file in sorted(ROOT.glob("*/Cargo.toml"))]
    if arguments[:1] == ["--graph"]:
        _, graph, short = check(arguments[1])
        for file in sorted(graph):
            for other, names in sorted(graph[file].items()):
                print(f"{short(file)} -> {short(other)}: {', '.join(sorted(names))}")
        return
    bad = [line for crate in arguments or crates for line in check(crate)[0]]
    print("\n".join(bad) if bad else "no circle of files, no import up a floor")
    sys.exit(bool(bad))


main()
