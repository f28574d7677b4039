#include "data/imagenet/record_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/imagenet/record_format.h"
#include "engine/core/hash.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

RecordFile::RecordFile(const std::filesystem::path& path) : path_(path), file_("[records]", path) {
  try {
    parse();
  } catch (const nlohmann::json::exception& wrong) {
    fail("[records] {}: damaged description: {}", path.string(), wrong.what());
  }
}

void RecordFile::parse() {
  const std::string prefix = fmt::format("[records] {}", path_.string());
  const std::span<const std::byte> all = file_.bytes();
  record::Header header;
  check(all.size() >= sizeof header, "{}: {} bytes are too few for a record file", prefix,
        all.size());
  std::memcpy(&header, all.data(), sizeof header);
  check(std::equal(std::begin(header.magic), std::end(header.magic), std::begin(record::kMagic)),
        "{}: not a record file (made by pack)", prefix);
  check(header.version == record::kVersion, "{}: version {}; expected {}", prefix, header.version,
        record::kVersion);
  const size_t covered = sizeof header - sizeof header.header_checksum;
  check(checksum(all.first(covered)) == header.header_checksum, "{}: its header is damaged",
        prefix);
  check(header.file_bytes == all.size(), "{}: cut short: {} bytes of {}", prefix, all.size(),
        header.file_bytes);
  const uint64_t limit = all.size();
  check(header.index_offset <= limit && header.description_bytes <= limit &&
            header.name_bytes <= limit && header.sample_count <= limit / sizeof(Sample) &&
            header.index_offset + header.description_bytes + header.name_bytes +
                    header.sample_count * sizeof(Sample) ==
                limit,
        "{}: its index is outside the file", prefix);
  const auto index = all.subspan(header.index_offset);
  check(checksum(index) == header.index_checksum, "{}: its index is damaged", prefix);

  check(header.description_bytes <= kMostJson, "{}: a description of {} bytes; at most {}", prefix,
        header.description_bytes, kMostJson);
  const auto* text = reinterpret_cast<const char*>(index.data());
  const auto description = parse_json<nlohmann::json>({text, header.description_bytes},
                                                      prefix + ": damaged description");
  description.at("classes").get_to(classes_);
  description.at("train").get_to(train_);
  samples_.resize(header.sample_count);
  if (!samples_.empty())  // memcpy does not accept null
    std::memcpy(samples_.data(), text + header.description_bytes, samples_.size() * sizeof(Sample));
  names_ = {text + header.description_bytes + samples_.size() * sizeof(Sample), header.name_bytes};
  check(train_ >= 1 && train_ <= samples_.size(), "{}: {} training images of {}", prefix, train_,
        samples_.size());
  uint64_t name_begin = 0;
  for (const Sample& sample : samples_) {
    check(sample.offset <= header.index_offset &&
              sample.bytes <= header.index_offset - sample.offset &&
              sample.label < classes_.size() && sample.name_end >= name_begin &&
              sample.name_end <= header.name_bytes,
          "{}: entry {} of the index is impossible", prefix, &sample - samples_.data());
    name_begin = sample.name_end;
  }
}

std::string_view RecordFile::name_in_folder(size_t i) const {
  const uint64_t begin = i == 0 ? 0 : samples_[i - 1].name_end;
  return names_.substr(begin, samples_[i].name_end - begin);
}

std::string RecordFile::name(size_t i) const {
  return fmt::format("{} in {}", name_in_folder(i), path_.string());
}

std::span<const std::byte> RecordFile::read(size_t i) const {
  check(file_.whole(), "[records] {} was truncated while it was in use", path_.string());
  const Sample& sample = samples_[i];
  const auto bytes = file_.bytes().subspan(sample.offset, sample.bytes);
  check<ImageError>(checksum(bytes) == sample.checksum,
                    "its checksum is wrong: the record file is damaged");
  return bytes;
}

std::vector<uint32_t> RecordFile::storage_order(size_t begin, size_t end) const {
  std::vector<uint32_t> order(end - begin);
  std::iota(order.begin(), order.end(), static_cast<uint32_t>(begin));
  std::ranges::sort(order, {}, [&](uint32_t i) { return samples_[i].offset; });
  return order;
}

void RecordFile::will_need(size_t first, size_t last) const {
  // one call reads at most the kernel's read-ahead window: 128 KiB by default
  constexpr size_t kWindow = size_t{128} << 10;
  const size_t end = samples_[last].offset + samples_[last].bytes;
  for (size_t at = samples_[first].offset / kWindow * kWindow; at < end; at += kWindow)
    ::madvise(const_cast<std::byte*>(&file_.bytes()[at]), std::min(kWindow, end - at),
              MADV_WILLNEED);
}

namespace {

class RecordSource : public ImageSource, public StorageLayout {
 public:
  RecordSource(std::shared_ptr<const RecordFile> file, size_t begin, size_t end)
      : file_(std::move(file)), begin_(begin), end_(end), order_(file_->storage_order(begin, end)) {
    for (uint32_t& i : order_) i -= static_cast<uint32_t>(begin);
  }
  size_t size() const override { return end_ - begin_; }
  int32_t label(size_t i) const override { return file_->label(begin_ + i); }
  std::string name(size_t i) const override { return file_->name(begin_ + i); }
  std::string relative_name(size_t i) const override {
    const std::string_view name = file_->name_in_folder(begin_ + i);
    return std::string(name.substr(name.find('/') + 1));
  }
  uint64_t bytes(size_t i) const override { return file_->bytes(begin_ + i); }
  std::span<const std::byte> read(size_t i, std::vector<std::byte>&) const override {
    return file_->read(begin_ + i);
  }
  const StorageLayout* storage() const override { return this; }
  std::span<const uint32_t> order() const override { return order_; }
  void will_need(size_t begin, size_t end) const override {
    file_->will_need(begin_ + order_[begin], begin_ + order_[end - 1]);
  }

 private:
  std::shared_ptr<const RecordFile> file_;
  size_t begin_, end_;
  std::vector<uint32_t> order_;
};

}  // namespace

std::shared_ptr<const ImageSource> record_source(std::shared_ptr<const RecordFile> file,
                                                 bool training) {
  const size_t train = file->train_size(), all = train + file->val_size();
  return std::make_shared<RecordSource>(std::move(file), training ? 0 : train,
                                        training ? train : all);
}

}  // namespace tw
