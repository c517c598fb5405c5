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

const BEST = "best";
const selectors = Object.entries(content.selectors);
for (const name of content.choices) {
  const values = [...new Set(tables.points.filter((row) => row.choice !== BEST).map((row) => row[name]))];
  selectors.push([name, [BEST, ...values.sort((one, other) => one - other)]]);
}
const TIMES_OF = "times.";  // before the name of a parameter that the reader multiplied
const opening = Object.fromEntries(selectors.map(([name, values]) => [name, content.opening[name] ?? values[0]]));
const state = {};
const sliders = {};  // factors of parameters of the machine

// The address holds all that was chosen, so that it can be sent, and Back works.
function readFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [name, values] of selectors) state[name] = values.find((known) => String(known) === given.get(name)) ?? opening[name];
  for (const name of content.live?.sliders ?? []) {
    const factor = Number(given.get(TIMES_OF + name));
    delete sliders[TIMES_OF + name];
    if (factor > 0 && factor !== 1) sliders[TIMES_OF + name] = factor;
  }
}

function writeFragment() {
  history.pushState(null, "", "#" + new URLSearchParams({ ...state, ...sliders }));
  refresh();
}

// A value of a label or an axis, with its unit.
const writeValue = (name, value) => content.texts[name]?.[content.selectors[name].indexOf(value)] ?? format(value);
const inWords = (name) => name.replaceAll("_", " ");

function makeSelectors() {
  for (const [name, values] of selectors) {
    if (values.length < (values[0] === BEST ? 3 : 2)) continue;
    const form = document.getElementById("selectors");
    const label = form.appendChild(document.createElement("label"));
    label.append(content.choices.includes(name) ? `${inWords(name)} of curves` : inWords(name));
    const select = label.appendChild(document.createElement("select"));
    select.name = name;
    for (const value of values) select.add(new Option(writeValue(name, value), value, false, value === state[name]));
    select.addEventListener("change", () => {
      state[name] = values[select.selectedIndex];
      writeFragment();
    });
  }
}

// Rows of the chosen place and of the chart's own values. A chart whose choice is "chosen" follows
// the selectors of choices; one whose choice is "each" has all choices but the best.
function pick(chart) {
  const { choice, ...where } = chart.where;
  for (const name of Object.keys(content.selectors)) where[name] = state[name];
  const followed = choice === "chosen" ? content.choices : [];
  const fixed = followed.filter((name) => state[name] !== BEST);
  const isChosen = (row) =>
    choice === undefined || (choice === "each" || fixed.length ? row.choice !== BEST : row.choice === BEST);
  const rows = tables[chart.table].filter((row) => isChosen(row)
    && Object.entries(where).every(([name, value]) => !(name in row) || row[name] === value)
    && fixed.every((name) => row[name] === state[name]));
  if (chart.name === "map") return takeFastest(rows, ["choice", "pe"]);
  return fixed.length ? takeFastest(rows, ["strategy", "pe"]) : rows;
}

// The fastest of the rows that agree in some columns.
function takeFastest(rows, names) {
  const fastest = new Map();
  for (const row of rows) {
    const key = JSON.stringify(names.map((name) => row[name]));
    if (row.time !== null && !fastest.has(key) || row.time < fastest.get(key).time) fastest.set(key, row);
  }
  return [...fastest.values()];
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
      if (name === "name" && isExplained(row)) cell.append(makeButton(row));
      else cell.textContent = format(row[name]);
      if (isText(name)) cell.className = "text";
    }
  }
}

const isExplained = (row) => content.live && row.strategy && row.pe;

// What a click on a chart does, for the keyboard.
function makeButton(row) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = row.name || row.strategy;
  button.title = "explain this configuration";
  button.addEventListener("click", () => explain(row));
  return button;
}

