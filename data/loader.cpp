#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/core/buffer.h"

namespace tw {

namespace {

/// Samples that a thread prepares at a time: several threads share a batch.
constexpr size_t kPart = 16;

/// A place of the ring: one batch and what became of it.
struct Slot {
  Buffer images, labels;
  Batch batch;
  size_t parts_left = 0;  // 0: ready
  std::exception_ptr error;
};

}  // namespace

class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config);
  ~Impl();

  int64_t batches() const;
  void start(uint32_t epoch, int64_t first);
  const Batch& next();

 private:
  /// Samples of all ranks before `batch`.
  size_t samples_before(int64_t batch) const {
    return static_cast<size_t>(batch * config_.ranks * config_.batch);
  }
  Slot& slot(int64_t sequence) { return ring_[static_cast<size_t>(sequence) % ring_.size()]; }
  void fill(const Slot& slot, int64_t batch, size_t part) const;
  std::exception_ptr prepare(const Slot& slot, int64_t batch, size_t part) const;
  void work();
  std::span<const ShardOrder::Shard> due_shards(int64_t batch);
  void announce(std::span<const ShardOrder::Shard> shards) const;
  bool ready(int64_t sequence) { return sequence < claimed_ && slot(sequence).parts_left == 0; }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderConfig config_;
  const size_t pixels_;  // bytes of one image
  const size_t parts_;   // of a batch
  std::vector<uint32_t> order_;
  std::vector<ShardOrder::Shard> shards_;  // of the order, if it has any
  std::vector<Slot> ring_;
  uint32_t epoch_ = 0;

  // sequence numbers count batches over all epochs, so that a batch still held by the caller keeps
  // its slot across start(); batch = sequence + shift_
  std::mutex mutex_;
  std::condition_variable work_, done_;
  int64_t claimed_ = 0;   // next sequence of which nobody prepares a part yet
  size_t part_ = 0;       // next part of the sequence before it; parts_: all are given out
  int64_t consumed_ = 0;  // next sequence to hand out
  int64_t end_ = 0, shift_ = 0;
  size_t announced_ = 0;  // shards that the data set knows of
  int busy_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

Loader::Impl::Impl(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config)
    : dataset_(std::move(dataset)),
      config_(config),
      pixels_(static_cast<size_t>(dataset_->image.numel())),
      parts_((static_cast<size_t>(std::max<int64_t>(1, config.batch)) + kPart - 1) / kPart),
      order_(dataset_->size()),
      // one more than are prepared ahead: the one the caller holds
      ring_(static_cast<size_t>(std::max(1, config.prefetch)) + 1) {
  part_ = parts_;
  check(config.batch >= 1, "[loader] batch size is {}, expected at least 1", config.batch);
  check<std::logic_error>(config.threads >= 0 && config.rank >= 0 && config.rank < config.ranks,
                          "[loader] rank {} of {}, {} threads", config.rank, config.ranks,
                          config.threads);
  check(batches() > 0, "[loader] {} images are too few for one batch of {} on each of {} ranks",
        dataset_->size(), config.batch, config.ranks);
  std::iota(order_.begin(), order_.end(), 0u);
  const Shape image = dataset_->image;
  const Shape shape{config.batch, image[0], image[1], image[2]};
  for (Slot& slot : ring_) {
    slot.images = Buffer::pinned(config.device, static_cast<size_t>(shape.numel()));
    slot.labels =
        Buffer::pinned(config.device, static_cast<size_t>(config.batch) * sizeof(int32_t));
    slot.batch = {slot.images.tensor(shape, DType::u8),
                  slot.labels.tensor({config.batch}, DType::i32)};
  }
  for (int i = 0; i < config.threads; ++i) threads_.emplace_back([this] { work(); });
}

Loader::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

int64_t Loader::Impl::batches() const {
  const int64_t samples = static_cast<int64_t>(dataset_->size());
  const int64_t step = config_.batch * config_.ranks;
  return config_.training ? samples / step : (samples + step - 1) / step;
}

void Loader::Impl::start(uint32_t epoch, int64_t first) {
  check<std::logic_error>(first >= 0 && first <= batches(), "[loader] start at batch {} of {}",
                          first, batches());
  std::unique_lock lock(mutex_);
  end_ = claimed_;
  part_ = parts_;
  done_.wait(lock, [this] { return busy_ == 0; });
  epoch_ = epoch;
  if (const StorageLayout* storage = dataset_->storage();
      config_.training && config_.shuffle_shards && storage != nullptr) {
    ShardOrder drawn = shard_order(storage->order(), config_.seed, epoch);
    order_ = std::move(drawn.ids);
    shards_ = std::move(drawn.shards);
    const auto after =
        std::ranges::upper_bound(shards_, samples_before(first), {}, &ShardOrder::Shard::first);
    announced_ = static_cast<size_t>(after - shards_.begin()) - 1;  // those before are not read
  } else if (config_.training) {
    order_ = shuffled_order(dataset_->size(), config_.seed, epoch);
  }
  claimed_ = consumed_;
  shift_ = first - consumed_;
  end_ = consumed_ + batches() - first;
  lock.unlock();
  work_.notify_all();
}

