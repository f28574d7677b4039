// The version of this build and of the libraries that it was built with.
#pragma once

#include <string>

namespace tw {

/// `0.2.0`
std::string version();

/// What `--version` prints: program, commit, compiler and the versions of oneDNN, MPI, CUDA, cuDNN
/// and NCCL, a line each.
std::string version_text();

}  // namespace tw
