// Image files and folders of them for tests.
#pragma once

#include "data/image/encoder.h"
#include "engine/core/rng.h"
#include "engine/io/file.h"
#include "tests/support/data.h"
#include "tests/support/source_folder.h"

namespace tw::test {

inline std::filesystem::path fixture(const std::string& name) {
  return test::source_folder() / "tests/data/image" / name;
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

/// A JPEG of coloured noise around `level`, different for each id.
inline std::vector<std::byte> noise_jpeg(uint64_t id, int width, int height, int level = 128) {
  std::vector<uint8_t> pixels(static_cast<size_t>(width * height) * 3);
  const Philox random(1, Purpose::test);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const auto noise = static_cast<int>(random(id, static_cast<uint32_t>(i / 48))[i % 4] % 64);
    pixels[i] = static_cast<uint8_t>(std::clamp(level + noise - 32, 0, 255));
  }
  return encode_jpeg(pixels, width, height, 90);
}

/// Writes dir/train and dir/val with `classes` folders of `train` and `val` JPEG files of odd
/// sizes; later classes are brighter.
inline void write_image_folder(const std::filesystem::path& dir, int classes, int train, int val) {
  for (int c = 0; c < classes; ++c) {
    for (const auto& [half, count] : {std::pair{"train", train}, {"val", val}}) {
      const auto folder = dir / half / fmt::format("n{:08}", c);
      std::filesystem::create_directories(folder);
      for (int i = 0; i < count; ++i) {
        const uint64_t id = (static_cast<uint64_t>(c) * 1000 + i) * 2 + (half[0] == 'v');
        write_bytes(folder / fmt::format("{:04}.JPEG", i),
                    noise_jpeg(id, 40 + (i * 7) % 31, 36 + (i * 11) % 37,
                               40 + c * 170 / std::max(1, classes - 1)));
      }
    }
  }
}

/// Options of `train` for short epochs: 600 JPEGs to train on and 20 to validate on, cropped to
/// `size` x `size`, in `dir`/data. The first call writes them.
inline std::string short_epochs(const std::filesystem::path& dir, int size = 32) {
  const std::filesystem::path data = dir / "data";
  if (!std::filesystem::exists(data)) write_image_folder(data, 2, 300, 10);
  return fmt::format("--dataset imagefolder --data-dir {} --image-size {}", data.string(), size);
}

}  // namespace tw::test
