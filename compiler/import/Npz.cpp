// The zip container of .npz. In: a path. Out: its arrays, or an error that names file and entry. Holds: only regular files are opened, entries are
// stored or deflated and not encrypted, names are plain, and unpacked bytes stay under a limit that is checked before anything is unpacked.
#include "compiler/import/Npz.h"
#include "compiler/engine/AtomicFile.h"
#include "compiler/graph/Checked.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/ScopeExit.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

using namespace llvm;

namespace tare {
std::string npyHeader(const Array &array);

namespace {
std::string zipMessage(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

/// Opens a regular file for reading; a FIFO or device must not hang us.
Expected<int> openRegular(StringRef path, uint64_t &size) {
  int fd = ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(ExitCode::Io, "cannot open: " + std::string(std::strerror(errno))).inFile(path.str());
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return refuse("not a regular file").inFile(path.str());
  }
  size = uint64_t(status.st_size);
  return fd;
}

Error checkName(StringRef path, StringRef name) {
  auto bad = [&](const char *why) -> Error { return refuse(("entry '" + name + "' " + why).str()).inFile(path.str()); };
  if (!name.ends_with(".npy")) return bad("is not a .npy array");
  if (name.size() == 4 || name.size() > 4096) return bad("has an empty or over-long name");
  std::string climbing = ("/" + name).str(); // nothing is unpacked, and tensor names may hold a backslash; what climbs is refused all the same
  std::replace(climbing.begin(), climbing.end(), '\\', '/');
  if (climbing.find("/../") != std::string::npos) return bad("has an unsafe path");
  return Error::success();
}

Expected<std::string> unpack(zip_t *archive, uint64_t index, uint64_t size, StringRef path, StringRef name) {
  auto bad = [&](const Twine &why) -> Expected<std::string> { return refuse(("entry '" + name + "': " + why).str()).inFile(path.str()).ofTensor(name.str()); };
  zip_file_t *file = zip_fopen_index(archive, index, 0);
  if (!file) return bad(zip_error_strerror(zip_get_error(archive)));
  auto close = make_scope_exit([&] { zip_fclose(file); });
  std::string bytes;
  bytes.resize(size);
  uint64_t done = 0;
  while (done < size) {
    zip_int64_t got = zip_fread(file, bytes.data() + done, size - done);
    if (got < 0) return bad(zip_error_strerror(zip_file_get_error(file)));
    if (got == 0) return bad("ends after " + Twine(done) + " of " + Twine(size) + " bytes");
    done += uint64_t(got);
  }
  char beyond; // libzip checks the CRC only when the end is reached
  zip_int64_t more = zip_fread(file, &beyond, 1);
  if (more != 0) return bad(more > 0 ? "unpacks to more than its stated size" : zip_error_strerror(zip_file_get_error(file)));
  return bytes;
}
} // namespace

Expected<ArrayMap> readNpz(StringRef path, uint64_t limit) {
  uint64_t fileSize = 0;
  Expected<int> fd = openRegular(path, fileSize);
  if (!fd) return fd.takeError();
  int code = 0;
  zip_t *archive = zip_fdopen(*fd, 0, &code);
  if (!archive) {
    ::close(*fd);
    return refuse("not a readable .npz (zip) file: " + zipMessage(code)).inFile(path.str());
  }
  auto close = make_scope_exit([&] { zip_discard(archive); });
  zip_int64_t entries = zip_get_num_entries(archive, 0);
  if (entries > 100000) return fail(ExitCode::Limit, std::to_string(entries) + " entries, the limit is 100000").inFile(path.str());
  ArrayMap arrays;
  uint64_t total = 0;
  for (zip_int64_t i = 0; i < entries; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(archive, i, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_NAME) || !(stat.valid & ZIP_STAT_SIZE))
      return refuse("zip entry " + std::to_string(i) + " cannot be read").inFile(path.str());
    StringRef name = stat.name;
    if (Error error = checkName(path, name)) return error;
    auto bad = [&](const Twine &why) { return refuse(("entry '" + name + "' " + why).str()).inFile(path.str()).ofTensor(name.str()); };
    if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) && stat.encryption_method != ZIP_EM_NONE) return bad("is encrypted");
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) return bad("is compressed by method " + Twine(stat.comp_method) + "; stored and deflated are supported");
    // Deflate cannot exceed 1032:1, so a larger claim is a lie; and what is claimed must stay under the limit before a byte is unpacked.
    if (stat.comp_size > fileSize || stat.size / 1040 > stat.comp_size) return bad("claims " + Twine(stat.size) + " bytes out of " + Twine(stat.comp_size));
    std::optional<uint64_t> sum = checkedAdd(total, stat.size);
    if (!sum || *sum > limit)
      return fail(ExitCode::Limit, ("unpacks to more than " + Twine(limit) + " bytes (at entry '" + name + "')").str()).inFile(path.str()).ofTensor(name.str());
    total = *sum;
    Expected<std::string> bytes = unpack(archive, i, stat.size, path, name);
    if (!bytes) return bytes.takeError();
    StringRef key = name.drop_back(4);
    Expected<Array> array = parseNpy(*bytes, path, key);
    if (!array) return array.takeError();
    if (!arrays.emplace(key.str(), std::move(*array)).second) return bad("is there twice");
  }
  return arrays;
}

