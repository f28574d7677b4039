// PowerSGD (Vogels, Karimireddy and Jaggi, NeurIPS 2019, arXiv 1905.13727): each tensor of two or
// more dimensions is a matrix M of shape[0] rows, and the ranks sum two factors of it instead.
//   M = u = g + e, on each rank
//   P = sum of M Q over the ranks, orthonormalised;  Q = sum of M^T P
//   the sum over the ranks is P Q^T;  e = u - P Q^T / P ranks
// Q is that of the last step; the first is random. Tensors of one dimension, and those whose
// factors have no fewer elements, are summed whole, in the message of P, and leave no residual. The
// first `powersgd.start` exchanges of a run sum all tensors whole, as the dense exchange.
//
// Bytes over all ranks, with a bandwidth-optimal collective (ring): 2 (P-1) 4 (p + w + 1) and
// 2 (P-1) 4 (q + 1), for p and q elements in the factors and w in whole tensors; half of it with
// 16-bit `allreduce.values`. Seconds: two rings.

#include <algorithm>
#include <optional>

#include "engine/core/copy.h"
#include "engine/core/rng.h"
#include "engine/ops/vector.h"
#include "sparsify/exchanges/dense_sum.h"
#include "sparsify/exchanges/status_slot.h"
#include "sparsify/kernels/low_rank.h"
#include "sparsify/kernels/selection.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

/// A matrix in the vector of the exchange, and its factors in the vectors of all factors.
struct Matrix {
  LowRankShape shape;
  size_t offset, p, q;

  template <class T>
  std::span<T> of(std::span<T> vector) const {
    return vector.subspan(offset, shape.elements());
  }
  std::span<float> p_of(std::span<float> all) const { return all.subspan(p, shape.p_elements()); }
  std::span<float> q_of(std::span<float> all) const { return all.subspan(q, shape.q_elements()); }
};

class PowerSgd : public Exchange {
 public:
  PowerSgd(const Settings& settings, const ExchangePlan& plan)
      : sum_(settings),
        start_(static_cast<uint64_t>(settings.integer("powersgd.start"))),
        first_(plan.offset),
        seed_(plan.seed) {
    const auto most = static_cast<size_t>(settings.integer("powersgd.rank"));
    for (const TensorSlice& tensor : plan.tensors) {
      if (tensor.shape.rank() < 2) continue;
      const auto rows = static_cast<size_t>(tensor.shape[0]);
      const size_t columns = static_cast<size_t>(tensor.shape.numel()) / rows;
      const LowRankShape shape{rows, columns, std::min({most, rows, columns})};
      if (shape.p_elements() + shape.q_elements() >= shape.elements()) continue;
      matrices_.push_back({shape, tensor.offset, p_elements_, q_elements_});
      p_elements_ += shape.p_elements();
      q_elements_ += shape.q_elements();
      compressed_ += shape.elements();
    }
    q_.resize(q_elements_);
    for (const Matrix& matrix : matrices_)
      for (size_t c = 0; c < matrix.shape.rank; ++c)
        draw(matrix, 0, c, column_of(matrix.q_of(q_), matrix.shape.rank, c));
  }

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    if (step.step < start_) return sum_whole(ctx, comm, step, control);
    if (!host_) host_.emplace(Device::cpu, ctx.threads());
    Context& host = *host_;
    HostFloats gradient(ctx, step.gradient), residual(ctx, step.residual);
    const std::span<float> u = gradient.span(), e = residual.span();
    const size_t longest = longest_message(u.size());
    if (message_.size() < longest) message_.resize(longest);

    project(host, step.step, u);
    for_each_whole(u, [](std::span<float> tensor, std::span<float> place) {
      std::ranges::copy(tensor, place.begin());
    });
    const std::span<float> first = std::span(message_).first(first_sum(u.size()) + 1);
    const StatusSlot slot(host, first, control);
    sum_(host, comm, first);
    slot.settle(host, comm, control);
    if (control.nonfinite_rank >= 0) return;

