// tare scan FILE|-: the structural anchors of a text, and tare anchors --vector TEXT: its hashed anchor vector (docs/anchors.md). In: UTF-8 of any size, read in
// pieces. Out: one line or one JSON object per anchor, then a summary. Holds: constant memory (the token offsets aside); bad bytes never end a scan.
#include "compiler/report/Writers.h"
#include "runtime/tare_anchors.h"
#include "tools/tare/Commands.h"
#include "tools/tare/OutputFile.h"
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace tare::cli {
namespace {

using Json = nlohmann::ordered_json;
struct Options {
  std::string file, tokenOffsets, vector;
  bool outline = false, noNetwork = false;
};

/// Where the tokens of a tokenizer lie in the text. In: a JSON array of [begin, end] in code points, or {"unit": "byte"|"char", "offsets": [...]}.
class TokenOffsets {
public:
  llvm::Error load(const std::string &path) {
    auto bytes = readFile(path);
    if (!bytes) return bytes.takeError();
    auto bad = [&](std::string why) { return refuse("the token offsets " + why).inFile(path).withHint("give a JSON array of [begin, end], or {\"unit\": \"byte\", \"offsets\": [...]}; see docs/anchors.md"); };
    nlohmann::json json = nlohmann::json::parse(*bytes, nullptr, false);
    if (json.is_discarded()) return bad("are no JSON");
    if (json.is_object()) {
      std::string unit = json.contains("unit") && json["unit"].is_string() ? json["unit"].get<std::string>() : "char";
      if (unit != "byte" && unit != "char") return bad("have the unit '" + report::escapeTerminal(unit) + "'");
      inBytes = unit == "byte";
      if (!json.contains("offsets")) return bad("have no `offsets`");
      json = json["offsets"];
    }
    if (!json.is_array()) return bad("are no array");
    for (size_t i = 0; i < json.size(); ++i) {
      auto &pair = json[i];
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() || !pair[1].is_number_unsigned() || pair[0] > pair[1])
        return bad(fmt::format("hold no [begin, end] at token {}", i));
      Token token{pair[0].get<uint64_t>(), pair[1].get<uint64_t>(), i};
      if (token.begin == token.end) continue; // special tokens stand nowhere
      if (!tokens.empty() && token.begin < tokens.back().begin) return bad(fmt::format("go back at token {}", i));
      tokens.push_back(token);
    }
    loaded = true;
    return llvm::Error::success();
  }

  /// The first token that holds a part of the anchor; anchors come in text order.
  Json find(const tare_anchor &anchor) {
    if (!loaded) return nullptr;
    const uint64_t begin = inBytes ? anchor.byte_begin : anchor.char_begin, end = inBytes ? anchor.byte_end : anchor.char_end;
    while (next < tokens.size() && tokens[next].end <= begin) ++next;
    if (next == tokens.size() || tokens[next].begin >= end) return nullptr;
    return tokens[next].index;
  }
  bool given() const { return loaded; }

private:
  struct Token { uint64_t begin, end, index; };
  std::vector<Token> tokens;
  size_t next = 0;
  bool inBytes = false, loaded = false;
};

struct Printer {
  Console &console;
  TokenOffsets tokens;
  std::string text;

  void print(const tare_anchor &anchor) {
    Json token = tokens.find(anchor);
    const char *type = tare_anchor_type_name(anchor.type);
    if (console.json)
      text += Json{{"type", type}, {"value", anchor.value}, {"byte", {anchor.byte_begin, anchor.byte_end}}, {"char", {anchor.char_begin, anchor.char_end}}, {"token", token}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    else
      text += fmt::format("{:<15} {:<20} bytes {}-{}{}\n", type, report::escapeTerminal(anchor.value), anchor.byte_begin, anchor.byte_end,
                          tokens.given() ? " token " + (token.is_null() ? std::string("none") : token.dump()) : "");
    if (text.size() > 1 << 16) flush();
  }
  void flush() {
    console.out(text);
    text.clear();
  }
};

Json places(uint64_t count, const uint64_t *offsets) {
  return {{"count", count}, {"offsets", std::vector<uint64_t>(offsets, offsets + std::min<uint64_t>(count, TARE_ANCHOR_OFFSETS))}};
}

llvm::Error apiFailure(const tare_error &error, const std::string &file) { return fail(static_cast<ExitCode>(error.code), error.message).inFile(file); }

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number > 2) ::close(number);
  }
};

