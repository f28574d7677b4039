// JpegDataset: photographs of any size as training and validation images of one size.
#pragma once

#include <memory>
#include <mutex>
#include <set>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/jpeg/resample.h"

namespace tw {

/// Labelled JPEG files: a folder, or a record file. Safe from several threads.
class JpegSource {
 public:
  virtual ~JpegSource() = default;
  virtual size_t size() const = 0;
  virtual int32_t label(size_t i) const = 0;
  /// For messages: a path.
  virtual std::string name(size_t i) const = 0;
  /// The bytes of file i, in `buffer` or in memory of the source's own. JpegError when they cannot
  /// be had as they were written.
  virtual std::span<const std::byte> read(size_t i, std::vector<std::byte>& buffer) const = 0;
  virtual std::span<const uint32_t> storage_order() const { return {}; }
  virtual void will_need(size_t /*begin*/, size_t /*end*/) const {}
};

struct JpegOptions {
  int64_t classes = 1000;
  int64_t image_size = 224;
  double colour_jitter = 0;
  bool skip_bad = false;  ///< damaged files are labelled -1 and complained about, once each
};

/// get(): the shorter side to image_size * 256 / 224, then the middle; get_augmented(): random
/// crop, mirror and colours. A damaged file is a UserError that names it, or skipped.
class JpegDataset : public Dataset {
 public:
  JpegDataset(std::shared_ptr<const JpegSource> source, const JpegOptions& options);

  size_t size() const override { return source_->size(); }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override;
  int32_t get_augmented(size_t i, uint64_t seed, uint32_t epoch, std::span<uint8_t> raw,
                        std::span<uint8_t> pixels) const override;
  std::span<const uint32_t> storage_order() const override { return source_->storage_order(); }
  void will_need(size_t begin, size_t end) const override { source_->will_need(begin, end); }
  std::vector<std::string> take_complaints() const override;

 private:
  /// What one thread decodes with.
  struct Worker {
    std::vector<std::byte> file;
    JpegDecoder decoder;
    Resampler resampler;
  };
  /// Lends one of the workers to `body`; there are as many as threads ever asked at once.
  template <class Body>
  int32_t with_worker(size_t i, std::span<uint8_t> pixels, const Body& body) const;
  void complain(size_t i, const char* what) const;

  const std::shared_ptr<const JpegSource> source_;
  const JpegOptions options_;
  // what threads share does not show outside: a sample's bytes never depend on it
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Worker>> idle_;
  mutable std::set<size_t> bad_;
  mutable std::vector<std::string> complaints_;
};

}  // namespace tw
