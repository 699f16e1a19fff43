// What the pages need besides htmx: the key of the tab, times of the viewer's zone, keys, the chart.
// Text only ever enters the page as text.
"use strict";

const EVERY_MS = 5000;
const KEY = "belfry-key";
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const byId = (id) => document.getElementById(id);
const key = () => sessionStorage.getItem(KEY);

// The key goes with requests of this page alone; htmx asks nobody but this worker.
document.addEventListener("htmx:configRequest", (event) => {
  if (key()) event.detail.headers.authorization = `Bearer ${key()}`;
  // A worker that hangs is told of as well, but for an action, which may take long.
  if (event.detail.target?.id === "live") event.detail.timeout = 15000;
});

// The key is kept for as long as the tab is open, and nowhere else.
document.addEventListener("submit", (event) => {
  if (event.target.id !== "key-form") return;
  event.preventDefault();
  sessionStorage.setItem(KEY, byId("key").value.trim());
  unlock();
});

function unlock() {
  const main = byId("main");
  if (!main.hasAttribute("data-locked") || !key()) return;
  htmx.ajax("GET", location.pathname + location.search, { source: main, target: "#main", select: "#main", swap: "outerHTML" });
}

// Times are in UTC; behind each stands the same by the viewer's clock, with the zone's name, unless
// the zone of the rule, which stands there already, is the same.
function localTimes(root) {
  for (const element of root.querySelectorAll("time:not([data-shown])")) {
    const ms = element.dataset.ms ? Number(element.dataset.ms) : Date.parse(element.dateTime);
    element.dataset.shown = "yes";
    if (element.dataset.ms) element.textContent = `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
    if (zone === "UTC" || element.nextElementSibling?.dataset.zone === zone) continue;
    const local = document.createElement("span");
    local.className = "soft";
    local.textContent = `${new Date(ms).toLocaleString("sv")} ${zone}`;
    // The space between both may break a line; one within could not.
    element.after(" ", local);
  }
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

let drawn = null;

// Bars of what is due and of what has fired, points of how late it was, and a line at now.
function draw(holder) {
  drawn?.destroy();
  const line = { stroke: color("--line"), width: 1 };
  const axis = (more) => ({ stroke: color("--soft"), grid: line, ticks: line, ...more });
  // A bar begins at the begin of its step, so what is left of now has passed.
  const bars = (name) => ({ stroke: color(name), fill: color(name), paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }), points: { show: false } });
  const ms = (_, values) => values.map((each) => (each >= 1000 ? `${each / 1000} s` : `${each} ms`));
  const clock = (_, instants) => {
    const named = instants.map((each) => new Date(each * 1000).toISOString().slice(0, 16).split("T"));
    const days = named.every(([, at]) => at === "00:00");
    return named.map(([day, at], n) => {
      if (!days) return n === 0 || at === "00:00" ? `${at}\n${day}` : at;
      return n === 0 || day.slice(0, 4) !== named[n - 1][0].slice(0, 4) ? `${day.slice(5)}\n${day.slice(0, 4)}` : day.slice(5);
    });
  };
  const rows = JSON.parse(holder.dataset.series);
  const step = rows[0].length > 1 ? rows[0][1] - rows[0][0] : 60;
  const from = (_, __, most) => [0, Math.max(1, most ?? 1) * 1.1];
  drawn = new uPlot({
    width: holder.clientWidth,
    height: 260,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false } },
    scales: { x: { range: (_, least, most) => [least, most + step] }, y: { range: from }, late: { range: from } },
    axes: [axis({ values: clock }), axis({ size: 64, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 1e8] }), axis({ scale: "late", side: 1, grid: { show: false }, values: ms, size: 72 })],
    series: [{}, bars("--accent"), bars("--past"), { scale: "late", paths: () => null, points: { show: true, size: 6, fill: color("--bad"), stroke: color("--bad") } }],
    hooks: { setSelect: [(chart) => zoom(holder, chart)], draw: [(chart) => now(holder, chart)] },
  }, rows, holder);
  const chart = drawn;
  new ResizeObserver(() => chart === drawn && chart.setSize({ width: holder.clientWidth, height: 260 })).observe(holder);
}

function now(holder, chart) {
  const x = chart.valToPos(Number(holder.dataset.now), "x", true);
  const { left, top, width, height } = chart.bbox;
  if (x < left || x > left + width) return;
  chart.ctx.fillStyle = color("--ink");
  chart.ctx.fillRect(x, top, 2, height);
}

// The worker chooses the step that suits the width of what was dragged over.
function zoom(holder, chart) {
  if (chart.select.width < 4) return;
  const at = (x) => Math.round(chart.posToVal(x, "x") * 1000);
  const asked = new URLSearchParams({ from: at(chart.select.left), until: at(chart.select.left + chart.select.width) });
  if (holder.dataset.tenant) asked.set("tenant", holder.dataset.tenant);
  go(`/console/timeline?${asked}`);
}

// The tenant that is looked at goes along, so `g t` shows its timeline.
function go(address) {
  const link = document.createElement("a");
  link.href = address;
  byId("main").append(link);
  htmx.process(link);
  link.click();
}

function tenant() {
  const named = new URLSearchParams(location.search).get("tenant");
  return named ? `?${new URLSearchParams({ tenant: named })}` : "";
}

const PLACES = {
  o: () => "/",
  s: () => `/console/schedules${tenant()}`,
  t: () => `/console/timeline${tenant()}`,
  n: () => `/console/create${tenant()}`,
  p: () => `/console/tenants${tenant()}`,
  d: () => `/console/deliveries${tenant()}`,
  r: () => `/console/rejections${tenant()}`,
  c: () => "/console/cluster",
};
let leads = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog[open]")) return;
  const place = leads ? PLACES[event.key] : undefined;
  leads = event.key === "g";
  if (place) go(place());
  else if (event.key === "?") byId("help").showModal();
  else if (event.key === "/") search();
  else return;
  event.preventDefault();
});

function search() {
  if (byId("search")) byId("search").focus();
  else go(`/console/schedules${tenant()}${tenant() ? "" : "?"}#search`);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "help-button") byId("help").showModal();
  if (button.classList.contains("opens")) byId(button.dataset.opens).showModal();
  if (button.classList.contains("closes")) button.closest("dialog").close();
  if (button.id === "forget-key") {
    sessionStorage.removeItem(KEY);
    location.assign("/");
  }
});

