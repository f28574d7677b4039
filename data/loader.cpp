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

void check_batch(size_t samples, const LoaderConfig& config) {
  const uint64_t step = static_cast<uint64_t>(config.batch) * static_cast<uint64_t>(config.ranks);
  check(samples >= (config.training ? step : 1),
        "[loader] {} images are too few for one batch of {} on each of {} ranks", samples,
        config.batch, config.ranks);
}

namespace {

/// Samples of a ticket.
constexpr size_t kTicketSamples = 16;

/// Memory of one batch. The ring has config.prefetch slots, and one for the batch of the caller.
struct Slot {
  Buffer images, labels;
  Batch batch;
  size_t unfinished = 0;  // tickets
  std::exception_ptr error;
};

/// A part of a batch for one thread to prepare; several threads share a batch.
struct Ticket {
  Slot* slot;
  int64_t batch;  // of the epoch
  size_t part;
  std::span<const ShardOrder::Shard> shards;  // to be announced to the storage first
};

}  // namespace

/// Batches are counted over all epochs, by sequence numbers, so that a batch which the caller still
/// holds keeps its slot when start() begins another epoch. Batch s uses slot s modulo the ring:
///
///   state    condition                               left by
///   free     s >= opened_                            open()
///   open     s == opened_ - 1, next_part_ < parts_   take(), with the last ticket
///   filling  all tickets taken, unfinished > 0       finish(), with the last ticket
///   ready    returned_ <= s, unfinished == 0         next()
///   lent     s == returned_ - 1                      the following next(), to free
///
/// start() lets the tickets in progress finish, then makes every batch free that is not lent.
class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config);
  ~Impl();

  int64_t batches() const;
  void start(uint32_t epoch, int64_t first);
  const Batch& next();

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// Samples of all ranks before `batch`.
  size_t samples_before(int64_t batch) const {
    return static_cast<size_t>(batch * config_.ranks * config_.batch);
  }
  Slot& slot(int64_t sequence) { return ring_[static_cast<size_t>(sequence) % ring_.size()]; }
  bool ready(int64_t sequence) { return sequence < opened_ && slot(sequence).unfinished == 0; }
  /// Whether another batch may be opened: the epoch has one, and there is a free slot.
  bool can_open() const {
    return opened_ < std::min(end_, returned_ + static_cast<int64_t>(ring_.size()) - 1);
  }
  bool has_ticket() const { return next_part_ < parts_ || can_open(); }

  void draw_order(uint32_t epoch, int64_t first);
  void work();
  void run_ticket(Lock& lock);
  void open();
  Ticket take();
  void finish(const Ticket& ticket, const std::exception_ptr& error);
  std::span<const ShardOrder::Shard> due_shards(int64_t batch);
  std::exception_ptr prepare(const Ticket& ticket) const;
  void fill(const Ticket& ticket) const;

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderConfig config_;
  const size_t pixels_;  // bytes of one image
  const size_t parts_;   // tickets of a batch
  std::vector<Slot> ring_;

  // constant while a ticket is in progress
  uint32_t epoch_ = 0;
  std::vector<uint32_t> order_;
  std::vector<ShardOrder::Shard> shards_;  // of order_; empty: not drawn by shards

  std::mutex mutex_;  // guards what follows
  std::condition_variable work_, done_;
  int64_t opened_ = 0, returned_ = 0;  // next sequence to open, to return
  int64_t end_ = 0;                    // one past the epoch's last sequence
  int64_t offset_ = 0;                 // batch of the epoch = sequence + offset_
  size_t next_part_;                   // next ticket of the batch opened last
  size_t announced_ = 0;               // shards announced to the storage
  int in_progress_ = 0;                // tickets
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

Loader::Impl::Impl(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config)
    : dataset_(std::move(dataset)),
      config_(config),
      pixels_(static_cast<size_t>(dataset_->image.numel())),
      parts_((static_cast<size_t>(std::max<int64_t>(1, config.batch)) + kTicketSamples - 1) /
             kTicketSamples),
      ring_(static_cast<size_t>(std::max(1, config.prefetch)) + 1),
      order_(dataset_->size()),
      next_part_(parts_) {
  check(config.batch >= 1, "[loader] batch size is {}, expected at least 1", config.batch);
  check<std::logic_error>(config.threads >= 0 && config.rank >= 0 && config.rank < config.ranks,
                          "[loader] rank {} of {}, {} threads", config.rank, config.ranks,
                          config.threads);
  check_batch(dataset_->size(), config);
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
  Lock lock(mutex_);
  end_ = opened_;  // no further tickets
  next_part_ = parts_;
  done_.wait(lock, [this] { return in_progress_ == 0; });
  draw_order(epoch, first);
  opened_ = returned_;
  offset_ = first - returned_;
  end_ = returned_ + batches() - first;
  lock.unlock();
  work_.notify_all();
}

