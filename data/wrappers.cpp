#include "data/wrappers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "data/augment.h"
#include "engine/core/rng.h"

namespace tw {

namespace {

/// Passes every call on; a wrapper overrides what it changes.
class Wrapper : public Dataset {
 public:
  explicit Wrapper(std::shared_ptr<const Dataset> source) : source_(std::move(source)) {
    image = source_->image;
    classes = source_->classes;
  }
  size_t size() const override { return source_->size(); }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    return mapped(source_->get(id_of(i), pixels));
  }
  int32_t get_augmented(size_t i, uint64_t seed, uint32_t epoch,
                        std::span<uint8_t> pixels) const override {
    return mapped(source_->get_augmented(id_of(i), seed, epoch, pixels));
  }
  std::string describe(size_t i) const override { return source_->describe(id_of(i)); }
  std::string name(size_t i) const override { return source_->name(id_of(i)); }
  const StorageLayout* storage() const override { return source_->storage(); }

 protected:
  /// The number of sample i in the source, and the label of one with that label there.
  virtual size_t id_of(size_t i) const { return i; }
  virtual int32_t mapped(int32_t label) const { return label; }

  const std::shared_ptr<const Dataset> source_;
};

class CropFlip : public Wrapper {
 public:
  using Wrapper::Wrapper;
  int32_t get_augmented(size_t i, uint64_t seed, uint32_t epoch,
                        std::span<uint8_t> pixels) const override {
    thread_local std::vector<uint8_t> whole;
    whole.resize(pixels.size());
    const int32_t label = get(i, whole);
    augment_crop_flip(whole, image, seed, epoch, i, pixels);
    return label;
  }
  bool supports_resident() const override { return true; }
};

class Subset : public Wrapper {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> ids)
      : Wrapper(std::move(whole)), ids_(std::move(ids)) {}
  size_t size() const override { return ids_.size(); }
  const StorageLayout* storage() const override { return nullptr; }  // it covers the whole set

 private:
  size_t id_of(size_t i) const override {
    check<std::logic_error>(i < size(), "[subset] sample {} of {}", i, size());
    return ids_[i];
  }
  const std::vector<uint32_t> ids_;
};

class Relabelled : public Wrapper {
 public:
  Relabelled(std::shared_ptr<const Dataset> source, std::vector<int32_t> map, int64_t labels)
      : Wrapper(std::move(source)), map_(std::move(map)) {
    check<std::logic_error>(std::ssize(map_) == source_->classes,
                            "[relabel] {} labels for {} classes", map_.size(), source_->classes);
    classes = labels;
  }
  bool supports_resident() const override { return source_->supports_resident(); }

 private:
  int32_t mapped(int32_t label) const override {
    return label < 0 ? label : map_[static_cast<size_t>(label)];
  }
  const std::vector<int32_t> map_;
};

class SkipBad : public Wrapper {
 public:
  SkipBad(std::shared_ptr<const Dataset> source, std::shared_ptr<SkipLog> log)
      : Wrapper(std::move(source)), log_(std::move(log)) {}
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    const auto label = unless_bad(i, [&] { return Wrapper::get(i, pixels); });
    if (!label) std::ranges::fill(pixels, uint8_t{0});
    return label.value_or(-1);
  }
  int32_t get_augmented(size_t i, uint64_t seed, uint32_t epoch,
                        std::span<uint8_t> pixels) const override {
    constexpr size_t kDraws = 64;  // then one after the other: a single valid sample is found
    const Philox random(seed, Purpose::shuffle, epoch);  // whose index 0 draws the order
    size_t id = i;
    for (size_t tries = 0; tries <= kDraws + size(); ++tries) {
      if (const auto label =
              unless_bad(id, [&] { return Wrapper::get_augmented(id, seed, epoch, pixels); }))
        return *label;
      id = tries < kDraws ? below(random(i, static_cast<uint32_t>(1 + tries))[0],
                                  static_cast<uint32_t>(size()))
                          : (id + 1) % size();
    }
    fail("[data] all {} training images are damaged", size());
  }

 private:
  /// The label that `body` returns; nothing when sample i is bad.
  template <class Body>
  std::optional<int32_t> unless_bad(size_t i, const Body& body) const {
    try {
      return body();
    } catch (const BadSampleError& error) {
      const std::lock_guard lock(mutex_);
      if (logged_.insert(i).second) log_->add({error.class_name(), error.description()});
      return std::nullopt;
    }
  }

  const std::shared_ptr<SkipLog> log_;
  mutable std::mutex mutex_;
  mutable std::set<size_t> logged_;
};

}  // namespace

std::shared_ptr<const Dataset> crop_flip(std::shared_ptr<const Dataset> images) {
  return std::make_shared<CropFlip>(std::move(images));
}

std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> whole, size_t begin,
                                      size_t end) {
  check<std::logic_error>(begin <= end && end <= whole->size(),
                          "[subset] samples {} to {} of a set of {}", begin, end, whole->size());
  std::vector<uint32_t> ids(end - begin);
  std::iota(ids.begin(), ids.end(), static_cast<uint32_t>(begin));
  return std::make_shared<Subset>(std::move(whole), std::move(ids));
}

std::shared_ptr<const Dataset> every_nth(std::shared_ptr<const Dataset> whole, size_t count,
                                         bool held_out) {
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < whole->size(); ++i)
    if (((i + 1) * count / whole->size() > i * count / whole->size()) == held_out)
      ids.push_back(static_cast<uint32_t>(i));
  return std::make_shared<Subset>(std::move(whole), std::move(ids));
}

std::shared_ptr<const Dataset> share_of_classes(std::shared_ptr<const Dataset> whole,
                                                std::span<const int32_t> labels, double share,
                                                bool held_out) {
  const Philox random(0, Purpose::hold_out);  // the same for every seed of a training
  std::map<int32_t, std::vector<std::pair<uint32_t, uint32_t>>> classes;  // drawn number, sample
  for (uint32_t i = 0; i < labels.size(); ++i) classes[labels[i]].emplace_back(random(i, 0)[0], i);
  std::vector<uint32_t> ids;
  for (auto& [label, samples] : classes) {
    std::ranges::sort(samples);
    const size_t most = samples.size() - 1;
    const auto count = static_cast<size_t>(
        std::lround(std::max(1.0, share * static_cast<double>(samples.size()))));
    for (size_t i = 0; i < samples.size(); ++i)
      if ((i < std::min(count, most)) == held_out) ids.push_back(samples[i].second);
  }
  std::ranges::sort(ids);
  return std::make_shared<Subset>(std::move(whole), std::move(ids));
}

std::shared_ptr<const Dataset> relabel(std::shared_ptr<const Dataset> samples,
                                       std::vector<int32_t> map, int64_t classes) {
  return std::make_shared<Relabelled>(std::move(samples), std::move(map), classes);
}

std::shared_ptr<const Dataset> skip_bad(std::shared_ptr<const Dataset> samples,
                                        std::shared_ptr<SkipLog> log) {
  return std::make_shared<SkipBad>(std::move(samples), std::move(log));
}

void SkipLog::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
}

std::vector<SkipLog::Entry> SkipLog::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(entries_, {});
}

}  // namespace tw
