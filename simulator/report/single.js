"use strict";
// One run: its curves before the mean of its series, its agents on their graph, its files, and how to see it go.
let one = null;

function showRun(link) {
  one = { key: link.dataset.run, id: link.dataset.id, row: link.closest("tr") };
  const run = data.single.runs[one.key], panel = at("one"), [first, ...cells] = [...one.row.cells].map((cell) => cell.textContent.trim());
  const heads = [...one.row.closest("table").tHead.rows[0].cells].slice(1, -1).map((head) => head.textContent.trim());
  panel.hidden = false;
  at("one-name").textContent = `One run: ${first}, ` + heads.slice(0, data.axes.length + 1).map((head, k) => `${head} ${cells[k]}`).join(", ");
  at("one-said").textContent = heads.slice(data.axes.length + 1).map((head, k) => `${head}: ${cells[k + data.axes.length + 1]}`).join("; ");
  at("one-id").textContent = one.id;
  for (const file of panel.querySelectorAll("[data-file]")) file.href = `${encodeURIComponent(one.id)}/${file.dataset.file}`;
  const known = data.curves.metrics.filter(({ id }) => run?.m[id]), before = at("one-metric").value;
  at("one-metric").replaceChildren(...known.map(({ id, name }) => element("option", { value: id, textContent: name })));
  const wanted = [before, at("curve-metric").value].find((id) => known.some((metric) => metric.id === id));
  if (wanted) at("one-metric").value = wanted;
  at("one-choices").hidden = known.length === 0;
  drawOne();
  panel.focus({ preventScroll: true });
  panel.scrollIntoView();
}

function drawOne() {
  if (one === null) return;
  const run = data.single.runs[one.key];
  at("one-curve").hidden = !run || !at("one-metric").value;
  at("one-agents").hidden = !run?.a;
  at("one-timeline").hidden = !(run?.t?.x.length > 1);
  if (!at("one-timeline").hidden) drawOneTimeline(run.t);
  if (!at("one-curve").hidden) drawOneCurve(run);
  if (!at("one-agents").hidden) drawOneAgents(run);
}

function drawOneCurve(run) {
  const metric = at("one-metric").value, name = data.curves.metrics.find(({ id }) => id === metric).name;
  const time = data.curves.axes.find(({ id }) => id === "time").name, { colour: own, label } = data.protocols[data.series[run.s].protocol];
  const colour = Scheme.visible(own), y = run.m[metric], level = run.x.length === 1;
  const mean = data.curves.curves.time.find(({ s }) => s === run.s), known = mean?.m[metric], traces = [];
  if (known && data.series[run.s].runs > 1) {
    const ends = level ? [...run.x, ...run.x] : mean.x;
    traces.push({ type: "scatter", mode: "lines", x: ends, y: level ? known.y.slice(0, 1) : known.y, name: "mean", hoverinfo: "skip", line: { color: Scheme.soft, width: 1.4, dash: "dot" } });
  }
  traces.push({ type: "scatter", mode: level ? "markers" : "lines+markers", x: run.x, y, name: Text.safe(label), line: { color: colour, width: 2.2 }, marker: { size: 4, color: colour } });
  const rows = [[time, name], ...spaced(run.x.length, 20).map((k) => [Text.number(run.x[k]), Text.number(y[k])])];
  const caption = `${name} of this run` + (traces.length > 1 ? `; dotted: the mean of the ${Text.runs(data.series[run.s].runs)} that differ by their seed only.` : ".");
  draw(at("one-curve"), traces, { xaxis: axisLayout(time, false), yaxis: axisLayout(name, false) }, caption, `Line chart of ${name} over ${time} in one run.`, rows);
}

// What happened from one recorded instant to the next, per time unit; a line for each kind of event.
function drawOneTimeline({ x, ...rates }) {
  const time = data.curves.axes.find(({ id }) => id === "time").name, dashes = ["solid", "dash", "dot", "dashdot", "longdash"];
  const tones = { steps: "#0072b2", "messages sent": "#d55e00", lost: "#cc79a7", dropped: "#009e73", overtaken: "#56b4e9" };
  const names = Object.keys(rates);
  const traces = names.map((name, k) => ({
    type: "scatter", mode: "lines", x, y: [...rates[name], rates[name].at(-1)], name, line: { shape: "hv", color: tones[name], width: 2, dash: dashes[k] },
  }));
  const rows = [[time, ...names], ...spaced(x.length - 1, 20).map((k) => [`${Text.number(x[k])} to ${Text.number(x[k + 1])}`, ...names.map((name) => Text.number(rates[name][k]))])];
  const caption = "Timeline: what happened in this run per time unit, from each recorded instant to the next. A broadcast counts once as sent; what was lost, dropped or overtaken counts per receiver. The replay shows every event.";
  const legend = { orientation: "h", y: 1.02, yanchor: "bottom" };
  draw(at("one-timeline"), traces, { xaxis: axisLayout(time, false), yaxis: { ...axisLayout("events per time unit", false), rangemode: "tozero" }, showlegend: true, legend }, caption, "Line chart of steps and messages per time unit over time in one run.", rows);
}

function drawOneAgents(run) {
  const name = data.spreads.metrics.find(({ id }) => id === data.single.agents)?.name || data.single.agents, graph = data.single.graphs[run.g];
  const rows = [["agent", name], ...run.a.map((value, agent) => [String(agent), Text.number(value)])];
  const hover = run.a.map((value, agent) => `agent ${agent}<br>${Text.safe(name)} <b>${Text.number(value)}</b>`);
  if (!graph) {
    const marker = { size: 6, color: Scheme.visible(data.protocols[data.series[run.s].protocol].colour) };
    const traces = [{ type: "scatter", mode: "markers", x: run.a.map((_, agent) => agent), y: run.a, hoverinfo: "text", text: hover, marker }];
    draw(at("one-agents"), traces, { xaxis: axisLayout("agent", false), yaxis: axisLayout(name, false) }, `${name} of every agent at the end of this run.`, `${name} of every agent of one run.`, rows);
    return;
  }
  const bare = { visible: false, fixedrange: true }, ends = graph.edges.flatMap(([tail, head]) => [graph.at[tail], graph.at[head], [null, null]]);
  const colorbar = { thickness: 12, title: { text: Text.safe(name), side: "right" } };
  const traces = [
    { type: "scatter", mode: "lines", x: ends.map(([x]) => x), y: ends.map(([, y]) => y), hoverinfo: "skip", line: { color: Scheme.rule, width: 1 } },
    { type: "scatter", mode: "markers", x: graph.at.map(([x]) => x), y: graph.at.map(([, y]) => y), hoverinfo: "text", text: hover,
      marker: { size: run.a.length > 150 ? 7 : 12, color: run.a, colorscale: "Cividis", showscale: true, colorbar, line: { color: Scheme.soft, width: 0.6 } } },
  ];
  draw(at("one-agents"), traces, { xaxis: bare, yaxis: { ...bare, scaleanchor: "x" } }, `Portrait: ${name} of every agent at the end of this run, on its graph.`, `The agents of one run on their graph, coloured by ${name}.`, rows);
}
