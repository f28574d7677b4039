// Files are written completely or not at all.
#include "engine/io/file.h"

#include <sys/stat.h>

#include <future>
#include <thread>

#include "engine/core/error.h"
#include "tests/support/error_text.h"
#include "tests/support/full_disk.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(WriteAtomically, CreatesAndReplaces) {
  const TempFolder folder;
  write_atomically(folder / "a", "one");
  EXPECT_EQ(text_of(folder / "a"), "one");
  write_atomically(folder / "a", "");
  EXPECT_EQ(text_of(folder / "a"), "");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(CreateFoldersDurably, MakesMissingParents) {
  const TempFolder folder;
  create_folders_durably(folder / "a/b/c");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  create_folders_durably(folder / "a/b");
}

TEST(CreateFoldersDurably, AFileInTheWayIsAFault) {
  const TempFolder folder;
  write_atomically(folder / "a", "");
  const std::string text = error_text<Fault>([&] { create_folders_durably(folder / "a/b"); });
  EXPECT_TRUE(text.starts_with("[file] cannot create " + (folder / "a/b").string())) << text;
}

TEST(GrowingFile, AppendsOrStartsAnew) {
  const TempFolder folder;
  GrowingFile(folder / "a", GrowingFile::Start::append).write("one");
  GrowingFile file(folder / "a", GrowingFile::Start::append);
  file.write("two");
  EXPECT_EQ(text_of(folder / "a"), "onetwo");
  file.sync();
  GrowingFile(folder / "a", GrowingFile::Start::empty).write("3");
  EXPECT_EQ(text_of(folder / "a"), "3");
}

TEST(GrowingFile, ErrorsNameFileAndReason) {
  const TempFolder folder;
  EXPECT_EQ(error_text<UserError>(
                [&] { const GrowingFile file(folder / "none/a", GrowingFile::Start::append); }),
            "[file] cannot write " + (folder / "none/a").string() + ": No such file or directory");
  GrowingFile file(folder / "a", GrowingFile::Start::append);
  EXPECT_EQ(error_text<Fault>([&] {
              const FullDisk disk(100);
              file.write(std::string(200, 'x'));
            }),
            "[file] writing " + (folder / "a").string() + " failed: File too large");
}

TEST(RenameDurably, MovesAFolderWithItsFiles) {
  const TempFolder folder;
  fs::create_directory(folder / "a.part");
  write_atomically(folder / "a.part/file", "text");
  rename_durably(folder / "a.part", folder / "a");
  EXPECT_FALSE(fs::exists(folder / "a.part"));
  EXPECT_EQ(text_of(folder / "a/file"), "text");
}

TEST(RenameDurably, FailureNamesTheTarget) {
  const TempFolder folder;
  const std::string text =
      error_text<Fault>([&] { rename_durably(folder / "none", folder / "a"); });
  EXPECT_TRUE(text.starts_with("[file] cannot replace " + (folder / "a").string())) << text;
}

TEST(SyncToDisk, AMissingFolderIsAFault) {
  const TempFolder folder;
  sync_to_disk(folder.path());
  EXPECT_THROW(sync_to_disk(folder / "none"), Fault);
}

TEST(WriteOutput, ALinkKeepsAndItsTargetIsReplaced) {
  const TempFolder folder;
  write_output(folder / "a", "one");
  fs::create_symlink("a", folder / "link");
  write_output(folder / "link", "two");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(text_of(folder / "a"), "two");
  fs::create_symlink("none", folder / "dangling");
  write_output(folder / "dangling", "three");
  EXPECT_EQ(text_of(folder / "dangling"), "three");
}

