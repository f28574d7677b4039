// Image folders and the record files made of them.
#include "data/imagenet/image_folder.h"

#include <sys/stat.h>

#include <map>
#include <set>

#include "data/imagenet/image_files.h"
#include "data/imagenet/record_file.h"
#include "data/loader.h"
#include "data/wrappers.h"
#include "tests/support/error_text.h"
#include "tests/support/jpegs.h"

namespace tw {
namespace {

namespace fs = std::filesystem;
using test::TempFolder, test::write_bytes, test::write_image_folder;

DataSplit open(const fs::path& dir, bool skip_bad = false,
               const std::string& name = "imagefolder") {
  return datasets().find(name).value({.dir = dir, .image_size = 32, .skip_bad = skip_bad});
}

/// All images and labels of one training epoch and of the validation set.
std::vector<uint8_t> everything(const DataSplit& data, int threads, uint32_t epoch = 1) {
  std::vector<uint8_t> all;
  for (const bool training : {true, false}) {
    Loader loader(training ? data.train : data.val,
                  {.batch = 7, .seed = 3, .training = training, .threads = threads});
    loader.start(epoch);
    for (int64_t b = 0; b < loader.batches(); ++b) {
      const Batch& batch = loader.next();
      for (const Tensor& tensor : {batch.images, batch.labels}) {
        const auto* bytes = static_cast<const uint8_t*>(tensor.data);
        all.insert(all.end(), bytes, bytes + tensor.bytes());
      }
    }
  }
  return all;
}

std::string open_error(const fs::path& dir, const std::string& name = "imagefolder") {
  return test::error_text<UserError>([&] { open(dir, false, name); });
}

TEST(ImageFolder, LabelsFollowTheSortedClassNames) {
  const TempFolder folder;
  write_image_folder(folder.path(), 3, 5, 2);
  const DataSplit data = open(folder.path());
  EXPECT_EQ(data.train->size(), 15u);
  EXPECT_EQ(data.val->size(), 6u);
  EXPECT_EQ(data.train->classes, 3);
  EXPECT_EQ(data.train->image, (Shape{32, 32, 3}));
  std::vector<uint8_t> pixels(32 * 32 * 3);
  double level = -1;
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(data.val->get(i, pixels), static_cast<int32_t>(i / 2));
    double mean = 0;
    for (const uint8_t value : pixels) mean += value / static_cast<double>(pixels.size());
    EXPECT_GE(mean, level - 5) << "later classes are brighter";
    level = mean;
  }
}

TEST(ImageFolder, DescribesImagesBySizeAndOfManyFilesAnEvenSampleOfThem) {
  const TempFolder folder;
  for (const char* half : {"train", "val"}) fs::create_directories(folder / half / "a");
  write_bytes(folder / "val/a/0.jpg", std::vector<std::byte>(7));
  for (int i = 0; i < 4097; ++i)
    std::ofstream(folder / fmt::format("train/a/{:04}.jpg", i)) << (i % 2 == 0 ? "four" : "three");
  const auto described = [&](size_t i) { return open(folder.path()).train->describe(i); };
  EXPECT_EQ(described(0), "a/0000.jpg with label 0 and 4 bytes");
  EXPECT_EQ(described(1), "a/0001.jpg with label 0");
  EXPECT_EQ(described(4096), "a/4096.jpg with label 0 and 4 bytes");
  EXPECT_EQ(open(folder.path()).val->describe(0), "a/0.jpg with label 0 and 7 bytes");
  fs::remove(folder / "train/a/4096.jpg");
  EXPECT_EQ(described(1), "a/0001.jpg with label 0 and 5 bytes");
}

TEST(ImageFolder, AnyNumberOfThreadsGivesTheSameBytes) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 20, 5);
  const auto one = everything(open(folder.path()), 0);
  EXPECT_EQ(everything(open(folder.path()), 1), one);
  EXPECT_EQ(everything(open(folder.path()), 5), one);
  EXPECT_NE(everything(open(folder.path()), 1, 2), one) << "another epoch, other crops";
}

