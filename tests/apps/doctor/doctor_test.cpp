// The program doctor: findings, cures and exit codes.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/full_disk.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Examined {
  int code = -1;
  Json report;

  const Json& finding(const std::string& name) const {
    for (const Json& one : report["findings"])
      if (one["name"] == name) return one;
    static const Json none = {{"state", "missing"}, {"text", ""}, {"cure", ""}};
    return none;
  }
};

/// Runs doctor with --json in `folder`, without training steps unless `arguments` say so.
Examined examine(const TempFolder& folder, const std::string& arguments,
                 const std::string& environment = "") {
  const Ended ended =
      run_command(fmt::format("cd {} && env -u THINWIRE_CACHE {} {}/doctor --json --seconds 0 {}",
                              folder.path().string(), environment, TW_BIN, arguments));
  Examined examined{.code = ended.code, .report = Json::parse(ended.output, nullptr, false)};
  EXPECT_TRUE(examined.report.is_object()) << ended.output;
  return examined;
}

/// Writes an mpirun that only tells its version, as the first on the PATH; returns the assignment.
std::string mpirun_that_tells(const TempFolder& folder, const std::string& version) {
  const fs::path program = folder / "mpirun";
  std::ofstream(program) << "#!/bin/sh\necho '" << version << "'\n";
  fs::permissions(program, fs::perms::owner_all);
  return fmt::format("PATH={}:$PATH", folder.path().string());
}

constexpr uintmax_t kFileBytes = 30'730'000;

/// Six files of zeros: images of class 0.
void write_cifar(const fs::path& folder) {
  fs::create_directories(folder);
  for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                           "data_batch_5", "test_batch"}) {
    const fs::path file = folder / (std::string(name) + ".bin");
    std::ofstream(file).close();
    fs::resize_file(file, kFileBytes);
  }
}

TEST(Doctor, ReportsEveryPart) {
  const TempFolder folder;
  const Examined found = examine(folder, "");
  for (const char* name : {"cpu", "cores", "memory", "mpi", "gpu", "disk", "data", "link"}) {
    const Json& one = found.finding(name);
    EXPECT_NE(one["state"], "missing") << name;
    EXPECT_NE(one["text"], "") << name;
    if (one["state"] != "ok") {
      EXPECT_NE(one["cure"], "") << one.dump();
    }
  }
  EXPECT_EQ(found.finding("step")["state"], "missing");  // --seconds 0
  EXPECT_EQ(found.code, found.report["problems"] == 0 ? 0 : 1);
  EXPECT_EQ(found.finding("data")["state"], "note");
  EXPECT_GE(found.finding("cores")["details"]["cores"], 1);
  EXPECT_GT(found.finding("memory")["details"]["total_bytes"], 1e8);
}

TEST(Doctor, PrintsALineForEachFinding) {
  const TempFolder folder;
  const Ended ended = run_command(fmt::format("cd {} && {}/doctor --seconds 0 --data-dir none",
                                              folder.path().string(), TW_BIN));
  EXPECT_EQ(ended.code, 1) << ended.output;
  for (const char* text : {"ok       cpu ", "problem  data ", "cure: thinwire get-cifar10 none"})
    EXPECT_TRUE(ended.says(text)) << text << "\n" << ended.output;
}

TEST(Doctor, FindsTheMpirunOfAnotherMpi) {
  const TempFolder folder;
  const std::string library = examine(folder, "").finding("mpi")["details"]["library"];
  if (library.empty()) GTEST_SKIP() << "built without MPI";
  const bool open = library.find("Open MPI") != std::string::npos;
  const std::string hydra = "HYDRA build details:", orte = "mpirun (Open MPI) 4.1.4";
  const Examined other = examine(folder, "", mpirun_that_tells(folder, open ? hydra : orte));
  EXPECT_EQ(other.code, 1);
  EXPECT_EQ(other.finding("mpi")["state"], "problem");
  const std::string text = other.finding("mpi")["text"];
  EXPECT_NE(text.find(library), std::string::npos) << text;
  EXPECT_NE(text.find(folder.path().string() + "/mpirun is that of"), std::string::npos) << text;
  const Examined same = examine(folder, "", mpirun_that_tells(folder, open ? orte : hydra));
  EXPECT_EQ(same.finding("mpi")["state"], "ok") << same.finding("mpi").dump();
  const Examined odd = examine(folder, "", mpirun_that_tells(folder, "batch system 7"));
  EXPECT_EQ(odd.finding("mpi")["state"], "note") << odd.finding("mpi").dump();
}

