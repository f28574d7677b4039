#include "data/cifar/cifar_binary.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tests/support/data.h"
#include "tests/support/error_text.h"

namespace tw {
namespace {

using test::TempFolder;

uint8_t plane_byte(size_t image, size_t channel, size_t pixel) {
  return static_cast<uint8_t>(image * 7 + channel * 85 + pixel * 3);
}

/// Records [first, first + n) with labels image % 10.
void write_file(const std::filesystem::path& path, size_t first, size_t n) {
  std::ofstream out(path, std::ios::binary);
  for (size_t i = first; i < first + n; ++i) {
    out.put(static_cast<char>(i % 10));
    for (size_t c = 0; c < 3; ++c)
      for (size_t p = 0; p < kCifarPixels; ++p) out.put(static_cast<char>(plane_byte(i, c, p)));
  }
}

class CifarFilesTest : public ::testing::Test {
 protected:
  CifarFilesTest() {
    size_t first = 0;
    for (const auto& path : files_.train()) {
      write_file(path, first, 4);
      first += 4;
    }
    write_file(files_.test(), 100, 3);
  }
  std::string error(size_t val_size = 0) {
    return test::error_text<UserError>([&] { read_cifar_files(files_, val_size); });
  }

  TempFolder folder_;
  CifarFiles files_{.name = "tiny",
                    .dir = folder_.path(),
                    .train_records = 4,
                    .test_records = 3,
                    .remedy = "ask for it"};
};

void expect_image(const Dataset& set, size_t i, size_t image) {
  std::vector<uint8_t> pixels(3 * kCifarPixels);
  EXPECT_EQ(set.get(i, pixels), static_cast<int32_t>(image % 10));
  for (size_t p = 0; p < kCifarPixels; ++p)
    for (size_t c = 0; c < 3; ++c)
      ASSERT_EQ(pixels[3 * p + c], plane_byte(image, c, p)) << "pixel " << p << " channel " << c;
}

TEST_F(CifarFilesTest, ReadsEveryRecordAsNhwc) {
  const DataSplit split = read_cifar_files(files_, 0);
  ASSERT_EQ(split.train->size(), 20u);
  ASSERT_EQ(split.val->size(), 3u);
  EXPECT_EQ(split.val_name, "test file");
  EXPECT_EQ(split.train->image, (Shape{32, 32, 3}));
  EXPECT_EQ(split.train->classes, 10);
  for (size_t i = 0; i < 20; ++i) expect_image(*split.train, i, i);
  for (size_t i = 0; i < 3; ++i) expect_image(*split.val, i, 100 + i);
}

TEST_F(CifarFilesTest, DescribesAnImageByLabelAndPixels) {
  const std::string before = read_cifar_files(files_, 0).train->describe(7);
  EXPECT_TRUE(before.starts_with("a picture with label 7 and checksum ")) << before;
  EXPECT_EQ(read_cifar_files(files_, 1).train->describe(7), before);
  std::fstream file(files_.train()[1], std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4 * kCifarRecord -
             1);  // the last pixel of image 7, which was 7 * 7 + 85 * 2 + 3 * 1023
  file.put(1);
  file.close();
  const DataSplit other = read_cifar_files(files_, 0);
  EXPECT_NE(other.train->describe(7), before);
  EXPECT_TRUE(other.train->describe(7).starts_with("a picture with label 7 and checksum "));
}

TEST_F(CifarFilesTest, ValSizeHoldsOutTheLastTrainingImages) {
  // the test file is not needed then
  std::filesystem::remove(files_.test());
  const DataSplit split = read_cifar_files(files_, 6);
  ASSERT_EQ(split.train->size(), 14u);
  ASSERT_EQ(split.val->size(), 6u);
  EXPECT_EQ(split.val_name, "6 held-out training images");
  expect_image(*split.train, 13, 13);
  expect_image(*split.val, 0, 14);
  expect_image(*split.val, 5, 19);
}

TEST_F(CifarFilesTest, ValSizeMustLeaveTrainingImages) {
  EXPECT_EQ(error(20), "[tiny] val-size is 20, expected less than the 20 training images");
  EXPECT_NO_THROW(read_cifar_files(files_, 19));
}

TEST_F(CifarFilesTest, TheErrorNamesAMissingFile) {
  const auto path = files_.train()[3];
  std::filesystem::remove(path);
  EXPECT_EQ(error(), "[tiny] there is no file " + path.string() + ": ask for it");
}

TEST_F(CifarFilesTest, TheErrorNamesAMissingTestFile) {
  std::filesystem::remove(files_.test());
  EXPECT_EQ(error(), "[tiny] there is no file " + files_.test().string() + ": ask for it");
}

TEST_F(CifarFilesTest, TheErrorHasExpectedAndActualBytes) {
  const auto path = files_.train()[4];
  for (const auto& [size, found] : {std::pair{12291, "12291"}, {12293, "12293"}, {0, "0"}}) {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(size));
    EXPECT_EQ(error(), "[tiny] " + path.string() + " has " + found +
                           " bytes, expected 12292 (4 records): ask for it");
  }
}

TEST_F(CifarFilesTest, TheErrorNamesFileAndRecordOfABadLabel) {
  const auto path = files_.train()[1];
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2 * kCifarRecord);
  file.put(10);
  file.close();
  EXPECT_EQ(error(),
            "[tiny] " + path.string() + " record 2 has label 10, expected 0 to 9: ask for it");
}

