// MNIST and Fashion-MNIST in the layout of their files.
#include "data/mnist/idx.h"

#include <zlib.h>

#include "tests/support/data.h"
#include "tests/support/error_text.h"

namespace tw {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

/// A number in four bytes, the highest first.
std::string word(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

/// Pixel p of image i of a half.
uint8_t pixel(char half, size_t i, size_t p) { return static_cast<uint8_t>(half + 11 * i + p * p); }

std::string image_file(char half, uint32_t count, uint32_t side = 28) {
  std::string bytes = word(0x803) + word(count) + word(side) + word(side);
  for (size_t i = 0; i < count; ++i)
    for (size_t p = 0; p < size_t{side} * side; ++p) bytes += static_cast<char>(pixel(half, i, p));
  return bytes;
}

/// Image i has label 9 - i % 10.
std::string label_file(uint32_t count) {
  std::string bytes = word(0x801) + word(count);
  for (uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(9 - i % 10);
  return bytes;
}

class Mnist : public ::testing::Test {
 protected:
  Mnist() {
    put("train-images-idx3-ubyte", image_file('a', 12));
    put("train-labels-idx1-ubyte", label_file(12));
    put("t10k-images-idx3-ubyte", image_file('b', 5));
    put("t10k-labels-idx1-ubyte", label_file(5));
  }
  void put(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  DataSplit open(size_t val_size = 0, const std::string& name = "mnist") {
    return datasets().find(name).value({.dir = folder_.path(), .val_size = val_size});
  }
  std::string error() {
    return test::error_text<UserError>([&] { open(); });
  }

  TempFolder folder_;
};

void expect_image(const Dataset& set, size_t i, char half, size_t image) {
  std::vector<uint8_t> pixels(28 * 28), augmented(28 * 28);
  EXPECT_EQ(set.get(i, pixels), static_cast<int32_t>(9 - image % 10));
  for (size_t p = 0; p < pixels.size(); ++p) ASSERT_EQ(pixels[p], pixel(half, image, p)) << p;
  set.get_augmented(i, 1, 2, augmented);
  EXPECT_EQ(augmented, pixels) << "a mirrored digit is none";
}

TEST_F(Mnist, ReadsImagesAndLabels) {
  const DataSplit split = open();
  ASSERT_EQ(split.train->size(), 12u);
  ASSERT_EQ(split.val->size(), 5u);
  EXPECT_EQ(split.train->image, (Shape{28, 28, 1}));
  EXPECT_EQ(split.train->classes, 10);
  EXPECT_EQ(split.val_name, "test file");
  EXPECT_EQ(split.mean.size(), 1u);
  for (size_t i = 0; i < 12; ++i) expect_image(*split.train, i, 'a', i);
  for (size_t i = 0; i < 5; ++i) expect_image(*split.val, i, 'b', i);
  EXPECT_EQ(split.class_names[3], "3");
  EXPECT_EQ(open(0, "fashionmnist").class_names[9], "Ankle boot");
}

TEST_F(Mnist, ValSizeHoldsOutTheLastTrainingImages) {
  fs::remove(folder_ / "t10k-labels-idx1-ubyte");
  const DataSplit split = open(2);
  ASSERT_EQ(split.train->size(), 10u);
  ASSERT_EQ(split.val->size(), 2u);
  expect_image(*split.val, 1, 'a', 11);
  EXPECT_EQ(test::error_text<UserError>([&] { open(12); }),
            "[mnist] val-size is 12, expected less than the 12 training images");
}

TEST_F(Mnist, PackedFilesAreUnpacked) {
  const std::string images = image_file('c', 5);
  fs::remove(folder_ / "t10k-images-idx3-ubyte");
  const fs::path packed = folder_ / "t10k-images-idx3-ubyte.gz";
  gzFile file = ::gzopen(packed.c_str(), "wb");
  ASSERT_EQ(::gzwrite(file, images.data(), static_cast<unsigned>(images.size())),
            static_cast<int>(images.size()));
  ASSERT_EQ(::gzclose(file), Z_OK);
  expect_image(*open().val, 4, 'c', 4);

  fs::resize_file(packed, fs::file_size(packed) / 2);
  EXPECT_TRUE(error().starts_with("[mnist] " + packed.string() + " cannot be unpacked: "))
      << error();
}

TEST_F(Mnist, ErrorsNameTheFileAndTheDamage) {
  const std::string dir = folder_.path().string(), images = dir + "/train-images-idx3-ubyte";
  const std::string good = image_file('a', 12);
  const auto says = [&](const std::string& bytes, const std::string& text) {
    put("train-images-idx3-ubyte", bytes);
    EXPECT_EQ(error(), "[mnist] " + images + text);
  };
  says("", " has 0 bytes, too few for an idx file");
  says(label_file(12) + good,
       " begins with 00000801; an idx file of bytes in 3 dimensions with "
       "00000803");
  says(good + "x", " has 9409 bytes after its header, which says 9408");
  says(good.substr(0, good.size() - 1), " has 9407 bytes after its header, which says 9408");
  says(image_file('a', 12, 32), " has images with a side of 32; expected 28");
  put("train-images-idx3-ubyte", image_file('a', 11));
  EXPECT_EQ(error(), "[mnist] " + dir + " has 11 images of train and 12 labels");
  put("train-images-idx3-ubyte", good);
  std::string labels = label_file(12);
  labels[8 + 4] = 10;
  put("train-labels-idx1-ubyte", labels);
  EXPECT_EQ(error(), "[mnist] label 4 of train in " + dir + " is 10, expected 0 to 9");
  fs::remove(folder_ / "train-labels-idx1-ubyte");
  EXPECT_TRUE(
      error().starts_with("[mnist] there is no file train-labels-idx1-ubyte or "
                          "train-labels-idx1-ubyte.gz in " +
                          dir + ": get it from "))
      << error();
}

}  // namespace
}  // namespace tw
