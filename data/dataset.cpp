#include "data/dataset.h"

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

 private:
  std::shared_ptr<const Dataset> whole_;
  size_t begin_, size_;
};

}  // namespace

Registry<DatasetFactory>& datasets() {
  static Registry<DatasetFactory> registry{"dataset"};
  return registry;
}

std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> whole, size_t begin,
                                      size_t end) {
  return std::make_shared<Subset>(std::move(whole), begin, end);
}

}  // namespace tw
