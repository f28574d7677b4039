"""The format of weights: the length of a JSON header, the header, the elements of all tensors."""

import json
import struct


def header(tensors, metadata):
    """What stands before the elements. tensors: (name, type, shape, bytes) in their order there."""
    entries: dict[str, dict] = {
        "__metadata__": {key: str(value) for key, value in metadata.items()}}
    end = 0
    for name, dtype, shape, size in tensors:
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text
