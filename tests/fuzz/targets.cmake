# Adds the fuzzers to a build: scripts/dev/fuzz.sh makes CMake include this file
# (CMAKE_PROJECT_thinwire_INCLUDE).

file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_fuzz.cpp)
foreach(fuzzer IN LISTS fuzzers)
  cmake_path(GET fuzzer STEM name)
  add_executable(${name} ${fuzzer})
  set_target_properties(${name} PROPERTIES CXX_STANDARD 20)
  target_link_libraries(${name} PRIVATE core)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
foreach(name IN ITEMS config start tuning_cache csv checkpoint)
  target_link_libraries(${name}_fuzz PRIVATE app_train app_common)
endforeach()
target_link_libraries(library_fuzz PRIVATE app_library)
target_link_libraries(npy_fuzz PRIVATE app_analyze app_common)
target_link_libraries(export_fuzz PRIVATE app_export app_common)