TEST(ImageFolder, ErrorsNameTheFolderAndTheProblem) {
  const TempFolder folder;
  const fs::path& dir = folder.path();
  EXPECT_NE(open_error("").find("--data-dir is missing"), std::string::npos);
  EXPECT_NE(open_error(dir / "none").find("no folder"), std::string::npos);
  fs::create_directories(dir / "train");
  fs::create_directories(dir / "val");
  EXPECT_NE(open_error(dir).find("has no class folders"), std::string::npos);
  write_image_folder(dir, 2, 2, 1);
  EXPECT_NE(open_error(dir, "imagenet").find("has 2 classes; ImageNet has 1000"),
            std::string::npos);

  fs::create_directories(dir / "train" / "n00000007");
  EXPECT_NE(open_error(dir).find("n00000007 has no images"), std::string::npos);
  write_bytes(dir / "train" / "n00000007" / "a.JPEG", test::noise_jpeg(1, 40, 40));
  EXPECT_NE(open_error(dir).find("n00000007 is only in train"), std::string::npos);
  fs::rename(dir / "train" / "n00000007", dir / "val" / "n00000007");
  EXPECT_NE(open_error(dir).find("n00000007 is only in val"), std::string::npos);
  fs::rename(dir / "val" / "n00000007", dir / "val" / "caf\xc3\xa9");
  EXPECT_TRUE(open_error(dir).ends_with("caf\xc3\xa9 is only in val"));
  fs::create_directories(dir / "train" / "cafe\xcc\x81");
  write_bytes(dir / "train" / "cafe\xcc\x81" / "a.JPEG", test::noise_jpeg(1, 40, 40));
  EXPECT_TRUE(
      open_error(dir).ends_with("cafe\xcc\x81 is only in train (the same letters in another "
                                "Unicode form, NFC or NFD)"))
      << open_error(dir);

  fs::remove_all(dir / "val");
  fs::create_directories(dir / "val");
  write_bytes(dir / "val" / "ILSVRC2012_val_00000001.JPEG", test::noise_jpeg(1, 40, 40));
  const std::string flat = open_error(dir);
  EXPECT_NE(flat.find("has 1 image outside of class folders"), std::string::npos) << flat;
  EXPECT_NE(flat.find("sort_imagenet_val.sh"), std::string::npos);
}

TEST(ImageFolder, OfClassFoldersAloneATenthIsHeldOut) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 12, 1);
  const std::string dir = (folder / "train").string();
  EXPECT_EQ(dataset_in(dir, "none"), "imagefolder");
  const DataSplit split = datasets().find("imagefolder").value({.dir = dir, .image_size = 32});
  EXPECT_EQ(split.train->size(), 22u);
  EXPECT_EQ(split.val->size(), 2u);
  EXPECT_EQ(split.val_name, "0.1 of each class held out");
  pack_image_folder(dir, folder / "all.records", {});  // is divided alike
  EXPECT_EQ(everything(open(folder / "all.records"), 2), everything(open(dir), 2));
  // a folder without images is named
  fs::create_directories(folder / "train/runs");
  EXPECT_EQ(dataset_in(dir, "none"), "imagefolder");
  EXPECT_NE(open_error(dir).find("/train/runs has no images"), std::string::npos);
  // images may lie in sub-folders of their class only
  fs::create_directories(folder / "deep/a/b");
  EXPECT_EQ(dataset_in(folder / "deep", "none"), "none");
  write_bytes(folder / "deep/a/b/0.jpg", test::noise_jpeg(1, 40, 40));
  EXPECT_EQ(dataset_in(folder / "deep", "none"), "imagefolder");
}

TEST(ImageFolder, OfOtherThingsIsNamedAsWhatItIs) {
  const TempFolder folder;
  const auto error = [&](const fs::path& dir) {
    return test::error_text<UserError>([&] { dataset_of(dir); });
  };
  fs::create_directories(folder / "empty");
  EXPECT_EQ(error(folder / "empty"),
            "[data] " + (folder / "empty").string() +
                " is empty; expected a folder for each class with JPEG, PNG or WebP files, or the "
                "folder of a data set (train --list names them)");
  write_bytes(folder / "empty/notes.txt", {});
  EXPECT_NE(error(folder / "empty").find(" has no images in class folders; "), std::string::npos);
  EXPECT_EQ(dataset_of(folder / "none"), "cifar10");
  // photographs in a format that cannot be decoded
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder / "phone" / name);
    write_bytes(folder / "phone" / name / "1.HEIC", {});
  }
  EXPECT_EQ(dataset_of(folder / "phone"), "imagefolder");
  EXPECT_TRUE(open_error(folder / "phone")
                  .ends_with("/phone/a has no images; not read: 1 in a format that cannot be "
                             "decoded (" +
                             (folder / "phone/a/1.HEIC").string() + ")"))
      << open_error(folder / "phone");
  EXPECT_EQ(open_error(folder / "phonf"), "[data] there is no folder " +
                                              (folder / "phonf").string() + "; nearest is " +
                                              (folder / "phone").string());
  EXPECT_EQ(test::error_text<UserError>(
                [&] { pack_image_folder(folder / "phonf", folder / "x.records", {}); }),
            open_error(folder / "phonf"));
}

