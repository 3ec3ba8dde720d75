"""Makes documents with anchors whose labels come from the construction, never from a scanner (docs/anchors.md, "Measurements").

In: a seed, a split. Out: cases in the form of test/data/anchors/golden.jsonl, each also with `sites`: (byte of a place that looks like a designator, whether one
begins there), which train_anchors.py learns from. Must hold: a seed gives the same documents on every machine; held-out documents show decoys that training
never saw. Standard library only.

    anchor_documents.py COUNT [--seed N] [--held-out] [--kind clean|noisy|decoys|mixed] > cases.jsonl
"""
import argparse
import json
import random
import sys

import anchor_words as words

SCHEME = "https:" + "//"
DIGITS = "零一二三四五六七八九"
FINANCIAL = "零壹贰叁肆伍陆柒捌玖"
ROMAN = [(100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
KANGXI = {"一": "\u2f00", "二": "\u2f06", "八": "\u2f0b", "十": "\u2f17"}
TRADITIONAL = str.maketrans("条项编节录见参详阅据与该", "條項編節錄見參詳閱據與該")


def chinese(n, digits=DIGITS, tens=("十", "百")):
    """A number below 1000 as Chinese writes it."""
    if n < 10:
        return digits[n]
    if n < 100:
        head = "" if n < 20 and digits is DIGITS else digits[n // 10]
        return head + tens[0] + (digits[n % 10] if n % 10 else "")
    rest = n % 100
    tail = "" if rest == 0 else digits[0] + digits[rest] if rest < 10 else digits[rest // 10] + tens[0] + (digits[rest % 10] if rest % 10 else "")
    return digits[n // 100] + tens[1] + tail


def roman(n):
    out = ""
    for value, text in ROMAN:
        while n >= value:
            out, n = out + text, n - value
    return out


class Document:
    """Text in pieces with labels. `noise` is the probability of each kind of PDF debris at a place where it may stand."""

    def __init__(self, rng, lang, noise=0.0, crlf=False):
        self.rng, self.lang, self.noise, self.crlf = rng, lang, noise, crlf
        self.parts, self.length, self.anchors, self.sites = [], 0, [], []

    def hit(self, share=1.0):
        return self.rng.random() < self.noise * share

    def text(self, piece):
        if self.crlf:
            piece = piece.replace("\r\n", "\n").replace("\n", "\r\n")
        self.parts.append(piece)
        self.length += len(piece)

    def anchor(self, kind, value, surface, site=0):
        """`site`: None for headings, rows and references, which the network never judges."""
        if self.crlf:
            surface = surface.replace("\r\n", "\n").replace("\n", "\r\n")
        if site is not None:
            self.sites.append((self.length, True))
        self.anchors.append((kind, value, self.length, self.length + len(surface)))
        self.text(surface)

    def decoy(self, before, surface, after):
        """`surface` begins like a designator and is none."""
        self.text(before)
        self.sites.append((self.length, False))
        self.text(surface + after)

    def case(self, name, tags):
        text = "".join(self.parts)
        at = [0]
        for char in text:
            at.append(at[-1] + len(char.encode("utf-8")))
        anchors = [{"type": kind, "value": value, "byte": [at[a], at[b]], "char": [a, b]} for kind, value, a, b in self.anchors]
        return {"id": name, "scenario": "clause_cross_reference", "lang": self.lang, "text": text, "anchors": anchors,
                "note": tags + " generated", "sites": [[at[p], good] for p, good in self.sites]}


# ---- surfaces: (kind, value, surface) of one designator --------------------------------------------------------------------------

def zh_number(d):
    """A base number as value and surface."""
    r = d.rng
    pick = r.random()
    if pick < 0.45:
        n = r.randint(1, 199)
        style = r.random()
        if style < 0.06 and n < 100:
            return str(n), chinese(n, FINANCIAL, ("拾", "佰"))
        text = chinese(n)
        if style < 0.1 and 20 < n < 30:
            text = "廿" + DIGITS[n - 20]
        if d.hit(0.3):
            text = "".join(KANGXI.get(c, c) for c in text)
        return str(n), text
    if pick < 0.65:
        n = str(r.randint(1, 120))
    elif pick < 0.95:
        n = ".".join(str(r.randint(1, 20)) for _ in range(r.choice([2, 2, 2, 3])))
    elif pick < 0.98:
        n = f"{r.randint(2, 60)}{r.choice('ABC')}"
    else:
        high = r.randint(5, 40)
        n = f"{high}-{r.randint(1, min(3, high - 1))}"
    text = n
    if d.hit(0.5):
        text = "".join(chr(ord(c) + 0xFEE0) if c in "0123456789.-" and r.random() < 0.9 else c for c in n)
    return n, text


def spread(d, text):
    """Debris between the characters of a frame: spaces, one line break, zero-width characters, bullets."""
    r = d.rng
    if d.hit(0.35):
        space = r.choice([" ", "\u3000", "\u2009", "\u00a0"])
        return space.join(text)
    if d.hit(0.35):
        k = r.randint(1, len(text) - 1)
        return text[:k] + r.choice(["\n", "\r\n", "\n ", "\u200b", "\u2060", "\ufeff", "\u00ad", "■", "\uf0b7", " "]) + text[k:]
    return text


def zh_clause(d):
    r = d.rng
    value, text = zh_number(d)
    pick = r.random()
    unit = "条" if not (d.noise and r.random() < 0.15) else "條"
    surface = spread(d, f"第{text}{unit}")
    if pick < 0.62:
        if d.hit(0.15) and value.isdigit() and int(value) <= 20 and text == value:
            return "clause", value, f"第{chr(0x245f + int(value))}{unit}"
        return "clause", value, surface
    if pick < 0.72:
        n = r.randint(1, 9)
        return "clause", f"{value}({n})", surface + spread(d, f"第{r.choice([chinese(n), str(n)])}款")
    if pick < 0.82:
        n = r.randint(1, 12)
        return "clause", f"{value}({n})", surface + r.choice([f"第（{chinese(n)}）项", f"第({n})项", f"第（{chinese(n)}）款", f"（{chinese(n)}）", f"第{chinese(n)}项"])
    if pick < 0.88:
        a, b = r.randint(1, 6), r.randint(1, 9)
        return "clause", f"{value}({a})({b})", surface + f"第{chinese(a)}款第{r.choice([chinese(b), f'（{chinese(b)}）'])}项"
    if pick < 0.93 and "-" not in value and value.isdigit():
        n = r.randint(1, 4)
        return "clause", f"{value}-{n}", surface + f"之{chinese(n)}"
    if pick < 0.97 and value.replace(".", "").isdigit() and "." in value:
        return r.choice([("clause", value, f"第{value}款"), ("clause", f"{value}(b)", f"第{value}（b）条"), ("clause", f"{value}(c)", f"第{value}条第c项")])
    a = r.randint(1, 40)
    b = a + r.randint(1, 9)
    return r.choice([("clause", f"{a}..{b}", f"第{chinese(a)}条至第{chinese(b)}条"), ("clause", f"{a}..{b}", f"第{a}至{b}条"), ("clause", f"{a}..{b}", f"第{a}-{b}条"),
                     ("clause", f"{a},{b}", f"第{chinese(a)}、{chinese(b)}条"), ("clause", f"{a}(1),{a}(3)", f"第{chinese(a)}条第（一）、（三）项")])


def zh_annex(d):
    r = d.rng
    n = r.randint(1, 12)
    noun = r.choice(["附件", "附件", "附件", "附录", "附表"])
    if d.noise and r.random() < 0.1:
        noun = noun.translate(TRADITIONAL)
    if d.hit(0.3):
        noun = noun[0] + r.choice([" ", "\u3000", "\u200b", "\n"]) + noun[1]
    pick = r.random()
    if pick < 0.5:
        return "annex", str(n), noun + (" " if d.hit(0.3) else "") + chinese(n)
    if pick < 0.75:
        return "annex", str(n), noun + str(n)
    letter = r.choice("ABCDEFG")
    if pick < 0.88:
        return "annex", letter, noun + letter
    if pick < 0.94:
        return "annex", f"{letter}.{n}", f"{noun}{letter}.{n}"
    return r.choice([("annex", f"{n}..{n + 2}", f"{noun}{chinese(n)}至{noun}{chinese(n + 2)}"), ("annex", f"{n},{n + 1}", f"{noun}{chinese(n)}、{chinese(n + 1)}")])


def zh_table(d):
    r = d.rng
    a, b = r.randint(1, 9), r.randint(1, 15)
    noun = "表" + (r.choice([" ", "\u2009", "\n"]) if d.hit(0.3) else "")
    dash = r.choice(["-", "—", "–", "\u2011", "－", "−"]) if d.noise else "-"
    return r.choice([("table", f"{a}-{b}", f"{noun}{a}{dash}{b}"), ("table", f"{a}.{b}", f"{noun}{a}.{b}"), ("table", str(b), f"{noun}{b}"), ("table", str(b), f"{noun}{chinese(b)}"),
                     ("table", f"A.{b}", f"{noun}A.{b}")])


def en_gap(d):
    return d.rng.choice(["\u00a0", "\u2009", "\n", "\u200b ", "  "]) if d.hit(0.5) else " "


def en_noun(d, noun):
    r = d.rng
    if d.hit(0.12) and len(noun) > 4:
        k = 5 if noun == "Sub-clause" else r.randint(2, len(noun) - 2)
        return noun[:k] + r.choice(["-\n", "\u00ad"]) + noun[k:]
    if d.hit(0.06):
        return "".join(chr(ord(c) + 0xFEE0) for c in noun)
    return noun


def en_clause(d):
    r = d.rng
    noun = r.choice(["Section", "Section", "Article", "Clause", "Paragraph", "section", "clause", "SECTION", "Subsection", "Sub-clause", "Sec.", "Art.", "Para."])
    n, m = r.randint(1, 40), r.randint(1, 15)
    letter, small = r.choice("abcdef"), r.choice(["i", "ii", "iv", "vi"])
    pick = r.random()
    if pick < 0.1:
        n2 = n + r.randint(1, 9)
        plural = r.choice(["Sections", "Articles", "Clauses", "Paragraphs"])
        return r.choice([("clause", f"{n},{n2}", f"{plural} {n} and {n2}"), ("clause", f"{n}..{n2}", f"{plural} {n} to {n2}"), ("clause", f"{n}..{n2}", f"{plural} {n}–{n2}"),
                         ("clause", f"{n},{n + 1},{n + 2}", f"{plural} {n}, {n + 1} and {n + 2}"), ("clause", f"{n}({letter}),{n}(h)", f"Clause {n}({letter}) and (h)")])
    if pick < 0.16:
        return "clause", f"{n}.{m}", f"§{r.choice(['', ' ', chr(0xa0)])}{n}.{m}"
    if pick < 0.21:
        return "clause", str(m), f"Article {roman(m)}" if m in (1, 5, 10) else f"{r.choice(['Article', 'Section'])} {roman(m)}"
    if pick < 0.25:
        return "clause", f"({letter})", f"{r.choice(['paragraph', 'Paragraph', 'clause'])} ({letter})"
    value = r.choice([str(n), f"{n}.{m}", f"{n}.{m}", f"{n}.{m}.{n}", f"{n}({letter})", f"{n}.{m}({letter})", f"{n}.{m}({letter})({small})", f"{n}A", f"{n}-{m}", f"{n}({m})"])
    surface = value.replace("(", " (", 1) if "(" in value and r.random() < 0.15 else value
    gap = en_gap(d) if not (d.hit(0.1) and noun[-1] != ".") else ""
    if noun.isascii() and d.hit(0.04):
        bold = lambda c: chr(0x1D400 + ord(c) - 65) if "A" <= c <= "Z" else chr(0x1D41A + ord(c) - 97) if "a" <= c <= "z" else chr(0x1D7CE + ord(c) - 48) if c.isdigit() else c
        return "clause", value, "".join(map(bold, noun)) + " " + "".join(bold(c) if c.isdigit() else c for c in surface)
    return "clause", value, en_noun(d, noun) + gap + surface


def en_annex(d):
    r = d.rng
    noun = r.choice(["Annex", "Appendix", "Exhibit", "Schedule", "Attachment", "ANNEX", "Annexure"])
    n, letter = r.randint(1, 12), r.choice("ABCDEFGH")
    if r.random() < 0.1:
        plural = r.choice(["Annexes", "Schedules", "Exhibits"])
        return r.choice([("annex", f"{n},{n + 1}", f"{plural} {n} and {n + 1}"), ("annex", "A..C", f"{plural} A to C"), ("annex", f"{n},{n + 1},{n + 2}", f"{plural} {n}, {n + 1} and {n + 2}")])
    value, surface = r.choice([(str(n), str(n)), (letter, letter), (f"{letter}.{n}", f"{letter}.{n}"), (str(n), roman(n)), (f"{letter}-{n}", f"{letter}-{n}")])
    return "annex", value, en_noun(d, noun) + en_gap(d) + surface


def en_table(d):
    r = d.rng
    a, b = r.randint(1, 9), r.randint(1, 15)
    if r.random() < 0.08:
        return "table", f"{a}-{b},{a}-{b + 1}", f"Tables {a}-{b} and {a}-{b + 1}"
    value = r.choice([f"{a}-{b}", f"{a}.{b}", str(b), f"A-{b}", f"B.{b}"])
    return "table", value, r.choice(["Table", "TABLE"]) + en_gap(d) + value


def en_division(d):
    r = d.rng
    n = r.randint(1, 12)
    return r.choice([("division", f"chapter {n}", f"{r.choice(['Chapter', 'CHAPTER'])} {r.choice([str(n), roman(n) if n > 1 else '1'])}"),
                     ("division", f"part {n}", f"{r.choice(['Part', 'PART'])} {r.choice([str(n), roman(n)])}"), ("division", "part B", "Part B")])


def zh_division(d):
    r = d.rng
    n = r.randint(1, 15)
    text = r.choice([chinese(n), str(n)])
    unit, name = r.choice([("章", "chapter"), ("章", "chapter"), ("节", "section"), ("编", "part")])
    return "division", f"{name} {n}", f"第{text}{unit}"


ZH = [zh_clause] * 6 + [zh_annex] * 2 + [zh_table] * 2
EN = [en_clause] * 6 + [en_annex] * 2 + [en_table] * 2
ZH_CUES = "见 参见 详见 另见 参阅 参照 参考 比照 根据 依据 依照 按照 遵照 按 依".split()
EN_CUES = ["see", "see also", "cf.", "refer to", "per", "as per", "under", "pursuant to", "in accordance with", "according to", "subject to", "notwithstanding", "as set out in", "set forth in",
           "defined in", "as described in", "specified in", "as stated in", "provided in", "contained in", "listed in", "as shown in", "referred to in"]
ZH_NAMES = ["本合同", "本协议", "本办法", "本标准", "该合同", "原协议", "主合同", "上述", "前述", "《技术服务规程》", "《临床试验管理规范》", "本手册", "本章", "本附件"]


def designator(d, chinese_side, divisions=True):
    if divisions and d.rng.random() < 0.07:
        return zh_division(d) if chinese_side else en_division(d)
    return d.rng.choice(ZH if chinese_side else EN)(d)


def prose_type(kind):
    return "clause" if kind == "division" else kind


def target(kind, value):
    return f"{kind} {value}" if kind in ("annex", "table") else value


def before(d):
    """The last visible character, or a line break."""
    return next((part[-1] for part in reversed(d.parts) if part), "\n")


def mention(d, chinese_side):
    last = before(d)
    kind, value, surface = designator(d, chinese_side, divisions=last not in "\n\x0c\ufeff ")
    # Which ideographs may stand before a table is a closed list of the definition.
    while chinese_side and kind == "table" and "\u4e00" <= last <= "\u9fff" and last not in "和与及或对除合若":
        kind, value, surface = designator(d, chinese_side, divisions=False)
    d.anchor(prose_type(kind), value, surface)
    footnote(d)


def footnote(d):
    if d.hit(0.15):
        d.text(d.rng.choice("¹²³①②③⑴"))


def reference(d, chinese_side):
    """Cue, what may stand between, designator; sometimes a second one that the cue carries over to."""
    r = d.rng
    zh_cue = chinese_side if r.random() < 0.93 else not chinese_side
    cue = r.choice(ZH_CUES if zh_cue else EN_CUES)
    if not zh_cue and r.random() < 0.15:
        cue = cue[0].upper() + cue[1:]
    if zh_cue and d.hit(0.2) and len(cue) > 1:
        cue = cue[0] + r.choice(["\n", " ", "\u200b"]) + cue[1]
    if zh_cue and d.noise and r.random() < 0.12:
        cue = cue.translate(TRADITIONAL)
    between = ""
    if r.random() < 0.2:
        between = r.choice(ZH_NAMES) if chinese_side else r.choice(["the ", "this ", "said "])
    gap = "" if zh_cue and chinese_side else " "
    if d.hit(0.15):
        gap = r.choice(["\n", "\r\n", " ", "\u3000"])
    kind, value, surface = designator(d, chinese_side)
    prefix = cue + gap + between
    if kind == "division" and between in ("本章", "本附件"):
        prefix = cue + gap
    if prefix[-1] in "表附" and kind == "table":
        prefix = cue + gap
    d.anchor("cross_reference", target(kind, value), prefix + surface, None)
    if r.random() < 0.12:
        d.text(r.choice(["和", "及", "以及", "、", "或"]) if chinese_side else r.choice([" and ", " or "]))
        kind, value, surface = designator(d, chinese_side, divisions=False)
        if not chinese_side and surface[0] == "§":
            kind, value, surface = "annex", "Q", "Annex Q"
        d.anchor("cross_reference", target(kind, value), surface, None)
    else:
        footnote(d)


def fill(d, template, chinese_side, make):
    pieces = template.split("{}")
    for k, piece in enumerate(pieces):
        d.text(piece)
        if k + 1 < len(pieces):
            make(d, chinese_side)


def heading(d, chinese_side, domain):
    r = d.rng
    title = r.choice(words.TITLES[domain][0 if chinese_side else 1])
    pick = r.random()
    if pick < 0.3:
        level = r.randint(1, 6)
        text = r.choice([title, f"{r.randint(1, 9)}.{r.randint(1, 9)} {title}"])
        d.anchor("heading", text, "#" * level + " " + text, None)
        d.text("\n")
    elif pick < 0.4:
        d.text("\n")
        d.anchor("heading", title, f"{title}\n{'=' * r.randint(3, 20)}", None)
        d.text("\n")
    elif pick < 0.55:
        level = r.randint(1, 6)
        d.anchor("heading", title, f"<h{level}>{title}</h{level}>", None)
        d.text("\n")
    elif pick < 0.8:
        kind, value, surface = zh_division(d) if chinese_side else en_division(d)
        d.text(r.choice(["", "", "## ", "**", "■ " if d.noise else "", "- "]))
        d.anchor("heading", value, surface)
        d.text(f" {title}\n")
    else:
        kind, value, surface = (zh_clause if chinese_side else en_clause)(d)
        d.text(r.choice(["", "", "### ", "> ", "\uf0b7 " if d.noise else "1. "]))
        d.anchor("clause", value, surface)
        d.text(r.choice([f" {title}\n", f"　{title}\n" if chinese_side else f". {title}\n"]))


def table(d, chinese_side):
    r = d.rng
    kind, value, surface = (zh_table if chinese_side else en_table)(d)
    d.anchor("table", value, surface)
    d.text("\n\n| A | B |\n" if r.random() < 0.5 else " 汇总\n\n| 项目 | 数值 |\n")
    row = r.choice(["|---|---|", "| --- | --- |", "|:---|---:|", "| :---: | --- |", "---|---"])
    d.text(r.choice(["", " ", "  "]))
    d.anchor("table", "separator", row, None)
    d.text("\n| x | 3.2 |\n| ")
    mention(d, chinese_side)
    d.text(" | 4.2 |\n")


def hidden(d, chinese_side):
    """Text that looks like anchors inside code, comments and addresses."""
    r = d.rng
    kind, value, surface = designator(d, chinese_side, divisions=False)
    flat = surface.replace("\n", " ").replace("\r", " ")
    d.text(r.choice([f"`{flat}`", f"<!-- {flat} -->", f"\n```\n{flat}\n```\n", f"<code>{flat}</code>", r.choice([SCHEME, "www."]) + f"example.org/section-{r.randint(1, 9)}/annex3 ", "annex.4@example.org ",
                     f"<a href=\"#表3\">x</a>", "[x](#article-3)", f"<pre>{flat}</pre>"]))


def decoy(d, chinese_side, held_out):
    """A place that only its sense refuses: what is counted, a verb, a word before an outline number of the next line."""
    r = d.rng
    pick = r.random()
    if chinese_side:
        n = r.randint(1, 20)
        number = r.choice([chinese(n), str(n)])
        if pick < 0.55:
            d.decoy(r.choice(words.half(words.ZH_SEEN, held_out)), f"第{number}条", r.choice(words.half(words.ZH_COUNTED, held_out)) + r.choice(["。", "，", "很长。", "已经旧了，", "上有水。"]))
        elif pick < 0.7:
            d.decoy(r.choice(words.half(words.ZH_SEEN_LESSON, held_out)), f"第{number}节", r.choice(words.half(words.ZH_LESSONS, held_out)) + r.choice(["。", "，", "很短。"]))
        else:
            noun, mark = r.choice(["附件", "附件", "附表", "附录", "本附件", "各附件"]), r.choice(["、", "．", "、"])
            lead = noun[:-2]
            outline = f"{chinese(r.randint(1, 9))}、" if r.random() < 0.6 else f"{r.randint(1, 9)}{r.choice(['. ', '、', '．'])}"
            d.text(r.choice(["\n", "详情载于"]) + lead if not lead or r.random() < 0.5 else lead)
            d.decoy("", noun[len(lead):] + r.choice(["\n", "\r\n", " \n"]) + outline, r.choice(words.half(words.OUTLINE_ZH, held_out)) + "\n")
        return
    if pick < 0.45:
        verb = r.choice(["Schedule", "Exhibit", "Table", "Schedule"])
        d.decoy(r.choice(["", " ", "\n", "(c) ", "- "]), f"{verb} {r.randint(2, 12)}", f" {r.choice(words.half(words.EN_VERB_OBJECTS, held_out))} {r.choice(words.half(words.EN_VERB_TAILS, held_out))}. ")
    elif pick < 0.7:
        noun = r.choice(["Section", "Article", "Clause", "Annex", "Schedule", "Part", "paragraph"])
        d.decoy(r.choice(["the terms of this ", "nothing in this ", "the rest of the ", "at the end of that ", "throughout this ", "for the purposes of this "]),
                f"{noun}\n{r.randint(2, 20)}", f". {r.choice(words.half(words.OUTLINE_EN, held_out))}\n")
    else:
        d.decoy(r.choice(["the ", "The ", "every ", "an excellent ", "In the ", "that "]), r.choice(["Article I", "Part I", "Chapter I", "Article I", "Exhibit I"]), f" {r.choice(words.half(words.EN_I_VERBS, held_out))} "
                + r.choice(["last week. ", "is long. ", "was late. ", "on the train. ", "for her. "]))


def true_twin(d, chinese_side):
    """Anchors in the places where decoys stand, so that the place alone decides nothing."""
    r = d.rng
    if chinese_side:
        n = r.randint(1, 20)
        number = r.choice([chinese(n), str(n)])
        if r.random() < 0.6:
            d.text(r.choice(["违反", "适用", "除", "对", "与", "对照", "刚看到", "群里发的", "请把", "翻到", "符合", "修改", "删除", "执行", "违背", "引用", "列入", "如", "在", "将", "并由", "，", "（", "不受"]))
            d.anchor("clause", str(n), f"第{number}条")
            d.text(r.choice(["的规定", "之规定", "所列事项", "规定的期限", "约定", "内容", "要求", "第", "安全义务", "道路通行规定", "管道运输条款", "通知义务", "付款", "保密义务", "原文", "被删除", "一并适用", "和其他约定", "渔业许可", "信息披露",
                             "所称期限", "所述情形", "中的价格", "及其附件", "与本款", "或相关条款", "为准", "不一致", "有权解除", "应当优先", "限制", "但书", "前半句", "以及后文", "明确禁止", "仅适用于", "另有约定", "写明", "没有提到",
                             "允许", "处理", "办理", "处罚", "执行", "计算", "约束", "已经失效", "同时废止", "作了修改", "即告终止", "如下", "之前", "之后", "下的义务", "项下", "是", "也", "就", "都", "未", "可以", "不得", "对", "由", "已"]).rstrip("第")
                   + r.choice(["。", "，", "的规定。", "本合同。", "其他情形。"]))
        else:
            kind, noun = r.choice([("annex", "附件"), ("annex", "附录"), ("table", "表")])
            d.text("，" if r.random() < 0.5 else "“")
            d.anchor(kind, str(n), f"{noun}\n{number}")
            d.text(r.choice(["。", "的规定，", "所列，", "；", "）", "列明的", "中的", " 概况\n", "与"]))
        return
    pick = r.random()
    n = r.randint(2, 20)
    if pick < 0.4:
        noun = r.choice(["Schedule", "Exhibit", "Table", "Schedule"])
        d.text(r.choice(["", " ", "\n", "(c) ", "- ", "In "]))
        d.anchor("table" if noun == "Table" else "annex", str(n), f"{noun} {n}")
        d.text(" " + r.choice(["lists", "shows", "contains", "sets out", "applies", "is", "and the", "forms part", "to this lease", "of the", "has", "gives", "prevails", "Items", "Fees", "(continued)", "was amended", "payments", "data", "values",
            "prevails over", "governs", "provides", "requires", "states", "says", "defines", "describes", "specifies", "covers", "deals with", "refers to", "makes", "gives", "allows", "permits", "prohibits", "replaces",
            "supersedes", "are", "were", "shall", "may", "must", "will", "can", "had", "does", "together with", "below", "above", "hereto", "attached", "entitled", "or", "but", "if", "when", "where", "which", "that", "as",
            "in", "for", "from", "by", "with", "on", "under", "at", "only", "alone", "also", "not", "then", "sets", "names", "fixes", "limits", "counts", "still", "does not", "binds", "ends", "begins", "survives"]) + r.choice([" it. ", " the parties. ", " to all. ", " a fee. "]))
    elif pick < 0.7:
        noun = r.choice(["Section", "Article", "Clause", "Annex", "Schedule"])
        d.text(r.choice(["as ", "The text of ", "This follows ", "because ", "and ", "of ", "in ", "with ", "by ", "to ", "from ", "breach of ", "that ", "which ", "(", "and cites ", "unlike ", "or ", "than "]))
        d.anchor("annex" if noun in ("Annex", "Schedule") else "clause", str(n), f"{noun}\n{n}")
        d.text(r.choice([" instead. ", ". The buyer pays. ", ", however, ", "; ", " requires it. ", ". ", ") "]))
    else:
        d.text(r.choice(["the ", "The ", "In ", "by ", "that "]))
        noun = r.choice(["Article I", "Part I", "Chapter I"])
        d.anchor("clause", {"Article I": "1", "Part I": "part 1", "Chapter I": "chapter 1"}[noun], noun)
        d.text(f" {r.choice(words.EN_I_TRUE)}. ")


def document(seed, index, kind, held_out):
    """One case. `kind`: clean, noisy (PDF debris), decoys (full of them), mixed."""
    rng = random.Random(f"{seed}/{index}/{kind}/{held_out}")
    lang = rng.choice(["zh", "zh", "en", "en", "mixed"])
    noise = {"clean": 0.0, "noisy": 0.6, "decoys": 0.15, "mixed": rng.choice([0.0, 0.3, 0.6])}[kind]
    d = Document(rng, lang, noise, crlf=noise > 0 and rng.random() < 0.1)
    domain = rng.choice(list(words.TITLES))
    if d.hit(0.1):
        d.text("\ufeff")
    for line in range(rng.randint(6, 16)):
        side = lang == "zh" or (lang == "mixed" and rng.random() < 0.5)
        pick = rng.random()
        if kind == "decoys" and rng.random() < 0.5:
            decoy(d, side, held_out) if rng.random() < 0.65 else true_twin(d, side)
        elif pick < 0.2:
            d.text("" if not d.parts else "\n")
            heading(d, side, domain)
        elif pick < 0.27:
            d.text("\n")
            table(d, side)
        elif pick < 0.5:
            fill(d, rng.choice(words.ZH_MENTIONS if side else words.EN_MENTIONS), side, mention)
        elif pick < 0.72:
            fill(d, rng.choice(words.ZH_CUED if side else words.EN_CUED), side, reference)
        elif pick < 0.82:
            d.text(rng.choice(words.ZH_NEGATIVES if side else words.EN_NEGATIVES))
        elif pick < 0.86:
            hidden(d, side)
        elif pick < 0.89 and d.noise:
            d.text(f"\n第 {rng.randint(1, 90)} 页 共 90 页\n\x0c" if side else f"\nPage {rng.randint(1, 90)} of 90\n\x0c")
        elif pick < 0.94 and kind in ("mixed", "noisy"):
            decoy(d, side, held_out) if rng.random() < 0.5 else true_twin(d, side)
        else:
            d.text(rng.choice(words.ZH_FILLER if side else words.EN_FILLER))
        d.text(rng.choice(["\n", "\n", "\n\n", " " if not side else ""]))
    return d.case(f"gen-{kind}-{'h' if held_out else 't'}-{seed}-{index}", "[negative] [noise]" if noise else "[negative]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--kind", default="mixed", choices=["clean", "noisy", "decoys", "mixed"])
    args = parser.parse_args()
    for index in range(args.count):
        sys.stdout.write(json.dumps(document(args.seed, index, args.kind, args.held_out), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
