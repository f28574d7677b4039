#include "apps/train/rank_files.h"

#include "comm/transports.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"
#include "tests/support/ranks/damaged.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

/// Four ranks. Ranks 1 and 3 are given a folder of their own in place of that of rank 0.
class RankFilesOfFour : public testing::Test {
 protected:
  static constexpr int kRanks = 4;
  static bool is_blind(int rank) { return rank % 2 == 1; }
  fs::path seen_by(int rank) const { return is_blind(rank) ? other_.path() : folder_.path(); }
  fs::path part(int rank) const { return rank_file(folder_.path(), rank); }

  /// Values of several pieces of a transfer, and not a whole number of them.
  static std::vector<float> values(int rank) {
    std::vector<float> all(700'001 + static_cast<size_t>(rank));
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<float>(i % 1000) + static_cast<float>(rank);
    return all;
  }
  static Tensor flat(std::vector<float>& all) {
    return {all.data(), {static_cast<int64_t>(all.size())}, DType::f32, Device::cpu};
  }
  /// Writes the parts of all ranks.
  void write() const {
    run_on_threads(kRanks, [&](Communicator& comm) {
      std::vector<float> all = values(comm.rank());
      SafetensorsWriter file;
      file.add("values", flat(all));
      file.metadata("rank", std::to_string(comm.rank()));
      RankFiles::of_folder(comm, seen_by(comm.rank())).write(comm, file, folder_.path());
    });
  }

  const TempFolder folder_, other_;
};

TEST_F(RankFilesOfFour, ARankThatDoesNotSeeTheFolderIsFoundAndLeavesNothing) {
  std::ofstream(other_ / "ranks.probe") << "of another start\n";
  run_on_threads(kRanks, [&](Communicator& comm) {
    const RankFiles files = RankFiles::of_folder(comm, seen_by(comm.rank()));
    EXPECT_EQ(files.blind(), (std::vector{1, 3}));
    EXPECT_TRUE(RankFiles::of_folder(comm, folder_.path()).blind().empty());
  });
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(RankFilesOfFour, AFileWithOtherBytesIsNotTheSame) {
  std::ofstream(folder_ / "file") << "some bytes";
  std::ofstream(other_ / "file") << "same bytes";
  run_on_threads(kRanks, [&](Communicator& comm) {
    const RankFiles files = RankFiles::with_file(comm, seen_by(comm.rank()) / "file");
    EXPECT_EQ(files.blind(), (std::vector{1, 3}));
  });
}

TEST_F(RankFilesOfFour, EveryRankWritesTheBytesThatItWouldWriteItself) {
  write();
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<float> all = values(rank);
    SafetensorsWriter file;
    file.add("values", flat(all));
    file.metadata("rank", std::to_string(rank));
    file.write(other_ / "alone");
    EXPECT_EQ(text_of(part(rank)), text_of(other_ / "alone")) << rank;
  }
}

TEST_F(RankFilesOfFour, EveryRankReadsItsFileOrThatOfAll) {
  write();
  std::ofstream(folder_ / "file") << "seen";
  run_on_threads(kRanks, [&](Communicator& comm) {
    const RankFiles files = RankFiles::with_file(comm, seen_by(comm.rank()) / "file");
    const auto expect_part = [&](const SafetensorsReader& file, int rank) {
      EXPECT_EQ(file.path(), part(rank));
      EXPECT_EQ(file.metadata().at("rank"), std::to_string(rank));
      const std::span<const float> read = file.tensor("values").as<float>();
      EXPECT_EQ(std::vector(read.begin(), read.end()), values(rank));
    };
    expect_part(files.read_own(comm, folder_.path()), comm.rank());
    for (const int rank : {2, 3}) expect_part(files.read(comm, part(rank)), rank);
  });
}

TEST_F(RankFilesOfFour, AMissingOrDamagedFileIsTheSameErrorOnAllRanks) {
  write();
  std::ofstream(folder_ / "file") << "seen";
  const auto expect_error = [&](int bad) {
    run_on_threads(kRanks, [&](Communicator& comm) {
      const RankFiles files = RankFiles::with_file(comm, seen_by(comm.rank()) / "file");
      for (const bool own : {false, true}) {
        const std::string text = error_text<UserError>(
            [&] { own ? files.read_own(comm, folder_.path()) : files.read(comm, part(bad)); });
        EXPECT_TRUE(text.find(part(bad).string()) != std::string::npos) << text;
      }
      EXPECT_EQ(files.read(comm, part(0)).metadata().at("rank"), "0");  // the ranks go on together
    });
  };
  fs::resize_file(part(3), 100);
  expect_error(3);
  fs::remove(part(1));
  expect_error(1);
}

TEST_F(RankFilesOfFour, ARankNamesNoFileOfRank0) {
  std::ofstream(other_ / "kept") << "before";
  const std::string named = part(1).string(), wanted = (other_ / "kept").string();
  const auto lie = [&](std::vector<std::byte>& message) {
    std::string text(reinterpret_cast<const char*>(message.data()), message.size());
    const size_t at = text.find(named);
    if (at == std::string::npos) return;
    text.replace(at, named.size(), std::string(named.size() - wanted.size(), '/') + wanted);
    std::memcpy(message.data(), text.data(), text.size());
  };
  run_on_threads(2, [&](Communicator& inner) {
    DamagedCommunicator comm(inner);
    if (comm.rank() == 1) comm.set_damage(lie);
    std::vector<float> all = values(comm.rank());
    SafetensorsWriter file;
    file.add("values", flat(all));
    RankFiles::of_folder(comm, seen_by(comm.rank())).write(comm, file, folder_.path());
  });
  EXPECT_EQ(text_of(other_ / "kept"), "before");
  EXPECT_TRUE(fs::exists(part(1)));
}

}  // namespace
}  // namespace tw::test
