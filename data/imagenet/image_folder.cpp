#include "data/imagenet/image_folder.h"

#include <algorithm>
#include <cctype>

#include "engine/core/utf8.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

/// The sorted names of the entries of a folder. One without a readable status counts as a file.
struct Entries {
  std::vector<std::string> folders, files, hidden;
};

Entries entries(const fs::path& folder) {
  Entries found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    auto& kind = name.starts_with('.')       ? found.hidden
                 : it->is_directory(ignored) ? found.folders
                                             : found.files;
    kind.push_back(name);
  }
  check(!error, "[imagefolder] cannot read the folder {}: {}", folder.string(), error.message());
  for (auto* names : {&found.folders, &found.files, &found.hidden}) std::ranges::sort(*names);
  return found;
}

/// The extension in lower case.
std::string extension_of(const std::string& file) {
  std::string extension = fs::path(file).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

/// Whether a file has the extension of an image that can be decoded.
bool named_like_an_image(const std::string& file) {
  return std::ranges::any_of(image_formats().entries(), [&](const auto& format) {
    const auto& extensions = format.second.value.extensions;
    return std::ranges::find(extensions, extension_of(file)) != extensions.end();
  });
}

constexpr const char *kHidden = "hidden", *kNoImageName = "without the extension of an image",
                     *kOtherFormat = "in a format that cannot be decoded",
                     *kLoop = "that lead back to a folder above";

bool named_like_another_image(const std::string& file) {
  constexpr std::string_view kOthers[] = {".avif", ".bmp", ".gif", ".heic", ".heif",
                                          ".jxl",  ".pgm", ".ppm", ".tif",  ".tiff"};
  return std::ranges::find(kOthers, extension_of(file)) != std::end(kOthers);
}

/// Why a file that is not named like an image is not read.
const char* reason_of(const std::string& file) {
  return named_like_another_image(file) ? kOtherFormat : kNoImageName;
}

std::string joined(const std::string& below, const std::string& name) {
  return below.empty() ? name : below + "/" + name;
}

/// Finds the images of a class, in its folder and below.
struct ClassWalk {
  std::vector<fs::path> above{};  ///< the folders from the data set's to the one being read
  /// Folder below that of the class, and file. Sorted, they have the order of torchvision's
  /// ImageFolder: a folder's files come before those of the folders in it.
  std::vector<std::pair<std::string, std::string>> images{};
  Tally left_out{};

  void enter(const fs::path& folder, const std::string& below) {
    std::error_code ignored;
    const auto is_here = [&](const fs::path& other) {
      return fs::equivalent(folder, other, ignored);
    };
    if (std::ranges::any_of(above, is_here)) return left_out.add(kLoop, folder.string());  // a link
    above.push_back(folder);
    const Entries here = entries(folder);
    for (const std::string& name : here.hidden) left_out.add(kHidden, (folder / name).string());
    for (const std::string& file : here.files)
      // a file without an extension may be an image
      if (named_like_an_image(file) || !fs::path(file).has_extension())
        images.emplace_back(below, file);
      else
        left_out.add(reason_of(file), (folder / file).string());
    for (const std::string& name : here.folders) enter(folder / name, joined(below, name));
    above.pop_back();
  }
};

}  // namespace

ImageFolder::ImageFolder(const fs::path& folder) : folder_(folder) {
  std::error_code error;
  check(fs::is_directory(folder, error),
        "[imagefolder] there is no folder {}; expected train/<class> and "
        "val/<class> with images below the data folder",
        folder.string());
  Entries top = entries(folder);
  std::vector<std::string> loose;
  for (const std::string& file : top.files)
    if (named_like_an_image(file))
      loose.push_back(file);
    else
      left_out_.add(reason_of(file), (folder / file).string());
  for (const std::string& name : top.hidden) left_out_.add(kHidden, (folder / name).string());
  if (!loose.empty())
    fail(
        "[imagefolder] {} has {} image{} outside of class folders, {} first; if it is one class, "
        "take the folder above, else sort them into a folder per class, as in train (for "
        "ImageNet's validation images: scripts/data/sort_imagenet_val.sh)",
        folder.string(), loose.size(), loose.size() == 1 ? "" : "s", loose.front());
  classes_ = std::move(top.folders);
  check(!classes_.empty(), "[imagefolder] {} has no class folders", folder.string());
  for (size_t c = 0; c < classes_.size(); ++c) add_class(c);
}

std::vector<std::string> images_below(const fs::path& folder, Tally& left_out,
                                      const fs::path& above) {
  ClassWalk walk;
  if (!above.empty()) walk.above.push_back(above);
  walk.enter(folder, "");
  left_out.add(walk.left_out);
  std::ranges::sort(walk.images);
  std::vector<std::string> names;
  for (const auto& [below, file] : walk.images) names.push_back(joined(below, file));
  return names;
}

void ImageFolder::add_class(size_t label) {
  const fs::path folder = folder_ / classes_[label];
  Tally left_out;
  const std::vector<std::string> files = images_below(folder, left_out, folder_);
  check(!files.empty(), "[imagefolder] the class folder {} has no images{}", folder.string(),
        left_out.empty() ? "" : "; not read: " + left_out_text(left_out));
  left_out_.add(left_out);
  for (const std::string& file : files) {
    names_ += file;
    name_ends_.push_back(names_.size());
    labels_.push_back(static_cast<int32_t>(label));
  }
}

std::string ImageFolder::relative_name(size_t i) const {
  const uint64_t begin = i == 0 ? 0 : name_ends_[i - 1];
  return classes_[static_cast<size_t>(labels_[i])] + "/" +
         names_.substr(begin, name_ends_[i] - begin);
}

std::string ImageFolder::name(size_t i) const { return (folder_ / relative_name(i)).string(); }

bool holds_class_folders(const fs::path& dir) {
  try {
    const std::vector<std::string> folders = entries(dir).folders;
    const auto is_half = [](const std::string& name) { return name == "train" || name == "val"; };
    return std::ranges::none_of(folders, is_half) &&
           std::ranges::any_of(folders, [&](const std::string& name) {
             const auto below = fs::recursive_directory_iterator(dir / name);
             return std::any_of(begin(below), end(below), [](const auto& entry) {
               const std::string file = entry.path().filename().string();
               return named_like_an_image(file) || named_like_another_image(file);
             });
           });
  } catch (const std::exception&) {  // it cannot be read
    return false;
  }
}

ImageFolders open_image_folders(const fs::path& dir) {
  ImageFolders both{
      std::make_shared<ImageFolder>(dir / "train"), std::make_shared<ImageFolder>(dir / "val"), {}};
  for (const auto& half : {both.train, both.val}) both.left_out.add(half->left_out());
  const auto &train = both.train->classes(), &val = both.val->classes();
  const auto first_of = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    std::vector<std::string> only;
    std::ranges::set_difference(a, b, std::back_inserter(only));
    return only;
  };
  const auto without = first_of(train, val), besides = first_of(val, train);
  const bool in_train = !without.empty();
  const auto& only = in_train ? without : besides;
  if (!only.empty())
    fail("[imagefolder] {}: train has {} classes, val {}; {} is only in {}{}", dir.string(),
         train.size(), val.size(), only.front(), in_train ? "train" : "val",
         other_form_hint(only.front(), in_train ? val : train));
  return both;
}

}  // namespace tw