void Loader::Impl::draw_order(uint32_t epoch, int64_t first) {
  epoch_ = epoch;
  if (!config_.training) return;  // by id
  const StorageLayout* storage = dataset_->storage();
  if (!config_.shuffle_shards || storage == nullptr) {
    order_ = shuffled_order(dataset_->size(), config_.seed, epoch);
    return;
  }
  ShardOrder drawn = shard_order(storage->order(), config_.seed, epoch);
  order_ = std::move(drawn.ids);
  shards_ = std::move(drawn.shards);
  const auto after =
      std::ranges::upper_bound(shards_, samples_before(first), {}, &ShardOrder::Shard::first);
  announced_ = static_cast<size_t>(after - shards_.begin()) - 1;  // earlier shards are not read
}

const Batch& Loader::Impl::next() {
  Lock lock(mutex_);
  check<std::logic_error>(returned_ < end_, "[loader] no batch left: call start()");
  if (threads_.empty())
    while (!ready(returned_)) run_ticket(lock);
  else
    done_.wait(lock, [&] { return ready(returned_); });
  const Slot& result = slot(returned_);
  if (result.error) std::rethrow_exception(result.error);
  ++returned_;
  lock.unlock();
  work_.notify_one();  // the slot of the batch before is free
  return result.batch;
}

/// Body of a prefetch thread.
void Loader::Impl::work() {
  Lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stop_ || has_ticket(); });
    if (stop_) return;
    run_ticket(lock);
  }
}

/// Takes a ticket and prepares it without the lock.
void Loader::Impl::run_ticket(Lock& lock) {
  const Ticket ticket = take();
  lock.unlock();
  const std::exception_ptr error = prepare(ticket);
  lock.lock();
  finish(ticket, error);
}

/// Makes the tickets of the next batch.
void Loader::Impl::open() {
  Slot& opened = slot(opened_++);
  opened.unfinished = parts_;
  opened.error = nullptr;
  next_part_ = 0;
  work_.notify_all();
}

/// The next ticket of the open batch, or the first one of the next batch. Needs has_ticket().
Ticket Loader::Impl::take() {
  if (next_part_ == parts_) open();
  const int64_t sequence = opened_ - 1, batch = sequence + offset_;
  ++in_progress_;
  return {
      .slot = &slot(sequence), .batch = batch, .part = next_part_++, .shards = due_shards(batch)};
}

void Loader::Impl::finish(const Ticket& ticket, const std::exception_ptr& error) {
  if (error && !ticket.slot->error) ticket.slot->error = error;
  --ticket.slot->unfinished;
  --in_progress_;
  done_.notify_all();
}

/// The shards that `batch` starts and the shard after them, which is read while these are decoded;
/// excludes shards that were announced before.
std::span<const ShardOrder::Shard> Loader::Impl::due_shards(int64_t batch) {
  const size_t begin = announced_, end = samples_before(batch + 1);
  while (announced_ < shards_.size() && (announced_ == 0 || shards_[announced_ - 1].first < end))
    ++announced_;
  return std::span(shards_).subspan(begin, announced_ - begin);
}

/// Fills a part of a batch. Returns the error that next() will throw, or null.
std::exception_ptr Loader::Impl::prepare(const Ticket& ticket) const {
  try {
    for (const ShardOrder::Shard& shard : ticket.shards)
      dataset_->storage()->will_need(shard.begin, shard.end);
    fill(ticket);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void Loader::Impl::fill(const Ticket& ticket) const {
  const auto images = ticket.slot->batch.images.as<uint8_t>();
  const auto labels = ticket.slot->batch.labels.as<int32_t>();
  const size_t first =
      samples_before(ticket.batch) + static_cast<size_t>(config_.rank * config_.batch);
  const size_t end = std::min(labels.size(), (ticket.part + 1) * kTicketSamples);
  for (size_t i = ticket.part * kTicketSamples; i < end; ++i) {
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
