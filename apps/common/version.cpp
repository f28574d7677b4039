// CMake defines TW_VERSION, TW_COMMIT and TW_WITH_NCCL for this file only, so that a new commit
// recompiles no other file.
#include "apps/common/version.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/cpu_features.h"

#ifdef TW_WITH_MPI
#include <mpi.h>
#endif
#ifdef TW_WITH_CUDA
#include <cuda_runtime_api.h>
#include <cudnn_version.h>
#endif
#ifdef TW_WITH_NCCL
#include <nccl.h>
#endif

namespace tw {

namespace {

std::string compiler() {
#ifdef __clang__
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

/// The library in use, as it names itself; MPI allows this call before its start.
std::string mpi_library() {
#ifdef TW_WITH_MPI
  std::string name(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  if (MPI_Get_library_version(name.data(), &length) != MPI_SUCCESS) return "with MPI";
  name.resize(static_cast<size_t>(length));
  name.resize(std::min(name.find_first_of("\n,"), name.size()));
  std::ranges::replace(name, '\t', ' ');
  return name;
#else
  return "without MPI";
#endif
}

/// The libraries that the build was made with; the machine's driver may be another.
std::string cuda_libraries() {
#ifdef TW_WITH_CUDA
  std::string text =
      fmt::format("CUDA {}.{}, cuDNN {}.{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
                  CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL);
#ifdef TW_WITH_NCCL
  text += fmt::format(", NCCL {}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
#else
  text += ", without NCCL";
#endif
  return text;
#else
  return "without CUDA";
#endif
}

}  // namespace

std::string version() { return TW_VERSION; }

std::string version_text() {
  return fmt::format("thinwire {}\ncommit {}\n{}\noneDNN {}\n{}\n{}\n", version(), TW_COMMIT,
                     compiler(), onednn_version(), mpi_library(), cuda_libraries());
}

}  // namespace tw