Expected<Array> readNpy(StringRef path, uint64_t limit) {
  uint64_t size = 0;
  Expected<int> fd = openRegular(path, size);
  if (!fd) return fd.takeError();
  auto close = make_scope_exit([&] { ::close(*fd); });
  if (size > limit) return fail(ExitCode::Limit, std::to_string(size) + " bytes, the limit is " + std::to_string(limit)).inFile(path.str());
  std::string bytes;
  bytes.resize(size);
  for (uint64_t done = 0; done < size;) {
    ssize_t got = ::read(*fd, bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ExitCode::Io, "cannot read: " + std::string(std::strerror(errno))).inFile(path.str());
    if (got == 0) return refuse("changed while it was read").inFile(path.str());
    done += uint64_t(got);
  }
  StringRef stem = path.substr(path.rfind('/') == StringRef::npos ? 0 : path.rfind('/') + 1);
  stem.consume_back(".npy");
  return parseNpy(bytes, path, stem);
}

Error writeNpz(StringRef path, const ArrayMap &arrays) {
  auto io = [&](const std::string &why) -> Error { return fail(ExitCode::Io, "cannot write: " + why).inFile(path.str()); };
  for (const auto &[name, array] : arrays) {
    std::optional<uint64_t> count = checkedProduct(array.shape);
    std::optional<uint64_t> size = count ? checkedMul(*count, dtypeSize(array.dtype)) : std::nullopt;
    if (!dtypeSize(array.dtype) || !size || *size != array.bytes.size())
      return fail(ExitCode::Internal, "array '" + name + "' to be written has " + std::to_string(array.bytes.size()) + " bytes, which is not shape x dtype").ofTensor(name);
  }
  auto zipError = [](zip_error_t *error) -> std::string { return zip_error_strerror(error); };
  zip_error_t error;
  zip_error_init(&error);
  auto finish = make_scope_exit([&] { zip_error_fini(&error); });
  zip_source_t *memory = zip_source_buffer_create(nullptr, 0, 0, &error);
  if (!memory) return io(zipError(&error));
  zip_source_keep(memory); // ours too: zip_close frees the archive's own reference
  auto release = make_scope_exit([&] { zip_source_free(memory); });
  zip_t *archive = zip_open_from_source(memory, ZIP_TRUNCATE, &error);
  if (!archive) {
    zip_source_free(memory);
    return io(zipError(&error));
  }
  std::vector<std::string> entries; // must live until zip_close
  entries.reserve(arrays.size());
  for (const auto &[name, array] : arrays) {
    entries.push_back(npyHeader(array) + array.bytes);
    zip_source_t *source = zip_source_buffer(archive, entries.back().data(), entries.back().size(), 0);
    zip_int64_t index = source ? zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
    // 1 January 1980 in DOS form: the date must not depend on clock or time zone.
    if (index < 0 || zip_set_file_compression(archive, index, ZIP_CM_STORE, 0) != 0 || zip_file_set_dostime(archive, index, 0, 33, 0) != 0) {
      std::string why = zipError(zip_get_error(archive));
      if (index < 0 && source) zip_source_free(source);
      zip_discard(archive);
      return io(why);
    }
  }
  if (arrays.empty()) { // libzip writes nothing for an archive without entries: its 22 bytes by hand
    zip_discard(archive);
    auto file = AtomicFile::create(path);
    if (!file) return file.takeError();
    if (auto failed = file->write(StringRef("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22))) return failed;
    return file->commit();
  }
  if (zip_close(archive) != 0) {
    std::string why = zipError(zip_get_error(archive));
    zip_discard(archive);
    return io(why);
  }
  // In memory first, then through the one recipe for files: flushed, renamed, nothing partial.
  auto file = AtomicFile::create(path);
  if (!file) return file.takeError();
  if (zip_source_open(memory) != 0) return io(zipError(zip_source_error(memory)));
  auto shut = make_scope_exit([&] { zip_source_close(memory); });
  std::string part(size_t(1) << 20, '\0');
  for (;;) {
    zip_int64_t got = zip_source_read(memory, part.data(), part.size());
    if (got < 0) return io(zipError(zip_source_error(memory)));
    if (got == 0) break;
    if (auto failed = file->write(StringRef(part.data(), static_cast<size_t>(got)))) return failed;
  }
  return file->commit();
}
} // namespace tare
