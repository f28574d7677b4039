// Hard threshold (Sahu et al., NeurIPS 2021, arXiv 2108.00951): every entry of at least a constant
// magnitude.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "engine/core/text.h"
#include "sparsify/selectors/topk.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

/// The setting; 0 for `auto`.
float lambda_of(const Settings& settings) {
  const std::string& text = settings.text("hardthreshold.lambda");
  if (text == "auto") return 0;
  const float lambda = number_in<float>(text).value_or(0);
  check(lambda > 0 && std::isfinite(lambda),
        "[hardthreshold] lambda is \"{}\"; expected auto or a positive number", text);
  return lambda;
}

/// lambda: the setting. If it is `auto`, each slice takes its own from a step after the density
/// warm-up: the least of the k largest magnitudes. Until then the k largest entries are sent.
class HardThreshold final : public Selector {
 public:
  HardThreshold(Context& ctx, const Settings& settings, const SelectorRank& rank)
      : lambdas_(rank.slices, lambda_of(settings)), fixed_(lambda_of(settings) > 0), above_(ctx) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override {
    float& lambda = lambdas_.at(in.slice);
    const bool known = lambda > 0;
    const size_t first = out.count;
    const SelectInfo info = above_.select(ctx, lambda, in, out);
    if (known || in.warmup) return info;
    const std::span<const float> sent = out.value_span().subspan(first);
    if (sent.size() == std::min(in.k, in.e.size()))
      lambda = std::ranges::min(sent | std::views::transform([](float x) { return std::abs(x); }));
    return info;
  }

  std::span<std::byte> state() override {
    return fixed_ ? std::span<std::byte>() : std::as_writable_bytes(std::span(lambdas_));
  }

 private:
  std::vector<float> lambdas_;  // of each slice; 0: not taken yet
  bool fixed_;
  AboveThreshold above_;
};

const bool hardthreshold_selector = selectors().add(
    {"hardthreshold",
     "magnitudes of at least a constant",
     {.make = make_selector<HardThreshold>, .volume = Volume::any, .validate = lambda_of},
     {{.key = "lambda",
       .value = "auto",
       .help = "least magnitude that is sent; "
               "auto: that of top-k in the first step after the density warm-up"}}});
const bool hardthreshold_sparsifier =
    sparsifiers().add({"hardthreshold",
                       "hard threshold, error feedback, sparse allgather",
                       {.selector = "hardthreshold", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
