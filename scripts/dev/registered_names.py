#!/usr/bin/env python3
"""registered_names.py: finds names of registered entries in files that should not know them.

The name of a model, data set, collective, selector, exchange or sparsifier, an alias, or a key of
its settings (gtopk.rotate) is a string literal in the file that registers it, and in registrations:
in the parts of a sparsifier, as the default of a setting. Other code asks the entry for a property
or uses a constant that is defined in the file of the entry. Prints a line for each other literal,
and for each exception below that no file needs; exit code 1 if there is any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
AREAS = ("engine", "layers", "models", "data", "comm", "sparsify", "apps")
OPERATION = "an operation of MPI"
EXCEPTIONS = {  # literals that are no names of entries, or the subject of a program
    ("apps/bench/comm.cpp", "allgather"): OPERATION,
    ("apps/bench/comm.cpp", "allreduce"): OPERATION,
    ("apps/bench/comm.cpp", "root"): "the option --root",
    ("apps/bench/comm_cases.cpp", "allgather"): OPERATION,
    ("apps/bench/comm_cases.cpp", "allreduce"): OPERATION,
    ("apps/bench/encode.cpp", "wire"): "what the subcommand measures",
    ("apps/library/reducer.cpp", "momentum_correction"): "the option --momentum-correction",
    ("apps/train/config.cpp", "allreduce"): "the option --allreduce",
    ("apps/train/plan_report.cpp", "allreduce"): "the option --allreduce",
    ("comm/collectives/allgather.cpp", "allgather"): OPERATION,
    ("comm/collectives/collectives.cpp", "allreduce"): OPERATION,
    ("data/cifar/shapes.cpp", "ring"): "a class of images",
    ("sparsify/selectors/randk.cpp", "shared"): "a value of randk.seed",
}
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def code_of(path):
    return re.sub(r"//.*|/\*[^*]*\*/", "", path.read_text())


def registrations(text):
    """(begin, end) of each statement that registers entries, or holds the parts of several."""
    for start in re.finditer(r"^const (bool|Sparsifier) \w+ =", text, re.M):
        depth, at = 0, start.end()
        while depth or text[at] != ";":
            literal = LITERAL.match(text, at)
            depth += (text[at] in "({") - (text[at] in ")}")
            at = literal.end() if literal else at + 1
        yield start.start(), at


def names_in(text):
    """The names and aliases that a file registers."""
    constants = dict(re.findall(r'const char\* (?:const )?(k\w+) = "(\w+)";', text))
    for begin, end in registrations(text):
        statement = text[begin:end]
        if "transports()" in statement:
            continue
        for name, constant in re.findall(
                r'\badd\w*\(\s*\{?\s*(?:\.name = )?(?:"(\w+)"|(k\w+)),', statement):
            yield name or constants[constant]
        yield from re.findall(r'\{"(\w+)"\}\s*\}\)', statement)


def main():
    files = {path.relative_to(ROOT).as_posix(): code_of(path) for area in AREAS
             for path in sorted((ROOT / area).rglob("*")) if path.suffix in {".cpp", ".h", ".cu"}}
    owners = {}
    for path, text in files.items():
        if re.match("models|data|comm|sparsify", path):
            for name in names_in(text):
                owners.setdefault(name, set()).add(path.rpartition(".")[0])
    findings, unused = [], set(EXCEPTIONS)
    for path, text in files.items():
        stem, recipes = path.rpartition(".")[0], list(registrations(text))
        for literal in LITERAL.finditer(text):
            if any(b <= literal.start() < e for b, e in recipes):
                continue
            for name in re.split("[,()]", literal[1]):  # a list, or a raw string
                of = owners.get(name.partition(".")[0], {stem})
                if stem in of or not re.fullmatch(r"\w+(\.\w+)?", name):
                    continue
                unused.discard((path, name))
                if (path, name) not in EXCEPTIONS:
                    line = text.count("\n", 0, literal.start()) + 1
                    findings.append(f'{path}:{line}: name: "{name}" of {", ".join(sorted(of))}')
    findings += [f"scripts/dev/registered_names.py: name: no exception needed for {path}, {name}"
                 for path, name in sorted(unused)]
    print("\n".join(findings), end="\n" if findings else "")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
