"""The style sheet of a report: one column, light or dark as the reader's system is, fit to print."""

from __future__ import annotations

STYLE = """
:root{--paper:#fbfbf9;--card:#fff;--ink:#1c1e21;--muted:#5b6068;--grid:#dfe1e4;--accent:#2563a8;
--series-1:#2f6db3;--series-2:#c8610f;--series-3:#3d7f4b;--bar:#d5e3f4;
--step-1:#c9dcf2;--step-2:#98bde6;--step-3:#5f95d0;--step-4:#3168ab;--step-5:#163d70;
--font:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Liberation Sans",sans-serif}
@media (prefers-color-scheme:dark){:root{--paper:#16181b;--card:#1e2125;--ink:#e6e7e9;--muted:#a3a9b2;--grid:#383d44;
--accent:#8ab8ee;--series-1:#6ea6e6;--series-2:#f0a05a;--series-3:#82c490;--bar:#2b425e;
--step-1:#2a4a70;--step-2:#3a689c;--step-3:#5b91cf;--step-4:#92bdec;--step-5:#d3e5fa}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 var(--font)}
header,main,footer{max-width:1180px;margin:0 auto;padding:0 24px}
header{padding-top:32px}
h1{font-size:28px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:21px;margin:0 0 8px}
h3{font-size:16px;margin:28px 0 4px}
p{margin:4px 0 12px;color:var(--muted);max-width:76ch;overflow-wrap:anywhere}
nav{display:flex;flex-wrap:wrap;gap:4px 18px;margin:20px 0 8px}
a{color:var(--accent)}
section{background:var(--card);border:1px solid var(--grid);border-radius:8px;padding:22px 24px;margin:18px 0}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:12px;margin:20px 0 0}
@media (max-width:900px){.tiles{grid-template-columns:repeat(2,1fr)}}
.tiles div{background:var(--card);border:1px solid var(--grid);border-radius:8px;padding:12px 16px}
dt{color:var(--muted);font-size:13px}
dd{margin:0;font-size:24px;line-height:1.3;font-variant-numeric:tabular-nums}
dd small{display:block;font-size:12.5px;color:var(--muted);min-height:1.4em}
.beside{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:8px 32px;align-items:start}
@media (max-width:900px){.beside{grid-template-columns:minmax(0,1fr)}}
figure{margin:10px 0 14px;overflow-x:auto}
figcaption,caption{text-align:left;font-size:13.5px;font-weight:600;color:var(--ink);padding:0 0 6px}
svg{width:100%;height:auto;display:block;min-width:400px;max-width:640px;font-family:var(--font)}
svg *{stroke-linejoin:round;stroke-linecap:butt}
.scroll{overflow-x:auto;margin:10px 0 16px}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px 4px 0;border-bottom:1px solid var(--grid);text-align:left;vertical-align:top;
overflow-wrap:anywhere}
thead th{color:var(--muted);font-weight:600;font-size:12.5px;vertical-align:bottom;overflow-wrap:normal}
tbody th{font-weight:400;min-width:9em}
.num{text-align:right;white-space:nowrap;padding-left:10px}
th.num:last-child,td.num:last-child{padding-right:0}
thead th.num{white-space:normal}
.bar{display:inline-block;min-width:72px;padding:0 4px;
background:linear-gradient(var(--bar),var(--bar)) left/var(--part) 100% no-repeat}
.none{color:var(--muted)}
.empty{font-size:13.5px}
details{margin:8px 0}
summary{cursor:pointer;color:var(--accent);font-size:13.5px}
footer{padding-bottom:40px;font-size:13px}
@media print{body{background:none;font-size:11px}.tiles div{break-inside:avoid}figure,table{break-inside:avoid}
nav{display:none}}
"""
