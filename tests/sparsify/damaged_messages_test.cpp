// A rank that sends damaged messages: with every sparsifier the run ends with one Fault, or all
// ranks end with the same finite parameters. No message makes a rank crash, hang or fill memory.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "comm/collectives/collectives.h"
#include "comm/transports.h"
#include "engine/core/hash.h"
#include "tests/support/ranks/damaged.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

constexpr int kDamagedRanks = 4;
constexpr size_t kDamagedLength = 1000;

/// As the end of a run compares the weights of its ranks.
void check_same_weights(Communicator& comm, std::span<const float> weights) {
  const uint64_t mine = checksum(std::as_bytes(weights));
  for (const uint64_t other : gather(comm, mine))
    check<Fault>(other == mine, "[test] the weights of two ranks differ");
}

/// A step whose gradients depend on the weights, as those of a network do.
void damaged_step(SgdRig& rig, uint64_t number) {
  rig.set_gradients(exact_kinds().front(), number);
  for (size_t i = 0; i < rig.arena.size(); ++i)
    rig.arena.gradients()[i] += 0 * rig.arena.values()[i];
  rig.sgd->step({.step = number, .density = 0.05});
}

/// Four steps of four ranks, of which the second and third are damaged by rank `liar`. Returns the
/// Fault that ends the run; none if all ranks end with the same finite weights.
std::optional<std::string> run_damaged(const Variant& variant, int liar, const Damage& damage) {
  std::vector<float> weights;
  try {
    run_on_threads(kDamagedRanks, [&](Communicator& inner) {
      DamagedCommunicator comm(inner);
      comm.set_timeout(0.5);
      Context ctx;
      SgdRig rig(ctx, comm, kDamagedLength, {.sparsifier = variant.sparsifier}, variant.settings);
      for (uint64_t number = 0; number < 4; ++number) {
        const bool damaged = comm.rank() == liar && (number == 1 || number == 2);
        comm.set_damage(damaged ? damage : Damage{});
        damaged_step(rig, number);
      }
      check_same_weights(comm, rig.arena.values());
      if (comm.rank() == 0) weights.assign(rig.arena.values().begin(), rig.arena.values().end());
    });
  } catch (const Fault& fault) {
    return fault.what();
  }
  EXPECT_EQ(weights.size(), kDamagedLength);
  EXPECT_TRUE(std::ranges::all_of(weights, [](float w) { return std::isfinite(w); }));
  return std::nullopt;
}

/// The most memory that this process has had, in MiB.
long peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

class DamagedMessages : public testing::TestWithParam<std::string> {};

TEST_P(DamagedMessages, EndWithOneFaultOrTheSameWeights) {
  const long before = peak_mib();
  int faults = 0;
  for (const Variant& variant : variants_of(GetParam())) {
    if (variant.brief) continue;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const testing::ScopedTrace trace(__FILE__, __LINE__,
                                       fmt::format("{}, {}", variant.name, seed));
      const auto fault =
          run_damaged(variant, static_cast<int>(seed % kDamagedRanks), random_damage(seed));
      if (!fault) continue;
      ++faults;
      EXPECT_TRUE(fault->starts_with("[")) << *fault;
      EXPECT_EQ(fault->find('\n'), std::string::npos) << *fault;
    }
  }
  EXPECT_GT(faults, 0) << "the damage has no effect";
  EXPECT_LT(peak_mib() - before, 256);
}

INSTANTIATE_TEST_SUITE_P(Registered, DamagedMessages, testing::ValuesIn(sparsifiers().names()),
                         [](const auto& test) { return test.param; });

/// What becomes of a sparsifier when rank 1 sends `damage`.
std::string fault_after(const std::string& sparsifier, const Damage& damage,
                        const std::pair<const char*, const char*>& setting = {}) {
  Variant variant{.sparsifier = sparsifier};
  if (setting.first != nullptr) variant.settings.set(setting.first, setting.second);
  return run_damaged(variant, 1, damage).value_or("none");
}

