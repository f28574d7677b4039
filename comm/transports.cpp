#include "comm/transports.h"

#include "comm/launcher.h"

namespace tw {

bool started_by_mpi() {
  const std::optional<Launcher> launcher = find_launcher();
  return launcher && launcher->for_mpi;
}

std::string mpi_library() {
  const auto& built = optional_transports().entries();
  return built.contains("mpi") ? built.find("mpi")->second.value.library() : "";
}

Registry<Transport>& optional_transports() {
  static Registry<Transport> registry("transport");
  return registry;
}

const Transport& mpi_among(const Registry<Transport>& transports) {
  check(transports.entries().contains("mpi"),
        "[mpi] this program was built without MPI; build it with WITH_MPI=ON, or start it without "
        "mpirun and give it --workers");
  return transports.find("mpi").value;
}

std::unique_ptr<Communicator> make_mpi_communicator() {
  return mpi_among(optional_transports()).start();
}

int finish_mpi(int code, const std::string& error, double seconds) {
  const auto& built = optional_transports();
  if (!built.entries().contains("mpi")) return code;
  return built.find("mpi").value.finish(code, error, seconds);
}

bool meet_mpi(double seconds) {
  const auto& built = optional_transports();
  return !built.entries().contains("mpi") || built.find("mpi").value.meet(seconds);
}

std::string what_nccl_lacks() {
  if (!optional_transports().entries().contains("nccl"))
    return "this build has no NCCL transport; build with WITH_CUDA=ON where NCCL is found";
  return what_is_missing(Device::cuda);
}

std::unique_ptr<Communicator> make_nccl_communicator(Context& ctx, Communicator& bootstrap,
                                                     std::string& notice) {
  const std::string missing = what_nccl_lacks();
  check(missing.empty(), "[nccl] {}", missing);
  return optional_transports().find("nccl").value.start_on(ctx, bootstrap, notice);
}

}  // namespace tw
