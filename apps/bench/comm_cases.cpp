#include "apps/bench/comm_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "comm/collectives/half_messages.h"
#include "engine/core/copy.h"
#include "engine/ops/vector.h"
#include "sparsify/exchange.h"
#include "sparsify/kernels/sparse_ops.h"

namespace tw {

namespace {

constexpr int kNumbers = 101;  ///< a prime

/// Small integers that differ between ranks, so that sums are exact in any order.
float number(int rank, size_t i) {
  return static_cast<float>(static_cast<int>((i * 7 + static_cast<size_t>(rank) * 13) % kNumbers) -
                            50);
}

/// The sum over the ranks, of which any kNumbers in a row add up to zero.
float sum_at(const Communicator& comm, size_t i) {
  float sum = 0;
  for (int rank = comm.size() % kNumbers; rank-- > 0;) sum += number(rank, i);
  return sum;
}

void fill_dense(Context& ctx, const Communicator& comm, CommVectors& vectors, size_t n) {
  HostFloats data(ctx, vectors.data(n));
  for (size_t i = 0; i < n; ++i) data.span()[i] = number(comm.rank(), i);
  data.write();
}

/// Counts the elements x[i] for which `right(comm, x[i], i)` is false.
template <class Right>
auto each(Right right) {
  return [right](Context& ctx, Communicator& comm, CommVectors& vectors, size_t n) {
    const HostFloats data(ctx, vectors.data(n));
    size_t wrong = 0;
    for (size_t i = 0; i < n; ++i) wrong += !right(comm, data.span()[i], i);
    return wrong;
  };
}

/// No partial sum of number() over the ranks is larger.
float largest_sum(const Communicator& comm) { return 50.0f * static_cast<float>(comm.size()); }

void fill_block(Context&, const Communicator& comm, CommVectors& vectors, size_t n) {
  vectors.block.resize(n / static_cast<size_t>(comm.size()));
  for (size_t i = 0; i < vectors.block.size(); ++i) vectors.block[i] = number(comm.rank(), i);
}

size_t wrong_in_blocks(Context&, const Communicator& comm, const CommVectors& vectors, size_t) {
  size_t wrong = 0;
  for (size_t i = 0; i < vectors.block.size(); ++i)
    for (int rank = 0; rank < comm.size(); ++rank) {
      float x = 0;
      std::memcpy(&x, vectors.blocks[rank].data() + i * sizeof(float), sizeof x);
      wrong += x != number(rank, i);
    }
  return wrong;
}

/// Elements for which the sum, with the residuals of all ranks, differs by more than `error` from
/// the sum of the ranks' inputs.
size_t lost(Context& ctx, Communicator& comm, const CommVectors& vectors, std::vector<float> inputs,
            float error) {
  const size_t n = inputs.size();
  std::vector<float> sum(n), residual(n);
  copy_to_host(ctx, vectors.data(n), sum);
  copy_to_host(ctx, vectors.scratch(n), residual);
  allreduce(comm, residual);
  allreduce(comm, inputs);
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) count += !(std::abs(sum[i] + residual[i] - inputs[i]) <= error);
  return count;
}

/// The settings with which no exchange loses entries. The put-back of gTop-k as published does; the
/// tree and its messages are the same.
Settings conserving(Settings settings) {
  for (const auto& [name, entry] : exchanges().entries())
    for (const Setting& setting : entry.settings)
      if (setting.key == "put_back") settings.set(name + ".put_back", "conserve");
  return settings;
}

/// An exchange and the number of the next step, since some exchanges keep state between steps.
struct SparseCase {
  std::shared_ptr<Exchange> exchange, checked;  ///< timed; conserving
  double density;
  bool one_rank_selects;
  uint64_t step = 0;

  void fill(Context& ctx, const Communicator& comm, CommVectors& vectors, size_t n) {
    const size_t k = entries_to_keep(density, n), stretch = n / k;
    vectors.entries.reserve(k);
    vectors.entries.count = k;
    for (size_t i = 0; i < k; ++i) {
      const size_t offset = (i * 2654435761u + static_cast<size_t>(comm.rank()) * 40503u) % stretch;
      vectors.entries.indices[i] = static_cast<uint32_t>(i * stretch + offset);
      // no zeros: an exchange may drop them
      vectors.entries.values[i] = number(comm.rank(), i) + 51;
    }
    ops::fill(ctx, vectors.scratch(n), 0);  // the residual
    const SparseView entries = vectors.entries.view();
    if (one_rank_selects) sparse_sum(ctx, {&entries, 1}, vectors.data(n));
  }

