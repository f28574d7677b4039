#include "apps/support/bench_comm_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "sparsify/exchange.h"

namespace tw {

namespace {

/// Small integers, so that sums are exact whatever their order; other ones on every rank.
float number(int rank, size_t i) {
  return static_cast<float>(static_cast<int>((i * 7 + static_cast<size_t>(rank) * 13) % 101) - 50);
}

float sum_at(const Communicator& comm, size_t i) {
  float sum = 0;
  for (int rank = 0; rank < comm.size(); ++rank) sum += number(rank, i);
  return sum;
}

void fill_dense(const Communicator& comm, CommVectors& vectors, size_t n) {
  for (size_t i = 0; i < n; ++i) vectors.data[i] = number(comm.rank(), i);
}

/// Counts the elements for which `right(comm, vectors, i)` does not hold.
template <class Right>
auto each(Right right) {
  return [right](Context&, Communicator& comm, CommVectors& vectors, size_t n) {
    size_t wrong = 0;
    for (size_t i = 0; i < n; ++i) wrong += !right(comm, vectors, i);
    return wrong;
  };
}

DenseCost cost_of(const DenseCosts& costs, const std::string& name) {
  const auto found = costs.find(name);
  return found == costs.end() ? nullptr : found->second;
}

double allgather_cost(const Wire& wire, int ranks, double n) {
  const double rounds = std::ceil(std::log2(static_cast<double>(ranks)));
  return rounds * wire.alpha + (ranks - 1.0) / ranks * n * wire.beta;
}

bool gathered_right(const Communicator& comm, const CommVectors& vectors, size_t i) {
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (i * sizeof(float) >= vectors.blocks[rank].size()) return true;
    float x = 0;
    std::memcpy(&x, vectors.blocks[rank].data() + i * sizeof(float), sizeof x);
    if (x != number(rank, i)) return false;
  }
  return true;
}

/// An exchange, and the step it is in: some remember the step before.
struct SparseCase {
  std::shared_ptr<Exchange> exchange;
  SparseCost cost;
  double density;
  uint64_t step = 0;

  void fill(const Communicator& comm, CommVectors& vectors, size_t n) {
    const size_t k = entries_to_keep(density, n), stretch = n / k;
    vectors.entries.reserve(k);
    vectors.entries.count = k;
    for (size_t i = 0; i < k; ++i) {
      const size_t place = (i * 2654435761u + static_cast<size_t>(comm.rank()) * 40503u) % stretch;
      vectors.entries.indices[i] = static_cast<uint32_t>(i * stretch + place);
      // no zeros: those would not travel
      vectors.entries.values[i] = number(comm.rank(), i) + 51;
    }
    std::fill_n(vectors.scratch.begin(), n, 0.0f);  // the residual
  }

  void run(Context& ctx, Communicator& comm, CommVectors& vectors, size_t n) {
    const std::span<float> all(vectors.data);
    const ExchangeStep what{.gradient = all.first(n),
                            .gradient_control = all.first(n + 1),
                            .residual = std::span(vectors.scratch).first(n),
                            .mine = &vectors.entries,
                            .k = entries_to_keep(density, n),
                            .step = step++};
    Control control;
    exchange->prepare(ctx, comm, what, control);
    exchange->run(ctx, comm, what, control);
  }

  /// Nothing may be lost: what came out and what stays behind is what was there.
  size_t wrong(Context& ctx, Communicator& comm, CommVectors& vectors, size_t n) {
    const std::vector<float> sum(vectors.data.begin(), vectors.data.begin() + n);
    std::vector<float> behind(vectors.scratch.begin(), vectors.scratch.begin() + n), room(n);
    fill(comm, vectors, n);
    std::vector<float> there(n);
    for (size_t i = 0; i < vectors.entries.count; ++i)
      there[vectors.entries.indices[i]] = vectors.entries.values[i];
    const Allreduce add = allreduces().find("ring").factory(collective_settings());
    add(ctx, comm, behind, room);
    add(ctx, comm, there, room);
    size_t lost = 0;
    for (size_t i = 0; i < n; ++i) lost += sum[i] + behind[i] != there[i];
    return lost;
  }
};

}  // namespace

