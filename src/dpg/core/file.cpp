#include "dpg/core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "dpg/core/error.h"

namespace dpg {
namespace {

constexpr std::size_t kTextLimit = 16u << 20;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) fail("cannot open ", path.string(), ": ", std::strerror(errno));
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail("cannot read ", path.string(), ": ", std::strerror(errno));
  check(!S_ISDIR(info.st_mode), path.string(), " is a folder, not a file");
  check(S_ISREG(info.st_mode), path.string(), " is not a regular file and cannot be mapped");
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapped == MAP_FAILED) {
    size_ = 0;
    fail("cannot map ", path.string(), ": ", std::strerror(errno));
  }
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() {
  unmap();
}

void MappedFile::unmap() noexcept {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
  size_ = 0;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  // mkstemp: two writers of one file get two temporary names and the last commit wins whole.
  std::string name = path_.string() + ".XXXXXX";
  descriptor_ = ::mkstemp(name.data());
  temporary_ = name;
  if (descriptor_ < 0) fail("cannot write ", path_.string(), ": ", std::strerror(errno));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor_, 0666 & ~mask);  // mkstemp makes 0600; give what a plain open would
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t size) {
  check(descriptor_ >= 0, "write after commit to ", path_.string());
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("write");
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, "commit called twice for ", path_.string());
  if (::fsync(descriptor_) != 0) fail_with_errno("write");
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    fail("cannot write ", path_.string(), ": ", std::strerror(reason));
  }
}

void AtomicFile::fail_with_errno(const char* doing) const {
  fail("cannot ", doing, " ", path_.string(), ": ", std::strerror(errno));
}

std::string read_text(const std::filesystem::path& path) {
  const MappedFile file(path);
  check(file.bytes().size() <= kTextLimit, path.string(), " is too large for a text file");
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace dpg
