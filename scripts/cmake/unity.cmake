# Unity builds (CMAKE_UNITY_BUILD): the files of a folder are compiled as one. Most of the compile
# time of a file goes to headers that the other files of its folder include, too.
# Names in anonymous namespaces must therefore be unique within a folder.

function(tw_group_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(REPLACE "${PROJECT_SOURCE_DIR}/" "" folder "${folder}")
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  # In a unity build each .cpp file is an included file, and GCC warns of members whose type is in
  # the anonymous namespace of such a file.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endfunction()

# Replaces the .cu files of each top-level folder in the list by one file in the build folder that
# includes them. CMake 3.25 does not unite CUDA files, and nvcc parses their headers three times.
function(tw_unite_kernels list)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  set(sources ${${list}})
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  list(FILTER sources EXCLUDE REGEX "\\.cu$")
  list(TRANSFORM kernels REPLACE "/.*" "" OUTPUT_VARIABLE folders)
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    set(text "")
    foreach(kernel IN LISTS kernels)
      if(kernel MATCHES "^${folder}/")
        string(APPEND text "#include \"${kernel}\"\n")
      endif()
    endforeach()
    set(united ${PROJECT_BINARY_DIR}/unity/${folder}.cu)
    file(CONFIGURE OUTPUT ${united} CONTENT "${text}")
    list(APPEND sources ${united})
  endforeach()
  set(${list} ${sources} PARENT_SCOPE)
endfunction()