TEST(Doctor, DoesNotWaitForAnMpirunThatHangs) {
  const TempFolder folder;
  if (examine(folder, "").finding("mpi")["details"]["library"] == "")
    GTEST_SKIP() << "built without MPI";
  const std::string path = mpirun_that_tells(folder, "");
  std::ofstream(folder / "mpirun") << "#!/bin/sh\nexec sleep 300\n";
  const Examined found = examine(folder, "", "timeout 60 env " + path);
  EXPECT_EQ(found.code, 1);
  EXPECT_EQ(found.finding("mpi")["state"], "problem");
  const std::string text = found.finding("mpi")["text"];
  EXPECT_TRUE(text.ends_with("/mpirun has not answered --version within 5 s")) << text;
}

TEST(Doctor, FindsProcessesThatDoNotFindEachOther) {
  const TempFolder folder;
  const Examined first = examine(folder, "", "SLURM_NTASKS=4 SLURM_PROCID=0");
  EXPECT_EQ(first.code, 1);
  EXPECT_EQ(first.finding("mpi")["state"], "problem") << first.finding("mpi").dump();
  const Ended other =
      run_well(fmt::format("SLURM_NTASKS=4 SLURM_PROCID=2 {}/doctor --seconds 0", TW_BIN));
  EXPECT_EQ(other.output, "");  // the first process reports
}

TEST(Doctor, ReadsTheWholeDataSet) {
  const TempFolder folder;
  const fs::path data = folder / "d/cifar-10-batches-bin";
  write_cifar(data);
  const Json whole = examine(folder, "--data-dir d").finding("data");
  EXPECT_EQ(whole["state"], "ok") << whole.dump();
  EXPECT_EQ(whole["details"]["train"], 50000);

  fs::resize_file(data / "data_batch_4.bin", kFileBytes - 1);
  const Examined cut = examine(folder, "--data-dir d");
  EXPECT_EQ(cut.code, 1);
  EXPECT_EQ(cut.finding("data")["state"], "problem");
  const std::string text = cut.finding("data")["text"], cure = cut.finding("data")["cure"];
  EXPECT_NE(text.find("data_batch_4.bin has 30729999 bytes, expected 30730000"), text.npos) << text;
  const std::string expected = "remove d/cifar-10-batches-bin, then thinwire get-cifar10 d";
  EXPECT_TRUE(cure.ends_with(expected)) << cure;
  EXPECT_EQ(examine(folder, "--data-dir d/cifar-10-batches-bin").finding("data")["cure"], cure);

  fs::resize_file(data / "data_batch_4.bin", kFileBytes);
  std::fstream label(data / "test_batch.bin", std::ios::in | std::ios::out | std::ios::binary);
  label.seekp(3073 * 9999);
  label.put(77);
  label.close();
  const std::string damaged = examine(folder, "--data-dir d").finding("data")["text"];
  EXPECT_NE(damaged.find("record 9999 has label 77"), damaged.npos) << damaged;
}

TEST(Doctor, NamesTheCureOfImagesAndTheirFolders) {
  const TempFolder folder;
  write_image_folder(folder / "d", 2, 2, 1);
  const auto cure = [&](const std::string& data) -> std::string {
    const Json found = examine(folder, "--data-dir " + data).finding("data");
    EXPECT_EQ(found["state"], "problem") << found.dump();
    return found["cure"];
  };
  const std::string folders =
      "put every image into the folder of its class; if there are train and val, with the same "
      "classes in both";
  std::ofstream(folder / "d/val/stray.JPEG") << "x";
  EXPECT_EQ(cure("d"), folders);
  fs::remove(folder / "d/val/stray.JPEG");
  EXPECT_EQ(examine(folder, "--data-dir d").finding("data")["state"], "ok");
  fs::create_directory(folder / "d/val/empty");
  EXPECT_EQ(cure("d"), folders);
  fs::remove(folder / "d/val/empty");
  fs::create_directories(folder / "one/a");
  for (const char* file : {"0.jpg", "1.jpg"})
    write_bytes(folder / "one/a" / file, noise_jpeg(1, 40, 40));
  EXPECT_EQ(cure("one"), folders);
  fs::resize_file(folder / "d/train/n00000000/0000.JPEG", 100);
  std::ofstream(folder / "d/val/n00000001/0000.JPEG") << "x";
  EXPECT_EQ(cure("d"), "copy what is damaged again, or train with --bad-images skip");
  const Json found = examine(folder, "--data-dir d").finding("data");
  const std::string text = found["text"];
  EXPECT_NE(text.find("4 training and 2 validation images of 2 classes"), text.npos) << text;
  EXPECT_NE(text.find("; 2 damaged: d/train/n00000000/0000.JPEG: "), text.npos) << text;
  EXPECT_NE(text.find("; d/val/n00000001/0000.JPEG: "), text.npos) << text;
  EXPECT_EQ(found["details"]["damaged"].size(), 2) << found.dump();
  std::ofstream(folder / "d.records") << "no record file";
  EXPECT_EQ(cure("d.records"), "copy the file again");
}

