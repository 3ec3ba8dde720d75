// tare keygen KEY PUBLIC: a new Ed25519 key pair for `compile --sign` and `--public-key`. In: two file names that do not exist yet. Out: the private key (readable by
// its owner only) and the public key, both PEM as openssl reads them. Holds: no existing file is ever touched; half a pair is never left.
#include "compiler/engine/Signing.h"
#include "tools/tare/Commands.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {

void addKeygenCommand(CLI::App &app, Session &session) {
  struct Options { std::string key, publicKey; };
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "keygen", "Make an Ed25519 key pair for --sign and --public-key", [o, &session]() -> llvm::Expected<ExitCode> {
    auto id = writeKeyPair(o->key, o->publicKey);
    if (!id) return id.takeError();
    if (session.console.json) session.console.out(nlohmann::ordered_json{{"key", o->key}, {"public_key", o->publicKey}, {"public_key_hex", *id}}.dump() + "\n");
    session.console.note(fmt::format("{} signs (keep it secret), {} verifies: {}", o->key, o->publicKey, *id));
    return ExitCode::Ok;
  });
  c->add_option("KEY", o->key, "The private key to write, for `tare compile --sign`")->required()->type_name("");
  c->add_option("PUBLIC", o->publicKey, "The public key to write, for `--public-key` of run and verify")->required()->type_name("");
}

} // namespace tare::cli