llvm::Error scan(const Options &o, Session &session, tare_anchor_summary &summary) {
  Printer printer{session.console, {}, {}};
  if (!o.tokenOffsets.empty())
    if (auto error = printer.tokens.load(o.tokenOffsets)) return error;
  Descriptor input{o.file == "-" ? 0 : ::open(o.file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (input.number < 0) return fail(ExitCode::Io, fmt::format("cannot open: {}", std::strerror(errno))).inFile(o.file).withHint("give a text file, or - for standard input");
  tare_error error{};
  tare_anchor_options options{sizeof options, o.outline, o.noNetwork};
  auto print = [](void *user, const tare_anchor *anchor) { static_cast<Printer *>(user)->print(*anchor); };
  std::unique_ptr<tare_anchor_scanner_t, decltype(&tare_anchor_scanner_destroy)> scanner(tare_anchor_scanner_create(&options, print, &printer, &error), tare_anchor_scanner_destroy);
  if (!scanner) return apiFailure(error, o.file);
  std::vector<char> piece(1 << 16);
  for (;;) {
    const ssize_t got = ::read(input.number, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ExitCode::Io, fmt::format("cannot read: {}", std::strerror(errno))).inFile(o.file);
    if (got == 0) break;
    if (tare_anchor_scanner_feed(scanner.get(), piece.data(), static_cast<size_t>(got), &error) != TARE_OK) return apiFailure(error, o.file);
  }
  if (tare_anchor_scanner_finish(scanner.get(), &summary, &error) != TARE_OK) return apiFailure(error, o.file);
  printer.flush();
  return llvm::Error::success();
}

llvm::Expected<ExitCode> runScan(const Options &o, Session &session) {
  tare_anchor_summary s{};
  if (auto error = scan(o, session, s)) return std::move(error);
  if (session.console.json) {
    session.console.out(Json{{"summary", {{"bytes", s.bytes}, {"chars", s.chars}, {"anchors", s.anchors}, {"invalid_utf8", places(s.invalid_utf8, s.invalid_offsets)},
      {"control_characters", places(s.control_characters, s.control_offsets)}, {"conservative", s.conservative != 0}, {"network", !o.noNetwork},
      {"designators", s.triggers}, {"asked", s.asked}, {"proposed", s.proposed}}}}.dump() + "\n");
    return ExitCode::Ok;
  }
  session.console.note(fmt::format("{} anchors in {} characters ({} bytes)", s.anchors, s.chars, s.bytes));
  if (s.invalid_utf8) session.console.warn(fmt::format("{} ill-formed UTF-8 sequences, the first at byte {}: conservative mode", s.invalid_utf8, s.invalid_offsets[0]));
  if (s.control_characters) session.console.warn(fmt::format("{} control characters, the first at byte {}: conservative mode", s.control_characters, s.control_offsets[0]));
  return ExitCode::Ok;
}

llvm::Expected<ExitCode> runVector(const std::string &text, Session &session) {
  float vector[TARE_ANCHOR_VECTOR], weight = 0;
  tare_error error{};
  if (tare_anchor_vector(text.data(), text.size(), vector, &weight, &error) != TARE_OK) return apiFailure(error, "");
  std::vector<double> numbers(vector, vector + TARE_ANCHOR_VECTOR);
  if (session.console.json) session.console.out(Json{{"weight", std::round(weight * 1e6) / 1e6}, {"vector", numbers}}.dump() + "\n");
  else session.console.out(fmt::format("{}\n", fmt::join(numbers, " ")));
  return ExitCode::Ok;
}

} // namespace

void addScanCommand(CLI::App &app, Session &session) {
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "scan", "Find headings, clauses, tables, annexes and cross references in a text", [o, &session] { return runScan(*o, session); });
  c->add_option("FILE", o->file, "A text in UTF-8, or - for standard input")->required()->type_name("");
  c->add_flag("--outline", o->outline, "Also bare outline labels: `4.2 Payment`, `(a)`");
  c->add_option("--token-offsets", o->tokenOffsets, "JSON array of the tokens' [begin, end] in characters: each anchor gets its token")->type_name("FILE");
  c->add_flag("--no-network", o->noNetwork, "The grammar alone, for comparisons");
}

void addAnchorsCommand(CLI::App &app, Session &session) {
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "anchors", "The hashed anchor vector of a text, for retrieval", [o, &session] { return runVector(o->vector, session); });
  c->add_option("--vector", o->vector, "128 numbers for TEXT: norm 0.8 when it names an anchor, 0.3 when it does not")->required()->type_name("TEXT");
}

} // namespace tare::cli
