#include "data/device_prefetcher.h"

#include <utility>

#include "engine/core/copy.h"
#include "engine/core/stopwatch.h"

namespace tw {

DevicePrefetcher::DevicePrefetcher(Context& ctx, Loader& loader, int64_t parts, bool ahead)
    : ctx_(ctx), loader_(loader), parts_(parts), ahead_(ahead), at_(parts) {
  if (ahead_) copies_ = CopyQueue::create(ctx);
}

void DevicePrefetcher::start(uint32_t epoch, int64_t first) {
  if (copies_) copies_->wait(0);  // the loader is about to use its memory again
  loader_.start(epoch, first);
  at_ = parts_;
  left_ = (loader_.batches() - first) * parts_;
  ready_ = false;
  error_ = nullptr;
}

void DevicePrefetcher::next(const Tensor& images, const Tensor& labels) {
  if (!ahead_) {
    const Batch from = part();
    copy(ctx_, from.images, images);
    copy(ctx_, from.labels, labels);
    return;
  }
  if (!ready_) bring();
  ready_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  copies_->make_wait(ctx_);
  copy(ctx_, place_.images, images);
  copy(ctx_, place_.labels, labels);
  copies_->wait_for(ctx_);  // to here: the place may be written again, whatever comes behind
}

void DevicePrefetcher::prefetch() {
  if (!ahead_ || ready_ || left_ == 0) return;
  try {
    bring();
  } catch (...) {
    error_ = std::current_exception();
    ready_ = true;
  }
}

void DevicePrefetcher::bring() {
  const Batch from = part();
  if (!place_.images.data) {
    images_ = Buffer(ctx_.device(), from.images.bytes());
    labels_ = Buffer(ctx_.device(), from.labels.bytes());
    place_ = {images_.tensor(from.images.shape, from.images.dtype),
              labels_.tensor(from.labels.shape, from.labels.dtype)};
  }
  copies_->copy(from.images.data, place_.images.data, from.images.bytes());
  copies_->copy(from.labels.data, place_.labels.data, from.labels.bytes());
  copies_->record(0);
  ready_ = true;
}

Batch DevicePrefetcher::part() {
  if (at_ == parts_) {
    if (copies_) copies_->wait(0);  // the loader takes back the batch before
    Stopwatch watch;
    batch_ = loader_.next();
    waited_ += watch.lap();
    at_ = 0;
  }
  const int64_t size = batch_.labels.numel() / parts_, first = at_ * size;
  ++at_;
  --left_;
  return {batch_.images.rows(first, first + size), batch_.labels.rows(first, first + size)};
}

}  // namespace tw