TEST(DataFolder, IsGivenDirectlyOrByItsParent) {
  EXPECT_EQ(data_folder("a/b", "set"), "a/b/set");
  EXPECT_EQ(data_folder("a/b/", "set"), "a/b/set");
  EXPECT_EQ(data_folder("a/set", "set"), "a/set");
  EXPECT_EQ(data_folder("a/set/", "set"), "a/set");
  EXPECT_EQ(data_folder(".", "set"), "./set");
}

TEST(DataFolder, DefaultsToTheCache) {
  const char* before = std::getenv("THINWIRE_CACHE");
  const std::string saved = before == nullptr ? "" : before;
  ::unsetenv("THINWIRE_CACHE");
  EXPECT_EQ(data_folder("", "set"), "data-cache/set");
  ::setenv("THINWIRE_CACHE", "/somewhere", 1);
  EXPECT_EQ(data_folder("", "set"), "/somewhere/set");
  if (before == nullptr)
    ::unsetenv("THINWIRE_CACHE");
  else
    ::setenv("THINWIRE_CACHE", saved.c_str(), 1);
}

TEST(Cifar10, TheErrorForMissingFilesNamesTheDownloadScript) {
  const TempFolder folder;
  const std::string dir = folder.path().string();
  EXPECT_EQ(test::error_text<UserError>(
                [&] { datasets().find("cifar10").value({.dir = folder.path()}); }),
            "[cifar10] there is no file " + dir +
                "/cifar-10-batches-bin/data_batch_1.bin: for CIFAR-10, get it with: thinwire "
                "get-cifar10 " +
                dir);
}

TEST(Cifar10, TheErrorForPhotographsNamesTheirDataSet) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "train");
  const std::string text = test::error_text<UserError>(
      [&] { datasets().find("cifar10").value({.dir = folder.path()}); });
  EXPECT_TRUE(text.ends_with(": " + folder.path().string() +
                             " is a folder of images: add --dataset imagefolder"))
      << text;
}

