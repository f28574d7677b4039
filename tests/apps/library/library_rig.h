// A reducer of the C interface with the tensors and gradients of SgdRig, on threads as ranks.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "apps/library/thinwire.h"
#include "comm/transports.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {

// the tensors of SgdRig
inline constexpr size_t kLength = 600;
inline constexpr int64_t kFirst[] = {20, 15}, kSecond[] = {150}, kThird[] = {15, 10};
inline constexpr thinwire_tensor kTensors[] = {
    {"layer0.weight", kFirst, 2}, {"layer1.weight", kSecond, 1}, {"layer2.weight", kThird, 2}};

/// A reducer of these tensors, and gradients in memory of their own.
class LibraryRig {
 public:
  LibraryRig(thinwire_group* group, const std::string& options) : group_(group) {
    EXPECT_EQ(thinwire_reducer_create(group, options.c_str(), kTensors, 3, &reducer), THINWIRE_OK)
        << thinwire_error();
  }
  ~LibraryRig() { thinwire_reducer_free(reducer); }

  int step(uint64_t number, double density = 0.1, const GradientKind& kind = exact_kinds()[1]) {
    for (size_t i = 0; i < kLength; ++i)
      mean[i] = SgdRig::gradient(kind, thinwire_group_rank(group_), number, i);
    return step_with_mean(number, density);
  }
  int step_with_mean(uint64_t number, double density = 0.1) {
    float* const gradients[] = {mean.data(), mean.data() + 300, mean.data() + 450};
    const thinwire_step input{.step = number, .density = density, .warmup = 0, .stop = 0};
    return thinwire_reducer_step(reducer, &input, gradients, &report);
  }
  std::vector<char> saved() const {
    size_t bytes = 0;
    EXPECT_EQ(thinwire_reducer_save(reducer, nullptr, &bytes), THINWIRE_OK);
    std::vector<char> state(bytes);
    EXPECT_EQ(thinwire_reducer_save(reducer, state.data(), &bytes), THINWIRE_OK)
        << thinwire_error();
    return state;
  }

  thinwire_reducer* reducer = nullptr;
  std::vector<float> mean = std::vector<float>(kLength);
  thinwire_report report{};

 private:
  thinwire_group* group_;
};

/// A group whose callbacks send by a communicator.
class CallbackGroup {
 public:
  explicit CallbackGroup(Communicator& comm) : comm_(comm) {
    const thinwire_callbacks callbacks{.rank = comm.rank(),
                                       .size = comm.size(),
                                       .user = this,
                                       .exchange = exchange,
                                       .abort = nullptr};
    EXPECT_EQ(thinwire_group_of_callbacks(&callbacks, &group), THINWIRE_OK) << thinwire_error();
  }
  ~CallbackGroup() { thinwire_group_free(group); }
  CallbackGroup(const CallbackGroup&) = delete;

  thinwire_group* group = nullptr;
  uint64_t sent = 0;  ///< bytes

 private:
  static int64_t exchange(void* user, int to, const void* out, size_t out_bytes, int from, void* in,
                          size_t in_bytes, double) {
    auto& self = *static_cast<CallbackGroup*>(user);
    if (to >= 0) self.sent += out_bytes;
    return static_cast<int64_t>(self.comm_.exchange(self.comm_.host(), to,
                                                    {static_cast<const std::byte*>(out), out_bytes},
                                                    from, {static_cast<std::byte*>(in), in_bytes}));
  }
  Communicator& comm_;
};

/// Runs `body` on threads as ranks; the first exit code.
inline int on_threads(int ranks, const std::function<void(thinwire_group*)>& body) {
  return thinwire_run_threads(
      ranks,
      [](thinwire_group* group, void* user) {
        (*static_cast<const std::function<void(thinwire_group*)>*>(user))(group);
        return 0;
      },
      const_cast<std::function<void(thinwire_group*)>*>(&body));
}

}  // namespace tw
