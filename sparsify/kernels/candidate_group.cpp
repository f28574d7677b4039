#include "sparsify/kernels/candidate_group.h"

#include "sparsify/kernels/candidates_cpu.h"

namespace tw {

std::unique_ptr<CandidateGroup> CandidateGroup::create(Context& ctx) {
  return candidate_group_dispatch(ctx.device());
}

namespace {

class OneVector final : public CandidateGroup {
 public:
  size_t most() const override { return 1; }
  void refer_to(std::span<const Vector> vectors) override { vector_ = vectors[0]; }
  void nth_magnitudes(Context& ctx, std::span<const NthOfSample> samples,
                      std::span<uint32_t> bits) override {
    bits[0] = candidates_.nth_magnitude(ctx, samples[0].sample, samples[0].nth);
  }
  void collect(Context& ctx, std::span<const Collection> collections) override {
    for (const auto& [vector, add, min_bits, lower] : collections)
      candidates_.collect(ctx, add ? vector_.g : std::span<const float>(), vector_.e, min_bits,
                          lower);
  }
  size_t reaching(Context&, size_t, uint32_t bits) override { return candidates_.reaching(bits); }
  void take_largest(Context& ctx, std::span<const Largest> wanted, std::span<SelectInfo> infos,
                    SparseVector& out) override {
    infos[0] = candidates_.take_largest(ctx, wanted[0].k, ~0u, vector_.e, wanted[0].base, out);
  }

 private:
  HostCandidates candidates_;
  Vector vector_;
};

const bool group_registered = candidate_group_dispatch.add<OneVector>(Device::cpu);

}  // namespace

}  // namespace tw