TEST(Cifar10, ADownloadIsNotOfferedIntoAFolderOfOtherThings) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "holidays");
  const auto error = [&](const std::filesystem::path& dir) {
    return test::error_text<UserError>([&] { datasets().find("cifar10").value({.dir = dir}); });
  };
  EXPECT_TRUE(error(folder.path())
                  .ends_with(folder.path().string() +
                             " holds other files; expected cifar-10-batches-bin, or for images "
                             "train/ and val/ with a folder for each class"));
  EXPECT_EQ(error(folder / "new"), "[data] there is no folder " + (folder / "new").string() +
                                       "; for CIFAR-10, get it with: thinwire get-cifar10 " +
                                       (folder / "new").string());
  EXPECT_TRUE(error(folder / "Holiday").ends_with("; nearest is " + (folder / "holidays").string()))
      << error(folder / "Holiday");
  // a part of the data set is there
  std::filesystem::create_directory(folder / "cifar-10-batches-bin");
  EXPECT_TRUE(error(folder.path()).ends_with("get-cifar10 " + folder.path().string()));
}

TEST(Cifar10, ClassesAreNamedByTheFileBesideTheImages) {
  const TempFolder folder;
  for (const auto& path : CifarFiles{.name = "", .dir = folder.path()}.train()) {
    std::ofstream(path).close();
    std::filesystem::resize_file(path, 10'000 * kCifarRecord);  // sparse: all zeros
  }
  const auto open = [&](const char* names) {
    std::ofstream(folder / "batches.meta.txt") << names;
    return datasets().find("cifar10").value({.dir = folder.path(), .val_size = 1}).class_names;
  };
  EXPECT_EQ(open("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n"),
            (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}));
  EXPECT_TRUE(test::error_text<UserError>([&] {
                open("a\nb\n");
              }).ends_with("batches.meta.txt has 2 names; expected 10, one a line"));
}

