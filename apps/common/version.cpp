// CMake defines TW_VERSION and TW_WITH_NCCL for this file only. scripts/cmake/stamp.cmake writes
// kStamp into a file of the build folder.
#include "apps/common/version.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "comm/transports.h"
#include "engine/core/cpu_features.h"
#include "engine/core/instruction_set.h"

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

std::string build_id() {
  std::string id = "none";
  const auto look = [](dl_phdr_info* info, size_t, void* result) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      if (part.p_type != PT_NOTE) continue;
      const auto* bytes = reinterpret_cast<const unsigned char*>(info->dlpi_addr + part.p_vaddr);
      for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= part.p_memsz;) {
        ElfW(Nhdr) note;
        std::memcpy(&note, bytes + at, sizeof note);
        const size_t name = at + sizeof note, value = name + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::memcmp(bytes + name, "GNU", 4) == 0) {
          auto& text = *static_cast<std::string*>(result);
          text.clear();
          for (size_t j = 0; j < note.n_descsz; ++j)
            text += fmt::format("{:02x}", bytes[value + j]);
        }
        at = value + (note.n_descsz + 3) / 4 * 4;
      }
    }
    return 1;  // the program comes first; its libraries are not asked
  };
  ::dl_iterate_phdr(look, &id);
  return id;
}

std::vector<std::pair<std::string, std::string>> provenance() {
  return {{"thinwire", version()},
          {"commit", kStamp.commit},
          {"date", kStamp.date},
          {"compiler", compiler()},
          {"onednn", onednn_version()},
          {"cpu", cpu_model()},
          {"instruction_set", std::string(name(instruction_set()))}};
}

nlohmann::ordered_json provenance_json() {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : provenance()) json[name] = value;
  return json;
}

std::string provenance_names() {
  std::string text;
  for (const auto& [name, value] : provenance()) text += "," + name;
  return text;
}

std::string provenance_cells() {
  std::string text;
  for (auto [name, value] : provenance()) {
    std::ranges::replace(value, ',', ' ');
    text += "," + value;
  }
  return text;
}

std::string version_text() {
  const std::string mpi = mpi_library();
  return fmt::format(
      "thinwire {}\ncommit {}\ndate {}\n{}\noneDNN {}\n{}\n{}\nCPU {}\ninstruction set {}\n",
      version(), kStamp.commit, kStamp.date, compiler(), onednn_version(),
      mpi.empty() ? "without MPI" : mpi, cuda_libraries(), cpu_model(), name(instruction_set()));
}

}  // namespace tw
