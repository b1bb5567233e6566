// The page of a running experiment: asks once a second what has come of it, and shows that as text.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const at = (id) => document.getElementById(id);
  const make = (name, cls, ...inside) => {
    const node = document.createElement(name);
    node.className = cls;
    node.append(...inside);
    return node;
  };
  const number = (n) => (n ?? 0).toLocaleString("en");
  const dollars = (cost) => cost === 0 ? "$0" : `$${cost >= 1 ? cost.toFixed(2) : cost.toFixed(4)}`;
  const size = (bytes) => bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  const time = (seconds) => seconds < 100 ? `${seconds.toFixed(0)} s`
    : seconds < 6000 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`;

  function bar(done, failed, planned) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 100 10");
    svg.setAttribute("preserveAspectRatio", "none");
    const share = (n) => 100 * n / Math.max(planned, done, 1);
    for (const [from, width, cls] of [[0, share(done), ""], [share(done - failed), share(failed), "failed"]]) {
      const rect = document.createElementNS(SVG, "rect");
      for (const [name, value] of Object.entries({x: from, y: 0, width, height: 10, class: cls})) {
        rect.setAttribute(name, value);
      }
      svg.append(rect);
    }
    const whole = make("div", "progress", svg);
    whole.role = "progressbar";
    whole.ariaValueNow = done;
    whole.ariaValueMax = planned;
    return whole;
  }

  function facts(pairs) {
    const list = make("dl", "facts");
    for (const [name, value] of pairs) {
      list.append(make("div", "", make("dt", "", name), make("dd", "", value)));
    }
    return list;
  }

  function work(record) {
    const {planned, done, failed, cached, state, updated, started} = record;
    const took = (state === "running" ? updated + record.age : updated) - started, made = done - cached;
    const left = state === "running" && made > 0 ? took / made * (planned - done) : null;
    const title = make("h2", "", record.what, make("span", `state ${state}`, state));
    const more = record.unpriced ? ` and ${number(record.unpriced)} of unknown price` : "";
    const card = make("section", "card", title, bar(done, failed, planned), facts([
      ["done", `${number(done)} of ${number(planned)}`], ["failed", number(failed)],
      ["from the cache", number(cached)], ["paid", dollars(record.cost_usd) + more], ["time", time(took)],
      ...(left === null ? [] : [["left, about", time(left)]]),
      ...(state === "running" && record.age > 10 ? [["last news", `${time(record.age)} ago`]] : []),
    ]));
    const parts = Object.entries(record.parts);
    if (parts.length > 1) {
      const list = make("table", "");
      for (const [name, part] of parts) {
        const line = make("tr", "", make("td", "", name), make("td", "bars", bar(part.done, part.failed, part.planned)),
          make("td", "number", `${number(part.done)} of ${number(part.planned)}`),
          make("td", "number", part.failed ? `${number(part.failed)} failed` : ""));
        list.append(line);
      }
      card.append(make("div", "scroll", list));
    }
    if (record.errors.length) {
      const list = make("ul", "errors");
      for (const one of record.errors.slice().reverse()) {
        const when = new Date(1000 * one.time).toLocaleTimeString();
        list.append(make("li", "", make("span", "quiet", when), make("pre", "text", one.error)));
      }
      card.append(make("h4", "", "Last errors"), list);
    }
    return card;
  }

  function show(status) {
    const running = status.work.filter((record) => record.state === "running").length;
    at("news").textContent = running ? `${running} running, ${new Date().toLocaleTimeString()}`
      : status.work.length ? "nothing is running" : "nothing has been run here yet";
    at("work").replaceChildren(...status.work.map(work));
    const cache = status.cache;
    at("cache").replaceChildren(cache === null ? "There is no cache here yet." : cache.error ?? facts([
      ["entries", number(cache.entries)], ["size", size(cache.bytes)],
      ...Object.entries(cache.kinds).map(([kind, n]) => [kind, number(n)]),
    ]));
    at("files").hidden = status.files.length === 0;
  }

  async function look() {
    const answer = await fetch("status.json").catch(() => null);
    if (answer?.ok) show(await answer.json());
    else at("news").textContent = `${answer ? "the folder cannot be read" : "mcpeval serve has ended"}; this is what was last known`;
    setTimeout(look, 1000);
  }
  look();
})();
