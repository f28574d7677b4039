#!/usr/bin/env bash
# convert.py: files of torch.save become safetensors with the same names, types, shapes and bits.
# Needs a Python with torchvision and safetensors, named by THINWIRE_PYTHON.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
needs_python "torchvision, safetensors.torch"
thinwire=$PWD/scripts/thinwire
cd "$work"
"$python" - <<'EOF'
import argparse, torch, torchvision
net = torchvision.models.resnet18(num_classes=3)
state = net.state_dict()
torch.save(state, "plain.pth")
torch.save(state, "older.pth", _use_new_zipfile_serialization=False)
steps = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9).state_dict()
torch.save({"state_dict": {"module." + name: one for name, one in state.items()}, "epoch": 3,
            "best": torch.tensor(0.5), "args": argparse.Namespace(lr=1), "optimizer": steps},
           "whole.pth")
torch.save({"model": net.to(memory_format=torch.channels_last).state_dict()}, "last.pth")
kinds = {str(kind): torch.arange(6).reshape(2, 3).t().to(kind)
         for kind in (torch.half, torch.bfloat16, torch.double, torch.long, torch.int, torch.short,
                      torch.int8, torch.uint8, torch.bool)}
kinds["parameter"] = torch.nn.Parameter(torch.ones(2))
torch.save(kinds, "kinds.pth")

class Net(torch.nn.Module):
    class Inner: pass
    def __init__(self):
        super().__init__()
        self.layer, self.inner = torch.nn.Linear(2, 3), Net.Inner()
class Derived(torch.Tensor): pass
derived = torch.ones(2).as_subclass(Derived)
beside = {"model": {**net.state_dict(), "derived": derived}, "net": Net(), "inner": Net.Inner(),
          "complex": [torch.ones(2, dtype=kind) for kind in (torch.cfloat, torch.cdouble)],
          "young": torch.ones(3).to(torch.uint16), "sparse": torch.eye(3).to_sparse(),
          "quantized": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)}
one = torch.ones(2)
others = {"complex64": one.to(torch.cfloat), "uint16": one.to(torch.uint16),
          "float8_e4m3fn": one.to(torch.float8_e4m3fn), "sparse_tensor": one.to_sparse()}
for old in ("", "old"):
    how = {"_use_new_zipfile_serialization": not old}
    torch.save(beside, old + "beside.pth", **how)
    torch.save(Net(), old + "net.pth", **how)
    torch.save({"neg": torch._neg_view(one)}, old + "neg.pth", **how)
    for name, other in others.items():
        torch.save({"one": one, "other": other}, f"{old}{name}.pth", **how)
EOF
for file in plain older whole last kinds beside oldbeside; do
  "$thinwire" convert $file.pth >/dev/null
done
convert() { refuses "thinwire convert: $1" "$thinwire" convert "$2"; }
for old in "" old; do
  convert "${old}net.pth has no state dict; save the state_dict() of the network" ${old}net.pth
  convert "${old}neg.pth has a tensor whose sign is a flag; save its" ${old}neg.pth
  for type in complex64 uint16 float8_e4m3fn sparse_tensor; do
    convert "$old$type.pth has the tensor other of the type $type, which cannot" $old$type.pth
  done
done
"$python" - <<'EOF'
import torch
class Net(torch.nn.Module):
    class Inner: pass
class Derived(torch.Tensor): pass
from safetensors.torch import load_file
for file, key in (("plain", ""), ("older", ""), ("whole", "state_dict"), ("last", "model"),
                  ("kinds", ""), ("beside", "model"), ("oldbeside", "model")):
    readable = file.replace("oldbeside", "beside")  # torch.load has no uint16 in the older format
    state = torch.load(readable + ".pth", weights_only=False)
    state = state[key] if key else state
    found = load_file(file + ".safetensors")
    assert state.keys() == found.keys(), file
    for name, one in state.items():
        same = one.dtype == found[name].dtype and torch.equal(one, found[name])
        assert same, (file, name)
EOF
