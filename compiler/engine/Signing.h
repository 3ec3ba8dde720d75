// Ed25519 keys and signatures of engines (spec 11), with libsodium. In: key files as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write
// them (PEM), or 64 hexadecimal digits. Out: a Signer for SectionWriter, a check for tare_options. Never linked into libtare_rt.
#pragma once
#include "compiler/engine/SectionWriter.h"

namespace tare {

/// Reads a private key. Errors: exit 6 when it cannot be read, 2 when it is no Ed25519 private key.
llvm::Expected<Signer> readSigningKey(llvm::StringRef path);
/// Reads a public key: 32 bytes.
llvm::Expected<std::string> readPublicKey(llvm::StringRef path);
/// Writes a new key pair as PEM; the private key's file is readable by its owner only. Returns the public key in hexadecimal. Errors: exit 2 when one of the
/// files is there already, 6 when one cannot be written; then neither is left.
llvm::Expected<std::string> writeKeyPair(const std::string &privatePath, const std::string &publicPath);
/// A tare_verify_signature; `user` points to a std::string of 32 bytes, the key that is trusted. 0 when the file was signed with it.
int checkSignature(void *user, const unsigned char *message, size_t bytes, const unsigned char *signature, const unsigned char *publicKey);

} // namespace tare
