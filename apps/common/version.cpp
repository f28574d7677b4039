// CMake defines TW_VERSION, TW_COMMIT and TW_WITH_NCCL for this file only, so that a new commit
// recompiles no other file.
#include "apps/common/version.h"

#include <fmt/format.h>

#include "comm/transports.h"
#include "engine/core/cpu_features.h"

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
  const std::string mpi = mpi_library();
  return fmt::format("thinwire {}\ncommit {}\n{}\noneDNN {}\n{}\n{}\n", version(), TW_COMMIT,
                     compiler(), onednn_version(), mpi.empty() ? "without MPI" : mpi,
                     cuda_libraries());
}

}  // namespace tw
