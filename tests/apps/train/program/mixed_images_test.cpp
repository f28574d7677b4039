// Folders of images of all kinds, with names of all kinds: doctor, pack and training.
#include "data/imagenet/record_file.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

std::string mixed_program(const char* name) {
  return fs::path(TW_TRAIN).replace_filename(name).string();
}

void copy_image(const std::string& image, const fs::path& path) {
  fs::create_directories(path.parent_path());
  fs::copy_file(fixture(image), path);
}

/// Nine images to train on, three to validate on, and in train four entries that are not read.
void write_mixed_folder(const fs::path& dir) {
  const std::pair<const char*, const char*> images[] = {
      {"train/Grüne Möwe/photo of 1.JPG", "colour.jpg"},
      {"train/Grüne Möwe/CMYK.jpeg", "cmyk.jpg"},
      {"train/Grüne Möwe/Über uns/palette.Png", "palette_transparent.png"},
      {"train/Grüne Möwe/Über uns/16 bit.png", "gray16.png"},
      {"train/Grüne Möwe/a PNG named.jpg", "rgba8.png"},
      {"train/猫/写真.webp", "lossy.webp"},
      {"train/猫/写真 2.WEBP", "lossless_alpha.webp"},
      {"train/猫/下/rgb16.png", "rgb16.png"},
      {"train/猫/下/without_extension", "rgb_interlaced.png"},
      {"val/Grüne Möwe/a.png", "gray_alpha8.png"},
      {"val/Grüne Möwe/b.jpg", "grayscale.jpg"},
      {"val/猫/c.webp", "lossless.webp"}};
  for (const auto& [path, image] : images) copy_image(image, dir / path);
  for (const char* path : {"train/猫/moving.gif", "train/猫/scan.TIF", "train/猫/notes.txt",
                           "train/Grüne Möwe/.hidden.png"})
    copy_image("colour.jpg", dir / path);
}

std::string train_mixed(const TempFolder& folder, const std::string& arguments) {
  return fmt::format(
      "THINWIRE_CACHE={} {} --output-dir '{}' --precision f32 --model lenet --lr 0.02 --dataset "
      "imagefolder --image-size 32 --epochs 2 {}",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string(), arguments);
}

TEST(MixedImages, AreReadFromTheFolderAndFromItsRecordFile) {
  const TempFolder folder;
  const fs::path data = folder / "meine Photos", records = folder / "alle Photos.records";
  write_mixed_folder(data);
  const std::string not_read = fmt::format(
      "1 hidden ({0}/Grüne Möwe/.hidden.png), 2 in a format that cannot be decoded "
      "({0}/猫/moving.gif first), 1 without the extension of an image ({0}/猫/notes.txt)",
      (data / "train").string());

  const Ended examined = run_command(
      fmt::format("{} --seconds 0 --data-dir '{}'", mixed_program("doctor"), data.string()));
  EXPECT_TRUE(examined.says("9 training and 3 validation images of 2 classes, 12 of 12 read") &&
              examined.says("not read: " + not_read))
      << examined.output;
  const Ended packed = run_well(
      fmt::format("{} '{}' --output '{}'", mixed_program("pack"), data.string(), records.string()));
  EXPECT_TRUE(packed.says("9 training and 3 validation images, 0 of them shrunk, 0 damaged") &&
              packed.says("data not read: " + not_read))
      << packed.output;
  const std::string options = "--batch-size 3 ";
  const Ended trained = run_well(
      train_mixed(folder, options + fmt::format("--name f --data-dir '{}'", data.string())));
  EXPECT_TRUE(trained.says(not_read)) << trained.output;
  run_well(
      train_mixed(folder, options + fmt::format("--name r --data-dir '{}'", records.string())));
  EXPECT_EQ(weights_hash(folder / "f"), weights_hash(folder / "r"));

  // the record file has the bytes of the files
  const RecordFile file(records);
  ASSERT_EQ(file.train_size() + file.val_size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    const auto original = read_file(data / std::string(file.name_in_folder(i)));
    EXPECT_TRUE(std::ranges::equal(file.read(i), original)) << file.name(i);
  }
}

