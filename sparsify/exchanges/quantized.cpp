// The quantized dense exchange: a sum of whole gradients in two steps, both with values of 8 or 4
// bits or signs (dense_values.h).
//   1. The vector is cut into one part a rank. Each rank sends each part, quantized, to its owner
//      (P-1 messages a rank), which adds them up in f32.
//   2. Owners send the quantized sums to all ranks (an allgather).
// What rounding takes off stays in the residual: of step 1 at the sender, of step 2 at the owner.
// Without error feedback, int8 and int4 are rounded at random, so that the mean of a value is that
// value. With `quantized.values=sign` this is SGD with scaled signs and error feedback in both
// directions, as of Zheng, Huang and Kwok (NeurIPS 2019, of which the abstract was read), with
// blocks of one length.
//
// Bytes over all ranks: 2 (P-1) (b d / 8 + 4 d / block) + 24 P (P-1), with rounding up in each
// part. Messages a rank: P-1 and ceil(log2 P). Seconds: (P - 1 + ceil(log2 P)) alpha + 2 (P-1)/P d
// (b / 32 + 1 / block) beta + (P-1)/P d gamma.

#include <cstring>
#include <optional>

#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "engine/core/copy.h"
#include "sparsify/encoding/dense_values.h"
#include "sparsify/exchanges/gathering_exchange.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

class Quantized : public Exchange {
 public:
  Quantized(const Settings& settings, const ExchangePlan& plan)
      : values_(value_format(settings.text("quantized.values")),
                static_cast<size_t>(settings.integer("quantized.block"))),
        plan_(plan) {}

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    if (!host_) host_.emplace(Device::cpu, ctx.threads());
    HostFloats gradient(ctx, step.gradient), residual(ctx, step.residual);
    const std::span<float> u = gradient.span(), errors = residual.span();
    std::ranges::copy(u, errors.begin());
    const int self = comm.rank();
    const auto own = chunks(u, comm.size(), self, self + 1),
               own_errors = chunks(errors, comm.size(), self, self + 1);

    reduce_to_owners(comm, step.step, errors, own, control);
    if (control.nonfinite_rank >= 0) return;
    if (comm.size() > 1) {
      std::ranges::copy(own, own_errors.begin());
      share_sums(comm, step.step, own_errors, u);
    } else {
      std::ranges::fill(errors, 0.0f);
    }
    gradient.write();
    residual.write();
  }

  size_t buffer_bytes(size_t d) const override { return 2 * values_.bytes(d); }
  uint64_t wire_bytes(int ranks, size_t d, size_t) const override {
    uint64_t values = 0;
    for (int owner = 0; owner < ranks; ++owner)
      values += values_.bytes(chunk_begin(d, ranks, owner + 1) - chunk_begin(d, ranks, owner));
    // a control word in each message of step 1, a size in each block of step 2
    return 2 * static_cast<uint64_t>(ranks - 1) * values + gather_overhead(ranks);
  }
  double seconds(const LinkCost& link, int ranks, size_t d, size_t) const override {
    if (ranks == 1) return 0;
    const double sent = static_cast<double>(values_.bytes(d)) / sizeof(float);
    return (ranks - 1 + tree_rounds(ranks)) * link.alpha +
           others_share(ranks) * (2 * sent * link.beta + static_cast<double>(d) * link.gamma);
  }

 private:
  // leaves the sum of this rank's part in `own`, and in the other parts of `errors` those of
  // rounding
  void reduce_to_owners(Communicator& comm, uint64_t step, std::span<float> errors,
                        std::span<float> own, Control& control) {
    const int ranks = comm.size(), self = comm.rank();
    const ControlWord word = pack(control);
    const bool sound = control.nonfinite == SIZE_MAX;
    control = {};
    merge(control, self, word);
    incoming_.resize(sizeof word + values_.bytes(own.size()));
    for (int shift = 1; shift < ranks; ++shift) {
      const int to = (self + shift) % ranks, from = (self + ranks - shift) % ranks;
      const std::span<float> part = chunks(errors, ranks, to, to + 1);
      message_.resize(sizeof word + values_.bytes(part.size()));
      std::memcpy(message_.data(), &word, sizeof word);
      // what follows the report of a NaN is not read
      if (sound)
        values_.write(*host_, part, message_.data() + sizeof word, plan_.draws(step, self, to));
      exchange_exactly("quantized", *host_, comm, to, message_, from, incoming_);
      ControlWord theirs;
      std::memcpy(&theirs, incoming_.data(), sizeof theirs);
      merge(control, from, theirs);
      if (control.nonfinite_rank >= 0) continue;
      check<Fault>(values_.add(*host_, incoming_.data() + sizeof theirs, own),
                   "[quantized] rank {} sent a scale that is not finite", from);
    }
  }

  // sends own sums, of which it leaves the errors of rounding, and collects those of all ranks
  void share_sums(Communicator& comm, uint64_t step, std::span<float> own, std::span<float> sums) {
    const int ranks = comm.size(), self = comm.rank();
    message_.resize(values_.bytes(own.size()));
    values_.write(*host_, own, message_.data(), plan_.draws(step, self, self));
    const size_t longest = values_.bytes(sums.size() / static_cast<size_t>(ranks) + 1);
    allgather(*host_, comm, message_, longest, blocks_, longest);
    for (int owner = 0; owner < ranks; ++owner) {
      const std::span<float> part = chunks(sums, ranks, owner, owner + 1);
      const ConstBytes block = blocks_.exactly(owner, values_.bytes(part.size()));
      check<CollectiveFault>(values_.read(*host_, block.data(), part),
                             "[quantized] all gradients are finite, but a sum of them is not");
    }
  }

  DenseValues values_;
  ExchangePlan plan_;
  std::optional<Context> host_;
  std::vector<std::byte> message_, incoming_;
  GatheredBlocks blocks_;
};

const bool quantized_exchange = exchanges().add(
    {"quantized",
     "sums whole gradients at owners of parts, with values of 8 or 4 bits or signs",
     {.make = make_exchange<Quantized>,
      .dense = true,
      .compresses = true,
      .moves_zeros =
          [](const Settings& settings) {
            return value_format(settings.text("quantized.values")) == ValueFormat::sign;
          }},
     {{"values", "int8", "type of the values in messages; sums are f32", {"int8", "int4", "sign"}},
      {"block", "256", "values that share a scale", {"64", "256", "1024"}}}});
const bool quantized_sparsifier =
    sparsifiers().add({"quantized",
                       "whole gradients with values of 8 or 4 bits or signs, error feedback",
                       {.selector = "", .exchange = "quantized"}});

}  // namespace

}  // namespace tw
