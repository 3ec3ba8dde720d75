// The grammar rule by rule. In: one line per rule of docs/anchors.md, with what it must give. Out: types and values. Holds: the expectations come from the
// definition's own examples and lists, never from a run of the scanner.
#include "test/unit/anchors/Scan.h"
#include <gtest/gtest.h>

using namespace tare::test;

struct Rule { const char *text, *anchors; };

static void expect(std::initializer_list<Rule> rules) {
  for (auto &rule : rules) EXPECT_EQ(brief(rule.text), rule.anchors) << rule.text;
}

TEST(Grammar, ChineseFrames) {
  expect({{"按本第4.2.1条", "clause=4.2.1"}, {"，第12A条", "clause=12A"}, {"，第12-1条", "clause=12-1"}, {"，第7.1(b)条", "clause=7.1(b)"}, {"，第b条", ""}, {"，第7条款", "clause=7"},
          {"，第一百二十条", "clause=120"}, {"，第一〇五条", "clause=105"}, {"，第壹佰零叁条", "clause=103"}, {"，第卅一条", "clause=31"}, {"，第十十条", ""}, {"，第04条", "clause=4"},
          {"，第⑫条", "clause=12"}, {"，第四²条", ""}, {"，第\n四\n条", "clause=4"}, {"，第\n\n四条", ""}, {"，第　１２．３　条", "clause=12.3"}, {"第三章", "heading=chapter 3"},
          {"，第三章", "clause=chapter 3"}, {"第二部分", "heading=part 2"}, {"，第二部分", ""}, {"见第二部分", "cross_reference=part 2"}, {"4.2条", ""}});
}

TEST(Grammar, ChineseChains) {
  expect({{"，第十二条第二款第三项", "clause=12(2)(3)"}, {"，第十二条之一第二款", "clause=12-1(2)"}, {"，第4条第b项", "clause=4(b)"}, {"，第八条（二）项", "clause=8(2)"}, {"，第八条（二）", "clause=8(2)"},
          {"，第三章第十二条", "clause=12"}, {"，第四章第二节", "clause=chapter 4 section 2"}, {"第四章 第二节", "heading=chapter 4 section 2"}, {"，第二款", ""}, {"，本条第二款", "clause=(2)"},
          {"，第3.5款", "clause=3.5"}, {"，第（二）项", "clause=(2)"}, {"，第5条\n第2款", "clause=5(2)"}, {"，第十二条之一般规定", "clause=12"}, {"，第12條之2", "clause=12-2"}, {"，第12条之3倍", "clause=12"}, {"，第八条\n（一）期满", "clause=8"}});
}

TEST(Grammar, ChineseListsAndRanges) {
  expect({{"，第一、三、七条", "clause=1,3,7"}, {"，第一、第三条", "clause=1,3"}, {"，第三条第（一）、（二）项", "clause=3(1),3(2)"}, {"，第3条至第5条", "clause=3..5"}, {"，第八至十一条", "clause=8..11"},
          {"，第3-5条", "clause=3..5"}, {"，第5-3条", "clause=5-3"}, {"，第六十条第二至五款", "clause=60(2)..60(5)"}, {"，第四条、第五条", "clause=4 | clause=5"}, {"，附件一、二", "annex=1,2"},
          {"，附件二至附件四", "annex=2..4"}, {"，表3-1至表3-4", "table=3-1..3-4"}, {"，附件三，一式两份", "annex=3"}, {"，附件1和10个样品", "annex=1"}, {"，第3~5条", "clause=3..5"}});
}

TEST(Grammar, ChineseOtherWords) {
  expect({{"，第一条件", ""}, {"，第二条例", ""}, {"，第三条码", ""}, {"，第一节点", ""}, {"，第二节能", ""}, {"，第一章程", ""}, {"，第三编辑部", ""}, {"，第一项目", ""}, {"，第二款式", ""},
          {"，第3条消息", ""}, {"，第二条生产线", ""}, {"，第三節課", ""}, {"见第3条消息", "cross_reference=3"}, {"附件一份", ""}, {"附件3张", ""}, {"，附件十二", "annex=12"},
          {"代表3人", ""}, {"和表3", "table=3"}, {"图表4", ""}, {"，表A.2", "table=A.2"}, {"，表2个", ""}, {"附录b", "annex=B"}, {"附件2024年报告", ""}});
}

TEST(Grammar, EnglishNumbers) {
  expect({{"a Section4.2", "clause=4.2"}, {"a SectionA", ""}, {"a Section 12A", "clause=12A"}, {"a Section 12AB", ""}, {"a Section 5th", ""}, {"a Part No. 88", ""}, {"a Clause 7.1 (b)", "clause=7.1(b)"},
          {"a Article 2(a)(iv)", "clause=2(a)(iv)"}, {"a paragraph (b)", "clause=(b)"}, {"a Section(s) 4", ""}, {"a Article IV", "clause=4"}, {"a Section V", ""}, {"an Annex V", "annex=5"}, {"an Annex C", "annex=C"},
          {"an Exhibit A-1", "annex=A-1"}, {"a Table A.1", "table=A.1"}, {"a Table IV", ""}, {"a Part B", "clause=part B"}, {"a Chapter B", ""}, {"a subsection 3.4", "clause=3.4"}, {"a Sub-clause 3", "clause=3"},
          {"a Sec. 3", "clause=3"}, {"a sec. 3", ""}, {"a §3.2", "clause=3.2"}, {"a §§ 6 and 7", "clause=6,7"}, {"a Section 8.2⑴", "clause=8.2"}, {"a Section 3.", "clause=3"}});
}

