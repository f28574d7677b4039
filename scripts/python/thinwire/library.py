"""The C interface of Thinwire by ctypes: groups of ranks and reducers of gradients.

apps/library/thinwire.h describes the functions and their errors.
"""

import ctypes
import json
import os
import weakref
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from functools import cache
from pathlib import Path

from .reader import Fault, UserError

API_VERSION = 1
TIMEOUT = 60  # seconds that a rank waits for another one
EXCHANGE = ctypes.CFUNCTYPE(
    c_int64, c_void_p, c_int, c_void_p, c_size_t, c_int, c_void_p, c_size_t, c_double)
ABORT = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class NonFinite(Fault):
    """A gradient is NaN or infinite; every rank gets this error in the same step."""


class Callbacks(ctypes.Structure):
    _fields_ = [("rank", c_int), ("size", c_int), ("user", c_void_p),
                ("exchange", EXCHANGE), ("abort", ABORT)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("shape", POINTER(c_int64)), ("dimensions", c_size_t)]


class Step(ctypes.Structure):
    _fields_ = [("step", c_uint64), ("density", c_double), ("warmup", c_int), ("stop", c_int)]


class Report(ctypes.Structure):
    """Cost and result of a step on this rank."""
    _fields_ = [("bytes_sent", c_uint64), ("entries", c_uint64), ("seconds_select", c_double),
                ("seconds_exchange", c_double), ("stop", c_int)]


@cache
def load():
    """libthinwire: of THINWIRE_LIBRARY, of this package, or of the build in the source tree."""
    package = Path(__file__).resolve().parent
    places = [package / "lib", package.parents[2] / "build/lib"]
    files = [os.environ.get("THINWIRE_LIBRARY"), *(place / "libthinwire.so" for place in places)]
    file = next((file for file in files if file and Path(file).is_file()), None)
    if not file:
        raise UserError(f"libthinwire.so is not in {' or '.join(map(str, places))}, "
                        "and THINWIRE_LIBRARY names no file")
    library = ctypes.CDLL(os.fspath(file))
    library.thinwire_error.restype = library.thinwire_version.restype = c_char_p
    for free in (library.thinwire_group_free, library.thinwire_reducer_free):
        free.restype, free.argtypes = None, [c_void_p]
    if (version := library.thinwire_api_version()) != API_VERSION:
        raise UserError(f"{file} has version {version} of the interface; expected {API_VERSION}")
    return library


def call(name, *arguments):
    """Calls a function that returns a code; raises UserError, NonFinite or Fault with its text."""
    library = load()
    code = getattr(library, name)(*arguments)
    if code:
        kind = {2: UserError, 4: NonFinite}.get(code, Fault)
        raise kind(library.thinwire_error().decode(errors="replace"))


class Group:
    """Ranks that send bytes by exchange(to, out, out_bytes, from, in, in_bytes, seconds), with
    addresses; see thinwire_callbacks. An exception of exchange becomes the cause of a Fault."""

    def __init__(self, rank, size, exchange, link=None, timeout=TIMEOUT):
        self.failure = None

        def guarded(_user, *arguments):
            try:
                return exchange(*arguments)
            except BaseException as error:  # of any kind: C cannot pass it on
                self.failure = error
                return -1

        # the members keep alive what C calls
        self.callbacks = Callbacks(rank, size, None, EXCHANGE(guarded), ABORT())
        self.handle = c_void_p()
        call("thinwire_group_of_callbacks", byref(self.callbacks), byref(self.handle))
        weakref.finalize(self, load().thinwire_group_free, self.handle)
        self.call("thinwire_group_set_timeout", self.handle, c_double(timeout))
        if link:
            self.call("thinwire_group_set_link", self.handle, link.encode())

    def call(self, name, *arguments):
        """As call(), with the exception that an exchange ended with as the cause."""
        self.failure = None
        try:
            call(name, *arguments)
        except Fault as error:
            if isinstance(self.failure, Fault):  # says more than a failed exchange
                raise self.failure from None
            raise error from self.failure


class Reducer:
    """The mean of gradients of named tensors over a group, as a sparsifier forms it.

    tensors: (name, shape) of each; options: those of thinwire_reducer_create(). Collective."""

    def __init__(self, group, tensors, options):
        self.group = group
        self.handle = c_void_p()
        infos = (TensorInfo * len(tensors))()
        for info, (name, shape) in zip(infos, tensors, strict=True):
            info.name, info.dimensions = name.encode(), len(shape)
            info.shape = (c_int64 * len(shape))(*shape)
        group.call("thinwire_reducer_create", group.handle, json.dumps(options).encode(), infos,
                   c_size_t(len(tensors)), byref(self.handle))
        # the group is freed behind its reducers
        weakref.finalize(self, lambda free, handle, _group: free(handle),
                         load().thinwire_reducer_free, self.handle, group)

    def step(self, addresses, step, density=1.0, warmup=False, stop=False):
        """Replaces the f32 gradients at these addresses, one a tensor, by their mean; the Report.
        Collective."""
        gradients, report = (c_void_p * len(addresses))(*addresses), Report()
        self.group.call("thinwire_reducer_step", self.handle,
                        byref(Step(step, density, warmup, stop)), gradients, byref(report))
        return report

    def save(self):
        """The state of this rank, as bytes."""
        length = c_size_t()
        call("thinwire_reducer_save", self.handle, None, byref(length))
        state = ctypes.create_string_buffer(length.value)
        call("thinwire_reducer_save", self.handle, state, byref(length))
        return state.raw

    def load(self, state):
        """Continues from the bytes of save() of this rank."""
        call("thinwire_reducer_load", self.handle, state, c_size_t(len(state)))

    def bytes(self, density):
        """Predicted bytes that all ranks together send in a step."""
        result = c_uint64()
        call("thinwire_reducer_bytes", self.handle, c_double(density), byref(result))
        return result.value

    def seconds(self, link, density):
        """Predicted seconds of the exchange of a step on a link such as 100Mbit,1ms."""
        result = c_double()
        call("thinwire_reducer_seconds", self.handle, link.encode(), c_double(density),
             byref(result))
        return result.value
