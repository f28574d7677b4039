// bench encode: how fast values of messages are rounded, encoded and decoded, beside a copy.
#include <algorithm>
#include <cstring>
#include <functional>

#include "apps/bench/subcommands.h"
#include "apps/common/measurements.h"
#include "apps/common/outputs.h"
#include "apps/common/version.h"
#include "engine/core/rng.h"
#include "engine/core/stopwatch.h"
#include "engine/io/file.h"
#include "sparsify/encoding/dense_values.h"
#include "sparsify/encoding/sparse_codec.h"
#include "sparsify/exchange.h"

namespace tw {

namespace {

struct EncodeOptions {
  int64_t entries = 1 << 20, iterations = 15;
  bool draws = false;
  std::string csv;
};

/// Entries of normal values, each 1,000th index.
SparseVector drawn_entries(size_t n) {
  SparseVector entries;
  entries.reserve(n);
  const Philox philox(1, Purpose::test);
  for (size_t i = 0; i < n; ++i) {
    const auto r = philox(i);
    entries.push(static_cast<uint32_t>(1000 * i), normal(r[0], r[1])[0]);
  }
  return entries;
}

template <class Body>
double timed(const Body& body) {
  const Stopwatch watch;
  body();
  return watch.total();
}

/// Prints the rows of the table.
class EncodeTable {
 public:
  explicit EncodeTable(const EncodeOptions& options) : options_(options) {
    csv_ = result_table(options.csv,
                        "values,entries,bytes_each,round_gb_s,encode_gb_s,decode_gb_s,copy_gb_s");
  }

  /// Times the parts of a message over values that take `bytes` in memory. `encode` returns the
  /// bytes of the message; `round` null: encode rounds. `begin` comes before each round, untimed.
  void row(const std::string& name, size_t bytes, const std::function<void()>& begin,
           const std::function<void()>& round, const std::function<size_t()>& encode,
           const std::function<void()>& decode) {
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{2});
    size_t length = 0;
    std::vector<double> rounds, encodes, decodes, copies;
    for (int64_t i = 0; i <= options_.iterations; ++i) {
      begin();
      const double rounding = round ? timed(round) : 0;
      const double writing = timed([&] { length = encode(); }), reading = timed(decode);
      const double copying = timed([&] { std::memcpy(to.data(), from.data(), bytes); });
      if (i == 0) continue;
      rounds.push_back(rounding);
      encodes.push_back(writing);
      decodes.push_back(reading);
      copies.push_back(copying);
    }
    const auto rate = [&](const std::vector<double>& seconds) {
      return static_cast<double>(bytes) / median(seconds) * 1e-9;
    };
    const double each = static_cast<double>(length) / static_cast<double>(options_.entries);
    const std::string rounded = round ? fmt::format("{:.2f}", rate(rounds)) : "";
    fmt::print("{:<10} {:>12.3f} {:>8} {:>8.2f} {:>8.2f} {:>8.2f}\n", name, each,
               round ? rounded : "-", rate(encodes), rate(decodes), rate(copies));
    if (csv_.is_open())
      csv_.write(fmt::format("{},{},{:.4f},{},{:.3f},{:.3f},{:.3f}{}\n", name, options_.entries,
                             each, rounded, rate(encodes), rate(decodes), rate(copies),
                             provenance_cells()));
  }

 private:
  const EncodeOptions& options_;
  GrowingFile csv_;
};

void run_encode(const EncodeOptions& options) {
  const size_t n = static_cast<size_t>(options.entries), d = 1000 * n;
  const SparseVector entries = drawn_entries(n);
  std::optional<RoundingDraws> draws;
  if (options.draws) draws = RoundingDraws{Philox(1, Purpose::rounding)};
  EncodeTable table(options);
  fmt::print(
      "messages of {} values, one thread: sparse ones with plain indices, and dense ones;\n"
      "GB/s of the 8 bytes of an entry, or 4 of a dense value, in memory; copy: memcpy of as many "
      "bytes;\nmedians of {} rounds\n\n{:<10} {:>12} {:>8} {:>8} {:>8} {:>8}\n",
      n, options.iterations, "values", "bytes each", "round", "encode", "decode", "copy");
  const std::vector<Setting>& settings = setting_groups().find("wire").settings;
  for (const std::string& values : std::ranges::find(settings, "values", &Setting::key)->choices) {
    const SparseCodec codec(value_format(values), SparseCodec::Indices::plain);
    SparseVector mine = entries, decoded;
    decoded.reserve(n);
    std::vector<std::byte> message(codec.bound(n));
    size_t length = 0;
    std::function<void()> round;
    if (!codec.exact()) round = [&] { codec.round(mine, nullptr, {}, draws); };
    table.row(
        values, n * (sizeof(uint32_t) + sizeof(float)), [] {}, round,
        [&] { return length = codec.encode(mine.view(), message.data()); },
        [&] { codec.decode(ConstBytes(message).first(length), d, 0, decoded); });
  }
  Context ctx;
  for (const ValueFormat format : {ValueFormat::int8, ValueFormat::int4, ValueFormat::sign}) {
    const DenseValues coding(format, 256);
    std::vector<float> mine(n), decoded(n);
    std::vector<std::byte> message(coding.bytes(n));
    table.row(
        fmt::format("dense {}", name(format)), n * sizeof(float),
        [&] {
          std::ranges::copy_n(entries.values.begin(), static_cast<ptrdiff_t>(n), mine.begin());
        },
        {},
        [&] {
          coding.write(ctx, mine, message.data(), draws);
          return message.size();
        },
        [&] { coding.read(ctx, message.data(), decoded); });
  }
}

}  // namespace

Subcommand bench_encode() {
  auto [command, options] = subcommand(
      "encode", "rounding, encoding and decoding of values of messages, beside a copy", run_encode);
  OptionTable& t = command.table;
  t.group("Message");
  t.add("entries", options->entries, "entries of a message", {.least = 1, .most = 4'000'000});
  t.add("draws", options->draws, "round as without error feedback, by random numbers");
  t.group("Measurement");
  t.add("iterations", options->iterations, "measured rounds; prints medians",
        {.least = 1, .most = 100000});
  t.add("csv", options->csv, "also write the table to this file", {.traits = kLocal});
  return command;
}

}  // namespace tw
