// The page: selectors, charts and tables of the rows in #data. State is in the URL's fragment.
"use strict";
const content = JSON.parse(document.getElementById("data").textContent);
const views = {};

// Tables come as columns; texts as positions in a list of distinct ones.
function unpack(table) {
  const names = Object.keys(table.columns);
  return Array.from({ length: table.length }, (_, row) => {
    const unpacked = {};
    for (const name of names) {
      const { values, texts } = table.columns[name];
      unpacked[name] = texts ? texts[values[row]] : values[row];
    }
    return unpacked;
  });
}
const unpackAll = (packed) => Object.fromEntries(Object.entries(packed).map(([name, table]) => [name, unpack(table)]));
let tables = unpackAll(content.tables);

const selectors = Object.entries(content.selectors);
if (content.choices.length) selectors.push(["choice", [...new Set(tables.points.map((row) => row.choice))]]);
const sliders = {};  // parameters of the machine that the reader moved
const state = Object.fromEntries(selectors.map(([name, values]) => [name, values[0]]));

function readFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [name, values] of selectors) {
    const value = values.find((known) => String(known) === given.get(name));
    if (value !== undefined) state[name] = value;
  }
}

function makeSelectors() {
  const form = document.getElementById("selectors");
  for (const [name, values] of selectors) {
    if (values.length < 2) continue;
    const label = form.appendChild(document.createElement("label"));
    label.append(name === "choice" ? `${content.choices.join(", ")} of curves`.replaceAll("_", " ") : name.replaceAll("_", " "));
    const select = label.appendChild(document.createElement("select"));
    select.name = name;
    for (const value of values) select.add(new Option(value, value, false, value === state[name]));
    select.addEventListener("change", () => {
      state[name] = values[select.selectedIndex];
      history.replaceState(null, "", "#" + new URLSearchParams(state));
      refresh();
    });
  }
}

// Rows of the chosen place; of the chart's own values, where "*" stands for all.
function pick(chart) {
  const where = { ...state, ...chart.where };
  return tables[chart.table].filter((row) =>
    Object.entries(where).every(([name, value]) => value === "*" || !(name in row) || row[name] === value));
}

const format = (value) => {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? value.toLocaleString("en") : Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
};

function fill(table, columns, rows) {
  table.replaceChildren();
  const kept = Object.entries(columns).filter(([name]) => rows.some((row) => format(row[name]) !== ""));
  const isText = (name) => rows.some((row) => typeof row[name] === "string" && row[name]);
  const head = table.createTHead().insertRow();
  for (const [name, title] of kept) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = title;
    if (isText(name)) cell.className = "text";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const [name] of kept) {
      const cell = line.insertCell();
      cell.textContent = format(row[name]);
      if (isText(name)) cell.className = "text";
    }
  }
}

