// Recording: the gradient of one rank in one step, as `train --save-gradients` and Python's
// thinwire.record() write it: a safetensors file of flat f32 tensors,
//   g   the gradient
//   u   g and the residual, from which entries are selected; without a residual it may be missing
// with `step`, which counts from 1, `rank`, `ranks`, `sparsifier`, `density` and `tensors` in the
// metadata. `tensors` is a JSON list of the names and shapes of the parameters in their order, such
// as [["fc.weight", [10, 64]], ["fc.bias", [10]]].
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/io/safetensors.h"
#include "engine/plan/arena.h"

namespace tw {

struct Recording {
  std::string path{};  ///< of the file that it was read from
  int64_t step = 0;    ///< 0: the file has none
  int rank = 0, ranks = 1;
  std::string sparsifier{};
  double density = 1;
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors{};  // their extents
  std::vector<float> u{};

  /// Declares the tensors. UserError as ParameterArena::add().
  ParameterArena arena() const;
};

/// `step-00000100-`, in front of rank-0.safetensors, the name of the file of a rank.
std::string recording_prefix(int64_t step);

/// A file of the tensors g and u, which must stay valid, with the metadata of the recording. The
/// tensors are those of `arena`.
SafetensorsWriter recording_file(const Recording& of, const ParameterArena& arena,
                                 std::span<float> g, std::span<float> u);

/// Reads a recording: u, without it g, or the only tensor of a file of another program, as one
/// tensor of one rank. UserError names the file and what is wrong with it.
Recording read_recording(const std::filesystem::path& path);

}  // namespace tw