void expect_named(const std::string& fault, const std::string& part) {
  EXPECT_NE(fault.find(part), std::string::npos) << fault;
}

TEST(DamagedMessage, ALengthBeyondTheGradientAllocatesNothing) {
  const long before = peak_mib();
  const auto huge = [](std::vector<std::byte>& m) { put(m, 0, uint64_t{3} << 30); };
  for (const char* sparsifier : {"topk", "oktopk", "exact"})
    expect_named(fault_after(sparsifier, huge), "announces 3221225472 bytes; expected at most");
  EXPECT_LT(peak_mib() - before, 256);
}

TEST(DamagedMessage, AControlWordBeyondTheModelIsRefused) {
  // of the first round: length, then the control word, which has an element, a value and a rank
  constexpr size_t kFirstRound = 600;
  const auto beyond = [](std::vector<std::byte>& m) {
    if (m.size() > kFirstRound) return;
    put(m, 8, uint64_t{1} << 40);
    put(m, 16, std::numeric_limits<float>::quiet_NaN());
  };
  expect_named(fault_after("topk", beyond), "control word names rank 1, element 1099511627776");
  const auto stranger = [](std::vector<std::byte>& m) {
    if (m.size() > kFirstRound) return;
    put(m, 8, uint64_t{5});
    put(m, 16, std::numeric_limits<float>::quiet_NaN());
    put(m, 20, (uint32_t{900} + 1) << 1);
  };
  expect_named(fault_after("topk", stranger), "control word names rank 900");
}

TEST(DamagedMessage, AValueThatIsNotFiniteNamesItsSender) {
  const auto nan = [](std::vector<std::byte>& m) {
    put(m, m.size() - 4, std::numeric_limits<float>::quiet_NaN());
  };
  expect_named(fault_after("gtopk", nan), "[wire] rank 1 sent nan as a value");
}

TEST(DamagedMessage, AScaleThatIsNotFiniteNamesItsSender) {
  // 50 indices, a scale and 50 bits
  const auto nan = [](std::vector<std::byte>& m) {
    if (m.size() > 4 + 7) put(m, m.size() - 7 - 4, std::numeric_limits<float>::infinity());
  };
  expect_named(fault_after("gtopk", nan, {"wire.values", "sign"}), "[wire] rank 1 sent");
}

TEST(DamagedMessage, BordersOfRegionsMustAscend) {
  const auto backwards = [](std::vector<std::byte>& m) {
    if (m.size() == 8 + 4 * 65)
      for (size_t i = 0; i < 65; ++i) put(m, 8 + 4 * i, static_cast<uint32_t>(64000 - 1000 * i));
  };
  expect_named(fault_after("oktopk", backwards, {"oktopk.exact_every", "1"}),
               "borders of the regions");
}

TEST(DamagedMessage, IndicesOfTheLeaderAreChecked) {
  // rank 1 leads in step 1: a number and indices
  const auto beyond = [](std::vector<std::byte>& m) { put(m, 8, ~uint32_t{0}); };
  expect_named(fault_after("scalecom", beyond), "[scalecom] the indices of rank 1 do not ascend");
  const auto many = [](std::vector<std::byte>& m) { put(m, 0, uint64_t{1} << 40); };
  expect_named(fault_after("scalecom", many), "[scalecom] rank 1 announces 1099511627776 indices");
  // in a message of full length, which more indices than twice k follow
  const auto full = [&](std::vector<std::byte>& m) {
    m.resize(8 + 4 * 100);
    many(m);
  };
  expect_named(fault_after("scalecom", full), "indices of 1000 in 408 bytes");
}

TEST(DamagedMessage, SixteenBitValuesComeWhole) {
  const auto odd = [](std::vector<std::byte>& m) { m.resize(m.size() - 1); };
  expect_named(fault_after("dense", odd, {"allreduce.values", "bf16"}), "not whole 16-bit values");
}

}  // namespace
}  // namespace tw
