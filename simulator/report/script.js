"use strict";
// Controls, and the three charts that follow them: curves, sweep, agents.
const EVERY = -1;
const MOST_ROWS = 40;
const at = (id) => document.getElementById(id);
const shown = new Set(data.protocols.keys());
const slice = data.axes.map(() => 0);

// An axis that another one determines (both were swept together) is no choice of its own.
const determines = (a, b) => {
  const partner = new Map();
  return data.series.every(({ at: place }) => partner.has(place[a]) ? partner.get(place[a]) === place[b] : partner.set(place[a], place[b]));
};
const free = data.axes.map((_, rank) => rank);
for (const b of [...free].reverse()) if (free.some((a) => a !== b && determines(a, b))) free.splice(free.indexOf(b), 1);

// Ranks of the series that are to be seen; `open` are axes of which every value is.
function chosen(open = []) {
  const every = (axis) => slice[axis] === EVERY || open.includes(axis) || !free.includes(axis);
  return [...data.series.keys()].filter((rank) => {
    const { protocol, at: place } = data.series[rank];
    return shown.has(protocol) && place.every((value, axis) => every(axis) || value === slice[axis]);
  });
}

// How a series is drawn: its protocol's colour, lighter to darker along the values that are all shown.
function look(rank, among) {
  const { protocol, at: place } = data.series[rank];
  const { colour: own_colour, dash, label } = data.protocols[protocol], colour = Scheme.visible(own_colour);
  const own = among.filter((other) => data.series[other].protocol === protocol);
  const share = own.length > 1 ? 0.3 + (0.7 * own.indexOf(rank)) / (own.length - 1) : 1;
  const differ = free.filter((axis) => new Set(among.map((other) => data.series[other].at[axis])).size > 1);
  const where = differ.map((axis) => data.axes[axis].name + " " + data.axes[axis].values[place[axis]]).join(", ");
  return { colour: shade(colour, share), dash, name: where ? label + ", " + where : label };
}

// The series in words, one by one if they are few; the protocols' controls say the rest.
function legend(figure, ranks) {
  const differ = free.map((axis) => [data.axes[axis], [...new Set(ranks.map((rank) => data.series[rank].at[axis]))].sort((a, b) => a - b)])
    .filter(([, places]) => places.length > 1);
  const entries = ranks.map((rank) => look(rank, ranks)).map(({ colour, dash, name }) => element("span", {}, swatch(colour, dash), name));
  const spans = differ.map(([{ name, values }, places]) => `${name} ${values[places[0]]} to ${values[places.at(-1)]}`);
  figure.querySelector(".legend").replaceChildren(...(!differ.length ? [] : entries.length <= 12 ? entries : [`pale to full colour: ${spans.join(", ")}`]));
}

function drawCurves() {
  const axis = at("curve-axis").value, metric = at("curve-metric").value, figure = at("curve");
  const [logx, logy, band] = ["curve-logx", "curve-logy", "curve-band"].map((id) => at(id).checked);
  const name = (list, id) => list.find((entry) => entry.id === id).name;
  const ranks = chosen(), curves = new Map(data.curves.curves[axis].map((curve) => [curve.s, curve]));
  const known = ranks.filter((rank) => curves.get(rank)?.m[metric] && curves.get(rank).m[metric].infinite !== "everywhere");
  const xs = known.flatMap((rank) => curves.get(rank).x).filter((x) => !logx || x > 0);
  const ends = [xs.reduce((a, b) => Math.min(a, b), Infinity), xs.reduce((a, b) => Math.max(a, b), -Infinity)];
  const positive = known.flatMap((rank) => curves.get(rank).m[metric].y.filter((y) => y > 0));
  const bottom = positive.reduce((a, b) => Math.min(a, b), Infinity) / 3;
  let single = false;
  const traces = [], rows = [["protocol", name(data.curves.axes, axis), name(data.curves.metrics, metric), "95 % half-width", "runs"]];
  for (const rank of known) {
    const { colour, dash, name: label } = look(rank, ranks), { x, m } = curves.get(rank), { y, h, n } = m[metric];
    const level = x.length === 1, runs = (k) => (Array.isArray(n) ? n[k] : n), each = m[metric].r || [];
    for (const run of each) {
      traces.push({
        type: "scatter", mode: "lines", x: level ? ends : x, y: level ? [run[0], run[0]] : run, hoverinfo: "skip", showlegend: false,
        line: { color: colour, width: 0.9, dash }, opacity: 0.6,
      });
    }
    single ||= each.length > 0;
    if (band && h && !level) traces.push(bandOf(x, y, h, colour, logy ? bottom : -Infinity, data.curves.metrics.find(({ id }) => id === metric).range));
    const hover = x.map((value, k) => `${Text.safe(label)}<br>${Text.number(value)}: <b>${Text.mean(y[k], h && h[k])}</b><br>${Text.runs(runs(k))}`);
    traces.push({
      type: "scatter", mode: "lines", name: Text.safe(label), meta: rank, x: level ? ends : x, y: level ? [y[0], y[0]] : y,
      text: level ? [hover[0], hover[0]] : hover, hoverinfo: "text", line: { color: colour, width: 2.2, dash },
    });
    for (const k of spaced(x.length, 9)) rows.push([label, Text.number(x[k]), Text.number(y[k]), Text.number(h && h[k]), String(runs(k))]);
  }
  const left = ranks.filter((rank) => !known.includes(rank)).map((rank) => look(rank, ranks).name);
  const title = `${name(data.curves.metrics, metric)} against ${name(data.curves.axes, axis)}`;
  const caption = `${title}; mean${band && !single ? " and 95 % t interval" : ""} over runs${single ? ", fewer than five of which are thin lines of their own" : ""}.` + missing(left, "infinite, or not recorded");
  legend(figure, known);
  const layout = { xaxis: axisLayout(name(data.curves.axes, axis), logx), yaxis: axisLayout(name(data.curves.metrics, metric), logy) };
  draw(figure, traces, layout, caption, `Line chart of ${title} for ${known.map((rank) => look(rank, ranks).name).join(", ") || "nothing"}.`, rows);
}

