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

// Times are in UTC; behind each stands the same by the viewer's clock, with the zone's name.
function localTimes(root) {
  for (const element of root.querySelectorAll("time:not([data-shown])")) {
    const ms = element.dataset.ms ? Number(element.dataset.ms) : Date.parse(element.dateTime);
    element.dataset.shown = "yes";
    if (element.dataset.ms) element.textContent = `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
    if (zone === "UTC") continue;
    const local = document.createElement("span");
    local.className = "soft";
    local.textContent = ` ${new Date(ms).toLocaleString("sv")} ${zone}`;
    element.after(local);
  }
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function draw(holder) {
  const [instants, counts] = JSON.parse(holder.dataset.series);
  const axis = { stroke: color("--soft"), grid: { stroke: color("--line") }, ticks: { stroke: color("--line") } };
  const chart = new uPlot({
    width: holder.clientWidth,
    height: 240,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false } },
    axes: [axis, axis],
    series: [{}, { stroke: color("--accent"), fill: color("--accent"), paths: uPlot.paths.bars({ size: [0.8] }), points: { show: false } }],
    hooks: { setSelect: [(drawn) => zoom(holder, drawn)] },
  }, [instants, counts], holder);
  new ResizeObserver(() => chart.setSize({ width: holder.clientWidth, height: 240 })).observe(holder);
}

function zoom(holder, chart) {
  if (chart.select.width < 4) return;
  const at = (x) => Math.round(chart.posToVal(x, "x") * 1000);
  const asked = new URLSearchParams({
    tenant: holder.dataset.tenant,
    by: holder.dataset.by,
    from: at(chart.select.left),
    until: at(chart.select.left + chart.select.width),
  });
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

setInterval(() => {
  if (!document.hidden && byId("live")) htmx.trigger(document.body, "belfry:refresh");
}, EVERY_MS);

document.addEventListener("DOMContentLoaded", () => {
  arrived();
  unlock();
});
