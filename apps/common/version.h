// The version of this build and of the libraries that it was built with.
#pragma once

#include <string>

namespace tw {

/// `0.2.0`
std::string version();

/// The hash that the linker gave this program, which differs between builds; `none` without one.
std::string build_id();

/// What `--version` prints: program, commit, compiler and the versions of oneDNN, MPI, CUDA, cuDNN
/// and NCCL, a line each.
std::string version_text();

}  // namespace tw
