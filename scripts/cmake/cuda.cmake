# Sets TW_CUDA if nvcc, cuBLAS and cuDNN are found, and TW_NCCL if NCCL is found, too. Searches for
# cuDNN and NCCL in CUDNN_ROOT and NCCL_ROOT, in the CUDA toolkit, in the system's folders and in
# Python wheels (nvidia/cudnn, nvidia/nccl).

# Folders of NVIDIA's wheels that have include/ and lib/, for the first python3 on the PATH
function(tw_wheel_folders result)
  set(${result} "" PARENT_SCOPE)
  find_program(TW_PYTHON NAMES python3)
  if(NOT TW_PYTHON)
    return()
  endif()
  execute_process(
    COMMAND ${TW_PYTHON} -c "import sys; print(';'.join(p for p in sys.path if p))"
    OUTPUT_VARIABLE paths OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(found "")
  foreach(path IN LISTS paths)
    file(GLOB folders ${path}/nvidia/cudnn ${path}/nvidia/nccl ${path}/nvidia/cu1*)
    list(APPEND found ${folders})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(TW_CUDA OFF)
set(TW_NCCL OFF)
if(NOT WITH_CUDA STREQUAL "OFF")
  # One architecture halves nvcc's time: that of this machine's GPU or, without a GPU, Hopper with
  # PTX for later GPUs. CUDAARCHS="80-real;90" in the environment builds for several.
  if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    if(EXISTS /dev/nvidia0)
      set(CMAKE_CUDA_ARCHITECTURES native)
    else()
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc's C++20 option
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    # CMake 3.25.1 sets a property of this target even if the toolkit lacks it, as CUDA 13 does
    if(NOT TARGET CUDA::nvToolsExt)
      add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
    endif()
    find_package(CUDAToolkit QUIET)
    tw_wheel_folders(wheels)
    set(hints ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_LIBRARY_DIR}/.. ${wheels})
    set(cudnn_hints ${CUDNN_ROOT} $ENV{CUDNN_ROOT} ${hints})
    set(nccl_hints ${NCCL_ROOT} $ENV{NCCL_ROOT} ${hints})
    find_path(CUDNN_INCLUDE cudnn_graph.h HINTS ${cudnn_hints} ${CUDAToolkit_INCLUDE_DIRS}
              PATH_SUFFIXES include)
    find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${cudnn_hints}
                 PATH_SUFFIXES lib lib64)
    find_path(NCCL_INCLUDE nccl.h HINTS ${nccl_hints} ${CUDAToolkit_INCLUDE_DIRS}
              PATH_SUFFIXES include)
    find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${nccl_hints} PATH_SUFFIXES lib lib64)
    if(CUDAToolkit_FOUND AND CUDA_cublas_LIBRARY AND CUDNN_INCLUDE AND CUDNN_LIBRARY)
      set(TW_CUDA ON)
      if(NCCL_INCLUDE AND NCCL_LIBRARY)
        set(TW_NCCL ON)
      endif()
      # programs load cuBLAS when they first use it (engine/cuda/cublas.cpp)
      cmake_path(GET CUDA_cublas_LIBRARY PARENT_PATH cublas_folder)
      list(APPEND CMAKE_BUILD_RPATH ${cublas_folder})
      list(APPEND CMAKE_INSTALL_RPATH ${cublas_folder})
    endif()
  endif()
  if(WITH_CUDA STREQUAL "ON" AND NOT TW_CUDA)
    message(FATAL_ERROR "WITH_CUDA=ON needs nvcc, cuBLAS and cuDNN; found nvcc "
                        "(${CMAKE_CUDA_COMPILER}), cuBLAS (${CUDA_cublas_LIBRARY}), "
                        "cuDNN (${CUDNN_LIBRARY})")
  endif()
endif()
message(STATUS "CUDA code: ${TW_CUDA}")
message(STATUS "NCCL transport: ${TW_NCCL}")

function(tw_link_cuda target)
  if(NOT TW_CUDA)
    return()
  endif()
  target_include_directories(${target} SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE})
  target_link_libraries(${target} PUBLIC CUDA::cudart ${CUDNN_LIBRARY} ${CMAKE_DL_LIBS})
  if(TW_NCCL)
    target_include_directories(${target} SYSTEM PUBLIC ${NCCL_INCLUDE})
    target_link_libraries(${target} PUBLIC ${NCCL_LIBRARY})
  endif()
  target_compile_definitions(${target} PUBLIC TW_WITH_CUDA)
  # Host and device share constexpr functions (bf16, Philox). FMT_USE_CONSTEXPR=1 keeps fmt's
  # compile-time checks of format strings, which fmt turns off under nvcc.
  target_compile_options(${target} PUBLIC $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr
    -diag-suppress=20208 -Xcompiler=-Wall,-Wextra,-Wno-stringop-overflow>)
  target_compile_definitions(${target} PUBLIC $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
  if(WARNINGS_AS_ERRORS)
    target_compile_options(${target} PUBLIC
      $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
  endif()
endfunction()
