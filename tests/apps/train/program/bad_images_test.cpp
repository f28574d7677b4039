// Training on folders with damaged images.

#include "engine/io/safetensors.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

std::string train_skipping(const TempFolder& folder, const std::string& arguments) {
  return fmt::format(
      "THINWIRE_CACHE={} {} --output-dir {} --precision f32 --model lenet --lr 0.02 {}",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string(), arguments);
}

/// Options for a folder of JPEG images, cropped to 32 x 32.
std::string images_in(const fs::path& data) {
  return fmt::format("--dataset imagefolder --data-dir {} --image-size 32 --batch-size 4 ",
                     data.string());
}

TEST(BadImages, ADamagedImageIsNamedOrSkipped) {
  const TempFolder folder;
  test::write_image_folder(folder / "data", 2, 8, 4);
  test::write_bytes(folder / "data/train/n00000001/broken.JPEG", {});
  const std::string run = images_in(folder / "data") + "--epochs 2 --batch-size 17 ";
  expect_end(train_skipping(folder, run + "--name alone"), 2, "broken.JPEG: an empty file");
  expect_end(train_skipping(folder, run + "--batch-size 8 --workers 2 --name two"), 2,
             "broken.JPEG: an empty file");
  if (const std::string mpirun = TW_MPIRUN; !mpirun.empty()) {
    expect_end(mpirun + " -n 2 env " + train_skipping(folder, run + "--batch-size 8 --name ranks"),
               2, "broken.JPEG: an empty file");
  }
  const Ended skipped = run_well(train_skipping(folder, run + "--bad-images skip --name skipped"));
  EXPECT_TRUE(skipped.says("skipped 1 damaged image of n00000001: " +
                           (folder / "data/train/n00000001/broken.JPEG: an empty file").string()) &&
              skipped.says("\n1 damaged image skipped so far"))
      << skipped.output;

  test::write_bytes(folder / "data/val/n00000001/broken.JPEG", {});
  const Ended evaluated = run_well(train_skipping(
      folder, run + "--bad-images skip --eval-only --resume " + (folder / "skipped").string()));
  EXPECT_TRUE(evaluated.says("val/n00000001/broken.JPEG: an empty file") &&
              evaluated.says("(8 images)") && evaluated.says("1 damaged image skipped so far"))
      << evaluated.output;
  // an evaluation needs no training batch, so a batch may exceed the training images
  run_well(train_skipping(folder, run +
                                      "--batch-size 1000 --bad-images skip --eval-only --resume " +
                                      (folder / "skipped").string()));
}

TEST(BadImages, OnlyDamagedImagesAreAUserError) {
  const TempFolder folder;
  test::write_image_folder(folder / "data", 2, 8, 4);
  const auto damage = [&](const char* half) {
    for (const auto& entry : fs::recursive_directory_iterator(folder / "data" / half))
      if (entry.is_regular_file()) test::write_bytes(entry.path(), {});
  };
  const std::string run = images_in(folder / "data") + "--epochs 1 --bad-images skip ";
  damage("val");
  for (const char* ranks : {"--workers 1", "--workers 2"}) {
    expect_end(train_skipping(folder, run + ranks), 2, "all images to validate on are damaged");
  }
  damage("train");
  expect_end(train_skipping(folder, run + "--name both"), 2, "all 16 training images are damaged");
  const Ended evaluated = run_command(
      train_skipping(folder, run + "--eval-only --resume " + (folder / "lenet-dense-s1").string()));
  EXPECT_EQ(evaluated.code, 2) << evaluated.output;
}