TEST(ImageFolder, PackingReplacesNoOtherFile) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 2, 1);
  const fs::path photo = folder / "train/n00000000/0000.JPEG";
  const auto pack = [&](const fs::path& file) { pack_image_folder(folder.path(), file, {}); };
  EXPECT_EQ(test::error_text<UserError>([&] { pack(photo); }),
            "[file] " + photo.string() +
                " exists and is not a record file: name another file or remove it");
  for (int twice = 0; twice < 2; ++twice) pack(folder / "all.records");
  EXPECT_EQ(open(folder / "all.records").train->size(), 4u);
}

TEST(ImageFolder, ValSplitHoldsOutAShareOfEachClass) {
  const TempFolder folder;
  write_image_folder(folder.path(), 1, 20, 1);
  fs::create_directory(folder / "train/few");
  for (const int i : {0, 1, 2, 3, 4})
    write_bytes(folder / "train/few" / fmt::format("{}.jpg", i), test::noise_jpeg(7, 40, 40));
  fs::create_directory(folder / "train/one");
  write_bytes(folder / "train/one/a.jpg", test::noise_jpeg(8, 40, 40));
  const auto with = [&](double share) {
    return datasets()
        .find("imagefolder")
        .value({.dir = folder.path(), .val_split = share, .image_size = 32});
  };
  EXPECT_NE(test::error_text<UserError>([&] { with(0.2); }).find("val-split is 0.2; expected 0"),
            std::string::npos);
  fs::remove_all(folder / "val");
  const DataSplit split = with(0.2);
  std::map<std::string, int> held_out;
  std::set<std::string> all;
  for (size_t i = 0; i < split.val->size(); ++i) {
    const std::string name = split.val->name(i);
    ++held_out[name.substr(0, name.find('/'))];
    all.insert(name);
    EXPECT_EQ(name, with(0.2).val->name(i));
  }
  EXPECT_EQ(held_out, (std::map<std::string, int>{{"few", 1}, {"n00000000", 4}}));
  for (size_t i = 0; i < split.train->size(); ++i) all.insert(split.train->name(i));
  EXPECT_EQ(split.train->size(), 21u);
  EXPECT_EQ(all.size(), 26u);
  // those held out are spread, and no share takes all images of a class
  EXPECT_NE(split.val->name(4), "n00000000/0003.JPEG");
  EXPECT_EQ(with(0.9).train->size(), 2u + 1 + 1);
  EXPECT_NE(test::error_text<UserError>([&] { with(0); }).find("--val-split 0.1 holds out"),
            std::string::npos);
}

TEST(ImageFolder, ValSizeHoldsOutTrainingImagesOfEveryClass) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 6, 1);
  const auto with = [&](size_t val_size) {
    return datasets()
        .find("imagefolder")
        .value({.dir = folder.path(), .val_size = val_size, .image_size = 32});
  };
  const auto error = [&](size_t val_size) {
    return test::error_text<UserError>([&] { with(val_size); });
  };
  EXPECT_EQ(error(4), "[imagefolder] val-size is 4; expected 0: " + folder.path().string() +
                          " has validation images of its own");
  fs::remove_all(folder / "val");
  EXPECT_EQ(error(0), "[imagefolder] there is no folder " + (folder / "val").string() +
                          "; --val-split 0.1 holds out a tenth of each class");
  EXPECT_EQ(error(12), "[imagefolder] val-size is 12, expected less than the 12 training images");
  const DataSplit data = with(4);
  EXPECT_EQ(data.val_name, "4 held-out training images");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"n00000000", "n00000001"}));
  ASSERT_EQ(data.train->size(), 8u);
  ASSERT_EQ(data.val->size(), 4u);
  for (const auto& [i, name] : {std::pair{0, "n00000000/0002.JPEG with label 0"},
                                {1, "n00000000/0005.JPEG with label 0"},
                                {3, "n00000001/0005.JPEG with label 1"}})
    EXPECT_TRUE(data.val->describe(static_cast<size_t>(i)).starts_with(name));
  EXPECT_TRUE(data.train->describe(2).starts_with("n00000000/0003.JPEG"));
}

