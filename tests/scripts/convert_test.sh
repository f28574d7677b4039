#!/usr/bin/env bash
# convert.py: files of torch.save become safetensors with the same names, shapes and bits; nothing
# in them is executed. A .pth file given to --pretrained names the command, and its output trains.
# Files like those of PyTorch are made without it; convert_torch_test.sh has files of its own.
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
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
def function(name):
    def build(*_): pass
    build.__module__, build.__qualname__ = "torch._utils", name
    setattr(utils, name, build)
    return build
def storage(name, size):
    setattr(torch, name, type(name, (), {"__module__": "torch", "size": size}))
    return getattr(torch, name)
rebuild, rebuild_v3, sparse = map(function, ("_rebuild_tensor_v2", "_rebuild_tensor_v3",
                                             "_rebuild_sparse_tensor"))
floats, halves, complexes, untyped, young = map(
    storage, ("FloatStorage", "HalfStorage", "ComplexFloatStorage", "UntypedStorage", "NewStorage"),
    (4, 2, 8, 1, 4))
uint16 = storage("uint16", 2)  # no storage, but a global, too
class Stored:
    def __init__(self, key, data, kind=floats, view=None):
        self.key, self.data, self.kind, self.view = key, data, kind, view
class Tensor:
    def __init__(self, stored, shape, strides, offset=0, build=rebuild, more=()):
        self.all = build, (stored, offset, tuple(shape), tuple(strides), False,
                           collections.OrderedDict(), *more)
    def __reduce__(self): return self.all
class Net:
    class Inner:
        def __init__(self): self.list = [1]
    def __init__(self): self.inner = Net.Inner()
class Harm:
    def __reduce__(self): return os.system, ("touch harmed",)
