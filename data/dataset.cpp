#include "data/dataset.h"

#include "data/augment.h"

namespace tw {

namespace {

class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, size_t begin, size_t end)
      : whole_(std::move(whole)), begin_(begin), size_(end - begin) {
    check<std::logic_error>(begin <= end && end <= whole_->size(),
                            "[subset] samples {} to {} of a set of {}", begin, end, whole_->size());
    image = whole_->image;
    classes = whole_->classes;
  }
  size_t size() const override { return size_; }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    check<std::logic_error>(i < size_, "[subset] sample {} of {}", i, size_);
    return whole_->get(begin_ + i, pixels);
  }
  int32_t get_augmented(size_t i, uint64_t seed, uint32_t epoch, std::span<uint8_t> raw,
                        std::span<uint8_t> pixels) const override {
    check<std::logic_error>(i < size_, "[subset] sample {} of {}", i, size_);
    return whole_->get_augmented(begin_ + i, seed, epoch, raw, pixels);
  }
  std::vector<std::string> take_complaints() const override { return whole_->take_complaints(); }
  // augmentation is drawn for the numbers that the whole set's samples have
  bool supports_resident() const override { return begin_ == 0 && whole_->supports_resident(); }

 private:
  std::shared_ptr<const Dataset> whole_;
  size_t begin_, size_;
};

}  // namespace

int32_t Dataset::get_augmented(size_t i, uint64_t seed, uint32_t epoch, std::span<uint8_t> raw,
                               std::span<uint8_t> pixels) const {
  const int32_t label = get(i, raw);
  augment_crop_flip(raw, image, seed, epoch, i, pixels);
  return label;
}

Registry<DatasetFactory>& datasets() {
  static Registry<DatasetFactory> registry{"dataset"};
  return registry;
}

std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> whole, size_t begin,
                                      size_t end) {
  return std::make_shared<Subset>(std::move(whole), begin, end);
}

}  // namespace tw
