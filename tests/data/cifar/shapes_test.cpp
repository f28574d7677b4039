#include "data/cifar/shapes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "data/cifar/cifar_binary.h"
#include "engine/core/hash.h"
#include "tests/support/data.h"
#include "tests/support/error_text.h"

namespace tw {
namespace {

using test::TempFolder;

// hashes of shapes-v1; when the bytes change, the folder needs a new name
constexpr uint64_t kTrainHash = 4009891895874385016u, kTestHash = 1862959268629947816u;

uint64_t hash_of(const Dataset& set) {
  std::vector<uint8_t> pixels(static_cast<size_t>(set.image.numel()));
  Hash hash;
  for (size_t i = 0; i < set.size(); ++i) {
    const int32_t label = set.get(i, pixels);
    hash.add(std::as_bytes(std::span(&label, 1))).add(std::as_bytes(std::span(pixels)));
  }
  return hash.value();
}

DataSplit load(const std::filesystem::path& dir, size_t val_size = 0) {
  return datasets().find("shapes").value({.dir = dir, .val_size = val_size});
}

/// A generated set, shared by the tests that only read it.
class Shapes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    split_ = load(folder_->path());
  }
  static void TearDownTestSuite() {
    split_ = {};
    folder_.reset();
  }
  static std::filesystem::path dir() { return folder_->path(); }

  static inline std::unique_ptr<TempFolder> folder_;
  static inline DataSplit split_;
};

size_t files_in(const std::filesystem::path& dir) {
  const auto walk = std::filesystem::recursive_directory_iterator(dir);
  return static_cast<size_t>(
      std::count_if(begin(walk), end(walk), [](const auto&) { return true; }));
}

TEST_F(Shapes, BytesAreFixedAndClassesAreBalanced) {
  EXPECT_EQ(hash_of(*split_.train), kTrainHash);
  EXPECT_EQ(hash_of(*split_.val), kTestHash);
  ASSERT_EQ(split_.train->size(), 10'000u);
  ASSERT_EQ(split_.val->size(), 2'000u);
  for (const auto& [set, expected] : {std::pair{split_.train, 1'000}, {split_.val, 200}}) {
    std::vector<uint8_t> pixels(3 * kCifarPixels);
    std::vector<int> counts(10);
    for (size_t i = 0; i < set->size(); ++i) ++counts[static_cast<size_t>(set->get(i, pixels))];
    EXPECT_EQ(counts, std::vector<int>(10, expected));
  }
}

TEST_F(Shapes, MeanColourIsIndependentOfTheClass) {
  const auto train = split_.train;
  std::vector<uint8_t> pixels(3 * kCifarPixels);
  std::vector<double> sums(30), all(3);
  for (size_t i = 0; i < train->size(); ++i) {
    const auto label = static_cast<size_t>(train->get(i, pixels));
    for (size_t p = 0; p < pixels.size(); ++p) sums[3 * label + p % 3] += pixels[p];
  }
  for (size_t s = 0; s < 30; ++s) {
    sums[s] /= 1'000.0 * kCifarPixels;
    all[s % 3] += sums[s] / 10;
  }
  // the standard deviation of a class's mean colour is 70 / sqrt(1000) = 2.2
  for (size_t s = 0; s < 30; ++s) EXPECT_NEAR(sums[s], all[s % 3], 9) << "class " << s / 3;
}

TEST_F(Shapes, IsGeneratedOnceAndRepairsDamagedFiles) {
  const auto folder = dir() / "shapes-v1";
  const auto file = folder / "data_batch_2.bin";
  const auto written = std::filesystem::last_write_time(file);
  // --data-dir may name the folder itself
  load(folder);
  EXPECT_EQ(std::filesystem::last_write_time(file), written);

  std::filesystem::resize_file(file, 1000);
  std::filesystem::remove(folder / "test_batch.bin");
  const DataSplit healed = load(dir());
  EXPECT_EQ(hash_of(*healed.train), kTrainHash);
  EXPECT_EQ(hash_of(*healed.val), kTestHash);
  EXPECT_EQ(files_in(dir()), 7u);
}

TEST_F(Shapes, ThreadsAndProcessesCanGenerateConcurrently) {
  const TempFolder folder;
  std::vector<pid_t> children;
  for (int c = 0; c < 2; ++c) {
    children.push_back(::fork());
    if (children.back() == 0) {
      try {
        ::_exit(hash_of(*load(folder.path()).train) == kTrainHash ? 0 : 1);
      } catch (...) {
        ::_exit(2);
      }
    }
  }
  std::vector<uint64_t> hashes(2);
  std::vector<std::thread> threads;
  for (uint64_t& hash : hashes)
    threads.emplace_back([&] { hash = hash_of(*load(folder.path()).train); });
  for (std::thread& thread : threads) thread.join();
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(hashes, std::vector<uint64_t>(2, kTrainHash));
  // six files and their folder, no temporary files
  EXPECT_EQ(files_in(folder.path()), 7u);
}

TEST_F(Shapes, HoldsOutTrainingImages) {
  const DataSplit split = load(dir(), 1'000);
  EXPECT_EQ(split.train->size(), 9'000u);
  EXPECT_EQ(split.val->size(), 1'000u);
  EXPECT_EQ(split.val_name, "1000 held-out training images");
}

TEST_F(Shapes, AFolderThatCannotBeCreatedIsAUserError) {
  const TempFolder folder;
  std::ofstream(folder.path() / "file").close();
  const std::string text = test::error_text<UserError>([&] { load(folder.path() / "file"); });
  EXPECT_EQ(text.find("[shapes] cannot make folder " + (folder.path() / "file").string()), 0u)
      << text;
}

TEST_F(Shapes, AFolderThatCannotBeWrittenIsAUserError) {
  if (!std::filesystem::is_directory("/proc/self/fd")) GTEST_SKIP() << "needs /proc";
  const TempFolder folder;
  // a folder in which even root cannot write
  std::filesystem::create_directory_symlink("/proc/self/fd", folder.path() / "shapes-v1");
  const std::string text = test::error_text<UserError>([&] { load(folder.path()); });
  EXPECT_EQ(text.find("[shapes] cannot write in " + (folder.path() / "shapes-v1").string()), 0u)
      << text;
}

}  // namespace
}  // namespace tw