std::vector<CommCase> dense_cases(const Settings& settings, Communicator& comm, int root) {
  const double others = (comm.size() - 1.0) / comm.size();
  std::vector<CommCase> cases;
  const auto add = [&](CommCase test) {
    if (test.algorithm == "native" && comm.native() == nullptr) return;
    test.fill = fill_dense;
    cases.push_back(std::move(test));
  };
  for (const auto& [name, entry] : broadcasts().entries())
    add({.collective = "broadcast",
         .algorithm = name,
         .fill = {},
         .run =
             [run = entry.factory(settings), root](Context& ctx, Communicator& c, CommVectors& v,
                                                   size_t n) {
               run(ctx, c, root, std::as_writable_bytes(std::span(v.data).first(n)));
             },
         .wrong = each([root](const Communicator&, const CommVectors& v, size_t i) {
           return v.data[i] == number(root, i);
         }),
         .bus = 1,
         .cost = cost_of(broadcast_costs(), name)});
  for (const auto& [name, entry] : reduces().entries())
    add({.collective = "reduce",
         .algorithm = name,
         .fill = {},
         .run = [run = entry.factory(settings), root](
                    Context& ctx, Communicator& c, CommVectors& v,
                    size_t n) { run(ctx, c, root, std::span(v.data).first(n), v.scratch); },
         .wrong = each([root](const Communicator& c, const CommVectors& v, size_t i) {
           return c.rank() != root || v.data[i] == sum_at(c, i);
         }),
         .bus = 1,
         .cost = cost_of(reduce_costs(), name)});
  for (const auto& [name, entry] : allreduces().entries())
    add({.collective = "allreduce",
         .algorithm = name,
         .fill = {},
         .run = [run = entry.factory(settings)](
                    Context& ctx, Communicator& c, CommVectors& v,
                    size_t n) { run(ctx, c, std::span(v.data).first(n), v.scratch); },
         .wrong = each([](const Communicator& c, const CommVectors& v, size_t i) {
           return v.data[i] == sum_at(c, i);
         }),
         .bus = 2 * others,
         .cost = cost_of(allreduce_costs(), name)});
  add({.collective = "allgather",
       .algorithm = "bruck",
       .fill = {},
       .run =
           [](Context& ctx, Communicator& c, CommVectors& v, size_t n) {
             const ConstBytes mine = std::as_bytes(std::span(v.data).first(n / c.size()));
             allgather(ctx, c, mine, mine.size(), v.blocks);
           },
       .wrong = each(gathered_right),
       .bus = others,
       .cost = allgather_cost});
  return cases;
}

std::vector<CommCase> sparse_cases(const Settings& settings, double density) {
  std::vector<CommCase> cases;
  for (const auto& [name, cost] : sparse_costs()) {
    const std::shared_ptr<Exchange> exchange = exchanges().find(name).factory(settings);
    if (exchange->needs_common_indices()) continue;
    const auto one = std::make_shared<SparseCase>(SparseCase{exchange, cost, density});
    cases.push_back(
        {.collective = "sparse",
         .algorithm = name,
         .fill = [one](const Communicator& c, CommVectors& v, size_t n) { one->fill(c, v, n); },
         .run = [one](Context& ctx, Communicator& c, CommVectors& v,
                      size_t n) { one->run(ctx, c, v, n); },
         .wrong = [one](Context& ctx, Communicator& c, CommVectors& v,
                        size_t n) { return one->wrong(ctx, c, v, n); },
         .cost =
             [one](const Wire& wire, int ranks, double n) {
               const auto k = entries_to_keep(one->density, static_cast<size_t>(n));
               return one->cost(wire, ranks, n, static_cast<double>(k));
             }});
  }
  return cases;
}

}  // namespace tw
