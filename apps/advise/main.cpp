// advise: predicts which sparsifier is fastest on a link. Measures this machine and the link
// between its ranks, or uses given costs; predicts the iteration time of every sparsifier for any
// number of ranks; prints a recommendation.
#include <cmath>
#include <fstream>
#include <optional>
#include <set>

#include "apps/advise/config.h"
#include "apps/advise/measure.h"
#include "apps/common/addition_cost.h"
#include "apps/common/console.h"
#include "apps/common/launch.h"
#include "apps/common/rank_utils.h"
#include "apps/common/resolve.h"
#include "comm/collectives/measure_link.h"
#include "comm/link/link.h"
#include "comm/transports.h"

namespace {

using namespace tw;

/// Local costs and the cost of the link.
struct Known {
  LocalCosts local;
  LinkCost link;
};

DType precision_of(const AdviseConfig& config) {
  return resolve_precision(config.precision, resolve_device("auto"));
}

/// The costs given on the command line; 0 for the others.
Known given(const AdviseConfig& config) {
  Known known;
  if (!config.link.empty()) {
    const LinkSpec link = parse_link(config.link);
    known.link = {.alpha = link.latency, .beta = link.seconds(sizeof(float)) - link.latency};
  }
  if (config.alpha > 0) known.link.alpha = config.alpha;
  if (config.beta > 0) known.link.beta = config.beta;
  known.link.gamma = config.gamma;
  known.link.merge = config.merge;
  known.local.compute = config.compute;
  for (const auto& [name, entry] : sparsifiers().entries())
    if (keeps_residual(entry.value)) known.local.step[name].update = config.select;
  return known;
}

/// Measures the costs that were not given. Collective.
Known measured(Communicator& comm, const AdviseConfig& config, Model& model, Console& console) {
  Context ctx(Device::cpu, resolve_threads(config.threads_per_rank, comm.size()));
  ctx.bind_thread();
  Known known = given(config);
  console.line("measuring {} steps of {} (batch {}, {}) on {} rank{} x {} threads", config.steps,
               config.model, config.batch_size, name(precision_of(config)), comm.size(),
               comm.size() == 1 ? "" : "s", ctx.threads());
  const bool emulated = !config.link.empty() && comm.size() > 1;
  std::optional<LinkCommunicator> link, nodes;
  if (emulated) {
    const auto with = [&](int64_t ranks_per_node) {
      return parse_link(config.link, static_cast<int>(ranks_per_node));
    };
    link.emplace(ctx, comm, with(config.ranks_per_node));
    nodes.emplace(ctx, comm, with(config.settings.integer("hierarchical.node")));
  }
  const LocalCosts local = measure_local(ctx, emulated ? *nodes : comm, model,
                                         {.batch_size = config.batch_size,
                                          .precision = precision_of(config),
                                          .density = config.density,
                                          .steps = config.steps,
                                          .settings = config.settings});
  if (config.compute == 0) known.local.compute = local.compute;
  known.local.step = local.step;
  const LinkCost additions = measure_additions(ctx, comm, model.arena().size(), config.density);
  if (config.gamma == 0) known.link.gamma = additions.gamma;
  if (config.merge == 0) known.link.merge = additions.merge;

  check(comm.size() > 1 || (known.link.alpha > 0 && known.link.beta > 0),
        "[advise] one rank cannot measure a link; start several (mpirun, or --workers with "
        "--link), or give --link");
  if (comm.size() > 1) {
    const LinkCost link_cost = measure_link(ctx, emulated ? *link : comm);
    if (config.alpha == 0) known.link.alpha = link_cost.alpha;
    if (config.beta == 0) known.link.beta = link_cost.beta;
  }
  return known;
}

void print_costs(Console& console, const Known& known, double d, double density) {
  const LinkCost& link = known.link;
  console.line("\n{:.0f} parameters, density {:g}", d, density);
  console.line(
      "compute {:.4g} s; alpha {:.4g} s per message; beta {:.4g} s per element ({:.4g} Gbit/s)",
      known.local.compute, link.alpha, link.beta, 32e-9 / link.beta);
  console.line("gamma {:.3g} s per added element; merge {:.3g} s per sparse entry", link.gamma,
               link.merge);
  for (const auto& [name, step] : known.local.step)
    console.line("  {:<12} select and update {:.4g} s, local part of the exchange {:.4g} s", name,
                 step.update, step.exchange);
}

using Cell = std::function<std::string(const Prediction&, int ranks)>;

void print_table(Console& console, const char* title, const std::vector<Prediction>& all,
                 const std::vector<int64_t>& ranks, const Cell& cell) {
  console.line("\n{}", title);
  std::string head = fmt::format("{:<26}", "P");
  for (const int64_t p : ranks) head += fmt::format(" {:>9}", p);
  console.line("{}", head);
  for (const Prediction& c : all) {
    std::string row = fmt::format("{:<26}", c.sparsifier + " " + c.collective_text());
    for (const int64_t p : ranks) row += fmt::format(" {:>9}", cell(c, static_cast<int>(p)));
    console.line("{}", row);
  }
}

/// A break-even bandwidth in Gbit/s, or one of the words for 0 and infinity.
std::string break_even_text(double bits, const char* always, const char* never) {
  if (bits == 0) return always;
  return std::isinf(bits) ? never : fmt::format("{:.4g}", bits * 1e-9);
}

double one_dense_rank(const std::vector<Prediction>& all) {
  const LinkCost any{.alpha = 1, .beta = 1};
  return best_dense(all, any, 1).seconds(any, 1);
}

void write_csv(std::ofstream& out, const AdviseConfig& config, const std::vector<Prediction>& all,
               const LinkCost& link) {
  out << "sparsifier,collective,ranks,iteration_seconds,exchange_seconds,efficiency,"
         "break_even_gbit\n";
  const double one = one_dense_rank(all);
  for (const Prediction& c : all)
    for (const int64_t p : config.ranks) {
      const int ranks = static_cast<int>(p);
      out << fmt::format(
          "{},{},{},{:.9g},{:.9g},{:.6g},{}\n", c.sparsifier, c.collective_text(), ranks,
          c.seconds(link, ranks), c.exchange_seconds(link, ranks), c.efficiency(link, ranks, one),
          c.dense ? "" : break_even_text(break_even(c, all, link, ranks), "0", "inf"));
    }
  out.flush();
  check<Fault>(!out.fail(), "[advise] writing {} failed; is the disk full?", config.csv);
}

void answer(Console& console, const AdviseConfig& config, const std::vector<Prediction>& all,
            const LinkCost& link) {
  const double one = one_dense_rank(all);
  print_table(console, "seconds per iteration", all, config.ranks, [&](const Prediction& c, int p) {
    return fmt::format("{:.4g}", c.seconds(link, p));
  });
  print_table(console, "seconds of the exchange per iteration", all, config.ranks,
              [&](const Prediction& c, int p) {
                return fmt::format("{:.4g}", c.exchange_seconds(link, p));
              });
  print_table(console, "scaling efficiency: iteration time of one dense rank / iteration time", all,
              config.ranks, [&](const Prediction& c, int p) {
                return fmt::format("{:.3f}", c.efficiency(link, p, one));
              });
  std::vector<Prediction> sparse = all;
  std::erase_if(sparse, [](const Prediction& c) { return c.dense; });
  print_table(console, "break-even Gbit/s: above it the best dense collective is faster", sparse,
              config.ranks, [&](const Prediction& c, int p) {
                return break_even_text(break_even(c, all, link, p), "0", "none");
              });
  console.line("");
  for (const std::string& note : volume_notes(all)) console.line("{}", note);
  for (const std::string& sentence : recommendations(all, link, config.ranks))
    console.line("{}", sentence);
}

void advise(Communicator& comm, const AdviseConfig& config) {
  comm.set_timeout(config.comm_timeout);
  Console console(comm.rank() == 0);
  std::optional<Model> model;
  std::ofstream csv;
  run_collectively(comm, [&] {
    model.emplace(config.model, ModelSpec{.image = {config.image_size, config.image_size, 3},
                                          .classes = config.classes});
    if (comm.rank() != 0 || config.csv.empty()) return;
    csv.open(config.csv);
    check(csv.is_open(), "[advise] cannot write {}", config.csv);
  });
  const Known known = config.simulate ? given(config) : measured(comm, config, *model, console);
  const size_t flat = static_cast<size_t>(config.parameters);
  const std::vector<Prediction> all =
      candidates(model->arena(), flat, config.density, known.local, config.settings);
  print_costs(console, known, static_cast<double>(flat > 0 ? flat : model->arena().size()),
              config.density);
  answer(console, config, all, known.link);
  if (csv.is_open()) write_csv(csv, config, all, known.link);
}

int run(Communicator& world, int argc, char** argv) {
  AdviseConfig config;
  run_collectively(world, [&] { config = parse_advise_config(argc, argv); });
  check(config.workers == 0 || !started_by_mpi(),
        "[options] workers is {} under mpirun, where -n sets the number of ranks", config.workers);
  if (config.workers <= 1)
    advise(world, config);
  else
    run_on_threads(static_cast<int>(config.workers),
                   [&](Communicator& comm) { advise(comm, config); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program([&](tw::Communicator& world) { return run(world, argc, argv); });
}
