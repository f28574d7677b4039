#!/usr/bin/env bash
# train --dry-run --json: one document, as configs/schema/plan.json describes it, whose
# entries and bytes are those that the run sends.
# Skipped without the Python package jsonschema.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export THINWIRE_CACHE=$TW_BUILD/test-data  # other tests use these generated images, too
export CUDA_VISIBLE_DEVICES=
if ! python3 -c 'import jsonschema' 2>"$work/said"; then
  echo "skipped: needs the Python package jsonschema"
  exit 77
fi
python3 - "$TW_BUILD/bin/train" "$TW_SOURCE/configs/schema/plan.json" "$work" <<'PY'
import json
import subprocess
import sys

import jsonschema

train, schema, work = sys.argv[1:]
schema = json.load(open(schema))
jsonschema.Draft202012Validator.check_schema(schema)


def run(*words):
    return subprocess.run([train, "--output-dir", work, *words], capture_output=True, text=True)


def plan(*words):
    done = run("--dry-run", "--json", *words)
    assert done.returncode == 0 and not done.stderr, (words, done.stderr)
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema)
    memory = document["memory_bytes"]
    assert memory["rank"] == sum(memory.values()) - memory["rank"], memory
    return document


lenet = ("--model", "lenet", "--workers", "2", "--eval-every", "never")
short = ("--max-steps", "3", "--name", "short", "--density-warmup", "none")
for sparsifier in ("dense", "topk", "powersgd", "dgc"):
    words = (*lenet, *short[:3], sparsifier, *short[4:], "--sparsifier", sparsifier)
    told = plan(*words)
    assert told["steps"] == 3 and told["epochs"] == 1, told
    assert told["bytes_sent"] == 3 * told["stages"][-1]["bytes_sent"], told
    assert run("--quiet", *words).returncode == 0
    sent = json.load(open(f"{work}/{sparsifier}/summary.json"))["bytes_sent"]
    # dgc sends at most what is planned
    assert sent == told["bytes_sent"] or (sparsifier == "dgc" and sent < told["bytes_sent"]), told

# 450, 2400, 48000, 10080 and 840 weights, and 236 biases
told = plan(*lenet, "--sparsifier", "dgc")
assert [stage["density"] for stage in told["stages"]] == [0.015625, 0.004, 0.001], told
assert told["stages"][-1]["entries"] == 1 + 3 + 48 + 11 + 1, told
assert told["buckets"] == [{"elements": 236, "entries": 236, "packed": True},
                           {"elements": 62006, "entries": 64, "packed": False}], told
assert told["stages"][0]["seconds"] is None and told["selector"] == "dgc", told

# a ring of 62006 floats: each of two ranks sends two halves at 4e-9 s a bit
told = plan(*lenet, "--link", "1Gbit,1ms")
assert told["selector"] == "" and told["parameters"] == 62006, told
assert abs(told["stages"][0]["seconds"] - (2 * 1e-3 + 62006 * 32e-9)) < 1e-9, told

told = plan("--resume", f"{work}/topk", "--name", "more", "--lr-milestones", "3")
assert "/topk/checkpoints/step-00000003 at step 3" in told["resumes"], told
assert told["without_effect"] == ["--lr-milestones has no effect: --lr-schedule is cosine"], told
assert plan(*lenet, "--local-steps", "4", "--max-steps", "6")["steps_per_exchange"] == 4

for words in (("--json",), ("--json", "--dry-run", "--seeds", "1,2")):
    done = run(*words)
    assert done.returncode == 2 and not done.stdout, done
    assert "json prints the plan of one run" in done.stderr, done
PY