  void run(Context& ctx, Communicator& comm, CommVectors& vectors, size_t n) {
    run(*exchange, ctx, comm, vectors, n);
    // ranks that do not select would add the sum to their residuals in the next call
    if (one_rank_selects) ops::fill(ctx, vectors.data(n), 0);
  }
  void run(Exchange& which, Context& ctx, Communicator& comm, CommVectors& vectors, size_t n) {
    const ExchangeStep what{.gradient = vectors.data(n),
                            .gradient_control = vectors.data(n + 1),
                            .residual = vectors.scratch(n),
                            .mine = &vectors.entries,
                            .k = entries_to_keep(density, n),
                            .step = step++};
    Control control;
    which.prepare(ctx, comm, what, control);
    if (!which.selects(comm, what)) vectors.entries.count = 0;
    which.run(ctx, comm, what, control);
  }

  size_t wrong(Context& ctx, Communicator& comm, CommVectors& vectors, size_t n) {
    fill(ctx, comm, vectors, n);
    std::vector<float> inputs(n);
    for (size_t i = 0; i < vectors.entries.count; ++i)
      inputs[vectors.entries.indices[i]] = vectors.entries.values[i];
    run(*checked, ctx, comm, vectors, n);
    return lost(ctx, comm, vectors, std::move(inputs), 0);
  }
};

/// PowerSGD on a nearly square matrix, its elements number(). Made for one length at a time.
struct LowRankCase {
  const ExchangeEntry& entry;
  Settings settings;
  std::unique_ptr<Exchange> exchange{};
  size_t length = 0;
  uint64_t step = 0;

  std::unique_ptr<Exchange> make(size_t n) const {
    const auto rows = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
    return entry(settings, {.tensors = {{.shape = {rows, static_cast<int64_t>(n) / rows}}}});
  }

  void fill(Context& ctx, const Communicator& comm, CommVectors& vectors, size_t n) {
    if (std::exchange(length, n) != n) exchange = make(n);
    fill_dense(ctx, comm, vectors, n);
    ops::fill(ctx, vectors.scratch(n), 0);  // the residual
  }

  void run(Context& ctx, Communicator& comm, CommVectors& vectors, size_t n) {
    Control control;
    exchange->run(ctx, comm,
                  {.gradient = vectors.data(n),
                   .gradient_control = vectors.data(n + 1),
                   .residual = vectors.scratch(n),
                   .k = n,
                   .step = exchange->dense_exchanges() + step++},
                  control);
  }

  size_t wrong(Context& ctx, Communicator& comm, CommVectors& vectors, size_t n) {
    fill(ctx, comm, vectors, n);
    std::vector<float> inputs(n);
    for (size_t i = 0; i < n; ++i) inputs[i] = number(comm.rank(), i);
    run(ctx, comm, vectors, n);
    const bool rounds = value_format(settings.text(kSumValues)) != ValueFormat::f32;
    const float share = rounds ? static_cast<float>(comm.size()) / 256 : 1e-5f;
    return lost(ctx, comm, vectors, std::move(inputs), largest_sum(comm) * share);
  }
};

/// The calls of `one`, an object with fill, run and wrong, as a case; `seconds(one, link, ranks,
/// d)` is its cost.
template <class One, class Seconds>
CommCase case_of(const char* collective, const std::string& name, One&& made, Seconds seconds) {
  const auto one = std::make_shared<One>(std::forward<One>(made));
  return {.collective = collective,
          .algorithm = name,
          .fill = [one](Context& ctx, const Communicator& c, CommVectors& v,
                        size_t n) { one->fill(ctx, c, v, n); },
          .run = [one](Context& ctx, Communicator& c, CommVectors& v,
                       size_t n) { one->run(ctx, c, v, n); },
          .wrong = [one](Context& ctx, Communicator& c, CommVectors& v,
                         size_t n) { return one->wrong(ctx, c, v, n); },
          .cost = [one, seconds](
                      const LinkCost& link, int ranks,
                      double n) { return seconds(*one, link, ranks, static_cast<size_t>(n)); }};
}

}  // namespace

