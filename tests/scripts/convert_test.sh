#!/usr/bin/env bash
# convert.py: files of torch.save become safetensors with the same names, shapes and bits; nothing
# in them is executed. A .pth file given to --pretrained names the command, and its output trains.
# Files like those of PyTorch are made without it; where THINWIRE_PYTHON has it, it makes more.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
thinwire=$PWD/scripts/thinwire
train=${TW_BUILD:-build}/bin/train
"$train" --model mlp --max-steps 2 --threads-per-rank 1 --precision f32 --output-dir "$work" \
  --name run >/dev/null

# what torch.save makes of the weights of the run: a zip file, and the files of older versions
python3 - "$work" <<'EOF'
import collections, glob, io, json, os, pickle, struct, sys, types, zipfile
os.chdir(sys.argv[1])
torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules |= {"torch": torch, "torch._utils": utils}
def _rebuild_tensor_v2(*_): pass
_rebuild_tensor_v2.__module__, utils._rebuild_tensor_v2 = "torch._utils", _rebuild_tensor_v2
class FloatStorage: pass
FloatStorage.__module__, torch.FloatStorage = "torch", FloatStorage
class Stored:
    def __init__(self, key, data): self.key, self.data = key, data
class Tensor:
    def __init__(self, stored, shape, strides, offset=0):
        self.all = stored, offset, tuple(shape), tuple(strides), False, collections.OrderedDict()
    def __reduce__(self): return _rebuild_tensor_v2, self.all
class Harm:
    def __reduce__(self): return os.system, ("touch harmed",)
class Pickler(pickle.Pickler):
    legacy = ()
    def persistent_id(self, it):
        if isinstance(it, Stored):
            return ("storage", FloatStorage, it.key, "cpu", len(it.data) // 4, *self.legacy)
def pickled(it, legacy=()):
    out = io.BytesIO()
    one = Pickler(out, 2)
    one.legacy = legacy
    one.dump(it)
    return out.getvalue()
def as_zip(path, it, storages):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickled(it))
        archive.writestr("archive/byteorder", "little")
        for one in storages:
            archive.writestr(f"archive/data/{one.key}", one.data)
def as_legacy(path, it, storages):
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    with open(path, "wb") as file:
        for part in (0x1950a86a20f9469cfc6c, 1001, machine):
            file.write(pickle.dumps(part, 2))
        file.write(pickled(it, (None,)) + pickle.dumps([one.key for one in storages], 2))
        for one in storages:
            file.write(struct.pack("<q", len(one.data) // 4) + one.data)
(weights,) = glob.glob("run/checkpoints/*/model.safetensors")
data = open(weights, "rb").read()
(length,) = struct.unpack("<Q", data[:8])
state, storages = {}, []
for name, entry in json.loads(data[8:8 + length]).items():
    if name == "__metadata__": continue
    begin, end = entry["data_offsets"]
    storages.append(Stored(str(len(storages)), data[8 + length + begin:8 + length + end]))
    shape = entry["shape"]
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)): strides[i] = strides[i + 1] * shape[i + 1]
    state[f"module.{name}"] = Tensor(storages[-1], shape, strides)
as_zip("net.pth", {"epoch": 3, "state_dict": state, "harm": Harm()}, storages)
as_legacy("old.pth", {"model": state, "harm": Harm()}, storages)
row = Stored("0", struct.pack("<6f", 0, 1, 2, 3, 4, 5))
views = {"transposed": Tensor(row, (3, 2), (1, 3)), "row": Tensor(row, (3,), (1,), 3),
         "repeated": Tensor(row, (2, 3), (0, 1)), "number": Tensor(row, (), (), 2),
         "empty": Tensor(row, (0, 4), (4, 1)), "same": Tensor(row, (2, 3), (3, 1)), "other": 7}
as_zip("views.pth", views, [row])
as_zip("outside.pth", {"row": Tensor(row, (3,), (1,), 4)}, [row])
as_zip("harm.pth", Harm(), [])
as_zip("none.pth", {"ema": views, "lr": 0.1}, [row])
open("cut.pth", "wb").write(open("net.pth", "rb").read()[:2000])
open("oldcut.pth", "wb").write(open("old.pth", "rb").read()[:5000])
EOF