const brief = (value) => value.toLocaleString("en", { maximumSignificantDigits: 2 });
const UNITS = [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"], [0.001, "ms"]];

// Times that people count in, in seconds.
const scaled = (counts, unit) => counts.map((count) => count * unit);
const TIMES = [...powers(-6, -1), 1, 2, 5, 10, 20, 30, ...scaled([1, 2, 5, 10, 20, 30], 60), ...scaled([1, 2, 3, 6, 12], 3600),
  ...scaled([1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 60, 100, 200, 365, 730, 1825, 3650, 36500], 86400)];

// 1, 2 and 5 times powers of ten, up to a last one.
function powers(first, last) {
  return Array.from({ length: last - first + 1 }, (_, index) => scaled([1, 2, 5], 10 ** (first + index))).flat();
}

// Ticks between the least and the largest of some amounts: usual ones, or even steps where fewer than three are usual.
function chooseTicks(amounts, usual, unit) {
  const [low, high] = [Math.min(...amounts), Math.max(...amounts)];
  const within = usual.filter((tick) => tick >= low && tick <= high);
  if (within.length > 2 || !(high > low)) return within;
  const rough = (high - low) / unit / 4;
  const step = powers(Math.floor(Math.log10(rough)), Math.ceil(Math.log10(rough))).find((usual) => usual >= rough) * unit;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, index) => (first + index) * step);
}

// A time with two digits.
function writeTime(time) {
  const [size, unit] = UNITS.find(([size]) => time >= size) || UNITS.at(-1);
  return `${brief(time / size)} ${unit}`;
}

const answer = () => (document.getElementById("answer").textContent = pick({ table: "answers", where: {} })[0]?.text ?? "");

const WORSE = {
  epoch_time: ["takes", "long"], train_time: ["takes", "long"], pe_hours: ["needs", "many PE-hours"], cost: ["costs", "much"],
};

function compare(best, next) {
  const [verb, what] = WORSE[content.goal];
  const ratio = next.value / best.value;
  return `The second, ${next.name}, ${verb} ${ratio < 1.05 ? "about" : `${brief(ratio)} times`} as ${what}.`;
}

// What a chart shows, in a sentence.
const FINDINGS = {
  ranking: ([best, next]) => (next ? compare(best, next) : ""),
  upgrades: (rows) => {
    const best = rows.reduce((one, other) => (other.change < one.change ? other : one));
    return best.change < 0 ? `With ${inWords(best.parameter)} ${best.upgrade} it takes ${brief(-100 * best.change)} % less time.` : "";
  },
  trade: (rows) => {
    const knee = rows.find((row) => row.front === "knee");
    return knee ? `Knee: ${knee.name} on ${format(knee.pe)} PEs, ${writeTime(knee.time)} and ${brief(knee.pe_hours)} PE-hours.` : "";
  },
};

// Rows with their time or memory in words, for charts to show.
function complete(rows) {
  return rows.map((row) => {
    const written = row.amount === undefined || row.kind === "time" ? row.time ?? row.epoch_time ?? row.amount : null;
    const held = row.memory != null ? `${brief(row.memory / 1e9)} GB` : "";
    return { ...row, held, written: written != null ? writeTime(written) : row.amount != null ? `${brief(row.amount / 1e9)} GB` : "" };
  });
}

// Tables that a server answers later than the ranking: their charts are faint until then.
const LATER = ["parts", "upgrades"];

async function update(isPartial) {
  answer();
  document.getElementById("answer").classList.remove("waiting");
  delete document.getElementById("answer").dataset.failed;
  for (const chart of content.charts) {
    const section = document.querySelector(`[data-chart="${chart.name}"]`);
    const isWaiting = isPartial && (LATER.includes(chart.table) || chart.name === "limits");
    section.classList.toggle("waiting", Boolean(isWaiting));
    if (isWaiting) continue;
    const rows = complete(pick(chart));
    // One point is no curve, no map and no front.
    const least = { scaling: 2, map: 2, trade: 2 }[chart.name] ?? 1;
    section.hidden = new Set(rows.map((row) => (chart.table === "points" ? `${row.pe} ${row.choice}` : row.strategy))).size < least;
    if (section.hidden) continue;
    section.querySelector(".finding").textContent = FINDINGS[chart.name]?.(rows) ?? "";
    if (chart.spec) await show(chart, rows);
    if (Object.keys(chart.columns).length) fill(document.getElementById(`${chart.name}-table`), chart.columns, rows);
  }
}

