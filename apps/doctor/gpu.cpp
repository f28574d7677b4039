// GPUs, the driver, and the versions of CUDA, cuDNN and NCCL.
#include <fmt/format.h>

#include <filesystem>

#include "apps/common/console.h"
#include "apps/common/system_files.h"
#include "apps/common/version.h"
#include "apps/doctor/checkup.h"
#include "comm/transports.h"
#include "engine/core/context.h"

#ifdef TW_WITH_CUDA
#include <cuda_runtime_api.h>
#include <cudnn_version.h>
#endif

namespace tw {

namespace {

/// The version of NVIDIA's driver; empty without it.
std::string driver() {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat ..."
  std::istringstream words(value_in(whole_text("/proc/driver/nvidia/version"), "NVRM version"));
  for (std::string word; words >> word;)
    if (std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != word.npos)
      return word;
  return "";
}

#ifdef TW_WITH_CUDA
std::string cuda_version(int code) { return fmt::format("{}.{}", code / 1000, code % 1000 / 10); }

/// The GPUs of this machine and the CUDA versions of driver and runtime.
void list_gpus(Finding& found) {
  int count = 0, of_driver = 0, of_runtime = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return;
  cudaDriverGetVersion(&of_driver);
  cudaRuntimeGetVersion(&of_runtime);
  std::vector<std::string> names;
  for (int gpu = 0; gpu < count; ++gpu) {
    cudaDeviceProp gpu_is{};
    if (cudaGetDeviceProperties(&gpu_is, gpu) != cudaSuccess) continue;
    names.push_back(fmt::format("{} ({}, compute capability {}.{})", gpu_is.name,
                                bytes_text(static_cast<double>(gpu_is.totalGlobalMem)),
                                gpu_is.major, gpu_is.minor));
  }
  found.text = fmt::format("{}; driver {}, for CUDA up to {}; CUDA {}, cuDNN {}.{}.{}",
                           fmt::join(names, ", "), driver(), cuda_version(of_driver),
                           cuda_version(of_runtime), CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL);
  found.details["gpus"] = names;
  found.details["cuda"] = cuda_version(of_runtime);
}
#else
void list_gpus(Finding&) {}
#endif

}  // namespace

Findings check_gpu(const Checkup&) {
  const std::string missing = what_is_missing(Device::cuda), version = driver();
  const bool has_gpu = !version.empty() || std::filesystem::exists("/dev/nvidia0");
  Finding found{.name = "gpu"};
  found.details = {{"driver", version}, {"usable", missing.empty()}};
  if (missing.empty()) {
    list_gpus(found);
  } else if (!has_gpu) {
    found.text = "none: no NVIDIA driver is loaded; training runs on the CPU";
    return {found};
  } else {
    found.state = State::problem;
    found.text = fmt::format("the driver {} is loaded, but {}", version, missing);
    found.cure = missing.find("build") == missing.npos
                     ? "install a driver that is at least as new as the CUDA of this build "
                       "(--version), and give the container access to the GPU"
                     : "install CUDA and cuDNN, then build with -D WITH_CUDA=ON (docs/gpu.md)";
    return {found};
  }
  const std::string lacking = what_nccl_lacks();
  Finding nccl{.name = "nccl",
               .text = lacking.empty() ? "built with NCCL (--transport nccl)" : lacking};
  nccl.details = {{"usable", lacking.empty()}};
  if (!lacking.empty()) {
    nccl.state = State::note;
    nccl.cure = "only several GPUs need it: install NCCL, then build again";
  }
  return {found, nccl};
}

}  // namespace tw
