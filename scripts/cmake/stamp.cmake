# cmake -D source=DIR -D output=FILE [-D git=PROGRAM] -P stamp.cmake: writes the commit and the date
# of the sources as C++, if they have changed. Runs with every build.
#
# commit: that of the checkout, with -dirty-HASH if the files that the programs are built from
# differ from it; HASH is of the difference and of files that git does not know. A `git archive` has
# it in commit.txt. Otherwise unknown.
# date: SOURCE_DATE_EPOCH, else that of the commit, so that equal sources give equal programs.
set(parts CMakeLists.txt apps comm configs/accuracy.csv data engine layers models scripts/cmake
    sparsify)

function(ask result)
  execute_process(COMMAND ${git} -c core.quotePath=false ${ARGN} WORKING_DIRECTORY ${source}
                  OUTPUT_VARIABLE text RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
  if(NOT code EQUAL 0)
    set(text "")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# `commit` and `date`; empty unless `source` is the top folder of a checkout
set(commit "")
set(date "")
if(git AND EXISTS ${source}/.git)
  ask(commit rev-parse --short HEAD)
  ask(date show --no-patch --format=%cs HEAD)
elseif(EXISTS ${source}/scripts/cmake/commit.txt)
  file(READ ${source}/scripts/cmake/commit.txt archived)
  if(archived MATCHES "^([0-9a-f]+) ([0-9-]+)")
    set(commit ${CMAKE_MATCH_1})
    set(date ${CMAKE_MATCH_2})
  endif()
endif()

if(commit AND git AND EXISTS ${source}/.git)
  ask(difference diff HEAD --binary --full-index --no-color --no-ext-diff --no-textconv -- ${parts})
  ask(unknown ls-files --others --exclude-standard -- ${parts})
  string(REPLACE ";" "\;" names "${unknown}")
  string(REPLACE "\n" ";" names "${names}")
  foreach(name IN LISTS names)
    if(EXISTS "${source}/${name}" AND NOT IS_DIRECTORY "${source}/${name}")
      file(SHA256 "${source}/${name}" hash)
      string(APPEND difference "${name} ${hash}\n")
    endif()
  endforeach()
  if(NOT difference STREQUAL "")
    string(SHA256 hash "${difference}")
    string(SUBSTRING ${hash} 0 12 hash)
    string(APPEND commit "-dirty-${hash}")
  endif()
endif()

if(NOT commit)
  set(commit unknown)
endif()
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  string(TIMESTAMP date "%Y-%m-%d" UTC)
endif()
if(NOT date)
  set(date unknown)
endif()
file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "apps/common/version.h"

namespace tw {
const Stamp kStamp{"@commit@", "@date@"};
}
]])
