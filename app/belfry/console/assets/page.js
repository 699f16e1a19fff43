// Shows /v1/cluster and asks again every two seconds.  Text only ever enters the page as text.
"use strict";

const EVERY_MS = 2000;
const number = new Intl.NumberFormat();
const byId = (id) => document.getElementById(id);

// What a key that is bound to some tenants is not told.
const count = (given) => (given === null ? "–" : number.format(given));

function say(id, text) {
  const element = byId(id);
  // A status that is written anew is read aloud anew, so only changes are written.
  if (element.textContent !== text) element.textContent = text;
}

function cell(text, className) {
  const element = document.createElement("td");
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

function partitionRow(partition) {
  const row = document.createElement("tr");
  row.append(
    cell(partition.partition, "number"),
    cell(partition.state),
    cell(count(partition.pending), "number"),
    cell(count(partition.ingest_lag_records), "number"),
    cell(count(partition.position), "number"),
    cell(partition.oldest_due_at ?? "–"),
    cell(partition.missing ?? "–"),
  );
  return row;
}

function otherRow(worker) {
  const row = document.createElement("tr");
  row.append(
    cell(worker.worker_id),
    cell(stateOf(worker)[0]),
    cell(number.format(worker.partitions.length), "number"),
    cell(count(worker.pending), "number"),
    cell(count(worker.fired), "number"),
  );
  return row;
}

function silentRow(name) {
  const row = document.createElement("tr");
  row.append(cell(name), cell("It does not answer."), cell("–"), cell("–"), cell("–"));
  return row;
}

function showState(text, className) {
  say("state", text);
  byId("state").className = `state ${className}`;
}

function stateOf(worker) {
  if (!worker.live) return ["Stopped: restart the process.", "bad"];
  if (worker.firing_paused) return ["Firing is paused: the clock cannot be trusted.", "bad"];
  if (!worker.ready) return ["Not ready: some partitions do not fire yet.", "bad"];
  return ["Ready: the owned partitions fire.", "good"];
}

function showProblems(problems) {
  const list = byId("problems");
  list.hidden = problems.length === 0;
  list.replaceChildren(...problems.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
}

function show(cluster) {
  const worker = cluster.workers[0];
  say("identity", `${worker.version} · ${cluster.app_id} · ${worker.worker_id} · since ${worker.started_at}`);
  showState(...stateOf(worker));
  showProblems(worker.problems);
  say("pending", count(worker.pending));
  say("fired", count(worker.fired));
  say("owned", number.format(worker.partitions.length));
  say("skew", `${number.format(Math.round(worker.clock_skew_seconds * 1000))} ms`);
  byId("partitions").replaceChildren(...worker.partitions.map(partitionRow));
  byId("others").replaceChildren(
    ...cluster.workers.slice(1).map(otherRow),
    ...cluster.silent.map(silentRow),
  );
  byId("others-section").hidden = byId("others").childElementCount === 0;
  byId("none").hidden = worker.partitions.length > 0;
}

// The key stays in this tab: it is gone when the tab is closed.
function authorization() {
  const key = sessionStorage.getItem("belfry-key");
  return key ? { authorization: `Bearer ${key}` } : {};
}

function askForKey(refused) {
  byId("key-form").hidden = !refused;
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("belfry-key", byId("key").value.trim());
  byId("key").value = "";
  askForKey(false);
});

async function refresh() {
  try {
    const answer = await fetch("/v1/cluster", {
      headers: authorization(),
      signal: AbortSignal.timeout(EVERY_MS),
    });
    if (answer.status === 401 || answer.status === 403) {
      askForKey(true);
      throw new Error("it asks for an API key");
    }
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
  } catch (error) {
    showState(`The worker does not answer (${error.message}); the figures below are old.`, "bad");
  }
  setTimeout(refresh, EVERY_MS);
}

refresh();
