# Sets TW_CUDA when the CUDA bodies are built: nvcc, cuBLAS, cuDNN and NCCL are all there.
# cuDNN and NCCL are looked for in the toolkit, in the system and below CUDNN_ROOT and NCCL_ROOT.

set(TW_CUDA OFF)
if(NOT WITH_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit QUIET)
    set(hints ${CUDNN_ROOT} $ENV{CUDNN_ROOT} ${NCCL_ROOT} $ENV{NCCL_ROOT}
              ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_LIBRARY_DIR}/..)
    find_path(CUDNN_INCLUDE cudnn.h HINTS ${hints} ${CUDAToolkit_INCLUDE_DIRS}
              PATH_SUFFIXES include)
    find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${hints} PATH_SUFFIXES lib lib64)
    find_path(NCCL_INCLUDE nccl.h HINTS ${hints} ${CUDAToolkit_INCLUDE_DIRS}
              PATH_SUFFIXES include)
    find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${hints} PATH_SUFFIXES lib lib64)
    if(CUDAToolkit_FOUND AND CUDNN_INCLUDE AND CUDNN_LIBRARY AND NCCL_INCLUDE AND NCCL_LIBRARY)
      set(TW_CUDA ON)
    endif()
  endif()
  if(WITH_CUDA STREQUAL "ON" AND NOT TW_CUDA)
    message(FATAL_ERROR "WITH_CUDA=ON, but not all were found: nvcc (${CMAKE_CUDA_COMPILER}), "
                        "cuDNN (${CUDNN_LIBRARY}), NCCL (${NCCL_LIBRARY})")
  endif()
endif()
message(STATUS "CUDA bodies: ${TW_CUDA}")

function(tw_link_cuda target)
  if(NOT TW_CUDA)
    return()
  endif()
  target_include_directories(${target} SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE}
                                                     ${NCCL_INCLUDE})
  target_link_libraries(${target} PUBLIC CUDA::cudart CUDA::cublas CUDA::cublasLt
                                         ${CUDNN_LIBRARY} ${NCCL_LIBRARY})
endfunction()
