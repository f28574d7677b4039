// Options that several programs share, and what `auto` and 0 mean on this machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/core/dtype.h"

namespace tw {

enum class Precision { f32, tf32, bf16 };
constexpr auto words(Precision) { return std::array{"f32", "tf32", "bf16"}; }
constexpr auto words(Device) { return std::array{"cpu", "cuda"}; }
/// By default, the share of the entries of a gradient that is sent.
inline constexpr double kDensity = 0.001;
/// What is done at a damaged image.
enum class BadImages { fail, skip };
constexpr auto words(BadImages) { return std::array{"fail", "skip"}; }

/// Without a choice, the GPU when there is one and this build can use it.
Device resolve_device(std::optional<Device> device = {});
/// Without a choice, bf16 where `device` has it in hardware.
Precision resolve_precision(std::optional<Precision> precision, Device device);
/// The type of activations in memory.
inline DType activations_of(Precision precision) {
  return precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

/// How many of `ranks` ranks are on this machine: all, or as an MPI launcher tells.
int ranks_here(int ranks);
/// CPU threads of each of `ranks` ranks: `threads` or, for 0, the cores of this machine divided by
/// the ranks on it.
int resolve_threads(int64_t threads, int ranks);

}  // namespace tw
