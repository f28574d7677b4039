// The MPI library of this build, the mpirun on the PATH, and what started this process.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "apps/doctor/checkup.h"
#include "comm/launcher.h"
#include "comm/transports.h"
#include "engine/core/text.h"

namespace tw {

namespace {

/// The first executable of this name on the PATH; empty if there is none.
std::string on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "", ':')) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + program;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(candidate, ignored) &&
        access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return "";
}

constexpr int kAnswerSeconds = 5;

/// What `mpirun --version` prints; nothing if it does not end in time.
std::optional<std::string> told_by(const std::string& mpirun) {
  std::string quoted = "'";
  for (const char c : mpirun) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  const std::string command =
      fmt::format("timeout -k 1 {} {}' --version 2>&1 </dev/null", kAnswerSeconds, quoted);
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  std::string text;
  std::array<char, 1024> chunk;
  for (size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    text.append(chunk.data(), n);
  const int status = pclose(pipe);
  constexpr int kLate = 124, kKilled = 128 + SIGKILL;  // codes of timeout
  if (WIFEXITED(status) && (WEXITSTATUS(status) == kLate || WEXITSTATUS(status) == kKilled))
    return std::nullopt;
  return text;
}

/// Family of an MPI by the name of its library or of its launcher. Intel MPI is made from MPICH,
/// and each can start the other's programs.
std::string family(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text.find("open mpi") != text.npos || text.find("openrte") != text.npos) return "Open MPI";
  for (const char* word : {"mpich", "hydra", "intel(r) mpi"})
    if (text.find(word) != text.npos) return "MPICH";
  return "";
}

/// Where the mpirun of a family is, by the names that Debian gives both; else what to install.
std::string cure_for(const std::string& wanted) {
  const bool open = wanted == "Open MPI";
  const std::string found = on_path(open ? "mpirun.openmpi" : "mpirun.mpich");
  return found.empty() ? fmt::format("install that of {} (Debian: apt-get install {})", wanted,
                                     open ? "openmpi-bin" : "mpich")
                       : fmt::format(
                             "start ranks with {}, or put the mpirun of {} first on the "
                             "PATH",
                             found, wanted);
}

}  // namespace

Findings check_mpi(const Checkup& checkup) {
  const std::string library = mpi_library(), mpirun = on_path("mpirun");
  const auto told = mpirun.empty() ? "" : told_by(mpirun);
  const std::string built = family(library), starts = family(told.value_or(""));
  Finding found{.name = "mpi"};
  found.details = {{"library", library}, {"mpirun", mpirun}, {"mpirun_family", starts}};
  try {
    check_launcher(find_launcher(), checkup.comm.size(), library);
  } catch (const UserError& error) {
    found.state = State::problem;
    found.text = error.what();
    found.cure = library.empty() ? "build with MPI" : cure_for(built);
    return {found};
  }
  if (library.empty()) {
    found.text = "this build has no MPI; ranks are threads of one machine (--workers)";
    found.state = State::note;
    found.cure = "for ranks on several machines, build with WITH_MPI=ON";
  } else if (mpirun.empty()) {
    found.text =
        fmt::format("built with {}; no mpirun on the PATH, but --workers needs none", library);
    found.state = State::note;
    found.cure = cure_for(built);
  } else if (!told) {
    found.text = fmt::format("{} has not answered --version within {} s", mpirun, kAnswerSeconds);
    found.state = State::problem;
    found.cure = cure_for(built);
  } else if (starts.empty() || built.empty()) {
    found.text = fmt::format("built with {}; {} does not say whose it is", library, mpirun);
    found.state = State::note;
    found.cure = "make sure that mpirun belongs to that library";
  } else if (starts != built) {
    found.text = fmt::format("built with {}, but {} is that of {}", library, mpirun, starts);
    found.state = State::problem;
    found.cure = cure_for(built);
  } else {
    found.text = fmt::format("built with {}; {} starts its programs", library, mpirun);
  }
  return {found};
}

}  // namespace tw
