// Tables of a comparison: on the console and as a CSV file.
#pragma once

#include "apps/advise/comparison.h"
#include "apps/common/console.h"
#include "comm/link/topology.h"

namespace tw {

/// The costs that were measured or given: `d` parameters.
void print_costs(Console& console, const Rounds& rounds, double d, double density);

/// For each number of ranks a table, the fastest exchange first, then a verdict for each. Of dense
/// exchanges, the fastest collective of each kind (f32, bf16, overlap).
void print_comparison(Console& console, const Comparison& comparison,
                      const std::vector<int64_t>& ranks);

/// For each number of ranks the seconds of the iterations until a validation top-1, by the epochs
/// of finished trainings and the predicted iterations; the fastest first.
void print_times_to(Console& console, const Comparison& comparison,
                    const std::vector<int64_t>& ranks, double top1);

/// What holds the ranks of a topology back, for each number of ranks.
void print_brakes(Console& console, const Topology& topology, const Comparison& comparison,
                  const std::vector<int64_t>& ranks);

/// `4.31 (0.5-12)`, in Gbit/s; `sparse always` and `dense always` if the whole range agrees.
std::string break_even_text(const Window& window);

/// All predictions as a table, a row for each number of ranks: at the bandwidth of the link
/// (at_link = 1, with the flags that the verdict for these ranks recommends), and at bandwidths
/// from 10 Mbit/s to 1 Tbit/s (at_link = 0).
void write_comparison(std::ostream& out, const Comparison& comparison,
                      const std::vector<int64_t>& ranks);

}  // namespace tw