const missing = (names, why) => names.length ? ` Not drawn (${why}): ${names.slice(0, 8).join("; ")}${names.length > 8 ? ` and ${names.length - 8} more` : ""}.` : "";

// Both ends of the interval of a mean with half-width h, on a scale on which it stays between least and most (null: no
// bound), as in the figures: hushnet.simulator.figures.intervals has the formulas.
function interval(mean, h, [least, most]) {
  const plain = [mean - h, mean + h];
  if (h === 0 || least === null || mean <= least || (most !== null && mean >= most)) return plain;
  if (most === null) return [-1, 1].map((side) => least + (mean - least) * Math.exp((side * h) / (mean - least)));
  const odds = (mean - least) / (most - mean), slope = (most - least) / ((mean - least) * (most - mean));
  return [-1, 1].map((side) => least + (most - least) / (1 + 1 / (odds * Math.exp(side * slope * h))));
}

function bandOf(x, y, h, colour, bottom, range) {
  const known = x.map((_, k) => k).filter((k) => y[k] !== null && h[k] !== null);
  const ends = known.map((k) => interval(y[k], h[k], range));
  const low = ends.map((end) => Math.max(end[0], bottom)), high = ends.map((end) => end[1]);
  return {
    type: "scatter", mode: "lines", x: [...known.map((k) => x[k]), ...known.map((k) => x[k]).reverse()], y: [...high, ...low.reverse()],
    fill: "toself", fillcolor: colour + "2b", line: { width: 0 }, hoverinfo: "skip", showlegend: false,
  };
}

const finalOf = (rank) => data.finals.values[rank][at("sweep-metric").value];
const finalRange = () => data.finals.metrics.find(({ id }) => id === at("sweep-metric").value).range;
const finalName = () => data.finals.metrics.find(({ id }) => id === at("sweep-metric").value).name;

