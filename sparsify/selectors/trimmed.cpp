// Trimmed top-k of RedSync (Fang, Fu, Yang and Hsieh 2019, arXiv 1808.04357): the k largest entries
// above a threshold between mean and maximum.
//   M = max |u|;  A = mean |u|;  for r = .8, .6, .4, .2, 0:  S = {i : |u_i| > A + r (M - A)}
//   sends the k largest of the first S with at least k entries; of u if there is none
// Whatever r is, these are the k largest of u. The search only leaves fewer entries to sort, which
// the candidates of TopK do in one pass over memory.
#include "sparsify/selectors/topk.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

const bool trimmed_selector =
    selectors().add({"trimmed",
                     "the k largest of those above a threshold between mean and maximum",
                     {.make = make_selector<TopK>, .volume = Volume::exactly_k, .exact = true}});
const bool trimmed_sparsifier =
    sparsifiers().add({"trimmed",
                       "trimmed top-k, error feedback, sparse allgather",
                       {.selector = "trimmed", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
