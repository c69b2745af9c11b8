// SPDX-License-Identifier: Apache-2.0
// Appends records to a JSONL file.
#include "harness/record/record_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "harness/record/declaration.h"
#include "harness/record/record_reader.h"
#include "harness/record/run_id.h"

namespace tigon {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw RecordError(fmt::format("cannot write {}: {}{}", path.string(), std::strerror(error),
                                error == ENOSPC || error == EDQUOT || error == EFBIG
                                    ? "; what was finished is kept, free some space and continue "
                                      "with --resume, or choose another folder with --out DIR"
                                    : ""));
}

// The worker of a killed run dies with it, but not in the same instant.
constexpr int kLockTries = 40;
constexpr std::chrono::milliseconds kLockPause{50};

// Length of the file up to and including its last newline.
off_t end_of_last_line(int file, off_t size) {
  char c = 0;
  while (size > 0 && !(pread(file, &c, 1, size - 1) == 1 && c == '\n')) --size;
  return size;
}

void collect_nonfinite(Json& value, const std::string& pointer, Json& found) {
  if (value.is_number_float()) {
    const double x = value.get<double>();
    if (std::isfinite(x)) return;
    found[pointer] = std::isnan(x) ? "nan" : (x > 0 ? "inf" : "-inf");
    value = nullptr;
  } else if (value.is_object()) {
    for (auto [key, member] : value.items()) collect_nonfinite(member, pointer + "/" + key, found);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      collect_nonfinite(value[i], fmt::format("{}/{}", pointer, i), found);
  }
}

}  // namespace

Json without_nonfinite(Json record) {
  Json found = Json::object();
  collect_nonfinite(record, "", found);
  if (!found.empty()) record["nonfinite"] = std::move(found);
  return record;
}

RecordWriter::RecordWriter(std::filesystem::path path, std::string run_id,
                           std::optional<uintmax_t> known)
    : path_(std::move(path)), run_id_(std::move(run_id)) {
  std::error_code error;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), error);
  if (error) fail(path_.parent_path(), error.value());
  // A pipe that is open for reading here, too, would never say that nobody else reads it.
  const bool is_pipe = std::filesystem::is_fifo(path_, error);
  file_ = open(path_.c_str(),
               (is_pipe ? O_WRONLY : O_RDWR) | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
  if (file_ < 0) fail(path_, errno);
  try {
    prepare(known);
  } catch (...) {  // no destructor follows
    ::close(file_);
    throw;
  }
}

void RecordWriter::prepare(std::optional<uintmax_t> known) {
  struct stat info {};
  if (fstat(file_, &info) != 0) fail(path_, errno);
  if (!S_ISREG(info.st_mode)) return;
  lock();
  if (fstat(file_, &info) != 0) fail(path_, errno);  // the holder of the lock may have written
  if (known && *known != static_cast<uintmax_t>(info.st_size))
    throw RecordError(
        path_.string() +
        (*known == 0 ? " holds another run, which is kept; choose another file, or continue it "
                       "with --resume"
                     : " was written by another run a moment ago; continue it again"));
  const off_t whole = end_of_last_line(file_, info.st_size);
  if (whole != info.st_size && ftruncate(file_, whole) != 0) fail(path_, errno);
}

void RecordWriter::lock() {
  for (int i = 0; i < kLockTries; ++i) {
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) return;
    // Some network file systems have no locks; the run's own name still keeps runs apart.
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    std::this_thread::sleep_for(kLockPause);
  }
  throw RecordError(
      fmt::format("{} is being written by another run; wait for its end or choose "
                  "another folder with --out DIR",
                  path_.string()));
}

RecordWriter::~RecordWriter() {
  if (file_ < 0) return;
  fsync(file_);
  ::close(file_);
}

void RecordWriter::write(std::string_view kind, const Json& fields) {
  Json record = {{"record", kind},
                 {"schema_version", schema_version()},
                 {"run_id", run_id_},
                 {"time", utc_now()}};
  for (const auto& [key, value] : fields.items()) record[key] = value;
  append(with_sum(without_nonfinite(std::move(record)).dump()) + "\n");
}

void RecordWriter::append(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) throw RecordError(fmt::format("{} is closed", path_.string()));
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(file_, line.data() + done, line.size() - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      const int error = n == 0 ? ENOSPC : errno;
      struct stat info {};
      if (done > 0 && fstat(file_, &info) == 0 && S_ISREG(info.st_mode))
          // Cuts off the torn line. Should this fail, readers drop it.
          [[maybe_unused]]
        const int cut = ftruncate(file_, info.st_size - static_cast<off_t>(done));
      fail(path_, error);
    }
  }
}

void RecordWriter::close() {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) return;
  const int file = std::exchange(file_, -1);
  const bool synced =
      fsync(file) == 0 || errno == EINVAL || errno == EROFS;  // EINVAL: no disk file
  const int error = errno;
  const bool closed = ::close(file) == 0;
  if (!synced) fail(path_, error);
  if (!closed) fail(path_, errno);
}

}  // namespace tigon
