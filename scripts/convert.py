#!/usr/bin/env python3
"""convert.py FILE.pth [OUT.safetensors]: converts weights of PyTorch for --pretrained.

FILE is what torch.save wrote, in the format of any version since 0.4: a state dict, or a dict that
has one under "state_dict", "model_state_dict" or "model" (--key names another place). The tensors
keep their names, shapes and bits. OUT is FILE with the ending .safetensors unless given.

PyTorch is not needed, and nothing in FILE is executed: of its classes, tensors and dicts are read,
and objects of all others are dropped. A file that is at OUT must be a safetensors file.

Exit code 2: a wrong option or file.
"""

import collections
import io
import math
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from runs import UserError, nearest, output, safetensors, script
from runs.options import Parser

KEYS = ("state_dict", "model_state_dict", "model")
LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."  # a pickle of a magic number
# torch's classes of storages: the name of the type and the bytes of an element; safetensors files
# can have those of KINDS
KINDS = {"FloatStorage": ("F32", 4), "HalfStorage": ("F16", 2), "BFloat16Storage": ("BF16", 2),
         "DoubleStorage": ("F64", 8), "LongStorage": ("I64", 8), "IntStorage": ("I32", 4),
         "ShortStorage": ("I16", 2), "CharStorage": ("I8", 1), "ByteStorage": ("U8", 1),
         "BoolStorage": ("BOOL", 1)}
FOREIGN = {"ComplexFloatStorage": ("complex64", 8), "ComplexDoubleStorage": ("complex128", 16),
           "QInt8Storage": ("qint8", 1), "QUInt8Storage": ("quint8", 1),
           "QInt32Storage": ("qint32", 4), "UntypedStorage": ("untyped", 1)}
FORMATS: dict[int, Any] = {1: "B", 2: "H", 4: "I", 8: "Q"}  # of elements, for memoryview
REPEATED = 2**20  # most elements of a tensor that has more than its storage


class Storage(NamedTuple):
    """A row of elements in the file; `offset` is that of a part of it."""
    kind: tuple
    key: str
    offset: int = 0


class Tensor(NamedTuple):
    """A tensor whose elements are still in the file."""
    storage: Storage
    offset: int
    shape: tuple
    strides: tuple


class Dropped:
    """Stands for an object of any other class. It takes what a pickle does to one."""

    def __new__(cls, *values, **named):
        return super().__new__(cls)

    def __init__(self, *values, **named):
        pass

    def ignore(self, *values):
        pass

    __setstate__ = __setitem__ = append = extend = add = ignore


def tensor(storage, offset, shape, strides, *more):
    if any(more[2:]):  # the flags neg and conj
        raise UserError("has a tensor whose sign is a flag; save its resolve_neg().resolve_conj()")
    return Tensor(storage, offset, tuple(shape), tuple(strides))


def foreign_tensor(name):
    return Tensor(Storage((name, 0), ""), 0, (), ())


class Unpickler(pickle.Unpickler):
    """Makes tensors, ordered dicts and what pickles are made of; imports nothing."""

    known = {("collections", "OrderedDict"): collections.OrderedDict,
             ("torch._utils", "_rebuild_tensor"): tensor,
             ("torch._utils", "_rebuild_tensor_v2"): tensor,
             ("torch._utils", "_rebuild_tensor_v3"):  # of types that are younger than storages
                 lambda *values: foreign_tensor(values[6].__name__),
             ("torch._tensor", "_rebuild_from_type_v2"):  # of a derived class
                 lambda build, _, values, *__: build(*values),
             ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
             ("torch._utils", "_rebuild_parameter_with_state"): lambda data, *_: data,
             ("__builtin__", "getattr"): lambda *_: Dropped,  # a class in another
             ("builtins", "getattr"): lambda *_: Dropped,
             ("torch.storage", "UntypedStorage"): FOREIGN["UntypedStorage"],
             **{("torch", name): kind for name, kind in {**KINDS, **FOREIGN}.items()}}

    def find_class(self, module, name):
        if (module, name) in self.known:
            return self.known[module, name]
        if module == "torch._utils" and name.startswith("_rebuild_"):  # a sparse one, say
            return lambda *_: foreign_tensor(name.removeprefix("_rebuild_"))
        return type(name, (Dropped,), {})

    def persistent_load(self, pid):
        if pid[0] != "storage":  # the class of a module, with its source
            return Dropped
        _, kind, key, _, _, *view = pid
        if not isinstance(kind, tuple):
            kind = kind.__name__, 0
        # in the older format, perhaps a part of a storage: its own key, where it begins, its length
        return Storage(kind, str(key), view[0][1] if view and view[0] else 0)


def open_zip(file):
    """What the file holds, and a function that reads the storage of a key."""
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    root = next(name for name in names if name.endswith("/data.pkl"))[:-len("data.pkl")]
    if any(name.startswith(f"{root}code/") for name in names):
        raise UserError("is a TorchScript program; save its state_dict() with torch.save")
    if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
        raise UserError("has the bytes of numbers in the order of another machine")
    held = Unpickler(io.BytesIO(archive.read(f"{root}data.pkl"))).load()
    return held, lambda storage: archive.read(f"{root}data/{storage.key}")


