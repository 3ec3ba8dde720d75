// Key files are read in two forms and written in one: PEM of PKCS#8 (RFC 8410) or hexadecimal. An Ed25519 private key is a seed of 32 bytes behind a fixed DER prefix, a public key likewise.
#include "compiler/engine/Signing.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sodium.h>
#include <unistd.h>

namespace tare {
namespace {
constexpr unsigned char kPrivatePrefix[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
constexpr unsigned char kPublicPrefix[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

/// The 32 bytes in a key file of this label ("PRIVATE KEY", "PUBLIC KEY").
llvm::Expected<std::string> readKey(llvm::StringRef path, llvm::StringRef label, llvm::StringRef prefix) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return fail(ExitCode::Io, "cannot read the key: " + buffer.getError().message()).inFile(path.str());
  llvm::StringRef text = (*buffer)->getBuffer().trim();
  std::string wrong = "not an Ed25519 " + label.lower();
  std::string hint = label == "PRIVATE KEY" ? "make one with `openssl genpkey -algorithm ed25519 -out key.pem`" : "make it with `openssl pkey -in key.pem -pubout`";
  if (text.size() == 64 && llvm::all_of(text, llvm::isHexDigit)) return llvm::fromHex(text);
  std::string begin = ("-----BEGIN " + label + "-----").str(), end = ("-----END " + label + "-----").str();
  if (!text.consume_front(begin) || !text.consume_back(end)) return fail(ExitCode::Usage, wrong).inFile(path.str()).withHint(hint);
  std::string base64;
  for (char c : text)
    if (!llvm::isSpace(c)) base64 += c;
  std::vector<char> der;
  if (auto error = llvm::decodeBase64(base64, der)) {
    llvm::consumeError(std::move(error));
    return fail(ExitCode::Usage, wrong).inFile(path.str()).withHint(hint);
  }
  llvm::StringRef bytes(der.data(), der.size());
  if (!bytes.consume_front(prefix) || bytes.size() != 32) return fail(ExitCode::Usage, wrong).inFile(path.str()).withHint(hint);
  return bytes.str();
}
llvm::StringRef prefixText(const unsigned char *bytes, size_t size) { return {reinterpret_cast<const char *>(bytes), size}; }
} // namespace

llvm::Expected<Signer> readSigningKey(llvm::StringRef path) {
  if (sodium_init() < 0) return fail(ExitCode::Environment, "libsodium cannot start");
  auto seed = readKey(path, "PRIVATE KEY", prefixText(kPrivatePrefix, sizeof kPrivatePrefix));
  if (!seed) return seed.takeError();
  struct Keys { unsigned char publicKey[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES]; };
  std::shared_ptr<Keys> keys(new Keys, [](Keys *k) { sodium_memzero(k, sizeof *k), delete k; });
  crypto_sign_seed_keypair(keys->publicKey, keys->secret, reinterpret_cast<const unsigned char *>(seed->data()));
  sodium_memzero(seed->data(), seed->size());
  return Signer([keys](llvm::StringRef message) {
    std::string out(format::kSignatureBytes, '\0');
    memcpy(out.data(), keys->publicKey, 32);
    crypto_sign_detached(reinterpret_cast<unsigned char *>(out.data()) + 32, nullptr, message.bytes_begin(), message.size(), keys->secret);
    return out;
  });
}

llvm::Expected<std::string> readPublicKey(llvm::StringRef path) { return readKey(path, "PUBLIC KEY", prefixText(kPublicPrefix, sizeof kPublicPrefix)); }

static llvm::Error writeNew(const std::string &path, const std::string &text, mode_t mode) {
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file < 0 && errno == EEXIST) return fail(ExitCode::Usage, "this file exists already, and a key is never overwritten").inFile(path).withHint("give another name");
  if (file < 0) return fail(ExitCode::Io, std::string("cannot create the key file: ") + strerror(errno)).inFile(path);
  bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(file) == 0;
  int why = errno;
  if (::close(file) == 0 && written) return llvm::Error::success();
  ::unlink(path.c_str());
  return fail(ExitCode::Io, std::string("cannot write the key file: ") + strerror(why ? why : ENOSPC)).inFile(path);
}

llvm::Expected<std::string> writeKeyPair(const std::string &privatePath, const std::string &publicPath) {
  if (sodium_init() < 0) return fail(ExitCode::Environment, "libsodium cannot start");
  unsigned char seed[32], publicKey[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
  randombytes_buf(seed, sizeof seed);
  crypto_sign_seed_keypair(publicKey, secret, seed);
  auto pem = [](llvm::StringRef label, llvm::StringRef prefix, const unsigned char *bytes) {
    return ("-----BEGIN " + label + "-----\n" + llvm::encodeBase64((prefix + prefixText(bytes, 32)).str()) + "\n-----END " + label + "-----\n").str();
  };
  std::string text = pem("PRIVATE KEY", prefixText(kPrivatePrefix, sizeof kPrivatePrefix), seed);
  sodium_memzero(seed, sizeof seed), sodium_memzero(secret, sizeof secret);
  auto error = writeNew(privatePath, text, 0600);
  sodium_memzero(text.data(), text.size());
  if (error) return std::move(error);
  if (auto failed = writeNew(publicPath, pem("PUBLIC KEY", prefixText(kPublicPrefix, sizeof kPublicPrefix), publicKey), 0666)) {
    ::unlink(privatePath.c_str());
    return std::move(failed);
  }
  return llvm::toHex(llvm::ArrayRef<uint8_t>(publicKey, sizeof publicKey), /*LowerCase=*/true);
}

int checkSignature(void *user, const unsigned char *message, size_t bytes, const unsigned char *signature, const unsigned char *publicKey) {
  auto &trusted = *static_cast<const std::string *>(user);
  if (sodium_init() < 0 || trusted.size() != 32 || memcmp(trusted.data(), publicKey, 32) != 0) return 1;
  return crypto_sign_verify_detached(signature, message, bytes, publicKey);
}

} // namespace tare
