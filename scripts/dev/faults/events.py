"""Reads the names and steps of an event file of TensorBoard, without TensorBoard."""

import struct


def varint(data, at):
    """A number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The fields of a message of protocol buffers: (number, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            length = 8 if kind == 1 else 4
            if kind == 2:
                length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        yield key >> 3, value


def rows(path):
    """A row for each event, without the values; none if the file is missing."""
    found = []
    data = path.read_bytes() if path.exists() else b""
    at = 0
    while at + 16 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        event = dict(fields(data[at + 12 : at + 12 + length]))
        at += length + 16
        names = [dict(fields(value))[1].decode() for _, value in fields(event.get(5, b""))]
        found.append({"step": event.get(2, 0), "names": names})
    return found
