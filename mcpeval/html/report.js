// The table of runs: filters, search, sorting; only the rows in view are in the page. A transcript is
// HTML that mcpeval wrote and escaped; it is parsed in a document where nothing runs, and the page's
// policy lets no script of it run afterwards. Whatever else is shown is set as text.
"use strict";
(async () => {
  const [ID, TASK, CATEGORY, AGENT, TRIAL, QUESTION, ERROR, COST, TIME, VERDICTS, TEXT, CHUNK, PLACE] = Array(13).keys();
  const SIGNS = {passed: "✓", failed: "✗", scored: "●", unscored: "?"};
  const FILTERS = ["q", "agent", "category", "evaluator", "passed", "error"];
  const at = (id) => document.getElementById(id);
  const make = (name, cls, text) => {
    const node = document.createElement(name);
    node.className = cls;
    node.textContent = text ?? "";
    return node;
  };

  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(at(id).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  const {evaluators, runs} = await unpacked("records");
  const chunks = new Map();
  const list = at("list"), dialog = at("dialog"), space = make("div", "space");
  let shown = runs, sorted = {by: "", down: false}, active = 0, opened = null;
  runs.forEach((run, i) => { run.order = i; });

  // --- numbers ---

  const dollars = (cost) => cost === null ? "–" : cost === 0 ? "$0" : cost >= 1 ? `$${cost.toFixed(2)}`
    : cost >= 0.001 ? `$${cost.toFixed(4)}` : `$${cost.toPrecision(2)}`;
  const seconds = (time) => time === null ? "–" : time < 0.1 ? `${(1000 * time).toFixed(0)} ms`
    : time < 100 ? `${time.toFixed(1)} s` : `${(time / 60).toFixed(1)} min`;

  // --- which runs are shown ---

  const asked = () => Object.fromEntries(FILTERS.map((name) => [name, at(name).value]));

  function outcome(run, evaluator) {
    const said = run[VERDICTS].filter(([who]) => evaluator === "" || evaluators[who] === evaluator);
    if (!said.length) return "none";
    for (const state of ["failed", "unscored", "scored"]) if (said.some((one) => one[1] === state)) return state;
    return "passed";
  }

  function matches(run, want, words) {
    if (want.agent && run[AGENT] !== want.agent) return false;
    if (want.category && run[CATEGORY] !== want.category) return false;
    if (want.error && (want.error === "(none)" ? run[ERROR] !== "" : run[ERROR] !== want.error)) return false;
    const state = want.evaluator || want.passed ? outcome(run, want.evaluator) : "";
    if (want.evaluator && state === "none") return false;
    if (want.passed && state !== want.passed) return false;
    if (!words.length) return true;
    run.text ??= [run[TASK], run[CATEGORY], run[AGENT], run[ERROR], run[TEXT]].join("\n").toLowerCase();
    return words.every((word) => run.text.includes(word));
  }

  const mean = (run) => {
    const scores = run[VERDICTS].map(([, , said]) => parseFloat(said.split(" · ").pop())).filter((x) => !isNaN(x));
    return scores.length ? scores.reduce((a, b) => a + b) / scores.length : -1;
  };
  const KEYS = {
    task: (run) => run[TASK], agent: (run) => run[AGENT], kind: (run) => run[ERROR], said: mean,
    cost: (run) => run[COST] ?? -1, time: (run) => run[TIME] ?? -1,
  };

  function filter() {
    const want = asked();
    const words = (want.q.toLowerCase().match(/"[^"]+"|\S+/g) ?? []).map((word) => word.replaceAll('"', "")).filter(Boolean);
    shown = runs.filter((run) => matches(run, want, words));
    if (sorted.by) {
      const key = KEYS[sorted.by], sign = sorted.down ? -1 : 1;
      shown.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        const order = typeof x === "string" ? x.localeCompare(y, undefined, {numeric: true}) : x - y;
        return sign * order || a.order - b.order;
      });
    }
    active = 0;
    list.scrollTop = 0;
    const all = runs.length === 1 ? "1 run" : `${runs.length.toLocaleString("en")} runs`;
    at("count").textContent = shown.length === runs.length ? all : `${shown.length.toLocaleString("en")} of ${all}`;
    draw(true);
  }

  // --- the rows in view ---

  const height = () => matchMedia("(max-width: 640px)").matches ? 76 : 56;

  function row(run, i) {
    const link = make("a", "run");
    link.href = address({run: run[ID]});
    link.dataset.place = i;
    link.tabIndex = i === active ? 0 : -1;
    link.style.transform = `translateY(${i * height()}px)`;
    const said = make("span", "said");
    for (const [who, state, word] of run[VERDICTS]) {
      const sign = make("span", `sign ${state}`, SIGNS[state]);
      sign.title = `${evaluators[who]}: ${state}`;
      said.append(sign, ` ${evaluators[who]} `, make("b", "", word), "   ");
    }
    link.append(
      make("span", "task", run[TASK] || run[ID]), make("span", "category", run[CATEGORY]),
      make("span", "agent", run[AGENT]), make("span", "trial", run[TRIAL] ? `trial ${run[TRIAL]}` : ""), said,
      make("span", "question", run[QUESTION]), make("span", "kind", run[ERROR]),
      make("span", "cost", dollars(run[COST])), make("span", "time", seconds(run[TIME])),
    );
    return link;
  }

  function draw(anew = false) {
    const size = height(), first = Math.max(0, Math.floor(list.scrollTop / size) - 5);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / size) + 5);
    const wanted = new Set(Array.from({length: last - first}, (_, i) => first + i));
    if (shown.length) wanted.add(active);
    space.style.height = `${size * shown.length}px`;
    if (anew) space.replaceChildren();
    for (const node of [...space.children]) {
      if (!wanted.delete(+node.dataset.place)) node.remove();
    }
    space.append(...[...wanted].sort((a, b) => a - b).map((i) => row(shown[i], i)));
    if (!shown.length) space.replaceChildren(make("p", "empty", "No run is like that."));
  }

  function go(to) {
    if (!shown.length) return;
    const before = space.querySelector(`[data-place="${active}"]`);
    if (before) before.tabIndex = -1;
    active = Math.max(0, Math.min(shown.length - 1, to));
    const size = height(), top = active * size;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + size > list.scrollTop + list.clientHeight) list.scrollTop = top + size - list.clientHeight;
    draw();
    const now = space.querySelector(`[data-place="${active}"]`);
    now.tabIndex = 0;
    now.focus({preventScroll: true});
  }

  // --- the address says what is shown ---

  function address(more) {
    const said = new URLSearchParams();
    for (const [name, value] of Object.entries(asked())) if (value) said.set(name, value);
    if (sorted.by) said.set("sort", (sorted.down ? "-" : "") + sorted.by);
    for (const [name, value] of Object.entries(more)) said.set(name, value);
    return `#${said}`;
  }

  function follow() {
    const said = new URLSearchParams(location.hash.slice(1)), before = address({});
    for (const name of FILTERS) at(name).value = said.get(name) ?? "";
    const by = said.get("sort") ?? "";
    sorted = {by: by.replace("-", "") in KEYS ? by.replace("-", "") : "", down: by.startsWith("-")};
    if (address({}) !== before || !document.documentElement.dataset.ready) filter(); // else a run was opened or closed
    const run = said.has("run") && runs.find((one) => one[ID] === said.get("run"));
    if (run) open(run); else if (dialog.open) dialog.close();
  }

  function told(more = {}) {
    history.replaceState(null, "", address(more));
  }

  // --- one run ---

  async function open(run) {
    opened = run;
    const number = run[CHUNK];
    if (!chunks.has(number)) chunks.set(number, unpacked(`chunk-${number}`));
    const text = (await chunks.get(number))[run[PLACE]];
    if (opened !== run) return; // another one was opened meanwhile
    const parsed = new DOMParser().parseFromString(text, "text/html");
    at("inside").replaceChildren(...parsed.body.childNodes);
    const i = shown.indexOf(run);
    at("place").textContent = i < 0 ? "" : `${(i + 1).toLocaleString("en")} of ${shown.length.toLocaleString("en")}`;
    at("previous").disabled = i <= 0;
    at("next").disabled = i < 0 || i >= shown.length - 1;
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }

  function step(by) {
    const run = shown[shown.indexOf(opened) + by];
    if (run && shown.includes(opened)) {
      told({run: run[ID]});
      open(run);
    }
  }

  // --- what readers do ---

  const options = {
    agent: runs.map((run) => run[AGENT]), category: runs.map((run) => run[CATEGORY]), evaluator: evaluators,
    passed: ["passed", "failed", "scored", "unscored"], error: ["(none)", ...runs.map((run) => run[ERROR])],
  };
  for (const [name, values] of Object.entries(options)) {
    const different = [...new Set(values)].filter(Boolean);
    for (const value of different) at(name).append(new Option(value, value));
    at(name).parentElement.hidden = different.length < 2 && name !== "passed";
  }
  list.replaceChildren(space);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("filters").addEventListener("input", () => { filter(); told(); });
  at("filters").addEventListener("reset", () => setTimeout(() => { filter(); told(); }));
  for (const head of document.querySelectorAll("[data-sort]")) {
    head.addEventListener("click", () => {
      const by = head.dataset.sort;
      sorted = sorted.by !== by ? {by, down: false} : sorted.down ? {by: "", down: false} : {by, down: true};
      filter();
      told();
    });
  }
  list.addEventListener("scroll", () => requestAnimationFrame(() => draw()));
  addEventListener("resize", () => draw(true));
  list.addEventListener("focusin", (event) => {
    const link = event.target.closest(".run");
    if (link) active = +link.dataset.place;
  });
  list.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(list.clientHeight / height()) - 1);
    const to = {ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page,
      Home: 0, End: shown.length - 1}[event.key];
    if (to !== undefined) {
      event.preventDefault();
      go(to);
    }
  });
  at("close").addEventListener("click", () => dialog.close());
  at("previous").addEventListener("click", () => step(-1));
  at("next").addEventListener("click", () => step(1));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });
  dialog.addEventListener("close", () => {
    const i = shown.indexOf(opened);
    opened = null;
    at("inside").replaceChildren();
    told();
    if (i >= 0) go(i);
  });
  addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = "yes";
})().catch((error) => {
  document.getElementById("list").textContent = `The runs cannot be shown: ${error.message}`;
});