TEST(Grammar, EnglishCapitals) {
  expect({{"we schedule 3 calls", ""}, {"a table 4", ""}, {"see table 4", "cross_reference=table 4"}, {"a part 2", ""}, {"under part 2", "cross_reference=part 2"}, {"Part 2", "heading=part 2"}, {"in Part 2", "clause=part 2"},
          {"CHAPTER III", "heading=chapter 3"}, {"a SCHEDULE E", "annex=E"}});
}

TEST(Grammar, EnglishListsAndRanges) {
  expect({{"a Sections 3, 4 and 5", "clause=3,4,5"}, {"a Section 3 and 4", "clause=3"}, {"a Articles 8–10", "clause=8..10"}, {"a Section 8-10", "clause=8-10"}, {"a Sections 4.1–4.3", "clause=4.1..4.3"}, {"a Sections 12-1 and 12-2", "clause=12-1,12-2"}, {"a Clauses 7.1(a)–(c)", "clause=7.1(a)..7.1(c)"}, {"a Annexes A to C", "annex=A..C"},
          {"a Clause 1(a) and (c)", "clause=1(a),1(c)"}, {"a Sections 3 and 4, 20 staff", "clause=3,4"}, {"a Section 4 to Section 6", "clause=4..6"}, {"a Section 3 and Section 4", "clause=3 | clause=4"},
          {"a Tables 2-1 and 2-2", "table=2-1,2-2"}, {"a Articles 3 through 5", "clause=3..5"}});
}

TEST(Grammar, Cues) {
  expect({{"参\n见第3.2条", "cross_reference=3.2"}, {"意见第3条", "clause=3"}, {"如第3条", "clause=3"}, {"根据本合同第八条", "cross_reference=8"}, {"参照《办法》第9条", "cross_reference=9"}, {"依照上述第4条", "cross_reference=4"},
          {"依照本条第二款", "cross_reference=(2)"}, {"参见第3条及第4条", "cross_reference=3 | cross_reference=4"}, {"参见第3条，第4条", "cross_reference=3 | clause=4"}, {"參見第二十二條", "cross_reference=22"},
          {"as set out in Section 4", "cross_reference=4"}, {"oversee Section 4", "clause=4"}, {"refers to this Section 4", "cross_reference=4"}, {"contained in Annex A and Annex B", "cross_reference=annex A | cross_reference=annex B"},
          {"see Section 4, Section 5", "cross_reference=4 | clause=5"}, {"see 附件二", "cross_reference=annex 2"}, {"见 Clause 7", "cross_reference=7"}, {"参见**第4条**", "cross_reference=4"}, {"see\nSection\n4", "cross_reference=4"},
          {"See the <b>Table 2</b>", "cross_reference=table 2"}, {"cf. Art. 5", "cross_reference=5"}, {"见附件三 and see Table 2", "cross_reference=annex 3 | cross_reference=table 2"}, {"见5.3", ""}});
}

TEST(Grammar, Markup) {
  expect({{"# Title", "heading=Title"}, {"#Title", ""}, {"####### x", ""}, {"## 第四条 付款", "clause=4"}, {"## **Article 2** x (see Annex A)", "clause=2 | cross_reference=annex A"}, {"# a (see Annex A)", "heading=a (see Annex A)"}, {"# Schedule 3 meetings a week. ", "heading=Schedule 3 meetings a week."},
          {"Title\n===", "heading=Title"}, {"x\nTitle\n===", ""}, {"Title\n---", ""}, {"<h2 id=x>A <b>b</b></h2>", "heading=A b"}, {"<h2>x", ""}, {"|---|:-:|", ""}, {"|---|:---:|", "table=separator"}, {"--- | ---", "table=separator"}, {"----", ""},
          {"`第4条`", ""}, {"```\n第4条\n```\n第5条", "clause=5"}, {"<pre>第4条\n\n</pre>第5条", "clause=5"}, {"<!-- 第4条 -->第5条", "clause=5"}, {"[x](#第4条)", ""}, {"[x]（第4条）", "clause=4"}, {"a@annex.org annex.4@b.org", ""},
          {"https:/" "/a.org/Section-4 Section 5", "clause=5"}, {"www.a.org/附件4", "annex=4"}, {"<Annex B>", "annex=B"}, {"<a title=\"第4条\">第5条</a>", "clause=5"}, {"~~~\n第4条\n~~~", ""}, {"\\`第4条`", "clause=4"}});
}

TEST(Grammar, Outline) {
  tare_anchor_options outline{sizeof outline, 1, 0};
  EXPECT_EQ(brief("4.2 Payment\n一、总则\n（一）范围\n(a) one\n价格4.2元，见5.3所述", outline), "outline=4.2 | outline=1 | outline=(1) | outline=(a) | outline=5.3");
  EXPECT_EQ(brief("4.2 Payment\n一、总则", {sizeof outline, 0, 0}), "");
  EXPECT_EQ(brief("3.2 kg\n2024年\n第4条", outline), "outline=3.2 | clause=4");
}
