// Decay bounds of ops::sgd_update().
#pragma once

#include <array>
#include <cstdint>

namespace tw {

/// Every element decays.
inline constexpr std::array<uint32_t, 1> kDecayAll{0};

}  // namespace tw