const brief = (value) => Number(value.toPrecision(2)).toLocaleString("en");
const UNITS = [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"], [0.001, "ms"]];

// A time with two digits, and its interval in the same unit.
function writeTime(row) {
  const [size, unit] = UNITS.find(([size]) => row.epoch_time >= size) || UNITS.at(-1);
  const [time, low, high] = [row.epoch_time, row.epoch_time_p10, row.epoch_time_p90].map((seconds) => brief(seconds / size));
  return row.epoch_time_p10 == null ? `${time} ${unit}` : `${time} ${unit} (80 % interval ${low} to ${high})`;
}

// A layout of a transformer as people write it, such as tp8 pp4 dp16.
const nameOf = (row) => row.layout || row.strategy;

function answer() {
  const ranked = pick({ table: "ranking", where: {} });
  const [best, next] = ranked.filter((row) => row.rank !== null && row.epoch_time !== null);
  const losers = ranked.filter((row) => row.reason && row.epoch_time === null);
  const place = `${best ? best.model : state.model} on ${state.system}`;
  const given = Object.keys(content.selectors).slice(3).map((name) => `${name.replaceAll("_", " ")} ${format(state[name])}`);
  let text = `Nothing is feasible for ${place}.`;
  if (best) {
    const memory = best.capacity ? `, using ${brief(best.memory / 1e9)} of ${brief(best.capacity / 1e9)} GB per PE` : "";
    text = `${nameOf(best)} on ${format(best.pe)} PEs trains an epoch of ${place} in ${writeTime(best)}${memory}.`;
    const sentence = pick({ table: "parts", where: { kind: "sentence" } }).find((row) => row.strategy === best.strategy);
    if (sentence) text += ` ${sentence.part}`;
  }
  if (given.length) text = `With ${given.join(", ")}: ${text}`;
  document.getElementById("answer").textContent = text;
  const parts = [];
  if (best && next) parts.push(`The second, ${nameOf(next)}, takes ${brief(next.epoch_time / best.epoch_time)} times as long.`);
  if (losers.length) parts.push(`Ruled out: ${losers.map((row) => `${row.strategy} (${row.reason.replaceAll("_", " ")}${row.remedy ? `; feasible with ${row.remedy}` : ""})`).join(", ")}.`);
  document.getElementById("reasons").textContent = parts.join(" ");
}

async function update() {
  answer();
  for (const chart of content.charts) {
    const rows = pick(chart);
    const section = document.querySelector(`[data-chart="${chart.name}"]`);
    section.hidden = rows.length === 0;
    if (section.hidden) continue;
    views[chart.name] ??= await draw(chart, rows);
    views[chart.name].data("rows", structuredClone(rows)).runAsync();
    if (Object.keys(chart.columns).length) fill(document.getElementById(`${chart.name}-table`), chart.columns, rows);
  }
}

async function draw(chart, rows) {
  const element = document.getElementById(chart.name);
  const spec = { ...chart.spec, datasets: { rows: structuredClone(rows) } };
  const legend = { columns: Math.max(1, Math.floor(element.clientWidth / 150)) };
  const config = { font: "system-ui, sans-serif", legend };
  const { view } = await vegaEmbed(element, structuredClone(spec), { actions: false, renderer: "svg", config });
  if (content.live) view.addEventListener("click", (_, item) => explain(item?.datum));
  return view;
}

// A page that a server sent asks it for the rows of each place, and for one cell's explanation.
async function ask(what, values) {
  const query = new URLSearchParams({ ...values, ...sliders, token: content.live.token });
  const response = await fetch(`${what}?${query}`);
  if (response.ok) return response.json();
  document.getElementById("answer").textContent = await response.text();
  return null;
}

let asked = 0;
async function refresh() {
  const mine = ++asked;
  if (content.live) {
    const places = Object.fromEntries(Object.keys(content.selectors).map((name) => [name, state[name]]));
    const answered = await ask("rows", places);
    if (answered === null || mine !== asked) return;  // a later choice has overtaken this one
    tables = unpackAll(answered.tables);
  }
  await update();
}

async function explain(row) {
  if (!row?.strategy || !row.pe) return;
  const axes = [...Object.keys(content.selectors), "strategy", "pe", ...content.choices];
  const answered = await ask("explain", Object.fromEntries(axes.filter((name) => row[name] != null).map((name) => [name, row[name]])));
  if (answered === null) return;
  const columns = { term: "term", formula: "formula", numbers: "numbers", seconds_per_iteration: "s per iteration", part: "part" };
  document.getElementById("explained").textContent = `${row.strategy} on ${format(row.pe)} PEs: ${answered.sentence}`;
  fill(document.getElementById("terms"), columns, answered.formulas);
  document.getElementById("explanation").hidden = false;
}

function makeSliders() {
  const form = document.getElementById("sliders");
  for (const [name, values] of Object.entries(content.live.sliders)) {
    const label = form.appendChild(document.createElement("label"));
    const text = label.appendChild(document.createElement("span"));
    const slider = label.appendChild(document.createElement("input"));
    Object.assign(slider, { type: "range", min: -1, max: 1, step: 0.05, value: 0 });
    const write = () => (text.textContent = `${name.replaceAll("_", " ")} x ${brief(10 ** slider.value)}`);
    write();
    slider.addEventListener("input", write);
    slider.addEventListener("change", () => {
      if (Number(slider.value) === 0) delete sliders[`set.${name}`];
      else sliders[`set.${name}`] = values[state.system] * 10 ** slider.value;
      refresh();
    });
  }
}

readFragment();
makeSelectors();
if (content.live) makeSliders();
refresh();
addEventListener("hashchange", () => {
  readFragment();
  for (const select of document.querySelectorAll("select")) select.value = state[select.name];
  refresh();
});
