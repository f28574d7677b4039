#!/usr/bin/env bash
# The C program of docs/library.md, built from an installation by pkg-config and by CMake's package,
# alone and on two ranks.
set -euo pipefail
source=$TW_SOURCE build=$TW_BUILD
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
if grep -q '^SANITIZE:[A-Z]*=address' "$build/CMakeCache.txt"; then
  echo "skipped: a C program without the sanitizer cannot load the library with it"
  exit 77
fi
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }

cmake --install "$build" --prefix "$work/prefix" --component thinwire >"$work/said"
cd "$work"
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$source/docs/library.md" >sum.c
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
[[ -d $PKG_CONFIG_PATH ]] || PKG_CONFIG_PATH=$(dirname "$(find prefix -name thinwire.pc)")
lib=$(pkg-config --variable=prefix thinwire)/lib
[[ -e $lib/libthinwire.so ]] || lib=$(dirname "$(find "$work/prefix" -name libthinwire.so)")
export LD_LIBRARY_PATH=$lib

# shellcheck disable=SC2046
${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror sum.c \
  $(pkg-config --cflags --libs thinwire) -o sum
./sum >said
expect said "step 0: 51 entries of the mean, 0 bytes sent"
expect said "0.0 ms on 100 Mbit/s"

# a second group of MPI, and one after the end of MPI
cat >groups.c <<'END'
#include <stdio.h>
#include <thinwire.h>
int main(void) {
  thinwire_group *group, *other;
  int code = 0, codes = thinwire_group_of_mpi(&group);
  codes = 10 * codes + thinwire_group_of_mpi(&other);
  thinwire_group_free(group);
  codes = 10 * codes + thinwire_group_of_mpi(&group);
  thinwire_group_free(group);
  thinwire_finish_mpi(&code);
  codes = 10 * codes + thinwire_group_of_mpi(&group);
  printf("%d %s\n", codes, thinwire_error());
}
END
# shellcheck disable=SC2046
${CC:-cc} groups.c $(pkg-config --cflags --libs thinwire) -o groups

# the names that it offers are those of the header
nm -D --defined-only "$lib/libthinwire.so" | awk '{ print $3 }' | grep -v '^ucp_' | sort >offered
grep -oE '\bthinwire_[a-z_]+\(' "$work/prefix/include/thinwire.h" | tr -d '(' | sort -u >declared
diff offered declared || { echo "the header declares other names than the library offers"; exit 1; }

if grep -q TW_WITH_MPI "$build/compile_commands.json"; then
  mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:.*=//p' "$build/CMakeCache.txt")
  OMPI_MCA_rmaps_base_oversubscribe=1 "$mpirun" -n 2 ./sum >said
  # 51 entries of each rank, half of them the same; 8 bytes an entry and a header
  grep -qE '^step 0: [5-9][0-9] entries of the mean, [0-9]{3} bytes sent$' said ||
    { echo "on two ranks:"; cat said; exit 1; }
  OMPI_MCA_rmaps_base_oversubscribe=1 "$mpirun" -n 2 ./groups >said
  expect said "202 [mpi] MPI has ended; a process can start it only once"
fi

cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(sum LANGUAGES C)
find_package(thinwire 0.3 REQUIRED)
add_executable(sum sum.c)
target_link_libraries(sum PRIVATE thinwire::thinwire)
EOF
cmake -S . -B build -DCMAKE_PREFIX_PATH="$work/prefix" >said 2>&1 || { cat said; exit 1; }
cmake --build build >said 2>&1 || { cat said; exit 1; }
build/sum >said
expect said "step 2: 51 entries of the mean, 0 bytes sent"