class Pickler(pickle.Pickler):
    legacy = ()
    def persistent_id(self, it):
        if isinstance(it, Stored):
            legacy = (it.view,) if self.legacy else ()
            return ("storage", it.kind, it.key, "cpu", len(it.data) // it.kind.size, *legacy)
        if it is Net and self.legacy:
            return "module", "Net", "net.py", "class Net: ..."
def pickled(it, legacy=False):
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
        file.write(pickled(it, True) + pickle.dumps([one.key for one in storages], 2))
        for one in storages:
            file.write(struct.pack("<q", len(one.data) // one.kind.size) + one.data)
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
as_legacy("oldviews.pth", views, [row])

# modules and classes in classes; in the older format, storages of any kind, and parts of them
half = Stored("0", row.data, view=("9", 3, 3))
complex_row = Stored("1", struct.pack("<4f", 1, 2, 3, 4), complexes)
bytes_row = Stored("2", b"abcd", untyped)
other = {"complex": Tensor(complex_row, (2,), (1,)), "sparse": Tensor(row, (), (), 0, sparse),
         "uint16": Tensor(bytes_row, (2,), (1,), 0, rebuild_v3, (uint16,))}
beside = {"model": {"row": Tensor(half, (2,), (1,), 1)}, "net": Net(), "inner": Net.Inner, **other}
as_legacy("oldbeside.pth", beside, [row, complex_row, bytes_row])
half.view, beside["model"]["row"] = None, Tensor(row, (2,), (1,), 4)
as_zip("beside.pth", beside, [row, complex_row, bytes_row])
as_zip("net_itself.pth", Net(), [])
as_legacy("oldnet_itself.pth", Net(), [])
for name, one in other.items():
    for write, old in (as_zip, ""), (as_legacy, "old"):
        write(f"{old}{name}.pth", {"same": views["same"], name: one},
              [row] if name == "sparse" else [row, one.all[1][0]])
new_row = Stored("3", row.data, young)
as_zip("new.pth", {"new": Tensor(new_row, (2,), (1,))}, [new_row])
as_legacy("oldnew.pth", {"new": Tensor(new_row, (2,), (1,))}, [new_row])

# harmful shapes
huge = {"endless": ((10**9, 10**9, 1), (0, 0, 0)), "large": ((10**9,), (0,)),
        "larger": ((2**20 + 1,), (0,)), "negative": ((0, -3), (3, 1)), "short": ((3, 2), (1,)),
        "real": ((0, 2.5), (1, 1)), "back": ((2,), (-1,))}
for name, (shape, strides) in huge.items():
    as_zip(f"{name}.pth", {name: Tensor(row, shape, strides, 1)}, [row])
as_zip("small.pth", {"small": Tensor(row, (2**20,), (0,), 1)}, [row])
as_zip("outside.pth", {"row": Tensor(row, (3,), (1,), 4)}, [row])
as_zip("harm.pth", Harm(), [])
as_zip("none.pth", {"ema": views, "lr": 0.1}, [row])
open("cut.pth", "wb").write(open("net.pth", "rb").read()[:2000])
open("oldcut.pth", "wb").write(open("old.pth", "rb").read()[:5000])
EOF

# --pretrained says how to convert, and takes what comes out
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
  same_weights "$work/$file" "$work/run"
done
[[ ! -e $work/harmed && ! -e harmed ]] || { echo "a file was executed"; exit 1; }

# values worked out by hand
for file in oldviews views; do
  scripts/convert.py "$work/$file.pth" "$work/a.safetensors" >"$work/said"
  [[ $(cat "$work/said") == \
    "$work/a.safetensors: 6 tensors of 22 elements; 1 other values are left out" ]]
  cp "$work/a.safetensors" "$work/$file.safetensors"
done
cmp "$work/views.safetensors" "$work/oldviews.safetensors"
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
for file in beside oldbeside; do
  [[ $(scripts/convert.py "$work/$file.pth") == *"/$file.safetensors: 1 tensors of 2 elements" ]]
  [[ $(tail -c 8 "$work/$file.safetensors" | od -An -tf4 | xargs) == "4 5" ]]
done
[[ $(scripts/convert.py "$work/small.pth") == *": 1 tensors of 1048576 elements" ]]
[[ $(scripts/convert.py "$work/none.pth" --key ema) == "$work/none.safetensors: 6 tensors"* ]]

cp "$work/net.safetensors" "$work/kept.safetensors"
convert() { refuses "convert.py: $1" scripts/convert.py "${@:2}"; }
convert "$work/none.pth has no tensors; it has ema, lr (--key names the place of a state dict)" \
  "$work/none.pth"
convert "$work/none.pth has no emma; did you mean ema?" "$work/none.pth" --key emma
for file in harm net_itself oldnet_itself; do
  convert "$work/$file.pth has no state dict; save the state_dict() of the network" \
    "$work/$file.pth"
done
for old in "" old; do
  for type in complex:complex64 sparse:sparse_tensor uint16:uint16; do
    file=$work/$old${type%:*}.pth
    convert "$file has the tensor ${type%:*} of the type ${type#*:}, which cannot be converted" \
      "$file"
  done
done
convert "$work/new.pth has the tensor new of the type NewStorage, which cannot" "$work/new.pth"
convert "$work/oldnew.pth has numbers of the unknown type NewStorage" "$work/oldnew.pth"
( # harmful shapes take no time and no memory
  ulimit -t 10 -v 1000000
  for file in endless large larger; do
    convert "$work/$file.pth has the tensor $file, which repeats 6 elements to have 10" \
      "$work/$file.pth"
  done
  for file in negative short real back; do
    convert "$work/$file.pth is damaged or cut short (ValueError)" "$work/$file.pth"
    [[ ! -e $work/$file.safetensors ]]
  done
)
# what is at OUT stays, unless it is a safetensors file, or empty
echo 'some notes: {' >"$work/notes"
printf '8 bytes:{' >"$work/eight"
for file in notes eight old.pth run/config.json; do
  cp "$work/$file" "$work/copy"
  convert "$work/$file exists and is no safetensors file of Thinwire: name another file" \
    "$work/net.pth" "$work/$file"
  cmp "$work/$file" "$work/copy"
done
ln "$work/net.pth" "$work/link.pth"
convert "$work/link.pth is the file to convert" "$work/net.pth" "$work/link.pth"
scripts/convert.py "$work/views.pth" /dev/null >/dev/null
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
