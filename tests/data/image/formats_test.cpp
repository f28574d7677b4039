// Every kind of image file against Pillow (scripts/golden/images.py), damaged PNG and WebP files,
// and EXIF orientations.
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "data/image/exif.h"
#include "data/image/resample.h"
#include "tests/support/error_text.h"
#include "tests/support/jpegs.h"

namespace tw {
namespace {

using test::fixture;

Box whole(const ImageSize& size) {
  return {0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
}

/// CRC-32 of all RGB bytes.
unsigned long crc_of(ImageDecoder& decoder, std::span<const std::byte> file, bool upright = false) {
  const ImageSize size = decoder.open(file, upright);
  const Picture picture = decoder.decode(whole(size), size.width, size.height);
  EXPECT_EQ(picture.width, size.width);
  EXPECT_EQ(picture.height, size.height);
  return ::crc32(0, picture.pixels, static_cast<unsigned>(3 * size.width * size.height));
}

TEST(Images, EveryKindDecodesAsInPillow) {
  const auto bytes = read_file(fixture("pillow.json"));
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const auto pillow = nlohmann::json::parse(text, text + bytes.size());
  const int width = pillow["size"][0], height = pillow["size"][1];
  ImageDecoder decoder;
  Resampler resampler;
  std::vector<uint8_t> pixels(static_cast<size_t>(width * height) * 3);
  for (const auto& [name, seen] : pillow["files"].items()) {
    const auto file = read_file(fixture(name));
    const bool upright = name.starts_with("upright");
    if (seen.contains("crc32")) {
      EXPECT_EQ(crc_of(decoder, file, upright), seen["crc32"]) << name;
    }
    for (const auto& part : seen.value("parts", nlohmann::json::array())) {
      const ImageSize size = decoder.open(file, upright);
      EXPECT_EQ(size.width, seen["size"][0]) << name;
      EXPECT_EQ(size.height, seen["size"][1]) << name;
      const auto& box = part["box"];
      const Box wanted{box[0], box[1], box[2].get<double>() - box[0].get<double>(),
                       box[3].get<double>() - box[1].get<double>()};
      // a large minimum size keeps the decoder at scale 1, as Pillow
      const Picture picture = decoder.decode(wanted, 100, 100);
      resampler.run(picture, width, height, false, pixels);
      double sum = 0, largest = 0;
      for (size_t i = 0; i < pixels.size(); ++i) {
        const double error = std::abs(pixels[i] - part["pixels"][i].get<double>());
        sum += error;
        largest = std::max(largest, error);
      }
      EXPECT_LE(largest, 3) << name << " " << part["box"].dump();
      EXPECT_LE(sum / static_cast<double>(pixels.size()), 0.5) << name << " " << box.dump();
    }
  }
}

std::string decoding_error(std::span<const std::byte> file) {
  static ImageDecoder decoder;
  return test::error_text<ImageError>([&] {
    const ImageSize size = decoder.open(file);
    decoder.decode(whole(size), size.width, size.height);
  });
}

/// Writes `value` as four bytes, the highest first.
void put_word(std::vector<std::byte>& file, size_t at, uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) file[at++] = std::byte(value >> shift & 255);
}

TEST(Png, EveryTruncationIsAnError) {
  for (const char* name : {"rgba8.png", "palette_transparent.png", "rgb_interlaced.png"}) {
    const auto file = read_file(fixture(name));
    for (size_t size = 0; size + 4 < file.size(); ++size)  // libspng needs no CRC of the last chunk
      EXPECT_NE(decoding_error(std::span(file).first(size)), "") << name << " " << size;
  }
}

TEST(Png, EveryDamagedByteOfAChunkIsFound) {
  const auto good = read_file(fixture("rgb8.png"));
  for (size_t at = 0; at < good.size(); ++at) {
    auto file = good;
    file[at] ^= std::byte{16};
    EXPECT_NE(decoding_error(file), "") << at;
  }
}

TEST(Png, AHugeImageIsRejectedBeforeAllocating) {
  auto file = read_file(fixture("rgb8.png"));
  put_word(file, 16, 1 << 20);  // width and height in the chunk IHDR, whose CRC is at 29
  put_word(file, 20, 1 << 20);
  put_word(
      file, 29,
      static_cast<uint32_t>(::crc32(0, reinterpret_cast<const uint8_t*>(file.data() + 12), 17)));
  EXPECT_EQ(decoding_error(file), "1048576 x 1048576 pixels; at most 134217728 in all");
}

TEST(Webp, EveryTruncationIsAnError) {
  for (const char* name : {"lossy.webp", "lossless.webp", "lossy_alpha.webp"}) {
    const auto file = read_file(fixture(name));
    for (size_t size = 0; size + 2 < file.size(); ++size)  // a byte of padding may be missing
      EXPECT_NE(decoding_error(std::span(file).first(size)), "") << name << " " << size;
  }
}

TEST(Images, RandomDamageOfPngAndWebpGivesAnErrorOrPixels) {
  const Philox random(4, Purpose::test);
  for (const char* name : {"rgba16.png", "palette_transparent.png", "upright6.png",
                           "lossy_alpha.webp", "lossless.webp", "upright.webp"}) {
    const auto good = read_file(fixture(name));
    ImageDecoder decoder;
    for (uint64_t trial = 0; trial < 500; ++trial) {
      auto file = good;
      for (const uint32_t word : random(trial)) file[word % file.size()] = std::byte(word >> 24);
      try {
        crc_of(decoder, file, true);
      } catch (const ImageError&) {
      }
    }
    EXPECT_NE(crc_of(decoder, good), 0u) << "the decoder still works";
  }
}

TEST(Exif, TheOrientationIsReadInBothByteOrdersAndTypes) {
  const auto orientation = [](const std::string& data) {
    return exif_orientation(std::as_bytes(std::span<const char>(data)));
  };
  using namespace std::string_literals;
  for (int i = 1; i <= 8; ++i) EXPECT_EQ(orientation(exif_of(i)), i);
  // the width, then the orientation 3, as SHORT and as LONG
  EXPECT_EQ(orientation("II*\0\10\0\0\0\2\0\0\1\3\0\1\0\0\0\7\0\0\0"
                        "\x12\1\3\0\1\0\0\0\3\0\0\0\0\0\0\0"s),
            3);
  EXPECT_EQ(orientation("MM\0*\0\0\0\10\0\1\1\x12\0\4\0\0\0\1\0\0\0\3\0\0\0\0"s), 3);
  // 0, 9, no such tag, a directory outside of the data, other data
  EXPECT_EQ(orientation(exif_of(0)), 1);
  EXPECT_EQ(orientation(exif_of(9)), 1);
  EXPECT_EQ(orientation("II*\0\10\0\0\0\0\0"s), 1);
  EXPECT_EQ(orientation("II*\0\xff\xff\xff\xff"s), 1);
  EXPECT_EQ(orientation("Exif\0\0MM"s), 1);
  EXPECT_EQ(orientation("http://ns.adobe.com/xap/1.0/"s), 1);
  EXPECT_EQ(orientation(""), 1);
}

/// A crop of the upright image is that part of the whole upright image.
TEST(Exif, ACropOfAnUprightJpegEqualsThatPartOfTheWholeImage) {
  std::vector<uint8_t> pixels(90 * 70 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i / 977);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto file = encode_jpeg(pixels, 90, 70, 90, orientation);
    ImageDecoder one, other;
    const ImageSize size = one.open(file, true);
    EXPECT_EQ(one.orientation(), orientation);
    EXPECT_EQ(size.width, orientation < 5 ? 90 : 70);
    EXPECT_EQ(size.height, orientation < 5 ? 70 : 90);
    const Picture all = one.decode(whole(size), size.width, size.height);
    other.open(file, true);
    const Picture part = other.decode({41, 12, 20, 31}, 60, 60);
    for (int y = 0; y < 31; ++y)
      for (int x = 0; x < 20; ++x) {
        const int row = static_cast<int>(part.box.y) + y, column = static_cast<int>(part.box.x) + x;
        ASSERT_EQ(std::memcmp(part.pixels + 3 * (row * part.width + column),
                              all.pixels + 3 * ((12 + y) * all.width + 41 + x), 3),
                  0)
            << orientation << " " << x << " " << y;
      }
  }
}

}  // namespace
}  // namespace tw
