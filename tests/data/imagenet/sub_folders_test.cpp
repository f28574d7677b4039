// Images in sub-folders of a class: their order, and what is not read.
#include "data/imagenet/image_folder.h"
#include "data/imagenet/record_file.h"
#include "tests/support/error_text.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

void write_image(const fs::path& path) {
  fs::create_directories(path.parent_path());
  write_bytes(path, noise_jpeg(std::hash<std::string>()(path.string()), 8, 8));
}

/// The names of all samples, one a line.
std::string names_of(const ImageFolder& folder) {
  std::string names;
  for (size_t i = 0; i < folder.size(); ++i) names += folder.relative_name(i) + "\n";
  return names;
}

/// As make_dataset() of torchvision's ImageFolder lists them.
std::string torchvision_order(const fs::path& folder) {
  const Ended ended = run_command(fmt::format(R"(cd {} && python3 -c '
import os
for label in sorted(entry.name for entry in os.scandir(".") if entry.is_dir()):
    for root, _, names in sorted(os.walk(label, followlinks=True)):
        for name in sorted(names):
            if name.lower().endswith((".jpg", ".jpeg", ".png")):
                print(os.path.join(root, name))
')",
                                              folder.string()));
  EXPECT_EQ(ended.code, 0) << ended.output;
  return ended.output;
}

TEST(SubFolders, AreReadInTheOrderOfTorchvision) {
  const TempFolder folder;
  for (const char* file :
       {"n0/z.JPEG", "n0/Z.jpg", "n0/a/1.JPEG", "n0/a/10.JPEG", "n0/a/2.JPEG", "n0/a/b/0.JPEG",
        "n0/a-b/1.JPEG", "n0/a.b/1.JPEG", "n0/a.JPEG", "n0/é/1.JPEG", "n0/0/9.JPEG",
        "n1/only/below/1.JPEG", "n2/flat.JPEG", "n2/notes.txt"})
    write_image(folder / "train" / file);
  write_image(folder / "elsewhere/deep/1.JPEG");
  fs::create_symlink("../../elsewhere", folder / "train/n2/linked");
  fs::create_symlink("../n2/flat.JPEG", folder / "train/n1/link.JPEG");
  const std::string expected = torchvision_order(folder / "train");
  EXPECT_EQ(std::ranges::count(expected, '\n'), 15);
  const ImageFolder read(folder / "train");
  EXPECT_EQ(names_of(read), expected);
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_FALSE(read.read(i, buffer).empty()) << read.name(i);
    EXPECT_EQ(read.classes()[static_cast<size_t>(read.label(i))],
              read.relative_name(i).substr(0, 2));
  }
}

TEST(SubFolders, ALinkToAFolderAboveEndsNowhere) {
  const TempFolder folder;
  for (const char* file : {"n0/a/1.JPEG", "n1/1.JPEG"}) write_image(folder / "train" / file);
  fs::create_symlink("..", folder / "train/n0/a/up");
  fs::create_symlink("../..", folder / "train/n0/a/root");
  fs::create_symlink("../n0/a", folder / "train/n1/other");  // no loop: read, also by torchvision
  const ImageFolder read(folder / "train");
  EXPECT_EQ(names_of(read), "n0/a/1.JPEG\nn1/1.JPEG\nn1/other/1.JPEG\n");
  EXPECT_NE(left_out_text(read.left_out()).find("4 that lead back to a folder above"),
            std::string::npos)
      << left_out_text(read.left_out());
}

TEST(SubFolders, WhatIsNotReadIsCountedByReason) {
  const TempFolder folder;
  for (const char* half : {"train", "val"})
    for (const char* file : {"n0/a/1.JPEG", "n0/without_extension", "n1/1.jfif"})
      write_image(folder / half / file);
  for (const char* file : {"train/n0/.DS_Store", "train/n0/.cache/1.JPEG", "train/n0/a/notes.txt",
                           "train/README", "val/n1/b/.DS_Store"})
    write_image(folder / file);
  const ImageFolders both = open_image_folders(folder.path());
  EXPECT_EQ(names_of(*both.train), "n0/without_extension\nn0/a/1.JPEG\nn1/1.jfif\n");
  const std::string train = (folder / "train").string();
  EXPECT_EQ(left_out_text(both.left_out),
            fmt::format("3 hidden ({0}/n0/.DS_Store first), 2 without the extension of an image "
                        "({0}/README first)",
                        train));
  EXPECT_EQ(pack_image_folder(folder.path(), folder / "records", {}).left_out,
            left_out_text(both.left_out));
  EXPECT_NE(RecordFile(folder / "records").name(1).find("train/n0/a/1.JPEG"), std::string::npos);

  write_image(folder / "train/n2/a/.hidden.JPEG");
  EXPECT_EQ(error_text<UserError>([&] { ImageFolder read(folder / "train"); }),
            fmt::format("[imagefolder] the class folder {0}/n2 has no images; not read: 1 hidden "
                        "({0}/n2/a/.hidden.JPEG)",
                        train));
}

}  // namespace
}  // namespace tw::test
