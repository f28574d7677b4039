# Sets TW_MPI if MPI is found and the MPI transport is built.

set(TW_MPI OFF)
if(NOT WITH_MPI STREQUAL "OFF")
  # the code calls MPI's C binding, which FindMPI finds only if the language C is enabled
  enable_language(C)
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(TW_MPI ON)
  elseif(WITH_MPI STREQUAL "ON")
    message(FATAL_ERROR "WITH_MPI=ON, but no MPI was found")
  endif()
endif()
message(STATUS "MPI transport: ${TW_MPI}")

function(tw_link_mpi target)
  if(TW_MPI)
    target_link_libraries(${target} PUBLIC MPI::MPI_C)
    target_compile_definitions(${target} PUBLIC TW_WITH_MPI)
  endif()
endfunction()