TEST(MixedImages, ADamagedFileOfEachFormatIsNamedOrSkipped) {
  const TempFolder folder;
  for (const char* image : {"rgba8.png", "lossless.webp", "colour.jpg"}) {
    const fs::path data = folder / fs::path(image).stem();
    write_mixed_folder(data);
    const auto whole = read_file(fixture(image));
    const fs::path broken = data / "train/猫" / ("kaputt" + fs::path(image).extension().string());
    write_bytes(broken, std::span(whole).first(whole.size() / 2));
    const std::string options = fmt::format("--batch-size 10 --data-dir '{}'", data.string());
    expect_end(train_mixed(folder, options + " --name bad"), 2, broken.string() + ": ");
    const Ended skipped =
        run_well(train_mixed(folder, options + " --bad-images skip --name skipped"));
    EXPECT_TRUE(skipped.says("skipped 1 damaged image of 猫: " + broken.string() + ": "))
        << skipped.output;
    const std::string pack = fmt::format("{} '{}' --output '{}' ", mixed_program("pack"),
                                         data.string(), (folder / "records").string());
    expect_end(pack, 2, broken.string() + ": ");
    expect_end(pack + "--bad-images skip", 0,
               "9 training and 3 validation images, 0 of them "
               "shrunk, 1 damaged");
    expect_end(
        fmt::format("{} --seconds 0 --data-dir '{}'", mixed_program("doctor"), data.string()), 1,
        broken.string() + ": ");
    fs::remove_all(folder / "skipped");
  }
}

/// All files upright1.png to upright8.png store the same pixels.
TEST(MixedImages, TheOrientationIsAppliedOnlyIfAskedForAndKeptByAResume) {
  const TempFolder folder;
  for (const char* stored : {"1", "3"})
    for (const char* path :
         {"train/a/1.png", "train/a/2.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"})
      copy_image(fmt::format("upright{}.png", stored), folder / stored / path);
  const auto hash = [&](const std::string& name, const char* stored, const std::string& more) {
    run_well(train_mixed(folder, fmt::format("--batch-size 3 --name {} --data-dir '{}' {}", name,
                                             (folder / stored).string(), more)));
    return weights_hash(folder / name);
  };
  const std::string plain = hash("plain", "1", "");
  EXPECT_EQ(hash("ignored", "3", ""), plain);
  EXPECT_EQ(hash("upright", "1", "--apply-exif-orientation"), plain);
  const std::string turned = hash("turned", "3", "--apply-exif-orientation");
  EXPECT_NE(turned, plain);
  EXPECT_EQ(nlohmann::json::parse(text_of(folder / "turned/config.json"))["apply_exif_orientation"],
            true);
  hash("resumed", "3", "--apply-exif-orientation --max-steps 1");
  run_well(
      train_mixed(folder, fmt::format("--batch-size 3 --max-steps 2 --data-dir '{}' --resume {}",
                                      (folder / "3").string(), (folder / "resumed").string())));
  EXPECT_EQ(weights_hash(folder / "resumed"), turned);

  const auto predictions = [&](const char* stored) {
    run_well(fmt::format("{} {} {} --save {}", mixed_program("eval"), (folder / "turned").string(),
                         (folder / stored).string(), (folder / "predictions").string()));
    return text_of(folder / "predictions");
  };
  EXPECT_NE(predictions("3"), predictions("1")) << "eval turns images as the run did";
}

/// A shrunk image keeps the orientation of its file, so that the record file gives upright images
/// as its folder does.
TEST(MixedImages, ShrunkImagesKeepTheirOrientation) {
  const TempFolder folder;
  for (const char* half : {"train", "val"}) {
    fs::create_directories(folder / half / "a");
    fs::copy_file(fixture("upright.jpg"), folder / half / "a/1.jpg");
    fs::copy_file(fixture("upright.webp"), folder / half / "a/2.webp");
    fs::copy_file(fixture("upright8.png"), folder / half / "a/3.png");
  }
  const fs::path file = folder / "small.records";
  EXPECT_EQ(pack_image_folder(folder.path(), file, {.resize = 38}).resized, 4u);
  const RecordFile records(file);
  ImageDecoder decoder;
  const auto seen = [&](size_t i) {
    const ImageSize size = decoder.open(records.read(i), true);
    return std::tuple(size.width, size.height, decoder.orientation());
  };
  EXPECT_EQ(seen(0), std::tuple(38, 47, 6));  // stored as 61 x 49, shrunk to 47 x 38
  EXPECT_EQ(seen(1), std::tuple(38, 54, 8));  // as 61 x 43
  EXPECT_EQ(seen(2), std::tuple(5, 7, 8));    // keeps its bytes
}

}  // namespace
}  // namespace tw::test