function arrived() {
  localTimes(document);
  byId("viewer-zone").textContent = zone;
  const chart = byId("chart");
  if (chart && !chart.firstChild) draw(chart);
  for (const link of document.querySelectorAll("header nav a")) {
    if (new URL(link.href).pathname === location.pathname) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

document.addEventListener("htmx:afterSettle", (event) => {
  arrived();
  if (event.detail.target?.id !== "main" && event.target.id !== "main") return;
  if (location.hash === "#search" && byId("search")) byId("search").focus();
  else byId("main").focus({ preventScroll: true });
});

// What somebody is about to use stays: an open dialog, a field that was filled in, a focused link.
function isUsed(live) {
  const active = document.activeElement;
  const fields = [...live.querySelectorAll("input, textarea")];
  return document.querySelector("dialog[open]")
    || (live.contains(active) && !active.id)
    || live.querySelector("#chart:hover")
    || fields.some((each) => each.checked !== each.defaultChecked || each.value !== each.defaultValue);
}

setInterval(() => {
  const live = byId("live");
  if (document.hidden || !live?.dataset.again || isUsed(live)) return;
  htmx.ajax("GET", live.dataset.again, { source: live, target: "#live", select: "#live", swap: "outerHTML" });
}, EVERY_MS);

// A page that cannot be refreshed says so, and keeps what it shows.
let answered = new Date();

function silent(why) {
  byId("silent").textContent = `${why} What you see is as of ${answered.toLocaleTimeString("sv")} ${zone}.`;
  byId("silent").hidden = false;
}

for (const each of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(each, () => silent("The worker does not answer."));
document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr } = event.detail;
  if (target.id === "live" && xhr.status !== 200) {
    event.detail.shouldSwap = false;
    silent(`The worker answers ${xhr.status}.`);
    return;
  }
  answered = new Date();
  byId("silent").hidden = true;
  scrolled = [...document.querySelectorAll("#live .scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
});

// Tables stay where they were scrolled to.
let scrolled = [];

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "live") return;
  document.querySelectorAll("#live .scroll").forEach((each, n) => each.scrollTo(...(scrolled[n] ?? [0, 0])));
});

document.addEventListener("DOMContentLoaded", () => {
  arrived();
  unlock();
});