std::vector<CommCase> dense_cases(const Settings& settings, Communicator& comm, int root) {
  const double others = (comm.size() - 1.0) / comm.size();
  std::vector<CommCase> cases;
  /// `entry` is of a registry of collectives; `right`: see each().
  const auto add = [&](const char* collective, const auto& entry, double bus, auto run,
                       auto right) {
    if (entry.value.by_library && comm.vendor() == nullptr) return;
    cases.push_back({.collective = collective,
                     .algorithm = entry.name,
                     .fill = fill_dense,
                     .run = std::move(run),
                     .wrong = each(std::move(right)),
                     .bus = bus,
                     .cost = entry.value.seconds,
                     .aliases = entry.aliases,
                     .by_library = entry.value.by_library});
  };
  for (const auto& [name, entry] : broadcasts().entries())
    add(
        "broadcast", entry, 1,
        [run = entry.value(settings), root](Context& ctx, Communicator& c, CommVectors& v,
                                            size_t n) {
          run(ctx, c, root, std::as_writable_bytes(v.data(n)));
        },
        [root](const Communicator&, float x, size_t i) { return x == number(root, i); });
  for (const auto& [name, entry] : reduces().entries())
    add(
        "reduce", entry, 1,
        [run = entry.value(settings), root](Context& ctx, Communicator& c, CommVectors& v,
                                            size_t n) {
          run(ctx, c, root, v.data(n), v.scratch(n));
        },
        [root](const Communicator& c, float x, size_t i) {
          return c.rank() != root || x == sum_at(c, i);
        });
  for (const auto& [name, entry] : allreduces().entries())
    for (const ValueFormat format : {ValueFormat::f32, ValueFormat::bf16}) {
      const bool rounds = format != ValueFormat::f32;
      if (rounds && entry.value.by_library) continue;
      add(
          "allreduce", entry, 2 * others,
          [run = with_messages_in(format, entry.value(settings))](Context& ctx, Communicator& c,
                                                                  CommVectors& v, size_t n) {
            run(ctx, c, v.data(n), v.scratch(n));
          },
          [rounds](const Communicator& c, float x, size_t i) {
            // P partial sums, each rounded to 8 bits
            const float error = rounds ? largest_sum(c) * static_cast<float>(c.size()) / 256 : 0;
            return std::abs(x - sum_at(c, i)) <= error;
          });
      if (!rounds) continue;
      CommCase& half = cases.back();
      half.algorithm += " bf16";
      half.aliases.push_back(name);
      half.cost = [seconds = entry.value.seconds, format](const LinkCost& link, int ranks,
                                                          double n) {
        return seconds(with_values_of(size_of(format), link), ranks, n);
      };
    }
  cases.push_back({.collective = "allgather",
                   .algorithm = "bruck",
                   .fill = fill_block,
                   .run =
                       [](Context& ctx, Communicator& c, CommVectors& v, size_t) {
                         const ConstBytes mine = std::as_bytes(std::span(v.block));
                         allgather(ctx, c, mine, mine.size(), v.blocks, mine.size());
                       },
                   .wrong = wrong_in_blocks,
                   .bus = others,
                   .cost = allgather_seconds});
  return cases;
}

std::vector<CommCase> sparse_cases(const Settings& settings, double density) {
  std::vector<CommCase> cases;
  for (const auto& [name, entry] : exchanges().entries()) {
    const ExchangeEntry& make = entry.value;
    if (make.dense || make.forms_nodes || make.needs_shared_indices(settings)) continue;
    cases.push_back(case_of(
        "sparse", name,
        SparseCase{make(settings), make(conserving(settings)), density, make.one_rank_selects},
        [](const SparseCase& one, const LinkCost& link, int ranks, size_t d) {
          return one.exchange->seconds(link, ranks, d, entries_to_keep(one.density, d));
        }));
  }
  return cases;
}

std::vector<CommCase> low_rank_cases(const Settings& settings) {
  std::vector<CommCase> cases;
  for (const auto& [name, entry] : exchanges().entries())
    if (entry.value.compresses)
      cases.push_back(case_of("low_rank", name,
                              LowRankCase{.entry = entry.value, .settings = settings},
                              [](const LowRankCase& one, const LinkCost& link, int ranks,
                                 size_t d) { return one.make(d)->seconds(link, ranks, d, d); }));
  return cases;
}

}  // namespace tw
