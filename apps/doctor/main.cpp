// doctor: says what this machine can do and what is wrong, with a cure where it is not well.
#include "apps/common/comm_setup.h"
#include "apps/common/console.h"
#include "apps/common/launch.h"
#include "apps/common/rank_utils.h"
#include "apps/common/resolve.h"
#include "apps/doctor/report.h"
#include "comm/launcher.h"
#include "comm/transports.h"

namespace {

using namespace tw;

OptionTable doctor_table(DoctorConfig& config) {
  OptionTable t;
  t.group("Files");
  t.add("data-dir", config.data_dir,
        "folder of a data set or of images, or a record file; default: data-cache");
  t.add("output-dir", config.output_dir, "parent of the run folders, whose disk is tested");
  t.group("Ranks");
  t.add("workers", config.workers, "ranks, as threads of this process; 0: 1, or mpirun's -n",
        {.most = 4096});
  t.add("link", config.link, "emulate links of RATE,LATENCY between ranks, e.g. 1Gbit,0.4ms");
  t.group("Report");
  t.add("seconds", config.seconds, "at most so long for training steps; 0: none", {.most = 3600});
  t.add("json", config.json, "print one JSON object");
  return t;
}

int as_rank(Communicator& comm, const DoctorConfig& config) {
  CommSetup setup(comm, {.link = config.link});
  const Findings findings = examine(
      {.config = config, .comm = setup.comm(), .device = resolve_device(), .local_ranks = 1});
  if (comm.rank() == 0)
    fmt::print("{}", config.json ? report_json(findings, comm.size())
                                 : report_text(findings, output_columns()));
  return problems(findings) > 0 ? 1 : 0;
}

int run(Communicator& world, int argc, char** argv) {
  DoctorConfig config;
  run_collectively(world, [&] {
    doctor_table(config).parse_and_set(argc, argv,
                                       "doctor: says what this machine can do and what is wrong");
    if (!config.link.empty()) parse_link(config.link);
  });
  // ranks that a foreign launcher has started do not find each other: one of them reports that
  const std::optional<Launcher> launcher = find_launcher();
  const bool alone = launcher && launcher->ranks > 1 && world.size() == 1;
  if (alone && launcher->rank > 0) return 0;
  if (!alone) check_ranks(world, config.workers);
  if (config.workers <= 1) return as_rank(world, config);
  int code = 0;
  run_on_threads(static_cast<int>(config.workers), [&](Communicator& comm) {
    const int mine = as_rank(comm, config);
    if (comm.rank() == 0) code = mine;
  });
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator& world) { return run(world, argc, argv); });
}
