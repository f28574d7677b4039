#include "data/device_prefetcher.h"

#include <utility>

#include "engine/core/copy.h"
#include "engine/core/stopwatch.h"

namespace tw {

DevicePrefetcher::DevicePrefetcher(Context& ctx, Loader& loader, int64_t parts, bool ahead)
    : ctx_(ctx), loader_(loader), parts_(parts), ahead_(ahead), next_part_(parts) {
  if (ahead_) copies_ = CopyQueue::create(ctx);
}

void DevicePrefetcher::start(uint32_t epoch, int64_t first) {
  if (copies_) copies_->wait(0);  // the loader is about to overwrite its memory
  loader_.start(epoch, first);
  next_part_ = parts_;
  parts_left_ = (loader_.batches() - first) * parts_;
  is_staged_ = false;
  staging_error_ = nullptr;
}

void DevicePrefetcher::next(const Tensor& images, const Tensor& labels) {
  if (!ahead_) {
    const Batch part = take_part();
    copy(ctx_, part.images, images);
    copy(ctx_, part.labels, labels);
    return;
  }
  if (!is_staged_) stage();
  is_staged_ = false;
  if (staging_error_) std::rethrow_exception(std::exchange(staging_error_, nullptr));
  copies_->make_wait(ctx_);
  copy(ctx_, staged_.images, images);
  copy(ctx_, staged_.labels, labels);
  copies_->wait_for(ctx_);  // the next copy to the staging buffer comes after these
}

void DevicePrefetcher::prefetch() {
  if (!ahead_ || is_staged_ || parts_left_ == 0) return;
  try {
    stage();
  } catch (...) {
    staging_error_ = std::current_exception();
    is_staged_ = true;
  }
}

/// Starts the copy of the next micro-batch to the staging buffer.
void DevicePrefetcher::stage() {
  const Batch part = take_part();
  if (!staged_.images.data) {
    staged_images_ = Buffer(ctx_.device(), part.images.bytes());
    staged_labels_ = Buffer(ctx_.device(), part.labels.bytes());
    staged_ = {staged_images_.tensor(part.images.shape, part.images.dtype),
               staged_labels_.tensor(part.labels.shape, part.labels.dtype)};
  }
  copies_->copy(part.images.data, staged_.images.data, part.images.bytes());
  copies_->copy(part.labels.data, staged_.labels.data, part.labels.bytes());
  copies_->record(0);
  is_staged_ = true;
}

/// The next micro-batch, in the loader's memory.
Batch DevicePrefetcher::take_part() {
  if (next_part_ == parts_) {
    if (copies_) copies_->wait(0);  // the loader may overwrite the batch before
    Stopwatch watch;
    batch_ = loader_.next();
    waited_ += watch.lap();
    next_part_ = 0;
  }
  const int64_t size = batch_.labels.numel() / parts_, first = next_part_ * size;
  ++next_part_;
  --parts_left_;
  return {batch_.images.rows(first, first + size), batch_.labels.rows(first, first + size)};
}

}  // namespace tw
