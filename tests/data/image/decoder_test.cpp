// JPEG files, the resampler and random crops.
#include "data/image/decoder.h"

#include <cstring>

#include "data/augment.h"
#include "data/image/resample.h"
#include "tests/support/error_text.h"
#include "tests/support/jpegs.h"

namespace tw {
namespace {

using test::fixture;

/// CMYK values are inverted with and without Adobe's marker, as in Pillow.
TEST(Jpeg, CmykDecodesTheSameWithoutAdobesMarker) {
  const auto with = read_file(fixture("cmyk.jpg"));
  auto without = with;
  const std::string_view text(reinterpret_cast<const char*>(with.data()), with.size());
  const size_t marker = text.find("\xff\xee");
  ASSERT_EQ(text.substr(marker + 4, 5), "Adobe");
  const size_t length = std::to_integer<size_t>(with[marker + 2]) * 256 +
                        std::to_integer<size_t>(with[marker + 3]) + 2;
  without.erase(without.begin() + static_cast<ptrdiff_t>(marker),
                without.begin() + static_cast<ptrdiff_t>(marker + length));
  ImageDecoder one, other;
  const auto size = one.open(with);
  other.open(without);
  const Box all{0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
  const Picture a = one.decode(all, size.width, size.height);
  const Picture b = other.decode(all, size.width, size.height);
  const size_t bytes = static_cast<size_t>(a.width) * static_cast<size_t>(a.height) * 3;
  EXPECT_EQ(std::memcmp(a.pixels, b.pixels, bytes), 0);
}

TEST(Jpeg, ACropEqualsThatPartOfTheWholeImage) {
  const auto file = test::noise_jpeg(3, 333, 217);
  ImageDecoder whole, decoder;
  const auto size = whole.open(file);
  const Picture all = whole.decode({0, 0, 333, 217}, 333, 217);
  ASSERT_EQ(all.width, size.width);
  for (const Box& box : {Box{0, 0, 50, 40}, Box{100, 77, 64, 90}, Box{250, 200, 83, 17},
                         Box{17, 1, 300, 3}, Box{332, 216, 1, 1}}) {
    decoder.open(file);
    const Picture part = decoder.decode(box, 400, 400);
    for (int y = 0; y < static_cast<int>(box.height); ++y)
      for (int x = 0; x < static_cast<int>(box.width); ++x) {
        const int px = static_cast<int>(part.box.x) + x, py = static_cast<int>(part.box.y) + y;
        const uint8_t* ours = part.pixels + (py * part.width + px) * 3;
        const uint8_t* theirs =
            all.pixels +
            ((static_cast<int>(box.y) + y) * all.width + static_cast<int>(box.x) + x) * 3;
        ASSERT_EQ(std::memcmp(ours, theirs, 3), 0) << x << " " << y << " of " << box.x;
      }
  }
}

TEST(Jpeg, DecodesAtASmallerScaleWhereThatIsEnough) {
  const auto file = test::noise_jpeg(5, 640, 480);
  ImageDecoder decoder;
  const auto decoded_width = [&](int wanted) {
    decoder.open(file);
    const Picture picture = decoder.decode({0, 0, 640, 480}, wanted, wanted);
    EXPECT_NEAR(picture.box.width, picture.width, 1e-9);
    return picture.width;
  };
  EXPECT_EQ(decoded_width(481), 640);
  EXPECT_EQ(decoded_width(241), 640);
  EXPECT_EQ(decoded_width(240), 320);
  EXPECT_EQ(decoded_width(120), 160);
  EXPECT_EQ(decoded_width(60), 80);
  EXPECT_EQ(decoded_width(1), 80);
}

TEST(Jpeg, AtASmallerScaleTheLastPixelMayStandForLess) {
  ImageDecoder decoder;
  const auto file = test::noise_jpeg(5, 33, 35);
  decoder.open(file);
  const Picture picture = decoder.decode({0, 0, 33, 35}, 4, 4);
  EXPECT_EQ(picture.width, 5);
  EXPECT_TRUE(picture.box.width == 33 / 8.0 && picture.box.height == 35 / 8.0);
}

TEST(Jpeg, ErrorsDescribeTheDamage) {
  ImageDecoder decoder;
  const auto error = [&](std::vector<std::byte> file) {
    return test::error_text<ImageError>([&] {
      const auto size = decoder.open(file);
      decoder.decode({0, 0, double(size.width), double(size.height)}, size.width, size.height);
    });
  };
  const auto good = test::noise_jpeg(9, 64, 64);
  EXPECT_EQ(error({}), "an empty file");
  std::vector<std::byte> png(good);
  std::memcpy(png.data(), "\x89PNG\r\n\x1a\n", 8);
  EXPECT_EQ(error(png), "invalid IHDR chunk size") << "of libspng, which reads the first chunk";
  std::vector<std::byte> text(64, std::byte{'x'});
  EXPECT_EQ(error(text), "not an image file; expected one of JPEG, PNG, WebP");
  std::memcpy(text.data(), "GIF89a", 6);
  EXPECT_EQ(error(text), "a GIF file; expected one of JPEG, PNG, WebP");
  const std::vector<std::byte> half(good.begin(), good.begin() + std::ssize(good) / 2);
  EXPECT_NE(error(half).find("cut short"), std::string::npos);
  std::vector<std::byte> ended(half);  // truncated, with an end marker
  ended.push_back(std::byte{0xff});
  ended.push_back(std::byte{0xd9});
  EXPECT_NE(error(ended).find("remature end"), std::string::npos) << error(ended);
  // the decoder still works
  EXPECT_EQ(decoder.open(good).width, 64);
  EXPECT_EQ(decoder.decode({0, 0, 64, 64}, 64, 64).width, 64);
}

TEST(Jpeg, RandomDamageGivesAnErrorOrPixels) {
  ImageDecoder decoder;
  const auto good = test::noise_jpeg(9, 80, 60);
  const Philox random(3, Purpose::test);
  int errors = 0;
  for (uint64_t trial = 0; trial < 3000; ++trial) {
    auto file = good;
    const auto words = random(trial);
    for (const uint32_t word : words) file[word % file.size()] = std::byte(word >> 24);
    if (words[0] % 3 == 0) file.resize(words[1] % file.size());
    try {
      const auto size = decoder.open(file);
      decoder.decode({0, 0, double(size.width), double(size.height)}, 32, 32);
    } catch (const ImageError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
}

/// Appends each value as two bytes.
void put(std::vector<std::byte>& file, std::initializer_list<int> words) {
  for (const int word : words) {
    file.push_back(std::byte(word >> 8));
    file.push_back(std::byte(word & 255));
  }
}

/// A file of a few hundred bytes: each scan has one coefficient of every block, and arithmetic
/// decoding reads zeros where data is missing.
std::vector<std::byte> progressive_jpeg(int width, int height, int components, int scans) {
  std::vector<std::byte> file;
  put(file, {0xffd8, 0xffdb, 67});
  file.insert(file.end(), 65, std::byte{1});  // table 1 of quantisation
  put(file, {0xffca, 8 + 3 * components});
  file.push_back(std::byte{8});
  put(file, {height, width});
  file.push_back(std::byte(components));
  for (int c = 0; c < components; ++c)
    for (const int value : {c, 0x11, 1}) file.push_back(std::byte(value));
  for (int scan = 0; scan < scans; ++scan)
    put(file, {0xffda, 8, 0x100 | scan / 64, scan % 64, scan % 64 << 8});
  put(file, {0xffd9});
  return file;
}

TEST(Jpeg, ALargeImageWithManyScansIsRejectedQuickly) {
  ImageDecoder decoder;
  const auto few = progressive_jpeg(160, 120, 1, 64);
  EXPECT_EQ(decoder.open(few).width, 160);
  EXPECT_EQ(decoder.decode({0, 0, 160, 120}, 160, 120).width, 160);
  const auto many = progressive_jpeg(16000, 8000, 1, 64);
  EXPECT_LT(many.size(), 1000u);
  decoder.open(many);
  EXPECT_EQ(test::error_text<ImageError>([&] {
              decoder.decode({0, 0, 16000, 8000}, 1, 1);
            }),
            "more than 16 scans of 16000 x 8000 pixels");
}

TEST(Jpeg, ALargeProgressiveImageIsRejectedBeforeAllocating) {
  ImageDecoder decoder;
  EXPECT_EQ(
      test::error_text<ImageError>([&] { decoder.open(progressive_jpeg(16000, 8000, 3, 2)); }),
      "16000 x 8000 pixels in several scans, which take 732 MiB; at most 512");
  const auto smaller = progressive_jpeg(8000, 4000, 3, 2);  // the decoder still works
  EXPECT_EQ(decoder.open(smaller).width, 8000);
}

TEST(Resampler, OfACutBoxTheRestOfTheImageDoesNotMatter) {
  Resampler resampler;
  std::vector<uint8_t> image(9 * 8 * 3, 255);
  for (int y = 2; y < 7; ++y)
    for (int x = 3; x < 7; ++x) std::fill_n(&image[(y * 9 + x) * 3], 3, uint8_t{10});
  for (const int side : {2, 16}) {
    std::vector<uint8_t> out(side * side * 3);
    resampler.run({image.data(), 9, 8, {3, 2, 4, 5}}, side, side, false, out, true);
    EXPECT_EQ(std::ranges::count(out, 10), std::ssize(out)) << side;
    resampler.run({image.data(), 9, 8, {3, 2, 4, 5}}, side, side, false, out);
    EXPECT_NE(out[0], 10) << side;
  }
}

TEST(Resampler, KeepsConstantsAndMirrors) {
  Resampler resampler;
  std::vector<uint8_t> grey(50 * 40 * 3, 173), out(17 * 23 * 3);
  resampler.run({grey.data(), 50, 40, {3.3, 2.2, 31.7, 30.1}}, 17, 23, false, out);
  for (const uint8_t value : out) ASSERT_EQ(value, 173);

  for (size_t i = 0; i < grey.size(); ++i) grey[i] = static_cast<uint8_t>(i * 7 % 251);
  std::vector<uint8_t> mirrored(out.size());
  resampler.run({grey.data(), 50, 40, {0, 0, 50, 40}}, 17, 23, false, out);
  resampler.run({grey.data(), 50, 40, {0, 0, 50, 40}}, 17, 23, true, mirrored);
  for (size_t y = 0; y < 23; ++y)
    for (size_t x = 0; x < 17; ++x)
      ASSERT_EQ(std::memcmp(&out[(y * 17 + x) * 3], &mirrored[(y * 17 + 16 - x) * 3], 3), 0);
}

TEST(RandomResizedCrop, AreasAndAspectRatiosAreInRange) {
  double smallest = 1, largest = 0, area = 0;
  int mirrored = 0;
  constexpr int kDraws = 4000;
  for (uint64_t id = 0; id < kDraws; ++id) {
    const auto [box, mirror] = random_resized_crop(500, 375, 1, 2, id);
    ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.x + box.width <= 500 && box.y + box.height <= 375);
    const double ratio = box.width / box.height, share = box.width * box.height / (500 * 375);
    ASSERT_TRUE(ratio > 0.74 && ratio < 1.35) << ratio;
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
    area += share / kDraws;
    mirrored += mirror;
  }
  EXPECT_NEAR(smallest, 0.08, 0.01);
  EXPECT_GT(largest, 0.95);
  EXPECT_NEAR(area, 0.43, 0.03);  // large crops with an extreme aspect ratio do not fit
  EXPECT_NEAR(mirrored, kDraws / 2, 150);
  // no crop of a narrow image has an allowed aspect ratio: the fallback is a centre crop
  const Box ribbon = random_resized_crop(1000, 10, 1, 0, 7).box;
  EXPECT_EQ(ribbon.height, 10);
  EXPECT_EQ(ribbon.width, 13);
  EXPECT_EQ(ribbon.x, 493);
}

TEST(RandomResizedCrop, DependsOnSeedEpochAndSampleAlone) {
  const auto draw = [](uint64_t seed, uint32_t epoch, uint64_t id) {
    const Box box = random_resized_crop(500, 375, seed, epoch, id).box;
    return std::tuple(box.x, box.y, box.width, box.height);
  };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(2, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 3, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 2, 4));
}

TEST(CentreCrop, EqualsResizeThenCrop) {
  const Box square = centre_crop(256, 256, 256, 224);
  EXPECT_EQ(square.x, 16);
  EXPECT_EQ(square.width, 224);
  // 500 x 375 becomes 341 x 256
  const Box box = centre_crop(500, 375, 256, 224);
  EXPECT_NEAR(box.x, 58 * 500.0 / 341, 1e-9);
  EXPECT_NEAR(box.width, 224 * 500.0 / 341, 1e-9);
  EXPECT_NEAR(box.y, 16 * 375.0 / 256, 1e-9);
  EXPECT_NEAR(box.height, 224 * 375.0 / 256, 1e-9);
}

TEST(ColourJitter, BrightnessStaysInRange) {
  double least = 255, most = 0;
  for (uint64_t id = 0; id < 500; ++id) {
    std::vector<uint8_t> grey(300, 100);
    colour_jitter(grey, 0.4, 1, 0, id);
    for (const uint8_t value : grey) ASSERT_EQ(value, grey[0]);
    least = std::min<double>(least, grey[0]);
    most = std::max<double>(most, grey[0]);
  }
  EXPECT_NEAR(least, 60, 2);
  EXPECT_NEAR(most, 140, 2);
}

/// Computes the three factors from a dark grey, a bright grey and a reddish pixel with their mean
/// luma.
TEST(ColourJitter, ContrastAndSaturationStayInRange) {
  double least_contrast = 9, most_contrast = 0, least_saturation = 9, most_saturation = 0;
  for (uint64_t id = 0; id < 500; ++id) {
    std::vector<uint8_t> pixels{80, 80, 80, 120, 120, 120, 100, 100, 100};
    std::vector<uint8_t> colour{110, 100, 90};
    colour_jitter(pixels, 0.4, 1, 0, id);
    colour_jitter(colour, 0.4, 1, 0, id);  // the same factors: drawn by id
    const double brightness = pixels[6] / 100.0;
    const double contrast = (pixels[3] - pixels[0]) / (40 * brightness);
    const double saturation = (colour[0] - colour[2]) / (20 * brightness * contrast);
    least_contrast = std::min(least_contrast, contrast);
    most_contrast = std::max(most_contrast, contrast);
    least_saturation = std::min(least_saturation, saturation);
    most_saturation = std::max(most_saturation, saturation);
  }
  EXPECT_NEAR(least_contrast, 0.6, 0.06);
  EXPECT_NEAR(most_contrast, 1.4, 0.06);
  EXPECT_NEAR(least_saturation, 0.6, 0.2);  // bytes are coarse here
  EXPECT_NEAR(most_saturation, 1.4, 0.2);
}

TEST(ColourJitter, StrengthZeroChangesNothing) {
  std::vector<uint8_t> same{1, 2, 3, 200, 100, 50};
  const auto before = same;
  colour_jitter(same, 0, 1, 0, 5);
  EXPECT_EQ(same, before);
}

}  // namespace
}  // namespace tw
