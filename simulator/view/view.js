"use strict";
// The address after # keeps all that is chosen: experiment, filters, ranges, order, and the two runs that are compared.
const LIVE = 2000, ROWS = 200, HEIGHT = 220, WIDTH = 130, SVG = "http://www.w3.org/2000/svg";
const $ = id => document.getElementById(id);
const state = {experiments: [], rows: [], metrics: {}, era: "", name: null, all: false, details: new Map(), turn: 0, drawn: -Infinity, left: 0};

const chosen = () => new URLSearchParams(location.hash.slice(1));
function choose(changes) {
  const address = chosen();
  for (const [key, value] of Object.entries(changes)) {
    address.delete(key);
    for (const each of [value].flat()) if (each) address.append(key, each);
  }
  location.replace("#" + address);
}
function make(tag, attributes = {}, ...content) {
  const drawn = ["svg", "path", "line", "rect", "g", "text", "title"].includes(tag);
  const element = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  element.append(...content);
  return element;
}
async function ask(path, query = {}) {
  const answer = await fetch(path + "?" + new URLSearchParams(query));
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}
const shown = value => typeof value === "number" ? String(+value.toPrecision(5)) : String(value ?? "");

// Columns: what a run is, where it stands in the grid, and what it came to.
function columns(address) {
  const wanted = address.getAll("metric"), metrics = Object.entries(state.metrics);
  const some = metrics.filter(([key]) => wanted.includes(key));
  const grid = [...new Set(state.rows.flatMap(row => Object.keys(row.grid)))];
  return [
    {key: "protocol", name: "protocol", of: row => row.protocol, choice: true},
    {key: "seed", name: "seed", of: row => row.seed, choice: true},
    ...grid.map(path => ({key: "grid." + path, name: path, of: row => row.grid[path], choice: true})),
    {key: "status", name: "status", of: row => row.status, choice: true},
    ...(some.length ? some : metrics).map(([key, metric]) => ({
      key: "final." + key, name: metric.name, better: metric.better, of: row => row.finals[key],
    })),
    {key: "seconds", name: "seconds", of: row => row.seconds},
  ];
}
function order(a, b) {
  const numbers = Number(a) - Number(b);
  return Number.isNaN(numbers) || a === "" || b === "" ? String(a ?? "").localeCompare(String(b ?? "")) : numbers;
}
const range = text => (text ?? "").split("..").map(Number);
function passes(row, all, address) {
  const find = (address.get("find") ?? "").toLowerCase();
  if (find && !all.some(column => shown(column.of(row)).toLowerCase().includes(find))) return false;
  return all.every(column => {
    const wanted = address.get(column.key);
    if (!wanted) return true;
    const value = column.of(row);
    if (column.choice && !wanted.includes("..")) return shown(value) === wanted;
    const [low, high] = range(wanted);
    return typeof value === "number" && value >= low && value <= high;
  });
}

function drawFilters(all, address) {
  const form = $("filters"), active = document.activeElement?.name;
  const fields = all.filter(column => column.choice).map(column => {
    const values = [...new Set(state.rows.map(row => shown(column.of(row))))].sort(order);
    const wanted = address.get(column.key) ?? "";
    if (wanted && !values.includes(wanted)) values.unshift(wanted);
    const options = ["", ...values].map(value => make("option", {value, selected: value === wanted}, value || "all"));
    const select = make("select", {name: column.key, onchange: e => choose({[column.key]: e.target.value})}, ...options);
    return make("label", {}, column.name, make("br"), select);
  });
  const find = make("input", {type: "search", name: "find", value: address.get("find") ?? "", onchange: e => choose({find: e.target.value})});
  const forget = make("button", {type: "button", onclick: () => choose(Object.fromEntries([...chosen().keys()].filter(k => !["experiment", "two", "metric"].includes(k)).map(k => [k, ""])))}, "Forget all filters");
  if (active === "find") {  // what is being typed stays
    form.querySelectorAll("label:has(select)").forEach(label => label.remove());
    return form.prepend(...fields);
  }
  form.replaceChildren(...fields, make("label", {}, "find", make("br"), find), forget);
  if (active) form.elements[active]?.focus();
}

