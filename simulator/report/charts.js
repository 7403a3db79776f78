"use strict";
// What every chart shares: texts, numbers, colours, layout, and a table of what is drawn.
const data = JSON.parse(document.getElementById("data").textContent);

const Text = {
  // Plotly reads a few HTML tags in its labels; a label is what it says.
  safe: (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  number: (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(5)))),
  mean: (mean, half) => Text.number(mean) + (half === null || half === undefined ? "" : " ± " + Text.number(half)),
  runs: (n) => n + (n === 1 ? " run" : " runs"),
};

// Colours of the page, light or dark; paper is light.
const Scheme = {
  paper: false,
  get dark() { return !Scheme.paper && window.matchMedia("(prefers-color-scheme: dark)").matches; },
  get ink() { return Scheme.dark ? "#e7ecf0" : "#1c2329"; },
  get soft() { return Scheme.dark ? "#a9b4be" : "#55606b"; },
  get rule() { return Scheme.dark ? "#343e47" : "#e6eaed"; },
  get ground() { return Scheme.dark ? "#14191d" : "#ffffff"; },
  visible: (colour) => (Scheme.dark && colour === "#000000" ? "#ffffff" : colour),
};

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// A colour between the page's ground (share 0) and itself (share 1).
function shade(colour, share) {
  const [parts, ground] = [colour, Scheme.ground].map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  return "#" + parts.map((part, k) => Math.round(ground[k] + (part - ground[k]) * share).toString(16).padStart(2, "0")).join("");
}

function swatch(colour, dash) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of Object.entries({ width: 30, height: 10, class: "swatch", "aria-hidden": "true" })) svg.setAttribute(name, value);
  const dashes = { solid: "", dash: "7 3", dot: "2 2", dashdot: "8 3 2 3", longdash: "11 3" }[dash];
  for (const [name, value] of Object.entries({ x1: 0, x2: 30, y1: 5, y2: 5, stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dashes }))
    line.setAttribute(name, value);
  if (colour === "#000000") line.classList.add("black");
  svg.append(line);
  return svg;
}

const FONT = { family: "system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif", size: 13 };
const CONFIG = {
  displaylogo: false, responsive: true, scrollZoom: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
  toImageButtonOptions: { format: "svg", filename: "chart" },
};

function axisLayout(title, log) {
  return {
    title: { text: Text.safe(title), standoff: 10 }, type: log ? "log" : "linear", automargin: true, zeroline: false,
    gridcolor: Scheme.rule, linecolor: Scheme.soft, ticks: "outside", tickcolor: Scheme.soft, exponentformat: "power", fixedrange: false,
    ...(log ? { dtick: 1, minor: { ticks: "outside", ticklen: 3 } } : {}),
  };
}

function draw(figure, traces, layout, caption, description, rows) {
  const chart = figure.querySelector(".chart");
  const whole = {
    font: { ...FONT, color: Scheme.ink }, paper_bgcolor: Scheme.ground, plot_bgcolor: Scheme.ground, showlegend: false, hovermode: "closest",
    margin: { l: 60, r: 16, t: 14, b: 50 }, hoverlabel: { align: "left", font: { ...FONT, size: 12.5 } }, ...layout,
  };
  chart.style.height = chart.style.minHeight = layout.height ? layout.height + "px" : "";
  Plotly.react(chart, traces, whole, CONFIG);
  chart.setAttribute("aria-label", description + " The numbers are in the table below the chart.");
  figure.querySelector("figcaption").textContent = caption;
  figure.querySelector(".numbers").replaceChildren(table(rows));
}

// A table of rows of texts; the first row has the headings.
function table([heads, ...rows]) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", textContent: text })));
  const body = rows.map((row) =>
    element("tr", {}, ...row.map((text, place) => (place ? element("td", { textContent: text }) : element("th", { scope: "row", textContent: text })))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}

function spaced(count, most) {
  const places = Array.from({ length: Math.min(count, most) }, (_, rank) => Math.round((rank * (count - 1)) / Math.max(1, Math.min(count, most) - 1)));
  return [...new Set(places)];
}