async function show(chart, rows) {
  const lines = chart.name === "map" ? writeCells(rows) : 1;
  const bands = chart.bands ? new Set(rows.map((row) => row[chart.bands])).size : 1;
  const height = (chart.height + 12 * (lines - 1)) * bands;
  const signals = chooseSignals(chart, rows);
  const view = (views[chart.name] ??= await draw(chart, rows, height, signals));
  for (const [name, value] of Object.entries(signals)) view.signal(name, value);
  await view.data("rows", structuredClone(rows)).height(height).resize().runAsync();
}

// Ticks and entries of the legend that suit the rows.
function chooseSignals(chart, rows) {
  const drawn = new Set(rows.filter((row) => row.time !== null).map((row) => row.part ?? row.strategy));
  const list = (name) => rows.flatMap((row) => ("value" in row ? [row.value, row.value_p10, row.value_p90] : [row[name]])).filter(Boolean);
  const times = list("time");
  const [unit] = UNITS.find(([size]) => times[0] >= size) || UNITS.at(-1);
  const [shown, numbers] = [chart.order.filter((name) => drawn.has(name)), chooseTicks(list("pe_hours"), powers(-9, 12), 1)];
  return { shown, numbers, times: chooseTicks(times, TIMES, unit) };
}

const LABEL = 130;  // pixels of the longest label beside a chart on a phone
const pen = document.createElement("canvas").getContext("2d");
pen.font = "10px system-ui, sans-serif";
const measure = (text) => pen.measureText(String(text).trim()).width;
const BREAKS = /(?<=[ :,+])/;  // names of configurations break after these

// Break the names in the map's cells into lines that fit; the most lines of a cell.
function writeCells(rows) {
  const labels = Math.max(...rows.map((row) => measure(row.choice))) + 20;
  const width = (document.getElementById("map").clientWidth - labels) / new Set(rows.map((row) => row.pe)).size - 6;
  let most = 1;
  for (const row of rows) {
    const lines = [""];
    for (const word of row.name.split(BREAKS)) {
      if (lines.at(-1) && measure(lines.at(-1) + word) > width) lines.push("");
      lines[lines.length - 1] += word;
    }
    // Where not even a word fits, colours must do.
    if (lines.some((line) => measure(line) > width)) row.cell = "";
    else {
      row.cell = lines.map((line) => line.trim()).join("\n");
      most = Math.max(most, lines.length);
    }
  }
  return most;
}