TEST(ImageFolder, ImagesOutsideClassFoldersAreAnErrorAndOtherFilesAreIgnored) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 2, 1);
  for (const char* other : {"README", "classes.txt", ".hidden.JPEG", ".DS_Store"})
    write_bytes(folder.path() / "val" / other, {});
  fs::create_symlink("itself", folder.path() / "val" / "itself");
  EXPECT_NO_THROW(open(folder.path()));
  // partly sorted
  for (const char* loose : {"b.JPEG", "c.jpg", "d.Png"})
    write_bytes(folder.path() / "val" / loose, {});
  const std::string text = open_error(folder.path());
  EXPECT_NE(text.find("val has 3 images outside of class folders, b.JPEG first"), std::string::npos)
      << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

/// Adds a file with each kind of damage to train/n00000001; returns their names.
std::vector<std::string> damage(const fs::path& dir) {
  const fs::path folder = dir / "train" / "n00000001";
  const auto good = test::noise_jpeg(77, 64, 48);
  write_bytes(folder / "bad-empty.JPEG", {});
  write_bytes(folder / "bad-short.JPEG", std::span(good).first(good.size() / 2));
  auto broken = good;
  for (size_t i = broken.size() / 3; i + 40 < broken.size(); i += 9) broken[i] = std::byte{0xff};
  write_bytes(folder / "bad-corrupt.JPEG", broken);
  auto png = good;
  std::memcpy(png.data(), "\x89PNG\r\n\x1a\n", 8);
  write_bytes(folder / "bad-png.JPEG", png);
  return {"bad-corrupt", "bad-empty", "bad-png", "bad-short"};
}

TEST(ImageFolder, TheErrorOfADamagedFileNamesItInOneLine) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 3, 2);
  const auto bad = damage(folder.path());
  const DataSplit data = open(folder.path());
  std::vector<uint8_t> pixels(32 * 32 * 3);
  for (size_t i = 0; i < bad.size(); ++i) {
    const size_t id = 6 + i;  // after the three good files of each class
    for (const bool training : {false, true}) {
      const std::string text = test::error_text<UserError>([&] {
        if (training)
          data.train->get_augmented(id, 1, 0, pixels);
        else
          data.train->get(id, pixels);
      });
      EXPECT_NE(text.find(bad[i] + ".JPEG"), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
}

TEST(ImageFolder, HugeFilesAndPipesAreErrors) {
  const TempFolder folder;
  write_image_folder(folder.path(), 1, 1, 1);
  const fs::path train = folder.path() / "train" / "n00000000";
  write_bytes(train / "huge.JPEG", {});
  fs::resize_file(train / "huge.JPEG", uint64_t{1} << 42);  // sparse
  ASSERT_EQ(::mkfifo((train / "pipe.JPEG").c_str(), 0600), 0);
  const DataSplit data = open(folder.path());
  std::vector<uint8_t> pixels(32 * 32 * 3);
  const auto error = [&](size_t i) {
    return test::error_text<UserError>([&] { data.train->get(i, pixels); });
  };
  EXPECT_NE(error(1).find("huge.JPEG: 4398046511104 bytes; at most 268435456"), std::string::npos)
      << error(1);
  EXPECT_NE(error(2).find("pipe.JPEG: not a file"), std::string::npos) << error(2);

  const PackReport report =
      pack_image_folder(folder.path(), folder.path() / "all.records", {.skip_bad = true});
  EXPECT_EQ(report.train, 1u);
  EXPECT_EQ(report.skipped.count(), 2u);
  EXPECT_NO_THROW(check_image_bytes(kMostImageBytes));
  EXPECT_THROW(check_image_bytes(uint64_t{1} << 32), ImageError) << "0 in the index of records";
}

TEST(ImageFolder, DamagedFilesCanBeSkipped) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 3, 2);
  const auto bad = damage(folder.path());
  const DataSplit data = open(folder.path(), true);
  Loader loader(data.train, {.batch = 10, .threads = 2});
  std::multiset<int32_t> labels;
  for (const uint32_t epoch : {0, 1}) {
    loader.start(epoch);
    for (const int32_t label : loader.next().labels.as<int32_t>()) labels.insert(label);
  }
  EXPECT_EQ(labels.count(0) + labels.count(1), 20u) << "every batch is full of valid images";
  EXPECT_GE(labels.count(0), 6u);
  EXPECT_GE(labels.count(1), 6u);
  auto entries = data.skipped->take();  // one per file for all epochs
  ASSERT_EQ(entries.size(), bad.size());
  std::ranges::sort(entries, {}, &SkipLog::Entry::description);
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(entries[i].class_name, "n00000001");
    EXPECT_NE(entries[i].description.find(bad[i]), std::string::npos) << entries[i].description;
  }
  EXPECT_TRUE(data.skipped->take().empty());
}