    for_each_whole(u, [](std::span<float> tensor, std::span<float> place) {
      std::ranges::copy(place, tensor.begin());
    });
    for_each_whole(
        e, [](std::span<float> tensor, std::span<float>) { std::ranges::fill(tensor, 0.0f); });
    if (!matrices_.empty()) sum_matrices(host, comm, u, e);
    gradient.write();
    residual.write();
  }

  std::span<std::byte> state() override { return std::as_writable_bytes(std::span(q_)); }
  bool common_state() const override { return true; }  // Q is a sum over the ranks

  size_t summed_elements(size_t d) const override { return first_sum(d) + q_elements_; }
  uint64_t dense_exchanges() const override { return start_; }
  size_t buffer_bytes(size_t d) const override {
    const size_t message = longest_message(d), scratch = start_ > 0 ? d + 1 : message;
    return (p_elements_ + q_elements_ + message + scratch) * sizeof(float);
  }
  uint64_t wire_bytes(int ranks, size_t d, size_t) const override {
    return sum_.wire_bytes(ranks, first_sum(d)) +
           (q_elements_ > 0 ? sum_.wire_bytes(ranks, q_elements_) : 0);
  }
  double seconds(const LinkCost& link, int ranks, size_t d, size_t) const override {
    return sum_.seconds(link, ranks, first_sum(d)) +
           (q_elements_ > 0 ? sum_.seconds(link, ranks, q_elements_) : 0);
  }
  bool sums_densely() const override { return true; }

 private:
  /// The elements of the factors P and of whole tensors; the second message has those of Q.
  size_t first_sum(size_t d) const { return p_elements_ + (d - compressed_); }
  size_t longest_message(size_t d) const { return std::max(first_sum(d), q_elements_) + 1; }

  /// Standard normal numbers, the same on all ranks and for any division into buckets.
  void draw(const Matrix& matrix, uint32_t epoch, size_t c, std::span<float> column) const {
    const Philox philox(seed_, Purpose::factors, epoch);
    const uint64_t id = (static_cast<uint64_t>(c) << 32) + first_ + matrix.offset;
    for (size_t i = 0; i < column.size(); i += 4) {
      const Philox::Block bits = philox(id, static_cast<uint32_t>(i / 4));
      const auto front = normal(bits[0], bits[1]), back = normal(bits[2], bits[3]);
      const float values[] = {front[0], front[1], back[0], back[1]};
      std::copy_n(values, std::min<size_t>(4, column.size() - i), &column[i]);
    }
  }

  /// Calls body(tensor, its place in the first message) for the stretches of `vector` between the
  /// matrices.
  template <class Body>
  void for_each_whole(std::span<float> vector, const Body& body) {
    size_t begin = 0, at = p_elements_;
    const auto stretch = [&](size_t end) {
      body(vector.subspan(begin, end - begin), std::span(message_).subspan(at, end - begin));
      at += end - begin;
    };
    for (const Matrix& matrix : matrices_) {
      stretch(matrix.offset);
      begin = matrix.offset + matrix.shape.elements();
    }
    stretch(vector.size());
  }

  void sum_whole(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) {
    const StatusSlot slot(ctx, step.gradient_control, control);
    sum_(ctx, comm, step.gradient_control);
    slot.settle(ctx, comm, control);
    if (control.nonfinite_rank < 0) ops::fill(ctx, step.residual, 0);
  }

  // orthonormalises Q and leaves M Q in the first message
  void project(Context& host, uint64_t step, std::span<float> u) {
    const auto epoch = static_cast<uint32_t>(step + 1);
    for (const Matrix& matrix : matrices_) {
      const std::span<float> q = matrix.q_of(q_);
      for (size_t c = 0; c < matrix.shape.rank; ++c) {
        if (orthonormalise(q, matrix.shape.rank, c)) continue;
        draw(matrix, epoch, c, column_of(q, matrix.shape.rank, c));
        orthonormalise(q, matrix.shape.rank, c);
      }
      multiply(host, matrix.shape, matrix.of(u), q, matrix.p_of(message_));
    }
  }

  // from the sum of P in the message: the sum in u and what it lacks of u in e
  void sum_matrices(Context& host, Communicator& comm, std::span<float> u, std::span<float> e) {
    p_.assign(message_.begin(), message_.begin() + static_cast<ptrdiff_t>(p_elements_));
    check_sum(host, p_);
    const std::span<float> second = std::span(message_).first(q_elements_ + 1);
    for (const Matrix& matrix : matrices_) {
      const std::span<float> p = matrix.p_of(p_);
      for (size_t c = 0; c < matrix.shape.rank; ++c) orthonormalise(p, matrix.shape.rank, c);
      multiply_transposed(host, matrix.shape, matrix.of(u), p, matrix.q_of(second));
    }
    second.back() = 0;  // the status is known
    sum_(host, comm, second);
    std::ranges::copy(second.first(q_elements_), q_.begin());
    check_sum(host, q_);

    const float share = 1.0f / static_cast<float>(comm.size());
    for (const Matrix& matrix : matrices_)
      expand(host, matrix.shape, share, matrix.p_of(p_), matrix.q_of(q_), matrix.of(u),
             matrix.of(e));
  }

  // all ranks have the same sums
  static void check_sum(Context& host, std::span<const float> factors) {
    const SelectInfo bad = name_nonfinite(host, factors);
    check<CollectiveFault>(
        bad.nonfinite == SIZE_MAX,
        "[powersgd] all gradients are finite, but the sum of their factors is {}",
        bad.nonfinite_value);
  }

  DenseSum sum_;
  uint64_t start_;  // the first exchange that sums factors
  size_t first_;    // of the vector in the model
  uint64_t seed_;
  std::vector<Matrix> matrices_;
  size_t p_elements_ = 0, q_elements_ = 0, compressed_ = 0;
  std::optional<Context> host_;
  std::vector<float> p_, q_, message_;
};

const bool powersgd_exchange =
    exchanges().add({"powersgd",
                     "sums two low-rank factors of each matrix, and other tensors whole",
                     {.make = make_exchange<PowerSgd>,
                      .dense = true,
                      .compresses = true,
                      .validate = DenseSum::validate},
                     {{.key = "rank", .value = "4", .help = "columns of the factors", .least = 1},
                      {.key = "start",
                       .value = "0",
                       .help = "exchanges at the start of a run that sum whole gradients",
                       .least = 0}}});
const bool powersgd_sparsifier =
    sparsifiers().add({"powersgd",
                       "PowerSGD: low-rank factors of each tensor, error feedback",
                       {.selector = "", .exchange = "powersgd"}});

}  // namespace

}  // namespace tw
