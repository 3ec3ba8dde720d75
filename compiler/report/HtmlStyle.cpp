// The style sheet of the HTML report, inline. Out: CSS. Holds: system fonts, no URL; prefers-color-scheme switches between light and dark; wide tables scroll
// inside their own box, so the page never does; print shows all evidence in black on white.
#include "compiler/report/HtmlParts.h"

namespace tare::report::html {

const char *style() {
  return R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--panel:#fff;--ink:#1c2430;--soft:#5b6675;--line:#dfe3e9;--accent:#2563c9;--good:#17794a;--good-bg:#e2f4ea;
--bad:#b3401f;--bad-bg:#fbe9e2;--cool:#5a5fb0;--cool-bg:#e9eafb;--track:#e8ebf0;--heat:37,99,201;--edge:rgba(28,36,48,.22)}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--panel:#1a2028;--ink:#e4e9f0;--soft:#98a4b3;--line:#2c3542;--accent:#7cb0ff;--good:#6fd6a0;--good-bg:#173427;
--bad:#f2a184;--bad-bg:#3d241b;--cool:#b3b7ff;--cool-bg:#26284a;--track:#2a323d;--heat:124,176,255;--edge:rgba(0,0,0,.7)}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;margin:38px 0 12px}
p{margin:6px 0}
.soft,small{color:var(--soft)}
code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.9em;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:12px;margin-top:20px}
.card,.panel{background:var(--panel);border:1px solid var(--line);border-radius:10px}
.card{padding:14px 16px}
.card .label{color:var(--soft);font-size:13px}
.card .value{font-size:26px;font-weight:650;line-height:1.25;font-variant-numeric:tabular-nums}
.card.good .value{color:var(--good)}.card.bad .value{color:var(--bad)}
.card .detail{color:var(--soft);font-size:13px}
.panel{padding:4px 16px 12px;margin-bottom:12px}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:10px}
/* A shadow at the edge behind which there is more. */
.scroll,.inner{background:linear-gradient(90deg,var(--panel) 40%,transparent) 0/40px 100% no-repeat local,linear-gradient(270deg,var(--panel) 40%,transparent) 100%/40px 100% no-repeat local,
linear-gradient(90deg,var(--edge),transparent) 0/14px 100% no-repeat,linear-gradient(270deg,var(--edge),transparent) 100%/14px 100% no-repeat,var(--panel)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th{font-weight:600;font-size:13px;color:var(--soft);text-align:left;white-space:nowrap}
th,td{padding:8px 14px;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child>td{border-bottom:0}
.r{text-align:right;white-space:nowrap}
td.name{font-weight:600;overflow-wrap:anywhere;min-width:min(15em,44vw);max-width:22em}
td.name small{font-weight:400;font-size:12px}
td>code{white-space:nowrap;overflow-wrap:normal}
td.note{min-width:17em}
.badge{display:inline-block;padding:1px 9px;border-radius:99px;font-size:13px;font-weight:600;white-space:nowrap;background:var(--cool-bg);color:var(--cool)}
.badge.pruned{background:var(--good-bg);color:var(--good)}.badge.rejected{background:var(--bad-bg);color:var(--bad)}
.line{color:var(--bad);font-size:14px;overflow-wrap:anywhere}
details.panel{padding:0}
details.panel>summary{padding:11px 16px;cursor:pointer;display:flex;flex-wrap:wrap;gap:4px 12px;align-items:center}
details.panel>summary b{overflow-wrap:anywhere}
details.panel[open]>summary{border-bottom:1px solid var(--line)}
details.panel>div{padding:12px 16px}
.facts{display:grid;grid-template-columns:minmax(150px,max-content) minmax(90px,max-content) 1fr;gap:8px 18px;align-items:center}
.facts>.v{font-variant-numeric:tabular-nums;text-align:right;white-space:nowrap}
.track{position:relative;display:block;height:10px;min-width:90px;border-radius:5px;background:var(--track)}
.fill{position:absolute;inset:0 auto 0 0;border-radius:5px;background:var(--accent)}
.fill.good{background:var(--good)}.fill.bad{background:var(--bad)}.fill.before{background:var(--soft);opacity:.55}
.mark{position:absolute;top:-3px;bottom:-3px;width:2px;background:var(--ink)}
.inner{margin-top:14px;overflow-x:auto}
.inner th,.inner td{padding:5px 12px 5px 0;font-size:14px}
.heat td{text-align:right}
.heat td.name{text-align:left}
.chain{display:grid;grid-template-columns:1fr 1fr;gap:0 18px;max-width:720px}
.chain .head{font-weight:600;color:var(--soft);font-size:13px;padding-bottom:6px}
.node{border:1px solid var(--line);border-radius:8px;padding:5px 12px;background:var(--panel);display:flex;justify-content:space-between;gap:10px;overflow-wrap:anywhere}
.node.pruned{border-color:var(--good);color:var(--good);background:var(--good-bg)}.node.rejected{border-color:var(--bad);color:var(--bad);background:var(--bad-bg)}
.node.check{border-color:var(--cool);color:var(--cool);background:var(--cool-bg)}
.wire{height:12px;border-left:2px solid var(--line);margin-left:24px}
.bypass{border-left:2px solid var(--good);margin-left:24px;padding-left:12px;color:var(--good);font-size:13px;display:flex;align-items:center}
.pairs{display:grid;grid-template-columns:minmax(90px,max-content) 1fr max-content;gap:6px 14px;align-items:center}
.pairs .gap{grid-column:1/-1;height:6px}
footer{margin-top:44px;color:var(--soft);font-size:13px;border-top:1px solid var(--line);padding-top:14px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:3px 16px;margin:0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
@media (max-width:640px){main{padding:18px 12px 40px}.facts{grid-template-columns:1fr auto}.facts>.track{grid-column:1/-1}dl{grid-template-columns:1fr}dd{margin-bottom:6px}
.pairs{grid-template-columns:1fr max-content;grid-auto-flow:dense}.pairs>.track{grid-column:1/-1}th,td{padding:7px 9px}.node small{display:none}td>code{white-space:normal}td.note{min-width:12em}.chain{gap:0 8px}.node{padding:4px 8px;font-size:13px}.bypass{font-size:12px;padding-left:6px}}
@media print{body{background:#fff}.panel,.card,.scroll{break-inside:avoid}details.panel>div{display:block}}
)css";
}

} // namespace tare::report::html
