#!/usr/bin/env bash
# What watch.py reads of a run that is written meanwhile, and the numbers that it draws.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts python3 tests/scripts/runs/live_numbers.py "$work"
