// CPU model and features, and the precision that `--precision auto` takes.
#include <fmt/format.h>

#include <cstdlib>

#include "apps/common/options.h"
#include "apps/common/resolve.h"
#include "apps/common/system_files.h"
#include "apps/doctor/checkup.h"
#include "engine/core/cpu_features.h"
#include "engine/core/instruction_set.h"

namespace tw {

namespace {

/// Features that oneDNN and the compiler's code use, in the names of /proc/cpuinfo.
constexpr const char* kFeatures[] = {"avx2",        "fma",         "avx512f",  "avx512bw",
                                     "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_tile"};

}  // namespace

Findings check_cpu(const Checkup& checkup) {
  const std::string information = whole_text("/proc/cpuinfo");
  const std::string model = cpu_model();
  const std::string flags = " " + value_in(information, "flags") + " ";
  std::vector<std::string> features;
  for (const char* feature : kFeatures)
    if (flags.find(fmt::format(" {} ", feature)) != flags.npos) features.emplace_back(feature);

  const std::string precision = word(resolve_precision({}, checkup.device));
  Finding found{.name = "cpu",
                .text = fmt::format("{}, {}; kernels for {}; precision auto is {} on this {}",
                                    model, fmt::join(features, " "), name(instruction_set()),
                                    precision, checkup.device == Device::cpu ? "CPU" : "GPU")};
  found.details = {{"model", model},
                   {"features", features},
                   {"instruction_set", name(instruction_set())},
                   {"bf16", cpu_has_bf16()},
                   {"precision", precision},
                   {"onednn", onednn_version()}};
  if (const char* set = std::getenv("THINWIRE_CPU"); set != nullptr && *set != '\0') {
    found.state = State::note;
    found.text += fmt::format("; THINWIRE_CPU={} limits the kernels", set);
    found.cure = "unset THINWIRE_CPU";
  } else if (const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA")) {
    found.state = State::note;
    found.text += fmt::format("; ONEDNN_MAX_CPU_ISA={} limits oneDNN", limit);
    found.cure = "unset ONEDNN_MAX_CPU_ISA";
  } else if (flags.size() > 2 && flags.find(" avx2 ") == flags.npos) {
    found.state = State::note;
    found.text += "; convolutions are slow without avx2";
    found.cure = "train on a CPU of 2013 or later, or a virtual machine that passes its features";
  }
  return {found};
}

}  // namespace tw
