// See View.h.
#include "runtime/anchors/View.h"

namespace tare::anchors {

char32_t simplified(char32_t c) {
  if (c < 0x5000 || c > 0x9FFF) return c;
  switch (c) {
  // Units, nouns, cues and joiners.
  case U'條': return U'条';
  case U'項': return U'项';
  case U'編': return U'编';
  case U'節': return U'节';
  case U'錄': case U'録': return U'录';
  case U'見': return U'见';
  case U'參': return U'参';
  case U'詳': return U'详';
  case U'閱': case U'閲': return U'阅';
  case U'據': return U'据';
  case U'與': return U'与';
  case U'該': return U'该';
  // Names of documents.
  case U'協': return U'协';
  case U'議': return U'议';
  case U'書': return U'书';
  case U'辦': return U'办';
  case U'規': return U'规';
  case U'標': return U'标';
  case U'準': return U'准';
  case U'範': return U'范';
  case U'冊': return U'册';
  case U'說': case U'説': return U'说';
  case U'細': return U'细';
  case U'則': return U'则';
  case U'約': return U'约';
  // Words that are no unit, measures, measure words' nouns.
  case U'碼': return U'码';
  case U'紋': return U'纹';
  case U'點': return U'点';
  case U'輯': return U'辑';
  case U'號': return U'号';
  case U'個': return U'个';
  case U'張': return U'张';
  case U'頁': return U'页';
  case U'簡': return U'简';
  case U'訊': return U'讯';
  case U'聞': return U'闻';
  case U'評': return U'评';
  case U'論': return U'论';
  case U'線': return U'线';
  case U'產': return U'产';
  case U'車': return U'车';
  case U'魚': return U'鱼';
  case U'記': return U'记';
  case U'數': return U'数';
  case U'課': return U'课';
  case U'廂': return U'厢';
  case U'電': return U'电';
  case U'賽': return U'赛';
  case U'預': return U'预';
  case U'聽': return U'听';
  // Characters before a table noun.
  case U'從': return U'从';
  case U'於': return U'于';
  case U'對': return U'对';
  case U'為': case U'爲': return U'为';
  case U'將': return U'将';
  case U'續': return U'续';
  case U'並': case U'併': return U'并';
  // Numerals.
  case U'兩': return U'两';
  case U'貳': return U'贰';
  case U'叄': return U'叁';
  case U'陸': return U'陆';
  case U'萬': return U'万';
  default: return c;
  }
}

bool View::lineStart(size_t i) const {
  for (size_t steps = 0; steps < kLineStart; ++steps) {
    if (i == 0) return text.byteBase == 0;
    --i;
    if (text.mask[i] == Mask::Tag) continue;
    const char32_t c = get(i);
    switch (c) {
    case '\n': return true;
    case ' ': case '#': case '>': case '[': case '*': case '_': continue;
    case '-': case '+': {
      // A list mark is a single one with a space behind it and only spaces before it.
      if (get(i + 1) != ' ') return false;
      continue;
    }
    case '.': {
      if (i == 0 || !digit(i - 1)) return false;
      while (i > 0 && digit(i - 1)) --i;
      continue;
    }
    default: return false;
    }
  }
  return false;
}

size_t View::word(size_t i, std::string_view word) const {
  for (size_t k = 0; k < word.size(); ++k) {
    if (k && get(i) == '-') { // "Sec-\ntion"
      size_t j = spaces(i + 1);
      if (get(j) == '\n') j = spaces(j + 1), i = lower(get(j)) == static_cast<char32_t>(word[k]) ? j : i;
    }
    if (lower(get(i)) != static_cast<char32_t>(word[k])) return 0;
    ++i;
  }
  return i;
}

size_t View::hanWord(size_t i, std::u32string_view word) const {
  for (size_t k = 0; k < word.size(); ++k) {
    if (k) i = gap(i);
    if (han(i) != word[k]) return 0;
    ++i;
  }
  return i;
}

bool View::hanAt(size_t i, std::u32string_view word) const {
  for (size_t k = 0; k < word.size(); ++k)
    if (han(i + k) != word[k]) return false;
  return true;
}

} // namespace tare::anchors
