// Our own checkpoints: a file with a changed header and the right checksum is loaded, or refused
// with a UserError. The first byte selects the file; then come changes of its header: two bytes of
// position, one of what happens there, one of value. A tensor may also get another length.
#include <cstring>

#include "apps/train/checkpoint.h"
#include "comm/transports.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "sparsify/sync_sgd.h"
#include "tests/fuzz/support/input_folder.h"
#include "tests/fuzz/support/mend_safetensors.h"
#include "tests/fuzz/support/script.h"

namespace {

/// A run whose checkpoint is read again and again.
class Saved {
 public:
  Saved() : folder_("checkpoint"), model_("lenet", {.classes = 10}) {
    config_.settings = tw::default_settings();
    config_.model = "lenet";
    config_.dataset = "shapes";
    config_.sparsifier = "oktopk";
    model_.plan(ctx_, {.batch = 2});
    model_.allocate(ctx_, 1);
    sgd_ = std::make_unique<tw::SyncSgd>(ctx_, *comm_, model_.arena(), config_.sgd(),
                                         config_.settings);
    tw::save_checkpoint(*comm_, folder_.path(), config_, {.step = 3}, model_, *sgd_,
                        model_.arena().statistic_values());
    for (const char* name : kFiles) {
      const auto bytes = tw::read_file(folder_.path() / kStep / name);
      files_.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }

  void load_changed(tw::fuzz::Script& script) {
    const size_t which = script.number<uint8_t>() % files_.size();
    auto [header, tensors] = parts_of(files_[which]);
    while (!script.at_end() && !header.empty()) change(header, tensors, script);
    const uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
    bytes += header + tensors;
    tw::fuzz::mend_safetensors(bytes);
    write(which, bytes);
    try {
      tw::load_checkpoint(*comm_, folder_.path() / kStep, config_, model_, *sgd_);
    } catch (const tw::UserError&) {
    }
    write(which, files_[which]);
  }

 private:
  static constexpr const char* kStep = "step-00000003";
  static constexpr const char* kFiles[] = {"model.safetensors", "rank-0.safetensors",
                                           "momentum.safetensors"};

  static void change(std::string& header, std::string& tensors, tw::fuzz::Script& script) {
    const size_t at = script.number<uint16_t>() % header.size();
    const auto what = script.number<uint8_t>();
    const auto value = static_cast<char>(script.number<uint8_t>());
    if (what % 4 == 0)
      header[at] = value;
    else if (what % 4 == 1)
      header.insert(at, 1, value);
    else if (what % 4 == 2)
      header.erase(at, 1 + static_cast<uint8_t>(value) % 8);
    else
      resize(header, tensors, at, static_cast<int8_t>(value));
  }
  /// Gives a tensor more rows, or less, and moves those behind it. The header need not be JSON.
  static void resize(std::string& header, std::string& tensors, size_t which, int64_t more) {
    auto json = nlohmann::json::parse(header, nullptr, false);
    if (!json.is_object() || json.empty()) return;
    auto entry = json.begin();
    std::advance(entry, which % json.size());
    try {
      auto& rows = entry->at("shape").at(0);
      const auto& extent = entry->at("data_offsets");
      const int64_t begin = tw::integer_of(extent.at(0)), end = tw::integer_of(extent.at(1));
      const int64_t before = tw::integer_of(rows), bytes = end - begin;
      if (begin < 0 || begin > end || end > std::ssize(tensors)) return;
      if (before <= 0 || before > bytes || before + more < 0) return;
      const int64_t grown = bytes / before * more;
      rows = before + more;
      nlohmann::json none = nlohmann::json::array();
      for (auto& [name, other] : json.items())
        for (auto& offset : other.contains("data_offsets") ? other.at("data_offsets") : none)
          if (tw::integer_of(offset) >= end) offset = tw::integer_of(offset) + grown;
      const auto at = static_cast<size_t>(end);
      if (grown > 0) tensors.insert(at, static_cast<size_t>(grown), '\0');
      if (grown < 0) tensors.erase(at - static_cast<size_t>(-grown), static_cast<size_t>(-grown));
    } catch (const nlohmann::json::exception&) {
    }
    header = json.dump();
  }
  /// The header and the data of a safetensors file.
  static std::pair<std::string, std::string> parts_of(const std::string& file) {
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    return {file.substr(sizeof length, length), file.substr(sizeof length + length)};
  }
  void write(size_t which, const std::string& bytes) const {
    folder_.write(std::string(kStep) + "/" + kFiles[which], bytes);
  }

  tw::fuzz::InputFolder folder_;
  tw::Context ctx_;
  std::unique_ptr<tw::Communicator> comm_ = tw::make_self_communicator();
  tw::TrainConfig config_;
  tw::Model model_;
  std::unique_ptr<tw::SyncSgd> sgd_;
  std::vector<std::string> files_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Saved saved;
  tw::fuzz::Script script(data, size);
  saved.load_changed(script);
  return 0;
}