TEST(RecordFile, GivesTheSameBytesAsItsFolder) {
  const TempFolder folder;
  write_image_folder(folder.path(), 3, 30, 6);
  const fs::path file = folder.path() / "all.records";
  const PackReport report = pack_image_folder(folder.path(), file, {.threads = 2});
  EXPECT_EQ(report.train, 90u);
  EXPECT_EQ(report.val, 18u);
  EXPECT_EQ(report.resized, 0u);
  EXPECT_EQ(report.bytes, fs::file_size(file));
  EXPECT_EQ(everything(open(file), 2), everything(open(folder.path()), 2));
  // the training images are stored in random order
  const RecordFile records(file);
  const auto order = records.storage_order(0, 90);
  EXPECT_FALSE(std::ranges::is_sorted(order));
  EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 90u);
  EXPECT_NE(records.name(0).find("train/n00000000/0000.JPEG"), std::string::npos);
}

TEST(RecordFile, HoldsClassNamesThatAreNotUtf8) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 4, 4);
  for (const char* half : {"train", "val"})
    fs::rename(folder / half / "n00000001", folder / half / "caf\xe9");
  const fs::path file = folder / "all.records";
  pack_image_folder(folder.path(), file, {});
  const DataSplit records = open(file), images = open(folder.path());
  EXPECT_EQ(records.class_names, (std::vector<std::string>{"caf\\xe9", "n00000000"}));
  EXPECT_EQ(images.class_names, records.class_names);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(records.train->describe(i), images.train->describe(i));
  EXPECT_EQ(everything(records, 1), everything(images, 1));
}

TEST(RecordFile, GivesTheSameBytesShardByShardOnAnyNumberOfThreads) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 20, 1);
  const fs::path file = folder.path() / "all.records";
  pack_image_folder(folder.path(), file, {});
  const DataSplit data = open(file);
  const auto epoch = [&](int threads) {
    Loader loader(data.train, {.batch = 40, .threads = threads, .shuffle_shards = true});
    loader.start(0);
    const Batch& batch = loader.next();
    const auto pixels = batch.images.as<uint8_t>();
    return std::vector<uint8_t>(pixels.begin(), pixels.end());
  };
  EXPECT_EQ(epoch(0), epoch(3));
}

TEST(RecordFile, ResizeLimitsTheShorterSide) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 4, 2);
  const fs::path file = folder.path() / "small.records";
  const PackReport report = pack_image_folder(folder.path(), file, {.resize = 38});
  EXPECT_GT(report.resized, 0u);
  EXPECT_LT(report.resized, 12u) << "small images keep their bytes";
  const RecordFile records(file);
  ImageDecoder decoder;
  for (size_t i = 0; i < 12; ++i) {
    const auto size = decoder.open(records.read(i));
    EXPECT_LE(std::min(size.width, size.height), 38) << records.name(i);
  }
}

