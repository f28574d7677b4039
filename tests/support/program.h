// Runs a program and captures its output and its exit code.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "tests/support/temp_folder.h"

namespace tw::test {

struct Ended {
  int code = -1;       ///< exit code, or 128 + the signal that ended it
  std::string output;  ///< stdout and stderr together
  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
  size_t lines() const {
    return static_cast<size_t>(std::count(output.begin(), output.end(), '\n'));
  }
};

/// Runs a shell command line and waits for it.
inline Ended run_command(const std::string& command) {
  Ended ended;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return ended;
  std::array<char, 4096> chunk;
  for (size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    ended.output.append(chunk.data(), n);
  const int status = ::pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

/// The same for a command that must end with exit code 0; throws, and so ends the test, if it does
/// not.
inline Ended run_well(const std::string& command) {
  Ended ended = run_command(command);
  if (ended.code != 0)
    throw std::runtime_error(
        fmt::format("{}\nexit code {}: {}", command, ended.code, ended.output));
  return ended;
}

/// A test failure unless the command ends with this exit code and says the text.
inline void expect_end(const std::string& command, int code, const std::string& text) {
  const Ended ended = run_command(command);
  EXPECT_TRUE(ended.code == code && ended.says(text))
      << command << "\nexit code " << ended.code << ", expected " << code << " and: " << text
      << "\n"
      << ended.output;
}

/// The text of a file; empty when it cannot be read.
inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline size_t lines_of(const std::filesystem::path& file) {
  return Ended{.output = text_of(file)}.lines();
}

/// Starts a command, its output to `log`, and sends it `signal` once steps.csv has grown to `lines`
/// lines. Returns its exit code, or 128 + the signal that ended it.
inline int interrupt(const std::string& line, const std::filesystem::path& steps, size_t lines,
                     int signal, const std::string& log = "/dev/null") {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string command = "exec env " + line + " >" + log + " 2>&1";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 6000 && lines_of(steps) < lines; ++i) ::usleep(10'000);
  ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The rows of a table after the header: each has its cells by the names of their columns.
inline std::vector<std::map<std::string, std::string>> table_rows(
    const std::filesystem::path& path) {
  std::vector<std::map<std::string, std::string>> rows;
  const std::vector<std::string> lines = split(text_of(path), '\n');
  for (size_t i = 1; i < lines.size(); ++i) {
    rows.emplace_back();
    const std::vector<std::string> names = split(lines[0], ','), cells = split(lines[i] + ",", ',');
    EXPECT_EQ(cells.size(), names.size()) << path << ": " << lines[i];
    for (size_t at = 0; at < std::min(cells.size(), names.size()); ++at)
      rows.back()[names[at]] = cells[at];
  }
  return rows;
}

/// The numbers in a column of a table.
inline std::vector<double> table_column(const std::filesystem::path& path,
                                        const std::string& name) {
  std::vector<double> numbers;
  for (const auto& row : table_rows(path)) numbers.push_back(std::stod(row.at(name)));
  return numbers;
}

/// The weights_hash in the summary.json of a run folder.
inline std::string weights_hash(const std::filesystem::path& run) {
  return nlohmann::json::parse(text_of(run / "summary.json"))["weights_hash"];
}

}  // namespace tw::test
