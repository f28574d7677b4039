// The version of this build and of the libraries that it was built with.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tw {

/// Commit and date of the sources of this build, which each build looks up. The commit ends in
/// `-dirty-HASH` if the sources differ from it; both are `unknown` without git.
struct Stamp {
  const char *commit, *date;
};
extern const Stamp kStamp;

/// `0.2.0`
std::string version();

/// The hash that the linker gave this program, which differs between builds; `none` without one.
std::string build_id();

/// What every result carries, by name: `thinwire` (the version), `commit`, `date`, `compiler`,
/// `onednn`, and the `cpu` of this machine.
std::vector<std::pair<std::string, std::string>> provenance();
/// The same as an object.
nlohmann::ordered_json provenance_json();

/// The names and the values of provenance() as the last cells of the lines of a table, each with a
/// comma before it. Commas in a value become spaces.
std::string provenance_names();
std::string provenance_cells();

/// What `--version` prints: program, commit, date, compiler and the versions of oneDNN, MPI, CUDA,
/// cuDNN and NCCL, and the CPU, a line each.
std::string version_text();

}  // namespace tw