TEST(BadImages, AreCountedInALineForEachClass) {
  const TempFolder folder;
  write_image_folder(folder / "data", 3, 8, 2);
  for (const char* file : {"n00000000/a", "n00000002/b", "n00000002/c", "n00000002/d"})
    write_bytes(folder / "data/train" / (file + std::string(".JPEG")), {});
  const std::string options = images_in(folder / "data") + "--bad-images skip ";
  const std::string first = (folder / "data/train").string();
  const std::string a = fmt::format(
      "skipped 1 damaged image of n00000000: {}/n00000000/a.JPEG: an "
      "empty file\n",
      first);
  expect_end(train_skipping(folder, options + "--batch-size 14 --workers 2 --epochs 1"), 0,
             a + fmt::format("skipped 3 damaged images of n00000002, the first "
                             "{}/n00000002/b.JPEG: an empty file\n"
                             "4 damaged images skipped so far",
                             first));
  const Ended packed =
      run_command(fmt::format("{} --data-dir {} --output {} --bad-images skip",
                              fs::path(TW_TRAIN).replace_filename("pack").string(),
                              (folder / "data").string(), (folder / "records").string()));
  EXPECT_TRUE(packed.says(a + "skipped 3 damaged images of n00000002, the first "))
      << packed.output;
}

/// All valid images are the same, so that whatever the run takes in place of a damaged one, a batch
/// is that of a folder without damage: its mean gradient, and its batch-norm statistics.
TEST(BadImages, LeaveNoTraceInGradientsAndStatistics) {
  const TempFolder folder;
  const std::vector<std::byte> grey =
      encode_jpeg(std::vector<uint8_t>(40 * 40 * 3, 90), 40, 40, 90);
  for (const char* data : {"whole", "damaged"})
    for (const char* half : {"train", "val"})
      for (int i = 0; i < 8; ++i) {
        const fs::path path = folder / data / half / "n0" / fmt::format("{}.JPEG", i);
        fs::create_directories(path.parent_path());
        write_bytes(path, grey);
      }
  for (const char* name : {"2.JPEG", "3.JPEG", "7.JPEG"})
    write_bytes(folder / "damaged/train/n0" / name, {});
  for (const char* ranks : {"--batch-size 8 --workers 1", "--batch-size 4 --workers 2",
                            "--batch-size 2 --workers 2 --accumulate 2"}) {
    for (const char* data : {"whole", "damaged"}) {
      run_well(train_skipping(
          folder, images_in(folder / data) + ranks + " --model resnet20 --classes 2 --epochs 2 " +
                      "--bad-images skip --name " + data + std::string(ranks + 13, 1)));
    }
    const std::string batch(ranks + 13, 1);
    EXPECT_EQ(weights_hash(folder / ("damaged" + batch)), weights_hash(folder / ("whole" + batch)))
        << ranks;
  }
}

/// The weights after an epoch of two steps of eight images, of which some are damaged.
std::vector<float> weights_after(const TempFolder& folder, const std::string& ranks) {
  const std::string name = fmt::format("run{}", std::hash<std::string>()(ranks));
  run_well(train_skipping(
      folder, images_in(folder / "data") + ranks + " --epochs 1 --bad-images skip --name " + name));
  const SafetensorsReader file(folder / name / "checkpoints/step-00000002/model.safetensors");
  std::vector<float> all;
  for (const auto& [key, tensor] : file.tensors()) {
    const auto values = tensor.as<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(BadImages, TheUpdateDependsOnNeitherRanksNorMicroBatches) {
  const TempFolder folder;
  write_image_folder(folder / "data", 2, 8, 2);
  for (const char* name : {"n00000000/0001.JPEG", "n00000000/0005.JPEG", "n00000001/0003.JPEG"})
    write_bytes(folder / "data/train" / name, {});
  const std::vector<float> one = weights_after(folder, "--batch-size 8 --workers 1");
  for (const char* ranks :
       {"--batch-size 4 --workers 2", "--batch-size 2 --workers 4",
        "--batch-size 4 --workers 1 --accumulate 2", "--batch-size 2 --workers 2 --accumulate 2"}) {
    const std::vector<float> other = weights_after(folder, ranks);
    ASSERT_EQ(other.size(), one.size());
    double most = 0;
    for (size_t i = 0; i < one.size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(other[i]) - one[i]));
    EXPECT_LT(most, 1e-6) << ranks;
  }
}

}  // namespace
}  // namespace tw::test