function drawMetrics(address) {
  const keys = Object.keys(state.metrics), wanted = keys.filter(key => address.getAll("metric").includes(key));
  const kept = wanted.length ? wanted : keys, active = document.activeElement?.dataset?.metric;
  $("chosen").textContent = `Metrics: ${kept.length} of ${keys.length}`;
  $("metrics").replaceChildren(...keys.map(key => {
    const pick = make("input", {type: "checkbox", "data-metric": key, onchange: event => {
      const now = keys.filter(each => each === key ? event.target.checked : kept.includes(each));
      choose({metric: now.length < keys.length ? now : [], ...(event.target.checked ? {} : {["final." + key]: ""})});
    }});
    pick.checked = kept.includes(key);
    pick.disabled = kept.length === 1 && pick.checked;
    return make("label", {}, pick, " ", state.metrics[key].name);
  }));
  if (active) [...$("metrics").querySelectorAll("input")].find(pick => pick.dataset.metric === active)?.focus();
}

function drawAxes(all, kept, address) {
  const svg = $("axes"), active = document.activeElement?.dataset?.key;
  const axes = all.filter(c => c.key !== "seed" && c.key !== "status" && c.key !== "seconds").map(column => {
    const values = [...new Set(state.rows.map(column.of).filter(value => value !== undefined))].sort(order);
    const numbers = values.filter(value => typeof value === "number");
    const numeric = numbers.length > 0 && numbers.length >= values.length - 1;
    const low = numbers[0], high = numbers.at(-1);
    const place = value => numeric
      ? (typeof value === "number" ? (high > low ? 1 - (value - low) / (high - low) : 0.5) : null)
      : (values.includes(value) ? (values.length > 1 ? values.indexOf(value) / (values.length - 1) : 0.5) : null);
    return {...column, values, numeric, low, high, place};
  }).filter(axis => axis.values.length > 1).slice(0, 12);
  const y = part => 40 + part * HEIGHT, x = rank => 70 + rank * WIDTH;
  const width = Math.max(axes.length, 1) * WIDTH + 40;
  const inside = new Set(kept);
  const path = row => axes.map((axis, rank) => [rank, axis.place(axis.of(row))]).filter(([, part]) => part !== null)
    .map(([rank, part], first) => `${first ? "L" : "M"}${x(rank)},${y(part).toFixed(1)}`).join("");
  const lines = [...state.rows].sort((a, b) => inside.has(a) - inside.has(b))
    .map(row => make("path", {d: path(row) || null, class: inside.has(row) ? "line" : "line out"}));
  const drawn = axes.map((axis, rank) => {
    const value = part => axis.low + (1 - part) * (axis.high - axis.low);
    const mark = (text, part) => make("text", {x: x(rank) + 6, y: y(part) + 4, class: "soft"}, cut(shown(text), 16));
    const labels = axis.numeric ? [mark(axis.high, 0), mark(axis.low, 1)]
      : axis.values.slice(0, 8).map(each => mark(each, axis.place(each)));
    const group = make("g", {}, make("line", {x1: x(rank), x2: x(rank), y1: y(0), y2: y(1), class: "axis"}),
      make("text", {x: x(rank), y: 18, "text-anchor": "middle"}, cut(axis.name, 18), make("title", {}, axis.name)), ...labels);
    if (!axis.numeric) return group;
    const wanted = address.get(axis.key);
    const ends = of => of.get(axis.key)?.includes("..") ? range(of.get(axis.key)) : [axis.low, axis.high];
    const [low, high] = ends(address);
    const top = y(Math.max(axis.place(high), 0)), bottom = y(Math.min(axis.place(low), 1));
    if (wanted?.includes("..")) group.append(make("rect", {x: x(rank) - 6, width: 12, y: top, height: Math.max(bottom - top, 2), class: "kept"}));
    const set = (a, b) => choose({[axis.key]: `${+Math.min(a, b).toPrecision(5)}..${+Math.max(a, b).toPrecision(5)}`});
    const at = event => value(Math.min(1, Math.max(0, (event.clientY - svg.getBoundingClientRect().top - 40) / HEIGHT)));
    let begun = null;
    group.append(make("rect", {
      x: x(rank) - 14, width: 28, y: y(0) - 6, height: HEIGHT + 12, class: "hit", tabindex: 0, role: "slider", "data-key": axis.key,
      "aria-label": `range of ${axis.name}`, "aria-valuemin": axis.low, "aria-valuemax": axis.high, "aria-valuenow": low,
      "aria-valuetext": `${shown(low)} to ${shown(high)}`,
      onpointerdown: event => { begun = event.clientY; event.target.setPointerCapture(event.pointerId); },
      onpointerup: event => {
        const start = begun; begun = null;
        if (start === null) return;
        if (Math.abs(event.clientY - start) < 4) choose({[axis.key]: ""});
        else set(at({clientY: start}), at(event));
      },
      onkeydown: event => {
        const step = (axis.high - axis.low) / 20 * ({ArrowUp: 1, ArrowDown: -1}[event.key] ?? 0);
        const [from, to] = ends(chosen());  // keys may come faster than the page is drawn
        if (event.key === "Escape") choose({[axis.key]: ""});
        else if (step) { event.preventDefault(); event.shiftKey ? set(from, to + step) : set(from + step, to); }
      },
    }));
    return group;
  });
  for (const [key, length] of [["width", width], ["height", HEIGHT + 60]]) svg.setAttribute(key, length);
  svg.replaceChildren(...lines, ...drawn);
  if (active) [...svg.querySelectorAll(".hit")].find(hit => hit.dataset.key === active)?.focus();
}
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