function drawSweep() {
  const axis = Number(at("sweep-axis").value), figure = at("swept"), { name, values, numbers } = data.axes[axis], ranks = chosen([axis]);
  const [logx, logy] = ["sweep-logx", "sweep-logy"].map((id) => at(id).checked);
  const lines = new Map();
  for (const rank of ranks) {
    const key = JSON.stringify([data.series[rank].protocol, ...free.filter((a) => a !== axis).map((a) => data.series[rank].at[a])]);
    lines.set(key, [...(lines.get(key) || []), rank]);
  }
  const firsts = [...lines.values()].map((line) => line[0]), traces = [], rows = [["protocol", name, finalName(), "95 % half-width", "runs", "infinite in"]];
  for (const line of lines.values()) {
    const { colour, dash, name: label } = look(line[0], firsts), sorted = [...line].sort((a, b) => data.series[a].at[axis] - data.series[b].at[axis]);
    const points = sorted.map((rank) => ({ value: data.series[rank].at[axis], final: finalOf(rank) || [null, null, 0, 0] }));
    const places = points.map(({ value }) => (numbers ? numbers[value] : Text.safe(values[value])));
    traces.push({
      type: "scatter", mode: "lines+markers", name: Text.safe(label), x: places, y: points.map(({ final }) => final[0]), hoverinfo: "text",
      error_y: {
        type: "data", symmetric: false, thickness: 1.2, width: 3, color: colour,
        array: points.map(({ final }) => (final[1] && !final[4] ? interval(final[0], final[1], finalRange())[1] - final[0] : 0)),
        arrayminus: points.map(({ final }) => (final[1] && !final[4] ? final[0] - interval(final[0], final[1], finalRange())[0] : 0)),
      },
      text: points.map(({ value, final }) => `${Text.safe(label)}<br>${Text.safe(name)} ${Text.safe(values[value])}: <b>${Text.mean(final[0], final[1])}</b><br>${Text.runs(final[2])}`),
      line: { color: colour, width: 2.2, dash }, marker: { size: 6, color: colour },
    });
    const few = points.flatMap(({ final }, k) => (final[4] || []).map((own) => [places[k], own]));
    if (few.length) traces.push({ type: "scatter", mode: "markers", x: few.map(([x]) => x), y: few.map(([, own]) => own), hoverinfo: "skip", marker: { size: 4, color: colour, symbol: "circle-open" } });
    for (const { value, final } of points) rows.push([label, values[value], Text.number(final[0]), Text.number(final[1]), String(final[2]), Text.runs(final[3])]);
  }
  legend(figure, firsts);
  const infinite = ranks.filter((rank) => finalOf(rank)?.[3]).length;
  const single = ranks.some((rank) => finalOf(rank)?.[4]);
  const caption = `${finalName()} along ${name}; mean ${single ? "over runs; fewer than five are shown one by one" : "and 95 % t interval over runs"}.` +
    (infinite ? ` At ${infinite} places some runs are infinite (never got there) and are left out of the mean; the table says how many.` : "");
  const layout = { xaxis: { ...axisLayout(name, logx && numbers), ...(numbers ? {} : { type: "category" }) }, yaxis: axisLayout(finalName(), logy) };
  draw(figure, traces, layout, caption, `Line chart of ${finalName()} along ${name}.`, rows);
}

function drawSpread() {
  const metric = at("agent-metric").value, figure = at("spread"), title = data.spreads.metrics.find(({ id }) => id === metric)?.name;
  if (title === undefined) return;
  const counted = (rank) => data.spreads.values[rank][metric]?.[8] > 0;
  const ranks = chosen(), known = ranks.filter((rank) => counted(rank)).slice(0, MOST_ROWS), traces = [];
  const rows = [["protocol", "least", "5 %", "25 %", "median", "75 %", "95 %", "most", "mean", "agents", "infinite"]];
  const labels = known.map((rank) => Text.safe(look(rank, ranks).name));
  known.forEach((rank, place) => {
    const [...q] = data.spreads.values[rank][metric], [mean, n, infinite] = q.splice(7), { colour, name } = look(rank, ranks);
    traces.push({
      type: "box", orientation: "h", y: [place], q1: [q[2]], median: [q[3]], q3: [q[4]], lowerfence: [q[1]], upperfence: [q[5]], mean: [mean], name: labels[place],
      line: { color: colour, width: 1.6 }, fillcolor: colour + "2b", width: 0.55, hoverinfo: "x", hoveron: "boxes",
    });
    rows.push([name, ...q.map(Text.number), Text.number(mean), String(n), String(infinite)]);
  });
  const left = ranks.filter((rank) => !counted(rank)).map((rank) => look(rank, ranks).name);
  const more = ranks.length - left.length - known.length;
  const caption = `${title} at the end, over the agents of all finished runs: median, quartiles, and whiskers from the 5 % to the 95 % quantile; the dashed line is the mean.` +
    missing(left, "infinite for every agent, or not recorded") + (more > 0 ? ` ${more} more are not drawn.` : "");
  const layout = {
    height: 90 + 44 * Math.max(2, known.length), xaxis: axisLayout(title, false),
    yaxis: { automargin: true, autorange: "reversed", tickvals: known.map((_, place) => place), ticktext: labels, zeroline: false, showgrid: false, ticks: "" },
  };
  draw(figure, traces, layout, caption, `Box plots of ${title} over agents for ${known.map((rank) => look(rank, ranks).name).join(", ")}.`, rows);
}

function drawAll() {
  drawCurves();
  if (at("swept")) drawSweep();
  drawSpread();
}

function fill(select, entries, first) {
  select.replaceChildren(...entries.map(([value, text]) => element("option", { value, textContent: text })));
  if (first !== undefined) select.value = first;
}

function tick(label, look, change) {
  const input = element("input", { type: "checkbox", checked: true });
  const line = element("label", {}, input, ...look, label);
  input.addEventListener("change", () => { line.classList.toggle("off", !input.checked); change(input.checked); });
  return line;
}

// Whether numbers are positive and span at least a factor of 20.
const spans = (numbers) => Boolean(numbers) && Math.min(...numbers) > 0 && Math.max(...numbers) >= 20 * Math.min(...numbers);