TEST(RecordFile, ErrorsDescribeTheDamage) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 4, 2);
  const fs::path file = folder.path() / "all.records", broken = folder.path() / "broken.records";
  pack_image_folder(folder.path(), file, {});
  const auto good = read_file(file);
  const auto error = [&](const std::vector<std::byte>& bytes) {
    write_bytes(broken, bytes);
    return open_error(broken);
  };
  EXPECT_NE(error({}).find("is empty"), std::string::npos);
  EXPECT_NE(error({good.begin(), good.begin() + 50}).find("too few"), std::string::npos);
  EXPECT_NE(error({good.begin(), good.end() - 9}).find("cut short"), std::string::npos);
  EXPECT_NE(error(std::vector<std::byte>(500)).find("not a record file"), std::string::npos);
  for (const size_t place : {size_t{17}, size_t{40}, good.size() - 5, good.size() - 300}) {
    auto bytes = good;
    bytes[place] ^= std::byte{4};
    const std::string text = error(bytes);
    EXPECT_TRUE(text.find("damaged") != std::string::npos ||
                text.find("version") != std::string::npos)
        << text;
  }
  // a damaged sample is found when it is read
  auto bytes = good;
  bytes[200] ^= std::byte{1};
  write_bytes(broken, bytes);
  const DataSplit data = open(broken);
  std::vector<uint8_t> pixels(32 * 32 * 3);
  std::string text;
  for (size_t i = 0; i < 8; ++i) try {
      data.train->get(i, pixels);
    } catch (const UserError& wrong) {
      text += wrong.what();
    }
  EXPECT_NE(text.find("checksum is wrong"), std::string::npos) << text;
}

TEST(RecordFile, PackingNamesDamagedFilesOrSkipsThem) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 3, 2);
  const auto bad = damage(folder.path());
  const fs::path file = folder.path() / "all.records";
  const std::string text =
      test::error_text<UserError>([&] { pack_image_folder(folder.path(), file, {.threads = 2}); });
  EXPECT_NE(text.find("bad-"), std::string::npos);
  EXPECT_FALSE(fs::exists(file));
  const PackReport report = pack_image_folder(folder.path(), file, {.skip_bad = true});
  EXPECT_EQ(report.skipped.groups().at("n00000001").count, bad.size());
  EXPECT_EQ(report.train, 6u);
  EXPECT_EQ(open(file).train->size(), 6u);
}

/// An image of the size of the samples is read as it is, unless its border is cropped.
TEST(ImageFiles, OfTheSizeOfTheSamplesAreReadAsTheyAre) {
  const TempFolder folder;
  std::vector<uint8_t> sample(32 * 32 * 3);
  const std::vector<std::byte> file = test::noise_jpeg(1, 32, 32);
  write_bytes(folder / "a.jpg", file);
  const auto files = std::make_shared<ImageFiles>(
      std::vector<std::string>{(folder / "a.jpg").string(), folder.path().string()});
  ASSERT_EQ(files->size(), 2u);
  ImageDecoder decoder;
  decoder.open(file);
  const Picture whole = decoder.decode({0, 0, 32, 32}, 32, 32);
  const std::vector<uint8_t> pixels(whole.pixels, whole.pixels + sample.size());
  for (const bool crops : {false, true}) {
    const ImageDataset dataset(files, {.image_size = 32, .crops_border = crops});
    for (const size_t i : {0, 1}) {
      dataset.get(i, sample);
      EXPECT_EQ(sample == pixels, !crops);
    }
  }
}

/// Real JPEG files, some of them grayscale or CMYK and of odd sizes.
TEST(RealJpegs, AllDecode) {
  const char* data = std::getenv("THINWIRE_DATA");
  if (data == nullptr || !fs::exists(fs::path(data) / "imagenet-fullsize"))
    GTEST_SKIP() << "THINWIRE_DATA does not name a folder with imagenet-fullsize";
  const ImageFolder folder(fs::path(data) / "imagenet-fullsize");
  const ImageDataset dataset(std::make_shared<ImageFolder>(folder),
                             {.classes = 40, .image_size = 224});
  std::vector<uint8_t> pixels(224 * 224 * 3);
  for (size_t i = 0; i < dataset.size(); ++i) {
    EXPECT_GE(dataset.get(i, pixels), 0);
    for (const uint32_t epoch : {0, 1, 2}) EXPECT_GE(dataset.get_augmented(i, 1, epoch, pixels), 0);
  }
}

}  // namespace
}  // namespace tw