// 300 images: an even sample of 256 has not the seventh one
TEST(Doctor, ReadsEveryImageOfASmallFolder) {
  const TempFolder folder;
  write_image_folder(folder / "d", 2, 150, 1);
  const std::string whole = examine(folder, "--data-dir d").finding("data")["text"];
  EXPECT_NE(whole.find("302 of 302 read"), whole.npos) << whole;
  fs::resize_file(folder / "d/train/n00000000/0006.JPEG", 100);
  EXPECT_EQ(examine(folder, "--data-dir d").finding("data")["state"], "problem");
}

TEST(Doctor, FindsAFullDisk) {
  const TempFolder folder;
  EXPECT_EQ(examine(folder, "").finding("disk")["state"], "ok");
  const FullDisk full(size_t{4} << 20);
  const Examined found = examine(folder, "--output-dir not/yet/there");
  EXPECT_EQ(found.code, 1);
  const Json& disk = found.finding("disk");
  EXPECT_EQ(disk["state"], "problem") << disk.dump();
  const std::string text = disk["text"], cure = disk["cure"];
  EXPECT_NE(text.find("cannot write 8.0 MiB to a file"), text.npos) << text;
  EXPECT_NE(cure.find("--output-dir"), cure.npos) << cure;
  EXPECT_TRUE(fs::is_empty(folder.path()));  // nothing is left behind
}

TEST(Doctor, MeasuresTheLinkBetweenRanks) {
  const TempFolder folder;
  const Json link = examine(folder, "--workers 2 --link 1Gbit,5ms").finding("link");
  EXPECT_EQ(link["state"], "ok") << link.dump();
  EXPECT_GE(link["details"]["latency_seconds"], 0.005);
  EXPECT_LT(link["details"]["latency_seconds"], 0.5);
  EXPECT_LE(link["details"]["bits_per_second"], 1.01e9);
  EXPECT_EQ(link["details"]["ranks"], 2);
}

TEST(Doctor, BreaksLinesOfATerminalBetweenWords) {
  const TempFolder folder;
  const Ended ended = run_command(
      fmt::format("cd {} && script -qec 'stty cols 60; {}/doctor --seconds 0' /dev/null </dev/null",
                  folder.path().string(), TW_BIN));
  EXPECT_NE(ended.code, 2) << ended.output;
  EXPECT_TRUE(
      ended.says("exist; without one, training uses the\r\n                 generated images"))
      << ended.output;
  std::istringstream lines(ended.output);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.size() <= 61 || line.rfind(' ') <= 23) << line;  // a word stays whole
}

TEST(Doctor, RunsTrainingSteps) {
  const TempFolder folder;
  const Json step = examine(folder, "--workers 2 --seconds 0.1").finding("step");
  EXPECT_EQ(step["state"], "ok") << step.dump();
  EXPECT_GT(step["details"]["images_per_s"], 0);
  EXPECT_GE(step["details"]["steps"], 1);
}

TEST(Doctor, TimesTheNetworkOfTheFolder) {
  const TempFolder folder;
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder / "d" / name);
    for (const char* file : {"0.jpg", "1.jpg"})
      write_bytes(folder / "d" / name / file, noise_jpeg(1, 60, 60));
  }
  const std::string text =
      examine(folder, "--workers 2 --seconds 0.1 --data-dir d").finding("step")["text"];
  EXPECT_EQ(text.find("resnet20, 32 images of 64 x 64 a rank, "), 0u) << text;
}

TEST(Doctor, RefusesWrongOptions) {
  const auto code = [](const std::string& arguments) {
    const Ended ended = run_command(fmt::format("{}/doctor {}", TW_BIN, arguments));
    EXPECT_EQ(ended.lines(), 1u) << ended.output;
    return ended.code;
  };
  EXPECT_EQ(code("--link fast"), 2);
  EXPECT_EQ(code("--secods 1"), 2);
  EXPECT_EQ(code("--workers 5000"), 2);
}

}  // namespace
}  // namespace tw::test