def open_legacy(file):
    """The same for the format of PyTorch before 1.6: pickles, then the storages."""
    for _ in range(3):  # magic number, version, machine
        machine = Unpickler(file).load()
    if not machine["little_endian"]:
        raise UserError("has the bytes of numbers in the order of another machine")
    kinds = {}

    class Noting(Unpickler):
        def persistent_load(self, pid):
            storage = super().persistent_load(pid)
            if isinstance(storage, Storage):
                kinds[storage.key] = storage.kind
            return storage

    held = Noting(file).load()
    storages = {}
    for key in map(str, Unpickler(file).load()):
        (count,) = struct.unpack("<q", file.read(8))
        name, size = kinds[key]
        if not size:
            raise UserError(f"has numbers of the unknown type {name}")
        storages[key] = file.read(count * size)
    return held, lambda storage: storages[storage.key]


def opened(path):
    """What a file of PyTorch holds, and a function that reads its storages."""
    with open(path, "rb") as file:
        start = file.read(len(LEGACY))
        file.seek(0)
        whole = io.BytesIO(file.read())
    if start.startswith(b"PK\3\4"):
        return open_zip(whole)
    if start == LEGACY:
        return open_legacy(whole)
    if start[8:9] == b"{":
        raise UserError("is a safetensors file, which --pretrained takes as it is")
    raise UserError("is not a file that torch.save wrote")


def tensors_in(held, key):
    """The tensors by name, and the number of other values beside them."""
    if key and not (isinstance(held, dict) and key in held):
        known = [name for name in held if isinstance(name, str)] if isinstance(held, dict) else []
        raise UserError(f"has no {key}{nearest(key, known)}")
    found = key or (isinstance(held, dict) and next((k for k in KEYS if k in held), None))
    values = held[found] if found else held
    where = f' under "{found}"' if found else ""
    if not isinstance(values, dict):
        raise UserError(f"has no state dict{where}; save the state_dict() of the network")
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    if not tensors:
        raise UserError(f"has no tensors{where}; it has {', '.join(map(str, list(values)[:5]))} "
                        "(--key names the place of a state dict)")
    return tensors, len(values) - len(tensors)


def elements(name, one, stored):
    """The bytes of a tensor in the order of its shape; ValueError where they are outside."""
    size = one.storage.kind[1]
    first = one.storage.offset + one.offset
    if any(type(n) is not int or n < 0 for n in (first, *one.shape, *one.strides)):
        raise ValueError
    if 0 in one.shape:
        return b""
    last = first + sum((n - 1) * stride for n, stride in zip(one.shape, one.strides, strict=True))
    if (last + 1) * size > len(stored):
        raise ValueError
    count, expected = 1, []
    for length in reversed(one.shape):
        expected.append(count)
        count *= length
    if count > max(REPEATED, len(stored) // size):
        raise UserError(f"has the tensor {name}, which repeats {len(stored) // size} elements to "
                        f"have {count}; save its contiguous()")
    axes = [(length, stride, whole) for length, stride, whole
            in zip(one.shape, one.strides, reversed(expected)) if length > 1]
    if all(stride == whole for _, stride, whole in axes):
        return stored[first * size:(first + count) * size]
    flat = memoryview(stored).cast(FORMATS[size])

    def rows(at, axes):
        length, stride, _ = axes[0]
        if len(axes) == 1:
            step = flat[at:at + (length - 1) * stride + 1:stride or 1].tobytes()
            yield step if stride else step * length
        else:
            for i in range(length):
                yield from rows(at + i * stride, axes[1:])

    return b"".join(rows(first, axes))


def written(tensors, read):
    """The bytes of the safetensors file, the widest elements first, so that all are aligned."""
    parts = []
    stored: dict[str, bytes] = {}
    ordered = sorted(tensors.items(), key=lambda item: -item[1].storage.kind[1])
    for name, one in ordered:
        if one.storage.kind not in KINDS.values():
            raise UserError(f"has the tensor {name} of the type {one.storage.kind[0]}, which "
                            "cannot be converted")
        if one.storage.key not in stored:
            stored = {one.storage.key: read(one.storage)}
        parts.append(elements(name, one, stored[one.storage.key]))
    described = [(name, one.storage.kind[0], one.shape, len(part))
                 for (name, one), part in zip(ordered, parts)]
    return b"".join([safetensors.header(described, {"format": "pt"}), *parts])


def converted(path, key):
    """The safetensors file of a file of PyTorch, its tensors, and the number of other values."""
    try:
        held, read = opened(path)
        tensors, others = tensors_in(held, key)
        return written(tensors, read), tensors, others
    except UserError as error:
        raise UserError(f"{path} {error}") from None
    except OSError as error:
        raise output.refused(error, path) from None
    except Exception as error:  # a damaged file leads anywhere
        raise UserError(f"{path} is damaged or cut short ({type(error).__name__})") from None


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("file", metavar="FILE", type=Path, help="file of torch.save")
    parser.add_argument("out", metavar="OUT", type=Path, nargs="?", help="file to write")
    parser.add_argument("--key", help="where the state dict is in FILE, e.g. model_ema")
    given = parser.parse_args()
    out = given.out or given.file.with_suffix(".safetensors")
    if all(map(os.path.isfile, (out, given.file))) and os.path.samefile(out, given.file):
        raise UserError(f"{out} is the file to convert; give another name")
    data, tensors, others = converted(given.file, given.key)
    output.write(out, data, "safetensors")
    count = sum(math.prod(one.shape) for one in tensors.values())
    left_out = f"; {others} other values are left out" if others else ""
    print(f"{out}: {len(tensors)} tensors of {count} elements{left_out}")
    return 0


if __name__ == "__main__":
    script(main)