TEST(WriteOutput, APipeIsWrittenInPlace) {
  const TempFolder folder;
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  auto reader = std::async(std::launch::async, [&] { return text_of(pipe); });
  write_output(pipe, "text");
  EXPECT_EQ(reader.get(), "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(CheckWritable, NamesWhatCannotBeWritten) {
  const TempFolder folder;
  check_writable(folder / "new");
  EXPECT_FALSE(fs::exists(folder / "new"));
  write_atomically(folder / "file", "text");
  check_writable(folder / "file");
  EXPECT_THROW(check_writable(folder / "file/new"), UserError);
  EXPECT_THROW(check_writable(folder / "none/new"), UserError);
}

TEST(WriteAtomically, WorksInTheCurrentFolder) {
  const TempFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_atomically("bare", "text");
  EXPECT_EQ(text_of("bare"), "text");
  fs::current_path(before);
}

TEST(WriteAtomically, AThrowingWriterKeepsTheOldFile) {
  const TempFolder folder;
  write_atomically(folder / "a", "old");
  EXPECT_THROW(write_atomically(folder / "a",
                                [](std::ostream& out) {
                                  out << "half" << std::flush;
                                  throw std::runtime_error("on purpose");
                                }),
               std::runtime_error);
  EXPECT_EQ(text_of(folder / "a"), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteAtomically, AFullDiskIsAFaultAndKeepsTheOldFile) {
  const TempFolder folder;
  write_atomically(folder / "a", "old");
  const std::string error = error_text<Fault>([&] {
    const FullDisk disk(100'000);
    write_atomically(folder / "a", std::string(1'000'000, 'x'));
  });
  EXPECT_TRUE(error.starts_with("[file] writing ")) << error;
  EXPECT_EQ(text_of(folder / "a"), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteTogether, WritesAllFilesOrNone) {
  const TempFolder folder;
  write_together(folder.path(), {{"a", "one"}, {"b", "two"}});
  {
    const FullDisk full(10);
    const std::string text = error_text<Fault>([&] {
      write_together(folder.path(), {{"a", "new"}, {"b", std::string(100, 'x')}, {"c", "new"}});
    });
    EXPECT_NE(text.find((folder / "b").string()), std::string::npos) << text;
  }
  EXPECT_EQ(text_of(folder / "a") + text_of(folder / "b"), "onetwo");
  EXPECT_EQ(files_in(folder.path()), 2u);
  write_together(folder.path(), {{"a", "new"}, {"b", "newer"}});
  EXPECT_EQ(text_of(folder / "a") + text_of(folder / "b"), "newnewer");
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(CheckFolderWritable, TakesFoldersThatAreToBeMade) {
  const TempFolder folder;
  write_atomically(folder / "file", "");
  check_folder_writable(folder.path());
  check_folder_writable(folder / "a/b/c");
  check_folder_writable("some");
  EXPECT_EQ(files_in(folder.path()), 1u);
  for (const char* wrong : {"file", "file/below"})
    EXPECT_EQ(error_text<UserError>([&] { check_folder_writable(folder / wrong); }),
              fmt::format("[file] cannot write to the folder {}: Not a directory",
                          (folder / wrong).string()));
}

TEST(WriteAtomically, DoesNotReplaceAFolder) {
  const TempFolder folder;
  fs::create_directories(folder / "a/b");
  const std::string error = error_text<Fault>([&] { write_atomically(folder / "a", "text"); });
  EXPECT_TRUE(error.starts_with("[file] cannot replace ")) << error;
  EXPECT_TRUE(fs::is_directory(folder / "a/b"));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteAtomically, RequiresTheFolder) {
  const TempFolder folder;
  const std::string error = error_text<Fault>([&] { write_atomically(folder / "no/a", "text"); });
  EXPECT_NE(error.find("No such file"), std::string::npos) << error;
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(ReadFile, NamesTheUnreadableFile) {
  const TempFolder folder;
  const std::string missing = error_text<UserError>([&] { read_file(folder / "none"); });
  EXPECT_EQ(missing, fmt::format("[file] cannot read {}: No such file or directory",
                                 (folder / "none").string()));
  const std::string wrong = error_text<UserError>([&] { read_file(folder.path()); });
  EXPECT_TRUE(wrong.ends_with("it is a folder")) << wrong;
  const std::string endless = error_text<UserError>([&] { read_file("/dev/zero"); });
  EXPECT_TRUE(endless.ends_with("/dev/zero: it is a device")) << endless;
}

TEST(ReadFile, GivesEveryByteOfAnySize) {
  const TempFolder folder;
  for (const size_t size : {0u, 1u, 65535u, 65536u, 65537u, 131072u, 300000u}) {
    std::string text(size, 'a');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7);
    write_atomically(folder / "a", text);
    EXPECT_EQ(text_of(folder / "a"), text);
  }
}

TEST(ShellWord, TheShellReadsTheNameAgain) {
  EXPECT_EQ(shell_word("runs/a-1_b.c"), "runs/a-1_b.c");
  for (const std::string name :
       {"my run", "it's", "a$HOME", "a;b", "*", "\\", "~", "ä ö", "a\"b"}) {
    const Ended ended = run_command("printf %s " + shell_word(name));
    EXPECT_EQ(ended.output, name);
  }
}

// as in --config <(generate)
TEST(ReadFile, ReadsAPipeToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text(200'000, 'x');
  std::thread writer([&] {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(ends[1], text.data() + done, text.size() - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    ::close(ends[1]);
  });
  EXPECT_EQ(text_of(fmt::format("/dev/fd/{}", ends[0])), text);
  writer.join();
  ::close(ends[0]);
}

}  // namespace
}  // namespace tw::test