TEST(Cifar10, FilesHaveTenThousandRecords) {
  const TempFolder folder;
  const auto dir = folder.path() / "cifar-10-batches-bin";
  std::filesystem::create_directory(dir);
  for (const auto& path : CifarFiles{.name = "", .dir = dir}.train()) {
    std::ofstream(path).close();
    std::filesystem::resize_file(path, 10'000 * kCifarRecord);  // sparse: all zeros
  }
  const auto& factory = datasets().find("cifar10").value;
  const DataSplit split = factory({.dir = folder.path(), .val_size = 5'000});
  EXPECT_EQ(split.train->size(), 45'000u);
  EXPECT_EQ(split.class_names,
            (std::vector<std::string>{"airplane", "automobile", "bird", "cat", "deer", "dog",
                                      "frog", "horse", "ship", "truck"}));
  EXPECT_EQ(factory({.dir = dir, .val_size = 1}).train->size(), 49'999u);
  EXPECT_EQ(test::error_text<UserError>([&] { factory({.dir = dir, .val_size = 50'000}); }),
            "[cifar10] val-size is 50000, expected less than the 50000 training images");
  EXPECT_NE(test::error_text<UserError>([&] { factory({.dir = dir}); }).find("test_batch.bin"),
            std::string::npos);
}

TEST(Cifar10, RealFilesHaveFiveThousandImagesAClass) {
  const char* dir = std::getenv("THINWIRE_DATA");
  if (dir == nullptr) GTEST_SKIP() << "THINWIRE_DATA is not set";
  const DataSplit split = datasets().find("cifar10").value({.dir = dir});
  ASSERT_EQ(split.train->size(), 50'000u);
  ASSERT_EQ(split.val->size(), 10'000u);
  std::vector<uint8_t> pixels(3 * kCifarPixels);
  std::array<double, 3> sum{};
  std::array<int, 10> train{}, test{};
  for (size_t i = 0; i < split.train->size(); ++i) {
    ++train[static_cast<size_t>(split.train->get(i, pixels))];
    for (size_t p = 0; p < pixels.size(); ++p) sum[p % 3] += pixels[p];
  }
  for (size_t i = 0; i < split.val->size(); ++i)
    ++test[static_cast<size_t>(split.val->get(i, pixels))];
  for (size_t c = 0; c < 10; ++c) {
    EXPECT_EQ(train[c], 5'000);
    EXPECT_EQ(test[c], 1'000);
  }
  for (size_t c = 0; c < 3; ++c)
    EXPECT_NEAR(sum[c] / (50'000.0 * kCifarPixels * 255), split.mean[c], 1e-3);
}

/// Zeros: the group 0 and the class 0 of all images, but for what the test writes.
TEST(Cifar100, HasTheClassesOfTheSecondByte) {
  const TempFolder folder;
  const auto dir = folder / "cifar-100-binary";
  std::filesystem::create_directory(dir);
  for (const auto& [name, records] : {std::pair{"train.bin", 50'000}, {"test.bin", 10'000}}) {
    std::ofstream(dir / name).close();
    std::filesystem::resize_file(dir / name, static_cast<uintmax_t>(records) * 3074);
  }
  const auto put = [&](size_t record, const std::string& bytes) {
    std::fstream file(dir / "train.bin", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(record * 3074));
    file << bytes;
  };
  put(0, "\x13\x63");                             // group 19, class 99
  put(49'999, std::string("\0\x07\x01\x02", 4));  // class 7, the first two red bytes
  const auto open = [&](size_t val_size) {
    return datasets()
        .find(dataset_in(folder.path(), ""))
        .value({.dir = folder.path(), .val_size = val_size});
  };
  const DataSplit split = open(1);
  EXPECT_EQ(split.train->classes, 100);
  ASSERT_EQ(split.class_names.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(split.class_names));
  EXPECT_EQ(split.class_names[7], "beetle");
  EXPECT_EQ(split.class_names[99], "worm");
  std::vector<uint8_t> pixels(3 * kCifarPixels);
  EXPECT_EQ(split.train->get(0, pixels), 99);
  EXPECT_EQ(split.val->get(0, pixels), 7);
  EXPECT_EQ(pixels[0], 1);
  EXPECT_EQ(pixels[3], 2);

  const auto error = [&] { return test::error_text<UserError>([&] { open(0); }); };
  put(3, "\x01\x64");
  EXPECT_TRUE(error().starts_with("[cifar100] " + (dir / "train.bin").string() +
                                  " record 3 has label 100, expected 0 to 99: unpack "))
      << error();
  std::filesystem::resize_file(dir / "test.bin", 10'000 * 3073);  // records of CIFAR-10
  EXPECT_TRUE(error().starts_with("[cifar100] " + (dir / "test.bin").string() +
                                  " has 30730000 bytes, expected 30740000 (10000 records): "))
      << error();
}

TEST(Datasets, AreRecognisedByTheirFiles) {
  const TempFolder folder;
  for (const char* file :
       {"ten/cifar-10-batches-bin/data_batch_1.bin", "hundred/train.bin",
        "digits/train-images-idx3-ubyte.gz", "torch/MNIST/raw/train-images-idx3-ubyte",
        "Fashion/train-images-idx3-ubyte", "torch2/FashionMNIST/raw/train-images-idx3-ubyte.gz"}) {
    std::filesystem::create_directories((folder / file).parent_path());
    std::ofstream(folder / file).close();
  }
  const auto found = [&](const char* dir) { return dataset_in(folder / dir, "none"); };
  EXPECT_EQ(found("ten"), "cifar10");
  EXPECT_EQ(found("ten/cifar-10-batches-bin"), "cifar10");
  EXPECT_EQ(found("hundred"), "cifar100");
  EXPECT_EQ(found("digits"), "mnist");
  EXPECT_EQ(found("torch"), "mnist");
  EXPECT_EQ(found("torch/MNIST/raw"), "mnist");
  EXPECT_EQ(found("Fashion"), "fashionmnist");
  EXPECT_EQ(found("torch2"), "fashionmnist");
  EXPECT_EQ(found("torch2/FashionMNIST"), "none");
}

TEST(Datasets, AnUnknownNameListsTheKnownOnes) {
  const std::string text = test::error_text<UserError>([] { datasets().find("cifar11"); });
  EXPECT_NE(text.find("cifar10"), std::string::npos) << text;
  EXPECT_NE(text.find("shapes"), std::string::npos) << text;
}

}  // namespace
}  // namespace tw
