// Packs an image folder into a record file.
#include <algorithm>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <thread>

#include "data/class_names.h"
#include "data/image/encoder.h"
#include "data/image/resample.h"
#include "data/imagenet/image_folder.h"
#include "data/imagenet/record_file.h"
#include "data/imagenet/record_format.h"
#include "data/order.h"
#include "engine/core/hash.h"
#include "engine/io/file.h"

namespace tw {

namespace {

static_assert(kMostImageBytes <= UINT32_MAX, "the index has 32 bits for the size of a sample");

/// An image file as stored in the record file.
struct Packed {
  std::vector<std::byte> bytes;
  bool resized = false;
  std::string damage;  // "file: reason"; empty: none
};

/// Reads a file, decodes all of it, and resizes it if the options say so.
Packed pack_one(const ImageFolder& folder, size_t i, const PackOptions& options,
                ImageDecoder& decoder, Resampler& resampler) {
  Packed packed;
  try {
    std::vector<std::byte> buffer;
    const auto file = folder.read(i, buffer);
    const ImageSize size = decoder.open(file);
    const int shorter = std::min(size.width, size.height);
    const Box whole{0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
    const Picture picture = decoder.decode(whole, size.width, size.height);
    if (options.resize == 0 || shorter <= options.resize) {
      packed.bytes.assign(file.begin(), file.end());
      return packed;
    }
    const auto scaled = [&](int side) {
      return static_cast<int>((side * options.resize + shorter / 2) / shorter);
    };
    const int width = scaled(size.width), height = scaled(size.height);
    std::vector<uint8_t> pixels(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
    resampler.run(picture, width, height, false, pixels);
    packed.bytes = encode_jpeg(pixels, width, height, static_cast<int>(options.quality),
                               decoder.orientation());
    check_image_bytes(packed.bytes.size());
    packed.resized = true;
  } catch (const UserError& error) {
    packed.bytes.clear();
    packed.damage = fmt::format("{}: {}", folder.name(i), error.what());
    if (!options.skip_bad) fail("[pack] {}; --bad-images skip goes on without it", packed.damage);
  }
  return packed;
}

/// Packs the samples `wanted` of a folder into `results`, on several threads.
void pack_some(const ImageFolder& folder, std::span<const uint32_t> wanted,
               const PackOptions& options, std::span<Packed> results) {
  const auto threads = static_cast<size_t>(std::max(1, options.threads));
  std::vector<std::exception_ptr> errors(threads);
  std::vector<std::jthread> pool;
  for (size_t t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      try {
        ImageDecoder decoder;
        Resampler resampler;
        for (size_t i = t; i < wanted.size(); i += threads) {
          check<Fault>(!options.stop || !*options.stop, "[pack] stopped before the end");
          results[i] = pack_one(folder, wanted[i], options, decoder, resampler);
        }
      } catch (...) {
        errors[t] = std::current_exception();
      }
    });
  pool.clear();  // joins
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

/// Random for training, by id for validation.
std::vector<uint32_t> order_in_file(size_t size, bool training, uint64_t seed) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  if (training) shuffle(order, Philox(seed, Purpose::generate));
  return order;
}

/// Writes the files of a folder and advances `offset` by their bytes. Returns the index entries by
/// id, without skipped files.
std::vector<RecordFile::Sample> write_folder(std::ostream& out, const ImageFolder& folder,
                                             bool training, const PackOptions& options,
                                             uint64_t& offset, std::string& names,
                                             PackReport& report) {
  std::vector<std::optional<RecordFile::Sample>> entries(folder.size());
  const auto order = order_in_file(folder.size(), training, options.seed);
  constexpr size_t kFilesInMemory = 256;
  for (size_t begin = 0; begin < order.size(); begin += kFilesInMemory) {
    const auto part =
        std::span(order).subspan(begin, std::min(kFilesInMemory, order.size() - begin));
    std::vector<Packed> packed(part.size());
    pack_some(folder, part, options, packed);
    for (size_t i = 0; i < part.size(); ++i) {
      const Packed& one = packed[i];
      if (!one.damage.empty()) {
        report.skipped.add(folder.classes()[static_cast<size_t>(folder.label(part[i]))],
                           one.damage);
        continue;
      }
      report.resized += one.resized;
      entries[part[i]] = {.offset = offset,
                          .checksum = checksum(one.bytes),
                          .bytes = static_cast<uint32_t>(one.bytes.size()),
                          .label = static_cast<uint32_t>(folder.label(part[i])),
                          .name_end = 0};
      out.write(reinterpret_cast<const char*>(one.bytes.data()),
                static_cast<std::streamsize>(one.bytes.size()));
      offset += one.bytes.size();
    }
    check<Fault>(!out.fail(), "[pack] writing failed: {}", std::strerror(errno));
  }
  std::vector<RecordFile::Sample> samples;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i]) continue;
    names += (training ? "train/" : "val/") + folder.relative_name(i);
    samples.push_back(*entries[i]);
    samples.back().name_end = names.size();
  }
  return samples;
}