// As experiment/run/experiment/run: no folder's name has a slash.
const two = address => ((address.get("two") ?? "").match(/[^/]+\/[^/]+/g) ?? []).map(text => text.split("/"));
function drawRuns(all, kept, address) {
  const sort = address.get("sort") ?? "", down = sort.startsWith("-"), by = all.find(column => column.key === sort.replace(/^-/, ""));
  if (by) kept.sort((a, b) => (down ? -1 : 1) * order(by.of(a), by.of(b)));
  const marked = two(address).map(pair => pair.join("/"));
  const numeric = new Set(all.filter(column => kept.some(row => typeof column.of(row) === "number")));
  const head = all.map(column => make("th", {
    scope: "col", class: numeric.has(column) ? "number" : null, "aria-sort": column === by ? (down ? "descending" : "ascending") : null,
  }, make("button", {type: "button", onclick: () => choose({sort: column === by && !down ? "-" + column.key : column.key})}, column.name), column.better ? make("div", {class: "note"}, `${column.better} is better`) : ""));
  const body = kept.slice(0, state.all ? Infinity : ROWS).map(row => {
    const name = `${state.name}/${row.run}`;
    const pick = make("input", {type: "checkbox", "aria-label": `compare run ${row.id}`, onchange: event => {
      const others = marked.filter(each => each !== name);
      choose({two: (event.target.checked ? [...others.slice(-1), name] : others).join("/")});
    }});
    pick.checked = marked.includes(name);
    pick.disabled = !row.run || row.status === "damaged";
    const replay = row.run && row.status !== "damaged"
      ? make("a", {href: "replay?" + new URLSearchParams({experiment: state.name, run: row.run}), target: "_blank", rel: "noopener"}, "replay") : "";
    return make("tr", {}, make("td", {}, pick), ...all.map(column => make("td", {
      class: [numeric.has(column) && "number", column.key === "status" && row.status !== "complete" && "bad"].filter(Boolean).join(" ") || null,
      title: column.key === "status" ? row.error || null : null,
    }, shown(column.of(row)))), make("td", {}, replay));
  });
  $("runs").tHead.replaceChildren(make("tr", {}, make("th", {scope: "col"}, "two"), ...head, make("td")));
  $("runs").tBodies[0].replaceChildren(...body);
  $("more").hidden = body.length === kept.length;
  $("count").textContent = `${kept.length} of ${state.rows.length} runs` + (state.left ? `, ${state.left} more are being read` : "");
}