async function draw(chart, rows, height, signals) {
  const element = document.getElementById(chart.name);
  const spec = { ...structuredClone(chart.spec), height, datasets: { rows: structuredClone(rows) } };
  spec.description = `${chart.title}. ${chart.meaning}`;
  for (const param of spec.params) param.value = signals[param.name];
  const width = element.clientWidth;
  const labels = Math.min(LABEL, Math.max(40, ...rows.map((row) => measure(row[chart.bands] ?? ""))));
  const legend = { columns: Math.max(1, Math.floor((width - labels - 10) / 125)) };
  const axis = { labelSeparation: 8, labelFlush: false };
  const axisY = { labelLimit: Math.max(LABEL, width / 4) };  // a phone would have no room for bars
  const config = { font: "system-ui, sans-serif", background: "transparent", legend, axis, axisY };
  const tooltip = { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light" };
  const { view } = await vegaEmbed(element, spec, { actions: false, renderer: "svg", config, tooltip });
  if (content.live) view.addEventListener("click", (_, item) => explain(item?.datum));
  return view;
}

// A page that a server sent asks it for the rows of each place, and for one cell's explanation.
async function ask(what, values) {
  const query = new URLSearchParams({ ...values, ...sliders, token: content.live.token });
  let text;
  try {
    const response = await fetch(`${what}?${query}`);
    if (response.ok) return await response.json();
    text = await response.text();
  } catch {
    text = "paradl report --serve does not answer. Is it still running? Below are the numbers of an earlier choice.";
  }
  return { error: text };
}

// Numbers of an earlier choice are faint until those of the new one are there.
const dim = () => document.querySelectorAll("#answer, [data-chart]").forEach((part) => part.classList.add("waiting"));
function fail(text) {
  const answer = document.getElementById("answer");
  answer.classList.remove("waiting");
  answer.dataset.failed = true;
  answer.textContent = text;
}

let latest = 0;
async function refresh() {
  const mine = ++latest;
  document.querySelector("main").setAttribute("aria-busy", true);
  // The page came with the rows of the first place.
  const isFirst = mine === 1 && !Object.keys(sliders).length && Object.keys(content.selectors).every((name) => state[name] === opening[name]);
  // An explanation is of one place.
  if (content.live) document.getElementById("explanation").hidden = true;
  if (content.live && !isFirst) {
    dim();
    const place = Object.fromEntries(Object.keys(content.selectors).map((name) => [name, state[name]]));
    for (const what of ["rows", "details"]) {
      const answered = await ask(what, place);
      if (mine !== latest) return;  // a later choice has overtaken this one
      if (answered.error) {
        fail(answered.error);
        break;
      }
      tables = unpackAll(answered.tables);
      await update(what === "rows");
    }
  } else await update();
  document.querySelector("main").setAttribute("aria-busy", false);
}

async function explain(row) {
  if (!row || !isExplained(row)) return;
  const cell = Object.fromEntries(content.axes.filter((name) => row[name] != null).map((name) => [name, row[name]]));
  const mine = latest;
  const answered = await ask("explain", cell);
  if (mine !== latest) return;
  if (answered.error) return fail(answered.error);
  const columns = { term: "term", formula: "formula", numbers: "numbers", seconds_per_iteration: "s per iteration", part: "part" };
  document.getElementById("explained").textContent = `${row.name} on ${format(row.pe)} PEs: ${answered.sentence}`;
  fill(document.getElementById("terms"), columns, answered.formulas);
  document.getElementById("explanation").hidden = false;
  document.getElementById("explanation-title").focus();
}

function makeSliders() {
  const form = document.getElementById("sliders");
  for (const name of content.live.sliders) {
    const label = form.appendChild(document.createElement("label"));
    const text = label.appendChild(document.createElement("span"));
    const slider = label.appendChild(document.createElement("input"));
    Object.assign(slider, { name, type: "range", min: -1, max: 1, step: 0.05 });
    slider.addEventListener("input", () => writeFactor(slider, 10 ** slider.value));
    slider.addEventListener("change", () => {
      if (Number(slider.value) === 0) delete sliders[TIMES_OF + name];
      else sliders[TIMES_OF + name] = Number((10 ** slider.value).toPrecision(4));
      writeFragment();
    });
  }
  setSliders();
}

const writeFactor = (slider, factor) => (slider.previousSibling.textContent = `${inWords(slider.name)} x ${brief(factor)}`);

function setSliders() {
  for (const slider of document.querySelectorAll("#sliders input")) {
    const factor = sliders[TIMES_OF + slider.name] ?? 1;
    slider.value = Math.log10(factor);
    writeFactor(slider, factor);
  }
}

readFragment();
makeSelectors();
if (content.live) makeSliders();
refresh();
// Another width has other room for legends and for names in cells.
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    if (document.getElementById("answer").dataset.failed) return;  // there is nothing to draw anew
    for (const name of Object.keys(views)) {
      views[name].finalize();
      delete views[name];
    }
    update();
  }, 200);
});
addEventListener("hashchange", () => {
  readFragment();
  setSliders();
  for (const select of document.querySelectorAll("select")) select.value = state[select.name];
  refresh();
});