# --pretrained says how to convert, and takes what comes out
sum() { sed -n 's/.*"weights_hash": //p' "$1/summary.json"; }
for file in net old; do
  code=0
  "$train" --model mlp --pretrained "$work/$file.pth" 2>"$work/said" >/dev/null || code=$?
  [[ $code == 2 && $(wc -l <"$work/said") == 1 ]]
  command=$(sed -n 's/.* converts it: //p' "$work/said")
  [[ $command == "thinwire convert $work/$file.pth $work/$file.safetensors" ]]
  thinwire() { "$thinwire" "$@"; }
  [[ $(eval "$command") == "$work/$file.safetensors: "*" tensors of "*" elements" ]]
  "$train" --model mlp --pretrained "$work/$file.safetensors" --epochs 0 --eval-every never \
    --threads-per-rank 1 --output-dir "$work" --name "$file" >"$work/said"
  grep -q 'begin with module., which is dropped' "$work/said"
  [[ $(sum "$work/$file") == $(sum "$work/run") ]]
done
[[ ! -e $work/harmed && ! -e harmed ]] || { echo "a file was executed"; exit 1; }

# values worked out by hand
scripts/convert.py "$work/views.pth" "$work/a.safetensors" >"$work/said"
[[ $(cat "$work/said") == \
  "$work/a.safetensors: 6 tensors of 22 elements; 1 other values are left out" ]]
python3 - "$work/a.safetensors" <<'EOF'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", data[:8])
assert length % 8 == 0
header = json.loads(data[8:8 + length])
found = {}
for name, entry in header.items():
    if name == "__metadata__": continue
    begin, end = entry["data_offsets"]
    values = struct.unpack(f"<{(end - begin) // 4}f", data[8 + length + begin:8 + length + end])
    found[name] = entry["dtype"], entry["shape"], list(values)
expected = {"transposed": ([3, 2], [0, 3, 1, 4, 2, 5]), "row": ([3], [3, 4, 5]),
            "repeated": ([2, 3], [0, 1, 2, 0, 1, 2]), "number": ([], [2]), "empty": ([0, 4], []),
            "same": ([2, 3], [0, 1, 2, 3, 4, 5])}
assert found == {name: ("F32", *one) for name, one in expected.items()}, found
EOF
[[ $(scripts/convert.py "$work/none.pth" --key ema) == "$work/none.safetensors: 6 tensors"* ]]

cp "$work/net.safetensors" "$work/kept.safetensors"
convert() { refuses "convert.py: $1" scripts/convert.py "${@:2}"; }
convert "$work/none.pth has no tensors; it has ema, lr (--key names the place of a state dict)" \
  "$work/none.pth"
convert "$work/none.pth has no emma; did you mean ema?" "$work/none.pth" --key emma
convert "$work/harm.pth has no state dict; save the state_dict() of the network" "$work/harm.pth"
convert "$work/cut.pth is damaged or cut short (BadZipFile)" "$work/cut.pth"
convert "$work/outside.pth is damaged or cut short (ValueError)" "$work/outside.pth"
convert "$work/net.safetensors is a safetensors file, which --pretrained takes as it is" \
  "$work/net.safetensors" "$work/other"
convert "$work/net.safetensors is the file to convert; give another name" "$work/net.safetensors"
convert "$work/run/config.json is not a file that torch.save wrote" "$work/run/config.json"
convert "$work/nothing: No such file or directory" "$work/nothing"
convert "$work/no/a: No such file or directory" "$work/net.pth" "$work/no/a"
convert 'FILE is missing; --help lists all'
scripts/convert.py "$work/oldcut.pth" 2>"$work/said" && exit 1
grep -q "oldcut.pth is damaged or cut short" "$work/said"
cmp "$work/net.safetensors" "$work/kept.safetensors"
[[ ! -e $work/harmed && ! -e $work/other && ! -e $work/cut.safetensors ]]

python=${THINWIRE_PYTHON:-python3}
if ! "$python" -c 'import torch, torchvision, safetensors.torch' 2>/dev/null; then
  echo "$python has no torch, torchvision and safetensors (THINWIRE_PYTHON names another)"
  exit
fi
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
EOF
for file in plain older whole last kinds; do "$thinwire" convert $file.pth >/dev/null; done
"$python" - <<'EOF'
import torch
from safetensors.torch import load_file
for file, key in (("plain", ""), ("older", ""), ("whole", "state_dict"), ("last", "model"),
                  ("kinds", "")):
    state = torch.load(file + ".pth", weights_only=False)
    state = state[key] if key else state
    found = load_file(file + ".safetensors")
    assert state.keys() == found.keys(), file
    for name, one in state.items():
        same = one.dtype == found[name].dtype and torch.equal(one, found[name])
        assert same, (file, name)
EOF