/// Both halves; without val the images of train, or of the class folders, and no val.
ImageFolders open_to_pack(const std::filesystem::path& dir) {
  std::error_code unknown;
  check_there("data", dir);
  const bool train = std::filesystem::is_directory(dir / "train", unknown);
  if (std::filesystem::exists(dir / "val", unknown) || !(train || holds_class_folders(dir)))
    return open_image_folders(dir);
  const auto whole = std::make_shared<const ImageFolder>(train ? dir / "train" : dir);
  return {whole, nullptr, whole->left_out()};
}

}  // namespace

PackReport pack_image_folder(const std::filesystem::path& dir, const std::filesystem::path& file,
                             const PackOptions& options) {
  std::error_code unknown;
  check(!std::filesystem::exists(file, unknown) || std::filesystem::is_regular_file(file, unknown),
        "[pack] {} is not a file", file.string());
  check(!file.has_parent_path() || std::filesystem::is_directory(file.parent_path(), unknown),
        "[pack] there is no folder {}", file.parent_path().string());
  check_replaceable(file, {record::kMagic, sizeof record::kMagic}, "a record file");
  const ImageFolders folders = open_to_pack(dir);
  PackReport report;
  report.left_out = left_out_text(folders.left_out);
  write_atomically(file, [&](std::ostream& out) {
    record::Header header{};
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    uint64_t offset = sizeof header;
    std::string names;
    auto samples = write_folder(out, *folders.train, true, options, offset, names, report);
    report.train = samples.size();
    if (folders.val) {
      const auto val = write_folder(out, *folders.val, false, options, offset, names, report);
      report.val = val.size();
      samples.insert(samples.end(), val.begin(), val.end());
    }
    check(report.train > 0 && (!folders.val || report.val > 0),
          "[pack] {}: no undamaged training or validation images", dir.string());

    const nlohmann::ordered_json description = {{"train", report.train},
                                                {"resize", options.resize},
                                                {"quality", options.quality},
                                                {"seed", options.seed},
                                                {"classes", as_utf8(folders.train->classes())}};
    std::string index = description.dump();
    std::memcpy(header.magic, record::kMagic, sizeof header.magic);
    header.version = record::kVersion;
    header.index_offset = offset;
    header.description_bytes = index.size();
    header.sample_count = samples.size();
    header.name_bytes = names.size();
    index.append(reinterpret_cast<const char*>(samples.data()),
                 samples.size() * sizeof(RecordFile::Sample));
    index += names;
    header.index_checksum = checksum(std::as_bytes(std::span<const char>(index)));
    header.file_bytes = offset + index.size();
    const auto bytes = std::as_bytes(std::span(&header, 1));
    header.header_checksum = checksum(bytes.first(sizeof header - sizeof header.header_checksum));
    out << index;
    out.seekp(0);
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    report.bytes = header.file_bytes;
  });
  return report;
}

}  // namespace tw
