// bench encode: how fast sparse values are rounded, encoded and decoded, beside a copy.
#include <algorithm>
#include <cstring>
#include <memory>

#include "apps/bench/subcommands.h"
#include "apps/common/measurements.h"
#include "apps/common/version.h"
#include "engine/core/rng.h"
#include "engine/core/stopwatch.h"
#include "engine/io/file.h"
#include "sparsify/encoding/sparse_codec.h"
#include "sparsify/exchange.h"

namespace tw {

namespace {

struct EncodeOptions {
  int64_t entries = 1 << 20, iterations = 15;
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

const std::vector<std::string>& values_of_messages() {
  const std::vector<Setting>& settings = setting_groups().find("wire").settings;
  return std::ranges::find(settings, "values", &Setting::key)->choices;
}

template <class Body>
double timed(const Body& body) {
  const Stopwatch watch;
  body();
  return watch.total();
}

void run_encode(const EncodeOptions& options) {
  const size_t n = static_cast<size_t>(options.entries), d = 1000 * n;
  const SparseVector entries = drawn_entries(n);
  const double bytes = static_cast<double>(n) * (sizeof(uint32_t) + sizeof(float));
  GrowingFile csv;
  if (!options.csv.empty()) {
    csv = GrowingFile(options.csv, GrowingFile::Start::empty);
    csv.write("values,entries,bytes_each,round_gb_s,encode_gb_s,decode_gb_s,copy_gb_s" +
              provenance_names() + "\n");
  }
  fmt::print(
      "sparse messages of {} entries with plain indices, one thread; GB/s of the 8 bytes of an "
      "entry\nin memory; copy: memcpy of as many bytes; medians of {} rounds\n\n"
      "{:<8} {:>12} {:>8} {:>8} {:>8} {:>8}\n",
      n, options.iterations, "values", "bytes/entry", "round", "encode", "decode", "copy");
  for (const std::string& values : values_of_messages()) {
    const ValueFormat format = value_format(values);
    const SparseCodec codec(format, SparseCodec::Indices::plain);
    SparseVector mine = entries, decoded;
    decoded.reserve(n);
    std::vector<std::byte> message(codec.bound(n)), from(static_cast<size_t>(bytes), std::byte{1}),
        to(from.size(), std::byte{2});
    size_t length = 0;
    std::vector<double> round, encode, decode, copy;
    for (int64_t i = 0; i <= options.iterations; ++i) {
      const double rounding = timed([&] { codec.round(mine); });
      const double writing = timed([&] { length = codec.encode(mine.view(), message.data()); });
      const double reading =
          timed([&] { codec.decode(ConstBytes(message).first(length), d, 0, decoded); });
      const double copying = timed([&] { std::memcpy(to.data(), from.data(), from.size()); });
      if (i == 0) continue;
      round.push_back(rounding);
      encode.push_back(writing);
      decode.push_back(reading);
      copy.push_back(copying);
    }
    const auto rate = [&](const std::vector<double>& seconds) {
      return bytes / median(seconds) * 1e-9;
    };
    const double each = static_cast<double>(length) / static_cast<double>(n);
    const std::string rounds = codec.exact() ? "-" : fmt::format("{:.2f}", rate(round));
    fmt::print("{:<8} {:>12.3f} {:>8} {:>8.2f} {:>8.2f} {:>8.2f}\n", values, each, rounds,
               rate(encode), rate(decode), rate(copy));
    if (csv.is_open())
      csv.write(fmt::format("{},{},{:.4f},{},{:.3f},{:.3f},{:.3f}{}\n", values, n, each,
                            codec.exact() ? "" : rounds, rate(encode), rate(decode), rate(copy),
                            provenance_cells()));
  }
}

}  // namespace

Subcommand bench_encode() {
  const auto options = std::make_shared<EncodeOptions>();
  Subcommand command{.name = "encode",
                     .help = "rounding, encoding and decoding of sparse values, beside a copy",
                     .table = {},
                     .run = [options] { run_encode(*options); }};
  OptionTable& t = command.table;
  t.group("Message");
  t.add("entries", options->entries, "entries of a message", {.least = 1, .most = 4'000'000});
  t.group("Measurement");
  t.add("iterations", options->iterations, "measured rounds; prints medians",
        {.least = 1, .most = 100000});
  t.add("csv", options->csv, "also write the table to this file", {.traits = kLocal});
  return command;
}

}  // namespace tw
