// DamagedCommunicator: a rank whose messages are damaged before they are sent.
#pragma once

#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "comm/communicator_decorator.h"

namespace tw {

using Damage = std::function<void(std::vector<std::byte>& message)>;

class DamagedCommunicator : public CommunicatorDecorator {
 public:
  explicit DamagedCommunicator(Communicator& inner) : CommunicatorDecorator(inner) {}

  /// Applied to each later message; null: messages are sent as they are.
  void set_damage(Damage damage) { damage_ = std::move(damage); }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    inner_.inherit_timeout(*this);
    if (to < 0 || !damage_) return inner_.exchange(ctx, to, out, from, in);
    std::vector<std::byte> message(out.begin(), out.end());
    damage_(message);
    return inner_.exchange(ctx, to, message, from, in);
  }

 private:
  Damage damage_;
};

/// The word of type T at byte `at` of a message that has it.
template <class T>
void put(std::vector<std::byte>& message, size_t at, T value) {
  if (at < message.size() && sizeof value <= message.size() - at)
    std::memcpy(&message[at], &value, sizeof value);
}

/// Damages about every other message at random: words that are no length, index or value, swapped
/// and repeated words, flipped bits, other lengths.
inline Damage random_damage(uint64_t seed) {
  return [random = std::mt19937_64(seed)](std::vector<std::byte>& message) mutable {
    const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
    if (below(2) == 0) return;
    const size_t words = message.size() / 4, at = 4 * below(words), other = 4 * below(words);
    switch (below(9)) {
      case 0: {
        constexpr uint64_t kLengths[] = {0, 1, 7, 1000, 1ull << 33, 1ull << 40, 1ull << 63, ~0ull};
        return put(message, below(2) * at, kLengths[below(std::size(kLengths))]);
      }
      case 1: {
        constexpr uint32_t kIndices[] = {0, 999, 1000, 1u << 20, 1u << 31, ~0u};
        return put(message, at, kIndices[below(std::size(kIndices))]);
      }
      case 2: {
        constexpr float inf = std::numeric_limits<float>::infinity();
        const float kValues[] = {std::numeric_limits<float>::quiet_NaN(), inf, -inf, 3e38f};
        return put(message, at, kValues[below(std::size(kValues))]);
      }
      case 3:  // descending
        for (size_t i = 0; i < 4 && words > 0; ++i) std::swap(message[at + i], message[other + i]);
        return;
      case 4:  // twice
        if (words > 0) std::memmove(&message[at], &message[other], 4);
        return;
      case 5:
        for (std::byte& byte : message)
          if (below(16) == 0) byte ^= static_cast<std::byte>(1u << below(8));
        return;
      case 6:
        return message.resize(below(message.size() + 1));
      case 7:
        return message.resize(message.size() + 1 + below(9), std::byte{0x5a});
      default:
        return message.resize(message.size() - std::min<size_t>(1, message.size()));
    }
  };
}

}  // namespace tw
