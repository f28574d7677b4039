"""The journal of tests/shims/disk_faults.cpp, and the disk that it describes."""

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

CREATE, TRUNCATE = os.O_CREAT, os.O_TRUNC


@dataclass
class Call:
    number: int
    name: str
    flags: int
    offset: int
    path: str
    to: str
    data: bytes


def read(file):
    """The calls of a journal, in order."""
    calls = []
    with open(file, "rb") as journal:
        while line := journal.readline():
            number, name, flags, offset, size, rest = line.decode().rstrip("\n").split(" ", 5)
            path, to = rest.split("\t")
            data = journal.read(int(size))
            calls.append(Call(int(number), name, int(flags), int(offset), path, to, data))
    return calls


@dataclass
class File:
    """Content on the disk, and the writes that are not on it yet."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list = field(default_factory=list)  # (offset, data); data None cuts the file there

    def sync(self):
        for offset, data in self.pending:
            put(self.durable, offset, data)
        self.pending = []

    def after_cut(self, draw):
        content = bytearray(self.durable)
        kept = draw.choice([0, len(self.pending), draw.randint(0, len(self.pending))])
        for offset, data in self.pending[:kept]:
            put(content, offset, data)
        if kept < len(self.pending) and draw.random() < 0.5:
            offset, data = self.pending[kept]
            if data is not None:  # part of a write arrived, or only the new length
                part = draw.randint(0, len(data))
                put(content, offset, draw.choice([data[:part], bytes(part)]))
        return content


def put(content, offset, data):
    if data is None:
        del content[offset:]
        return
    content.extend(bytes(max(0, offset + len(data) - len(content))))
    content[offset : offset + len(data)] = data


@dataclass
class Folder:
    """Names on the disk, and the changes that are not on it yet: (name, File, Folder or None)."""

    durable: dict = field(default_factory=dict)
    live: dict = field(default_factory=dict)
    pending: list = field(default_factory=list)

    def change(self, *pairs):
        """Changes that reach the disk together."""
        self.pending.append(pairs)
        apply(self.live, pairs)

    def sync(self):
        self.durable, self.pending = dict(self.live), []

    def after_cut(self, draw):
        names = dict(self.durable)
        kept = draw.choice([0, len(self.pending), draw.randint(0, len(self.pending))])
        for pairs in self.pending[:kept]:
            apply(names, pairs)
        return names


def apply(names, pairs):
    for name, node in pairs:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    """The strictest disk that POSIX allows: fsync of a file keeps its content, fsync of a folder
    its names, and the disk may lose anything else. The changes of one folder reach it in order, as
    do the writes of one file; those of different ones in any order."""

    def __init__(self, root):
        self.root = Path(root)
        self.top = Folder()

    def load(self, path, folder=None):
        """Takes over what is in a folder as being on the disk."""
        folder = self.top if folder is None else folder
        for entry in Path(path).iterdir():
            if entry.is_dir():
                node = Folder()
                self.load(entry, node)
            else:
                node = File(bytearray(entry.read_bytes()))
            folder.change((entry.name, node))
        folder.sync()

    def find(self, path):
        node = self.top
        for part in Path(path).relative_to(self.root).parts:
            node = node.live.get(part)
            if node is None:
                return None
        return node

    def apply(self, call):
        path = Path(call.path)
        node = self.find(path)
        parent = self.find(path.parent) if path != self.root else None
        if call.name == "open" and call.flags & CREATE and node is None:
            parent.change((path.name, File()))
        elif call.name == "open" and call.flags & TRUNCATE and node is not None:
            node.pending.append((0, None))
        elif call.name == "truncate" and node is not None:
            node.pending.append((call.flags, None))
        elif call.name == "write" and node is not None:
            node.pending.append((call.offset, call.data))
        elif call.name in ("fsync", "fdatasync"):
            node.sync()
        elif call.name == "mkdir":
            parent.change((path.name, Folder()))
        elif call.name == "link":
            target = Path(call.to)
            self.find(target.parent).change((target.name, node))
        elif call.name == "unlink":
            parent.change((path.name, None))
        elif call.name == "rename":
            target = Path(call.to)
            if target.parent == path.parent:
                parent.change((path.name, None), (target.name, node))
            else:
                self.find(target.parent).change((target.name, node))
                parent.change((path.name, None))

    def write_cut(self, target, seed):
        """Writes to the folder `target` what is on the disk after a power cut now."""
        draw = random.Random(seed)

        def write(folder, path):
            path.mkdir(parents=True, exist_ok=True)
            for name, node in sorted(folder.after_cut(draw).items()):
                if isinstance(node, Folder):
                    write(node, path / name)
                else:
                    (path / name).write_bytes(node.after_cut(draw))

        write(self.top, Path(target))
