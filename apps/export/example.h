// An example of a network's input and output, to check another runtime against.
#pragma once

#include <filesystem>

#include "models/model.h"

namespace tw {

/// Writes a safetensors file: `images` (N,H,W,C) of random bytes, `input` (N,C,H,W), which are the
/// same images normalised with `mean` and `deviation`, and the network's `logits` (N, classes).
/// The model is allocated.
void write_example(Context& ctx, Model& model, std::span<const float> mean,
                   std::span<const float> deviation, const std::filesystem::path& path);

}  // namespace tw
