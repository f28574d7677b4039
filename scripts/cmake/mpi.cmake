# Sets TW_MPI if MPI is found and the MPI transport is built. WITH_MPI=MPICH or OPENMPI chooses
# between two that Debian has installed side by side.

set(TW_MPI OFF)
if(NOT WITH_MPI STREQUAL "OFF")
  # the code calls MPI's C binding, which FindMPI finds only if the language C is enabled
  enable_language(C)
  set(flavour "")
  if(WITH_MPI MATCHES "^(MPICH|OPENMPI)$")
    string(TOLOWER ".${WITH_MPI}" flavour)
    find_program(MPI_C_COMPILER mpicc${flavour} REQUIRED)
    find_program(MPIEXEC_EXECUTABLE mpirun${flavour} REQUIRED)
  endif()
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(TW_MPI ON)
  elseif(NOT WITH_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "WITH_MPI=${WITH_MPI}, but no MPI was found")
  endif()
endif()
message(STATUS "MPI transport: ${TW_MPI}")

function(tw_link_mpi target)
  if(TW_MPI)
    target_link_libraries(${target} PUBLIC MPI::MPI_C)
    target_compile_definitions(${target} PUBLIC TW_WITH_MPI)
  endif()
endfunction()