async function drawTwo(address) {
  const wanted = two(address), turn = ++state.turn;
  $("two").hidden = wanted.length === 0;
  if (wanted.length < 2) {
    if (wanted.length) $("two-content").replaceChildren(make("p", {class: "note"}, "Mark a second run, of this experiment or of another one."));
    return;
  }
  let found;
  try {
    found = await Promise.all(wanted.map(async ([experiment, run]) => {
      const key = `${experiment}/${run}`;
      if (!state.details.has(key)) state.details.set(key, await ask("run", {experiment, run}));
      return state.details.get(key);
    }));
  } catch (error) { found = error; }
  if (turn !== state.turn) return;
  if (found instanceof Error) return $("two-content").replaceChildren(make("p", {class: "bad"}, found.message));
  const fields = [...new Set(found.flatMap(run => Object.keys(run.fields)))].filter(key => found[0].fields[key] !== found[1].fields[key]);
  const names = wanted.map(([experiment, run], rank) => make("th", {scope: "col"}, make("span", {class: "swatch " + ["first", "second"][rank]}), `${experiment}, ${found[rank].fields.protocol}, ${run}`));
  const table = make("table", {}, make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "what differs"), ...names)),
    make("tbody", {}, ...fields.map(key => make("tr", {}, make("th", {scope: "row"}, key), ...found.map(run => make("td", {}, run.fields[key] ?? "–"))))));
  const both = Object.keys(found[0].curves).filter(key => found.every(run => run.curves[key]?.length > 1));
  const forget = make("button", {type: "button", onclick: () => choose({two: ""})}, "Forget both");
  $("two-content").replaceChildren(make("div", {class: "charts"}, ...both.map(key => chart(key, found.map(run => run.curves[key])))), make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "What differs"}, table), forget);
}
function chart(key, curves) {
  const points = curves.map(curve => curve.filter(([, value]) => typeof value === "number")), every = points.flat();
  const end = most => pick => every.reduce((found, point) => most(found, point[pick]), most === Math.min ? Infinity : -Infinity);
  const [least, largest] = [end(Math.min), end(Math.max)], x0 = least(0), x1 = largest(0), y0 = least(1), y1 = largest(1);
  const x = value => 8 + 284 * (x1 > x0 ? (value - x0) / (x1 - x0) : 0.5), y = value => 128 - 110 * (y1 > y0 ? (value - y0) / (y1 - y0) : 0.5);
  const paths = points.map((curve, rank) => make("path", {class: "curve " + ["first", "second"][rank], d: curve.map(([t, v], k) => `${k ? "L" : "M"}${x(t).toFixed(1)},${y(v).toFixed(1)}`).join("") || null}));
  const name = state.metrics[key]?.name ?? key.replace(":", ", ");
  const texts = every.length ? [[8, 12, y1, "start"], [8, 142, y0, "start"], [292, 142, `time ${shown(x1)}`, "end"]] : [[150, 70, "no finite value", "middle"]];
  const svg = make("svg", {width: 300, height: 148, role: "img", "aria-label": `${name} over time, of both runs`}, ...paths,
    ...texts.map(([tx, ty, text, anchor]) => make("text", {x: tx, y: ty, class: "soft", "text-anchor": anchor}, shown(text))));
  return make("figure", {}, make("figcaption", {}, name), svg);
}

function drawExperiments() {
  const link = name => "#" + new URLSearchParams({experiment: name, ...(chosen().get("two") ? {two: chosen().get("two")} : {})});
  $("experiments").replaceChildren(...state.experiments.map(each => make("li", {class: each.state},
    make("a", {href: link(each.name), onclick: event => { event.currentTarget.href = link(each.name); }, "aria-current": each.name === state.name ? "page" : null},
      each.name, " ", make("span", {class: "state"}, each.state)))));
  const current = state.experiments.find(each => each.name === state.name);
  $("words").textContent = current ? current.words.join("; ") : `${state.experiments.length} experiments; choose one.`;
}
function draw() {
  state.drawn = performance.now();
  const address = chosen(), all = columns(address), kept = state.rows.filter(row => passes(row, all, address));
  drawFilters(all, address);
  drawMetrics(address);
  drawAxes(all, kept, address);
  drawRuns(all, kept, address);
  drawTwo(address);
}

async function follow() {
  let again = LIVE;
  try {
    state.experiments = await ask("experiments");
    const wanted = chosen().get("experiment") ?? (state.experiments.length === 1 ? state.experiments[0].name : null);
    if (wanted !== state.name) Object.assign(state, {name: wanted, rows: [], metrics: {}, era: "", all: false, left: 0});
    $("experiment").hidden = wanted === null;
    $("name").textContent = wanted ?? "Experiments";
    document.title = `${wanted ?? "experiments"} – hushnet view`;
    drawExperiments();
    if (wanted !== null) {
      $("report").href = "report?" + new URLSearchParams({experiment: wanted});
      const found = await ask("runs", {experiment: wanted, era: state.era, from: state.rows.length});
      if (wanted === state.name) {
        if (found.era !== state.era) state.details.clear();  // runs may have been made again
        const news = found.rows.length || found.era !== state.era || found.left !== state.left;
        state.rows = state.rows.slice(0, found.from).concat(found.rows);
        Object.assign(state, {era: found.era, metrics: found.metrics, left: found.left});
        if (found.left) again = 0;
        if (news && (again || performance.now() - state.drawn > 1000)) draw();
      }
    }
    document.documentElement.dataset.ready = again ? "yes" : "no";
  } catch (error) {
    $("words").textContent = `The page cannot be brought up to date: ${error.message}`;
  }
  return again;
}
let waiting, busy = false, asked = false;
async function keepUp() {
  clearTimeout(waiting);
  if (busy) { asked = true; return; }
  busy = true;
  const again = await follow();
  busy = false;
  waiting = setTimeout(keepUp, asked ? 0 : again);
  asked = false;
}
window.addEventListener("hashchange", () => { if (chosen().get("experiment") === state.name || !chosen().get("experiment")) draw(); keepUp(); });
$("more").addEventListener("click", () => { state.all = true; draw(); });
$("filters").addEventListener("submit", event => event.preventDefault());
keepUp();