function controls() {
  at("protocols").append(...data.protocols.map(({ label, colour, dash }, rank) =>
    tick(label, [swatch(colour, dash)], (on) => { if (on) shown.add(rank); else shown.delete(rank); drawAll(); })));
  at("slice").append(...free.map((axis) => {
    const select = element("select"), { name, values } = data.axes[axis];
    fill(select, [...values.map((value, rank) => [rank, value]), [EVERY, "every value"]], 0);
    select.addEventListener("change", () => { slice[axis] = Number(select.value); drawAll(); });
    return element("label", {}, name, select);
  }));
  at("slice").hidden = !free.length;
  fill(at("curve-metric"), data.curves.metrics.map(({ id, name }) => [id, name]), data.start.metric);
  fill(at("curve-axis"), data.curves.axes.map(({ id, name }) => [id, name]), data.start.axis);
  fill(at("agent-metric"), data.spreads.metrics.map(({ id, name }) => [id, name]), data.start.agents);
  at("curve-logx").checked = data.start.logx;
  at("curve-logy").checked = data.start.logy;
  at("curve-choices").addEventListener("change", drawCurves);
  at("agent-choices").addEventListener("change", drawSpread);
  if (at("swept")) {
    fill(at("sweep-metric"), data.finals.metrics.map(({ id, name }) => [id, name]));
    if (data.finals.metrics.some(({ id }) => id === data.start.agents)) at("sweep-metric").value = data.start.agents;
    fill(at("sweep-axis"), free.map((axis) => [axis, data.axes[axis].name]));
    const widely = () => { at("sweep-logx").checked = spans(data.axes[Number(at("sweep-axis").value)].numbers); };
    at("sweep-axis").addEventListener("change", widely);
    widely();
    at("sweep-choices").addEventListener("change", drawSweep);
  }
  for (const form of document.querySelectorAll("form.choices, #controls")) form.hidden = false;
  for (const form of document.querySelectorAll("form.choices")) form.addEventListener("submit", (event) => event.preventDefault());
}

// On paper the charts are as wide as the page, and the scenario is open.
const PAPER = 660;
const scenario = at("scenario");
window.addEventListener("beforeprint", () => {
  Scheme.paper = true;
  drawAll();
  scenario.dataset.open = scenario.open;
  scenario.open = true;
  for (const chart of document.querySelectorAll(".js-plotly-plot")) Plotly.relayout(chart, { width: PAPER, height: chart.style.height ? chart.clientHeight : PAPER / 2 });
});
window.addEventListener("afterprint", () => {
  Scheme.paper = false;
  scenario.open = scenario.dataset.open === "true";
  drawAll();
});

// The table of runs: a filter, columns that sort, and points of the map that lead to their runs.
function runsTable() {
  const rows = [...at("runs-table").tBodies[0].rows], filter = at("run-filter");
  let point = null;
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(words.every((word) => text.includes(word)) && (point === null || row.dataset.at === point));
      if (!row.hidden) left += 1;
    }
    at("run-count").textContent = left === rows.length ? "" : `${left} of ${rows.length} runs`;
  };
  filter.addEventListener("input", () => { point = null; apply(); });
  for (const cell of document.querySelectorAll(".map a")) {
    cell.addEventListener("click", () => {
      point = cell.dataset.at;
      filter.value = "";
      point.split(",").forEach((rank, axis) => { if (data.axes.length) slice[axis] = Number(rank); });
      for (const [place, select] of [...at("slice").querySelectorAll("select")].entries()) select.value = slice[free[place]];
      const folded = at("runs-table").closest("details");
      if (folded) folded.open = true;
      apply();
      drawAll();
    });
  }
  for (const [column, head] of [...at("runs-table").tHead.rows[0].cells].entries()) {
    const button = element("button", { type: "button", textContent: head.textContent });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = (row) => row.cells[column].textContent.trim(), numeric = rows.every((row) => !text(row) || !Number.isNaN(Number(text(row))) || text(row) === "–");
      rows.sort((a, b) => (numeric ? Number(text(a)) - Number(text(b)) || 0 : text(a).localeCompare(text(b))) * (down ? -1 : 1));
      at("runs-table").tBodies[0].append(...rows);
    });
  }
}

// On a phone a row is a card, and each of its cells says which column it is of.
function named() {
  for (const made of document.querySelectorAll("section table:not(.map)")) {
    const heads = [...(made.tHead?.rows[0]?.cells || [])].map((head) => head.textContent.trim());
    for (const body of made.tBodies) for (const row of body.rows) for (const [column, cell] of [...row.cells].entries()) cell.dataset.head = heads[column] || "";
  }
}

controls();
drawAll();
runsTable();
named();
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
document.documentElement.dataset.ready = "yes";
