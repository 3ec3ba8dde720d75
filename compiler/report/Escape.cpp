// Escaping of names that come from a model (bad-inputs B12). In: any bytes. Out: text that is safe on a terminal, in HTML/XML, in YAML.
// Holds: no control character, no markup and no invalid UTF-8 of a model gets through to a report.
#include "compiler/report/Writers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <fmt/format.h>

namespace tare::report {

/// Calls `put(piece, special)`: special for one byte that is a control character or no valid UTF-8, else a whole character.
template <typename Put> static void eachCharacter(llvm::StringRef text, Put put) {
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    unsigned length = llvm::getNumBytesForUTF8(byte);
    auto begin = reinterpret_cast<const llvm::UTF8 *>(text.data()) + i;
    bool valid = i + length <= text.size() && llvm::isLegalUTF8Sequence(begin, begin + length);
    // C1 controls (U+0080..U+009F) drive terminals as well as ESC does.
    bool control = byte < 0x20 || byte == 0x7f || (byte == 0xc2 && valid && static_cast<unsigned char>(text[i + 1]) < 0xa0);
    if (!valid || control) length = valid ? length : 1;
    put(text.substr(i, length), !valid || control);
    i += length;
  }
}

static std::string visible(llvm::StringRef bytes) {
  std::string result;
  for (char c : bytes) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return result;
}

std::string escapeTerminal(llvm::StringRef text) {
  std::string result;
  eachCharacter(text, [&](llvm::StringRef piece, bool special) { result += special ? visible(piece) : piece.str(); });
  return result;
}

std::string escapeMarkup(llvm::StringRef text) {
  std::string result;
  eachCharacter(text, [&](llvm::StringRef piece, bool special) {
    if (special && piece != "\n") result += visible(piece);
    else if (piece == "<") result += "&lt;";
    else if (piece == ">") result += "&gt;";
    else if (piece == "&") result += "&amp;";
    else if (piece == "\"") result += "&quot;";
    else if (piece == "'") result += "&#39;";
    else if (piece == "\xef\xbf\xbe" || piece == "\xef\xbf\xbf") result += visible(piece); // U+FFFE, U+FFFF: not XML characters
    else result += piece.str();
  });
  return result;
}

std::string yamlScalar(llvm::StringRef text) {
  bool plain = !text.empty() && !llvm::isDigit(text[0]) && text[0] != '.' && text[0] != '-' && text.back() != '.';
  for (char c : text) plain &= llvm::isAlnum(c) || c == '_' || c == '.' || c == '-' || c == '/';
  for (auto word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) plain &= !text.equals_insensitive(word);
  if (plain) return text.str();
  std::string result = "\"";
  eachCharacter(text, [&](llvm::StringRef piece, bool special) {
    if (special) for (char c : piece) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else if (piece == "\"" || piece == "\\") result += "\\" + piece.str();
    else result += piece.str();
  });
  return result + "\"";
}

} // namespace tare::report
