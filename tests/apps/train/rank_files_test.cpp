#include "apps/train/rank_files.h"

#include "comm/transports.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

/// Four ranks. Ranks 1 and 3 are given a folder of their own in place of that of rank 0.
class RankFilesOfFour : public testing::Test {
 protected:
  static constexpr int kRanks = 4;
  static bool is_blind(int rank) { return rank % 2 == 1; }
  fs::path seen_by(int rank) const { return is_blind(rank) ? other_.path() : folder_.path(); }
  fs::path part(int rank) const { return folder_ / fmt::format("part-{}", rank); }

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
      RankFiles::of_folder(comm, seen_by(comm.rank())).write(comm, file, part(comm.rank()));
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

TEST_F(RankFilesOfFour, EveryRankReadsTheFileItAsksFor) {
  write();
  // its own, that of one rank, and different ones of which some are the same
  const std::function<int(int)> choices[] = {[](int rank) { return rank; }, [](int) { return 2; },
                                             [](int rank) { return rank < 2 ? 1 : 3; }};
  std::ofstream(folder_ / "file") << "seen";
  run_on_threads(kRanks, [&](Communicator& comm) {
    const RankFiles files = RankFiles::with_file(comm, seen_by(comm.rank()) / "file");
    for (const auto& choice : choices) {
      const int asked = choice(comm.rank());
      const SafetensorsReader file = files.read(comm, part(asked));
      EXPECT_EQ(file.path(), part(asked));
      EXPECT_EQ(file.metadata().at("rank"), std::to_string(asked));
      const std::span<const float> read = file.tensor("values").as<float>();
      EXPECT_EQ(std::vector(read.begin(), read.end()), values(asked));
    }
  });
}

TEST_F(RankFilesOfFour, AMissingOrDamagedFileIsTheSameErrorOnAllRanks) {
  write();
  fs::resize_file(part(3), 100);
  fs::remove(part(1));
  std::ofstream(folder_ / "file") << "seen";
  run_on_threads(kRanks, [&](Communicator& comm) {
    const RankFiles files = RankFiles::with_file(comm, seen_by(comm.rank()) / "file");
    for (const int bad : {1, 3}) {
      const int asked = comm.rank() == bad ? bad : 2;
      const std::string text = error_text<UserError>([&] { files.read(comm, part(asked)); });
      EXPECT_TRUE(text.find(part(bad).string()) != std::string::npos) << text;
    }
    EXPECT_EQ(files.read(comm, part(0)).metadata().at("rank"), "0");  // the ranks go on together
  });
}

}  // namespace
}  // namespace tw::test
