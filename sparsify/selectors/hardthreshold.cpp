// Hard threshold (Sahu et al., NeurIPS 2021, arXiv 2108.00951): every entry of at least a constant
// magnitude.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <ranges>

#include "sparsify/selectors/topk.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

/// lambda: the setting. If it is `auto`, each slice takes its own from a step after the density
/// warm-up: the least of the k largest magnitudes. Until then the k largest entries are sent.
class HardThreshold final : public Selector {
 public:
  HardThreshold(Context& ctx, float lambda, size_t slices)
      : fixed_(lambda > 0), lambdas_(slices, lambda), above_(ctx) {}

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
  bool fixed_;
  std::vector<float> lambdas_;  // of each slice; 0: not taken yet
  AboveThreshold above_;
};

/// The setting; 0 for `auto`.
float lambda_of(const Settings& settings) {
  const std::string& text = settings.text("hardthreshold.lambda");
  if (text == "auto") return 0;
  float lambda = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), lambda);
  check(error == std::errc() && end == text.data() + text.size() && lambda > 0 &&
            std::isfinite(lambda),
        "[hardthreshold] lambda is \"{}\"; expected auto or a positive number", text);
  return lambda;
}

std::unique_ptr<Selector> make_hardthreshold(Context& ctx, const Settings& settings,
                                             const SelectorRank& rank) {
  return std::make_unique<HardThreshold>(ctx, lambda_of(settings), rank.slices);
}

const bool hardthreshold_selector = selectors().add(
    {"hardthreshold",
     "magnitudes of at least a constant",
     {.make = make_hardthreshold, .volume = Volume::any, .validate = lambda_of},
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
