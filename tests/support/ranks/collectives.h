// Vectors for tests of collectives, and the collectives that a communicator supports.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "comm/collectives/collectives.h"

namespace tw {

inline constexpr size_t kLengths[] = {0, 1, 2, 4, 15, 1000, 4097, 300000};

/// Small integers, different on every rank.
inline float whole_number(int rank, size_t i) {
  return static_cast<float>(static_cast<int>((i * 7 + static_cast<size_t>(rank) * 13) % 101) - 50);
}

inline std::vector<float> whole_numbers(int rank, size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = whole_number(rank, i);
  return values;
}

/// Numbers of many magnitudes, whose sum depends on the order of the additions.
inline std::vector<float> rough_numbers(int rank, size_t n) {
  std::mt19937 random(17 + static_cast<unsigned>(rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& x : values) x = normal(random) * std::exp(5 * normal(random));
  return values;
}

/// Elements of `data` that are not the sum of whole_number over all ranks.
inline size_t wrong_sums(std::span<const float> data, int ranks) {
  size_t wrong = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += whole_number(rank, i);
    wrong += data[i] != sum;
  }
  return wrong;
}

/// Whether the communicator supports a collective: `vendor` needs a library with collectives.
inline bool runs_on(Communicator& comm, const std::string& collective) {
  return collective != "vendor" || comm.vendor() != nullptr;
}

/// Settings of all collectives with a given link cost, so that none is measured.
inline Settings known_link() {
  Settings settings = collective_settings();
  settings.set("linear_pipeline.alpha", "1e-4");
  settings.set("linear_pipeline.beta", "1e-8");
  return settings;
}

}  // namespace tw
