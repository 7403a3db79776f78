"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [first, last] = data.window;
  const [DELIVERED, OVERTAKEN, LOST, DROPPED, FLYING] = data.fates.map((_, rank) => rank);
  const byId = (id) => document.getElementById(id);
  const play = byId("play"), slider = byId("time"), clock = byId("clock"), speed = byId("speed"), here = byId("here");
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const PULSE = 0.35, LOST_FOR = 0.8, NAMED = 60; // agents that have room for a name
  let now = first, playing = false, before = 0;

  const ascending = (values) => Float64Array.from(values).sort();
  const upTo = (sorted, t) => { // how many are at most t
    let low = 0, high = sorted.length;
    while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] <= t) low = middle + 1; else high = middle; }
    return low;
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  class Animation {
    constructor(animation) {
      this.animation = animation;
      const m = animation.messages, count = m.start.length;
      this.until = Float64Array.from(m.end, (end, k) => m.fate[k] === LOST ? m.start[k] + LOST_FOR : end === null ? Infinity : end);
      const of = (fate, ends) => ascending(m.start.flatMap((start, k) => m.fate[k] === fate ? [ends ? this.until[k] : start] : []));
      this.sent = ascending(m.start);
      this.lost = of(LOST, false);
      this.ended = { delivered: of(DELIVERED, true), overtaken: of(OVERTAKEN, true), dropped: of(DROPPED, true) };
      this.steps = ascending(animation.steps.at);
      // Which messages are under way in each of some stretches of time.
      const parts = Math.max(1, Math.min(2000, Math.ceil(count / 10)));
      this.width = (last - first) / parts || 1;
      this.stretch = Array.from({ length: parts }, () => []);
      for (let k = 0; k < count; k++) {
        const from = this.part(m.start[k]), to = this.part(Math.min(this.until[k], last));
        for (let part = from; part <= to; part++) this.stretch[part].push(k);
      }
      this.woke = animation.places.map(() => []);
      animation.steps.at.forEach((at, k) => this.woke[animation.steps.agent[k]].push(at));
      this.woke = this.woke.map(ascending);
      this.away = animation.places.map(() => []);
      animation.absences.forEach(([agent, start, end]) => this.away[agent].push([start, end === null ? Infinity : end]));
    }
    part(t) { return Math.max(0, Math.min(this.stretch.length - 1, Math.floor((t - first) / this.width))); }
    flying(t) {
      const m = this.animation.messages;
      return this.stretch[this.part(t)].filter((k) => m.start[k] <= t && t <= this.until[k]);
    }
    counts(t) {
      const sent = upTo(this.sent, t), lost = upTo(this.lost, t), ended = {};
      for (const fate in this.ended) ended[fate] = upTo(this.ended[fate], t);
      return { sent, delivered: ended.delivered + ended.overtaken, overtaken: ended.overtaken, lost, dropped: ended.dropped,
        "in flight": sent - lost - ended.delivered - ended.overtaken - ended.dropped, steps: upTo(this.steps, t) };
    }
    epsilon(name, t) {
      let found = null;
      for (const [at, value] of this.animation.epsilons[name]) { if (at > t) break; found = value === null ? "∞" : value.toPrecision(3); }
      return found;
    }
    isAway(agent, t) { return this.away[agent].some(([start, end]) => start <= t && t < end); }
    rank(agent, t) {
      const models = this.animation.models;
      if (!models) return null;
      let place = upTo(models.at, t) - 1;
      return models.ranks[Math.max(place, 0)][agent];
    }
  }

  const alike = new Set(data.animations.map((animation) => animation.title)).size < data.animations.length;
  const name = (animation) => alike ? [animation.title, `seed ${animation.seed}`, ...animation.grid].join(", ") : animation.title;
  const animations = data.animations.map((animation) => new Animation(animation));
  const colour = (rank, of) => { // from dark blue to yellow, lighter all the way, so that it reads in grey
    const x = rank / Math.max(of - 1, 1);
    return `hsl(${250 - 195 * x} ${60 + 25 * x}% ${26 + 44 * x}%)`;
  };

  function mark(pen, fate, x, y, size) {
    pen.lineWidth = Math.max(1.2, size / 3);
    pen.strokeStyle = pen.fillStyle = fate === LOST ? css("--lost") : fate === OVERTAKEN ? css("--late") : css("--link");
    pen.beginPath();
    if (fate === LOST) {
      pen.moveTo(x - size, y - size); pen.lineTo(x + size, y + size); pen.moveTo(x - size, y + size); pen.lineTo(x + size, y - size); pen.stroke();
    } else if (fate === DROPPED) {
      pen.rect(x - size, y - size, 2 * size, 2 * size); pen.stroke();
    } else {
      pen.arc(x, y, size, 0, 2 * Math.PI);
      if (fate === OVERTAKEN) pen.stroke(); else pen.fill();
    }
  }

  function agent(pen, x, y, size, { away, pulse, fill }) {
    pen.lineWidth = 1.5;
    if (pulse > 0) {
      pen.beginPath(); pen.arc(x, y, size + 3 + 5 * (1 - pulse), 0, 2 * Math.PI);
      pen.strokeStyle = css("--ink"); pen.globalAlpha = pulse; pen.stroke(); pen.globalAlpha = 1;
    }
    pen.beginPath(); pen.arc(x, y, size, 0, 2 * Math.PI);
    pen.strokeStyle = css("--soft");
    if (away) { pen.setLineDash([2, 2]); pen.fillStyle = css("--ground"); } else pen.fillStyle = fill || css("--soft");
    pen.fill(); pen.stroke(); pen.setLineDash([]);
  }

  function sized(canvas) {
    const scale = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const [width, height] = [Math.round(box.width * scale), Math.round(box.height * scale)];
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, box.width, box.height);
    return [pen, box.width, box.height];
  }

  function draw(canvas, animation) {
    const [pen, width, height] = sized(canvas);
    const { places, edges, messages, models } = animation.animation;
    const size = Math.max(2.5, Math.min(9, 60 / Math.sqrt(places.length))), rim = size + 12;
    const at = (k) => [rim + places[k][0] * (width - 2 * rim), rim + places[k][1] * (height - 2 * rim)];
    pen.strokeStyle = css("--rule"); pen.lineWidth = 1; pen.globalAlpha = edges.length > 1500 ? 0.35 : 0.9; pen.beginPath();
    for (const [a, b] of edges) { pen.moveTo(...at(a)); pen.lineTo(...at(b)); }
    pen.stroke(); pen.globalAlpha = 1;
    places.forEach((_, k) => {
      const woke = animation.woke[k], place = upTo(woke, now), rank = animation.rank(k, now);
      const pulse = place ? 1 - (now - woke[place - 1]) / PULSE : 0;
      agent(pen, ...at(k), size, { away: animation.isAway(k, now), pulse, fill: rank === null ? null : colour(rank, models.colours) });
    });
    if (places.length <= NAMED) {
      pen.font = "11px system-ui, sans-serif"; pen.fillStyle = css("--ink"); pen.textAlign = "center";
      places.forEach((_, k) => { const [x, y] = at(k); pen.fillText(animation.animation.agents[k], x, y - size - 4); });
    }
    const dot = Math.max(1.8, size * 0.42);
    for (const k of animation.flying(now)) {
      const [x, y] = at(messages.from[k]), [to_x, to_y] = at(messages.to[k]);
      const fate = messages.fate[k], start = messages.start[k], end = animation.until[k];
      const gone = end > start ? Math.min((now - start) / (Math.min(end, last + 1) - start), 1) : 1;
      const share = fate === LOST ? Math.min(gone, 0.5) : gone;
      pen.globalAlpha = fate === LOST ? 1 - 0.8 * gone : 1;
      mark(pen, fate === LOST && gone < 0.4 ? DELIVERED : fate, x + share * (to_x - x), y + share * (to_y - y), dot);
      pen.globalAlpha = 1;
    }
  }

  function count(list, animation) {
    const counts = animation.counts(now);
    const rows = Object.entries(counts).map(([name, value]) => [name, value.toLocaleString("en")]);
    for (const [name, key] of [["ε claimed", "epsilon_claimed"], ["ε verified", "epsilon_verified"]]) {
      const value = animation.epsilon(key, now);
      if (value !== null) rows.push([name, value]);
    }
    list.replaceChildren(...rows.map(([name, value]) => {
      const row = document.createElement("div"), term = document.createElement("dt"), said = document.createElement("dd");
      term.textContent = name; said.textContent = value; row.append(term, said);
      return row;
    }));
  }

  const age = (animation) => animation.animation.age.at.map((t, k) => [t, animation.animation.age.mean[k]]);
  const spent = (animation) => { // held until it is recorded again, as the counter says it
    const series = animation.animation.epsilons[data.spent].filter(([t]) => t <= last);
    return series.flatMap(([t, value], k) => k ? [[t, series[k - 1][1]], [t, value]] : [[t, value]])
      .concat(series.length ? [[last, series.at(-1)[1]]] : []).map(([t, value]) => [Math.max(t, first), value]);
  };
  const charts = [["ages", age, ""], ["spent", spent, ": infinite as soon as it sends"]].map(([id, of, none]) => ({ canvas: byId(id), none, series: animations.map((animation) => byId(id) ? of(animation) : []) })).filter(({ canvas }) => canvas);

  function curves({ canvas, series, none }) {
    const [pen, width, height] = sized(canvas), left = 46, right = 10, top = 8, bottom = 26;
    const most = Math.max(1e-9, ...series.flatMap((points) => points.map(([, value]) => value ?? 0)));
    const x = (t) => left + (t - first) / (last - first) * (width - left - right), y = (v) => height - bottom - v / most * (height - top - bottom);
    pen.font = "12px system-ui, sans-serif"; pen.fillStyle = css("--soft"); pen.strokeStyle = css("--rule"); pen.lineWidth = 1;
    for (const value of [0, most / 2, most]) {
      pen.beginPath(); pen.moveTo(left, y(value)); pen.lineTo(width - right, y(value)); pen.stroke();
      pen.textAlign = "right"; pen.fillText(value.toPrecision(2), left - 5, y(value) + 4);
    }
    pen.textAlign = "center";
    for (const t of [first, (first + last) / 2, last]) pen.fillText(Number(t.toPrecision(3)), Math.min(Math.max(x(t), left + 8), width - 24), height - 8);
    animations.forEach((animation, rank) => {
      pen.strokeStyle = rank ? css("--late") : css("--link"); pen.lineWidth = 2; pen.setLineDash(rank ? [6, 4] : []); pen.beginPath();
      let drawn = false;
      for (const [t, value] of series[rank]) { if (value === null) continue; if (drawn) pen.lineTo(x(t), y(value)); else pen.moveTo(x(t), y(value)); drawn = true; }
      pen.stroke(); pen.setLineDash([]);
      pen.textAlign = "left"; pen.fillStyle = rank ? css("--late") : css("--link");
      pen.fillText(`${rank ? "- - " : "── "}${name(animation.animation)}${series[rank].at(-1)?.[1] === null ? none : ""}`, left + 8, top + 12 + 15 * rank);
    });
    pen.strokeStyle = css("--ink"); pen.lineWidth = 1; pen.beginPath(); pen.moveTo(x(now), top); pen.lineTo(x(now), height - bottom); pen.stroke();
  }

  const stages = [...document.querySelectorAll(".stage")], lists = [...document.querySelectorAll(".counts")];
  function show() {
    slider.value = now;
    clock.textContent = `t = ${now.toFixed(2)}`;
    here.href = `#t=${Number(now.toFixed(3))}`;
    animations.forEach((animation, k) => { draw(stages[k], animation); count(lists[k], animation); });
    charts.forEach(curves);
    document.documentElement.dataset.time = now;
  }
  function go(t) { now = Math.min(Math.max(t, first), last); show(); }
  function set(on) {
    playing = on; before = 0; play.textContent = on ? "Stop" : "Play"; play.setAttribute("aria-pressed", on);
    if (on && now >= last) now = first;
    if (on) requestAnimationFrame(tick);
  }
  function tick(at) {
    if (!playing) return;
    if (before && (!calm || at - before > 500)) { go(now + (at - before) / 1000 * Number(speed.value)); before = at; }
    if (!before) before = at;
    if (now >= last) set(false); else requestAnimationFrame(tick);
  }
  function fromLink() {
    const asked = /^#t=(-?[\d.]+)$/.exec(window.location.hash);
    if (asked && Number.isFinite(Number(asked[1]))) go(Number(asked[1]));
  }

  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  play.addEventListener("click", () => set(!playing));
  slider.addEventListener("input", () => { set(false); go(Number(slider.value)); });
  here.addEventListener("click", () => setTimeout(fromLink));
  window.addEventListener("hashchange", fromLink);
  window.addEventListener("resize", show);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || ["SELECT", "A"].includes(event.target.tagName)) return;
    const far = event.shiftKey ? 1 : 0.1;
    const moves = { ArrowLeft: () => go(now - far), ArrowRight: () => go(now + far), Home: () => go(first), End: () => go(last) };
    if (moves[event.key]) { set(false); moves[event.key](); event.preventDefault(); }
    else if (event.key === " " && event.target !== play) { set(!playing); event.preventDefault(); }
  });

  const marks = [["an agent", (pen) => agent(pen, 12, 12, 6, {})], ["it has just made a step", (pen) => agent(pen, 12, 12, 5, { pulse: 0.9 })],
    ["it is away", (pen) => agent(pen, 12, 12, 6, { away: true })], ["a message on its way", (pen) => mark(pen, DELIVERED, 12, 12, 4)],
    ["one that will come after a newer one", (pen) => mark(pen, OVERTAKEN, 12, 12, 4)], ["lost on its way", (pen) => mark(pen, LOST, 12, 12, 4)],
    ["its receiver will be away: dropped", (pen) => mark(pen, DROPPED, 12, 12, 4)]];
  function legend() {
    byId("marks").replaceChildren(...marks.map(([text, paint]) => {
      const item = document.createElement("li"), canvas = document.createElement("canvas");
      canvas.width = canvas.height = 48; canvas.style.width = canvas.style.height = "24px"; canvas.setAttribute("aria-hidden", "true");
      const pen = canvas.getContext("2d"); pen.scale(2, 2); paint(pen);
      item.append(canvas, text);
      return item;
    }));
  }
  // It opens where there is something to see: the first instant at which half as many messages fly as ever.
  function opening() {
    const instants = Array.from({ length: 200 }, (_, k) => first + k / 200 * (last - first));
    const flying = instants.map((t) => Math.max(...animations.map((animation) => animation.flying(t).length)));
    return instants[Math.max(flying.findIndex((count) => count && 2 * count >= Math.max(...flying)), 0)];
  }
  legend();
  now = opening();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", legend);
  show();
  fromLink();
  document.documentElement.dataset.ready = "yes";
})();
