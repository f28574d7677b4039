// The contract of every sparsifier through the C interface, with every setting of its parts.
#include <limits>

#include "tests/apps/library/library_rig.h"

namespace tw {
namespace {

bool has_momentum_before(const Variant& variant) {
  return resolve_sparsifier({.sparsifier = variant.sparsifier}, variant.settings).momentum_before;
}

/// The options of a reducer; a momentum only where it comes before the selection.
std::string options_of(const Variant& variant, double momentum, int threads = 1) {
  const Settings defaults = default_settings();
  std::string set;
  for (const auto& [key, value] : variant.settings.values())
    if (defaults.values().at(key) != value)
      set += fmt::format(R"({}"{}": "{}")", set.empty() ? "" : ", ", key, value);
  const std::string before =
      has_momentum_before(variant) ? fmt::format(R"("momentum": {}, )", momentum) : "";
  return fmt::format(R"({{"sparsifier": "{}", {}"threads_per_rank": {}, "set": {{{}}}}})",
                     variant.sparsifier, before, threads, set);
}

/// Whether a setting has no effect beside the defaults of others.
bool is_refused(const std::string& options) {
  bool refused = false;
  on_threads(1, [&](thinwire_group* group) {
    thinwire_reducer* reducer = nullptr;
    if (thinwire_reducer_create(group, options.c_str(), kTensors, 3, &reducer) != THINWIRE_OK)
      refused = std::string(thinwire_error()).find("has no effect") != std::string::npos;
    thinwire_reducer_free(reducer);
  });
  return refused;
}

class LibraryContract : public testing::TestWithParam<std::string> {
 protected:
  /// Calls body(variant) for all variants whose settings have an effect.
  template <class Body>
  static void for_all(double momentum, const Body& body) {
    size_t tried = 0;
    for (const Variant& variant : variants_of(GetParam())) {
      SCOPED_TRACE(variant.name);
      if (is_refused(options_of(variant, momentum))) continue;
      body(variant);
      ++tried;
    }
    EXPECT_GT(tried, 0U);
  }
};

TEST_P(LibraryContract, MeanIsWhatAnUpdateSubtracts) {
  for_all(0.5, [](const Variant& variant) {
    const SgdConfig config{.sparsifier = variant.sparsifier,
                           .momentum = has_momentum_before(variant) ? 0.5 : 0,
                           .weight_decay = 0};
    std::vector<std::vector<float>> updates(8), means(8);  // by step
    run_on_threads(2, [&](Communicator& comm) {
      Context ctx;
      SgdRig rig(ctx, comm, kLength, config, variant.settings);
      for (uint64_t step = 0; step < updates.size(); ++step) {
        ops::fill(ctx, rig.arena.values(), 0);
        rig.step(exact_kinds()[1], {.step = step, .lr = 0.5, .density = 0.1});
        if (comm.rank() == 0)
          for (const float value : rig.arena.values()) updates[step].push_back(value);
      }
    });
    const int code = on_threads(2, [&](thinwire_group* group) {
      LibraryRig rig(group, options_of(variant, 0.5));
      for (uint64_t step = 0; step < means.size(); ++step) {
        EXPECT_EQ(rig.step(step), THINWIRE_OK) << thinwire_error();
        if (thinwire_group_rank(group) == 0) means[step] = rig.mean;
      }
    });
    ASSERT_EQ(code, 0) << thinwire_error();
    bool any = false;
    for (size_t step = 0; step < means.size(); ++step)
      for (size_t i = 0; i < kLength; ++i) {
        ASSERT_EQ(-0.5f * means[step][i], updates[step][i]) << "step " << step << " element " << i;
        any |= means[step][i] != 0;
      }
    EXPECT_TRUE(any);
  });
}

TEST_P(LibraryContract, SendsInTheEndAllThatItHeldBack) {
  const GradientKind& kind = exact_kinds()[1];
  for_all(0, [&](const Variant& variant) {
    if (!variant.conserves || !variant.lossless) return;
    const int code = on_threads(4, [&](thinwire_group* group) {
      LibraryRig rig(group, options_of(variant, 0));
      std::vector<float> got(kLength), expected(kLength);
      for (uint64_t step = 0; step < 3; ++step) {
        EXPECT_EQ(rig.step(step, 0.1, kind), THINWIRE_OK) << thinwire_error();
        for (size_t i = 0; i < kLength; ++i) {
          got[i] += rig.mean[i];
          for (int rank = 0; rank < 4; ++rank)
            expected[i] += SgdRig::gradient(kind, rank, step, i) / 4;
        }
      }
      std::ranges::fill(rig.mean, 0.0f);
      EXPECT_EQ(rig.step_with_mean(3, 1), THINWIRE_OK) << thinwire_error();
      for (size_t i = 0; i < kLength; ++i) got[i] += rig.mean[i];
      EXPECT_TRUE(same_bits(got, expected));
    });
    EXPECT_EQ(code, 0) << thinwire_error();
  });
}

TEST_P(LibraryContract, GivesTheSameBitsOnAllRanksAndInARepeat) {
  for_all(0.5, [](const Variant& variant) {
    std::vector<std::vector<float>> means(3);  // by rank, of all steps
    const int code = on_threads(3, [&](thinwire_group* group) {
      LibraryRig first(group, options_of(variant, 0.5));
      LibraryRig again(group, options_of(variant, 0.5, 2));
      for (uint64_t step = 0; const double density : {0.05, 1.0, 0.05}) {
        EXPECT_EQ(first.step(step, density, rounding_kind()), THINWIRE_OK) << thinwire_error();
        EXPECT_EQ(again.step(step, density, rounding_kind()), THINWIRE_OK) << thinwire_error();
        EXPECT_TRUE(same_bits(first.mean, again.mean)) << "step " << step;
        std::vector<float>& mine = means[thinwire_group_rank(group)];
        mine.insert(mine.end(), first.mean.begin(), first.mean.end());
        ++step;
      }
    });
    EXPECT_EQ(code, 0) << thinwire_error();
    EXPECT_TRUE(same_bits(means[0], means[1]));
    EXPECT_TRUE(same_bits(means[0], means[2]));
  });
}

TEST_P(LibraryContract, ContinuesFromASavedStateToTheSameBits) {
  for_all(0.5, [](const Variant& variant) {
    const std::string options = options_of(variant, 0.5);
    const int code = on_threads(3, [&](thinwire_group* group) {
      LibraryRig through(group, options), resumed(group, options);
      for (uint64_t step = 0; step < 3; ++step)
        EXPECT_EQ(through.step(step, 0.1, rounding_kind()), THINWIRE_OK);
      const std::vector<char> state = through.saved();
      EXPECT_EQ(thinwire_reducer_load(resumed.reducer, state.data(), state.size()), THINWIRE_OK)
          << thinwire_error();
      EXPECT_EQ(resumed.saved(), state);
      for (uint64_t step = 3; step < 6; ++step) {
        EXPECT_EQ(through.step(step, 0.1, rounding_kind()), THINWIRE_OK);
        EXPECT_EQ(resumed.step(step, 0.1, rounding_kind()), THINWIRE_OK);
        EXPECT_TRUE(same_bits(through.mean, resumed.mean)) << "step " << step;
      }
    });
    EXPECT_EQ(code, 0) << thinwire_error();
  });
}

TEST_P(LibraryContract, CountsTheBytesThatItSends) {
  for_all(0.5, [](const Variant& variant) {
    run_on_threads(3, [&](Communicator& comm) {
      CallbackGroup by_callbacks(comm);
      LibraryRig rig(by_callbacks.group, options_of(variant, 0.5));
      for (uint64_t step = 0; step < 2; ++step) {
        const uint64_t before = by_callbacks.sent;
        EXPECT_EQ(rig.step(step), THINWIRE_OK) << thinwire_error();
        const uint64_t sent = by_callbacks.sent - before;
        if (step == 0 && std::string(GetParam()) == "bsp") {
          EXPECT_LT(rig.report.bytes_sent, sent);  // it measures its link
        } else {
          EXPECT_EQ(rig.report.bytes_sent, sent);
        }
      }
    });
  });
}

TEST_P(LibraryContract, NamesTheRankOfANanOnAllAndGoesOnFromASavedState) {
  for_all(0.5, [](const Variant& variant) {
    const int code = on_threads(3, [&](thinwire_group* group) {
      LibraryRig clean(group, options_of(variant, 0.5)), rig(group, options_of(variant, 0.5));
      EXPECT_EQ(clean.step(0), THINWIRE_OK);
      EXPECT_EQ(rig.step(0), THINWIRE_OK);
      const std::vector<char> before = rig.saved();
      std::ranges::fill(rig.mean, 1.0f);
      if (thinwire_group_rank(group) == 1) rig.mean[451] = std::numeric_limits<float>::quiet_NaN();
      const std::vector<float> gradients = rig.mean;
      EXPECT_EQ(rig.step_with_mean(1), THINWIRE_NONFINITE);
      const std::string text = thinwire_error();
      EXPECT_NE(text.find("rank 1: gradient of layer2.weight is nan at element 1"),
                std::string::npos)
          << text;
      EXPECT_TRUE(same_bits(rig.mean, gradients));
      EXPECT_EQ(thinwire_reducer_load(rig.reducer, before.data(), before.size()), THINWIRE_OK);
      EXPECT_EQ(rig.step(1), THINWIRE_OK) << thinwire_error();
      EXPECT_EQ(clean.step(1), THINWIRE_OK);
      EXPECT_TRUE(same_bits(rig.mean, clean.mean));
    });
    EXPECT_EQ(code, 0) << thinwire_error();
  });
}

INSTANTIATE_TEST_SUITE_P(Registered, LibraryContract, testing::ValuesIn(sparsifiers().names()),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace tw