const Batch& Loader::Impl::next() {
  std::unique_lock lock(mutex_);
  check<std::logic_error>(consumed_ < end_, "[loader] no batch left: call start()");
  Slot& taken = slot(consumed_);
  if (threads_.empty()) {
    claimed_ = consumed_ + 1;
    taken.error = nullptr;
    announce(due_shards(consumed_ + shift_));
    for (size_t part = 0; part < parts_ && !taken.error; ++part)
      taken.error = prepare(taken, consumed_ + shift_, part);
  } else {
    done_.wait(lock, [&] { return ready(consumed_); });
  }
  if (taken.error) std::rethrow_exception(taken.error);
  ++consumed_;
  lock.unlock();
  work_.notify_one();
  return taken.batch;
}

/// Body of a prefetch thread: claims the next part of the batch at hand, or of the next batch that
/// has a free slot.
void Loader::Impl::work() {
  const int64_t ahead = static_cast<int64_t>(ring_.size()) - 1;
  const auto room = [&] { return claimed_ < std::min(end_, consumed_ + ahead); };
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stop_ || part_ < parts_ || room(); });
    if (stop_) return;
    std::span<const ShardOrder::Shard> due;
    if (part_ == parts_) {
      Slot& next = slot(claimed_++);
      next.parts_left = parts_;
      next.error = nullptr;
      part_ = 0;
      due = due_shards(claimed_ - 1 + shift_);
      work_.notify_all();  // the other parts
    }
    Slot& mine = slot(claimed_ - 1);
    const int64_t batch = claimed_ - 1 + shift_;
    const size_t part = part_++;
    ++busy_;
    lock.unlock();
    announce(due);
    const std::exception_ptr error = prepare(mine, batch, part);
    lock.lock();
    if (error) mine.error = error;
    --mine.parts_left;
    --busy_;
    done_.notify_all();
  }
}

/// The shards nobody was told of that `batch` enters, and the one behind them: it is read while
/// this one is decoded.
std::span<const ShardOrder::Shard> Loader::Impl::due_shards(int64_t batch) {
  const size_t begin = announced_, end = samples_before(batch + 1);
  while (announced_ < shards_.size() && (announced_ == 0 || shards_[announced_ - 1].first < end))
    ++announced_;
  return std::span(shards_).subspan(begin, announced_ - begin);
}

void Loader::Impl::announce(std::span<const ShardOrder::Shard> shards) const {
  for (const ShardOrder::Shard& shard : shards)
    dataset_->storage()->will_need(shard.begin, shard.end);
}

/// Fills a part of a slot; what goes wrong is kept for the caller of next().
std::exception_ptr Loader::Impl::prepare(const Slot& slot, int64_t batch, size_t part) const {
  try {
    fill(slot, batch, part);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void Loader::Impl::fill(const Slot& slot, int64_t batch, size_t part) const {
  const auto images = slot.batch.images.as<uint8_t>();
  const auto labels = slot.batch.labels.as<int32_t>();
  const size_t first = samples_before(batch) + static_cast<size_t>(config_.rank * config_.batch);
  const size_t end = std::min(labels.size(), (part + 1) * kPart);
  for (size_t i = part * kPart; i < end; ++i) {
    const std::span<uint8_t> image = images.subspan(i * pixels_, pixels_);
    if (first + i >= order_.size()) {
      std::fill(image.begin(), image.end(), uint8_t{0});
      labels[i] = -1;
    } else if (const uint32_t id = order_[first + i]; config_.training) {
      labels[i] = dataset_->get_augmented(id, config_.seed, epoch_, image);
    } else {
      labels[i] = dataset_->get(id, image);
    }
  }
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config)
    : impl_(std::make_unique<Impl>(std::move(dataset), config)) {}
Loader::~Loader() = default;
int64_t Loader::batches() const { return impl_->batches(); }
void Loader::start(uint32_t epoch, int64_t first) { impl_->start(epoch, first); }
const Batch& Loader::next() { return impl_->next(); }

}  // namespace tw
