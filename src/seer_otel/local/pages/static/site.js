// Trends with zoom, over the drawings that the server made. Nothing on the page needs this file.
(() => {
  "use strict";

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const percent = (value) => `${(100 * value).toFixed(1)}%`;
  const utc = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
  const hour = (seconds) => `${new Date(Math.round(seconds / 3600) * 3_600_000).toISOString().slice(0, 16)}Z`;
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const drawn = new Set();

  // A day where ticks are days apart, and at midnight; the time of the day between.
  function tick(seconds, step) {
    const at = new Date(seconds * 1000);
    const day = `${at.getUTCDate()} ${months[at.getUTCMonth()]}`;
    const time = at.toISOString().slice(11, 16);
    return step >= 86_400 || time === "00:00" ? day : time;
  }

  // The page of `base` for a period; `base` holds all other parameters.
  function address(base, since, until) {
    const [path, query] = base.split("?");
    const params = new URLSearchParams(query);
    params.set("since", hour(since));
    params.set("until", hour(until));
    return `${path}?${params}`;
  }

  function draw(figure) {
    const data = JSON.parse(figure.dataset.trend);
    const fallback = figure.querySelector("svg");
    const readout = figure.querySelector("[data-readout]");
    const text = (value) => (data.counts ? value.toLocaleString("en") : percent(value));
    const place = document.createElement("div");
    place.className = "plot";
    fallback.replaceWith(place);
    readout.textContent = "";

    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: colour("--muted"), grid, ticks: grid, font: "11px system-ui, sans-serif" };
    const accent = colour("--accent");
    const plot = new uPlot(
      {
        width: place.clientWidth || 300,
        height: 150,
        padding: [6, 8, 0, 0],
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        legend: { show: false },
        scales: { x: { time: true }, y: { range: (_, __, high) => [0, data.counts ? Math.max(high, 1) : data.top] } },
        axes: [
          { ...axis, size: 26, values: (_, values, __, ___, step) => values.map((value) => tick(value, step)) },
          { ...axis, size: 46, values: (_, values) => values.map((value) => (data.counts ? value.toLocaleString("en") : `${Math.round(100 * value)}%`)) },
        ],
        series: [
          {},
          { stroke: accent, width: 1.5, points: { size: 5, fill: accent, show: data.mean.length <= 40 } },
          { stroke: "transparent", points: { show: false } },
          { stroke: "transparent", points: { show: false } },
        ],
        bands: [{ series: [3, 2], fill: `${accent}2a` }],
        cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 8 } },
        hooks: {
          setCursor: [
            (u) => {
              const at = u.cursor.idx;
              const value = at == null ? null : data.mean[at];
              if (value == null) {
                readout.textContent = "";
                return;
              }
              const band = data.low[at] == null ? "" : ` (${percent(data.low[at])} to ${percent(data.high[at])})`;
              const n = data.counts ? "" : `, n ${data.n[at].toLocaleString("en")}`;
              readout.textContent = `${utc(data.x[at])}: ${text(value)}${band}${n}`;
            },
          ],
          setSelect: [
            (u) => {
              if (u.select.width < 8) return;
              const since = u.posToVal(u.select.left, "x");
              const until = u.posToVal(u.select.left + u.select.width, "x");
              location.assign(address(figure.dataset.zoom, since, Math.max(until, since + 3600)));
            },
          ],
        },
      },
      [data.x, data.mean, data.low, data.high],
      place,
    );
    let down = null;
    plot.over.addEventListener("mousedown", (event) => { down = event.clientX; });
    plot.over.addEventListener("mouseup", (event) => {
      const at = plot.cursor.idx;
      if (down === null || Math.abs(event.clientX - down) > 4 || at == null || data.mean[at] == null) return;
      location.assign(address(figure.dataset.queries, data.x[at], data.x[at] + data.step));
    });
    drawn.add({ plot, place, figure, fallback });
  }

  function drawAll() {
    for (const one of drawn) {
      if (one.place.isConnected) continue;
      one.plot.destroy();
      drawn.delete(one);
    }
    const known = new Set([...drawn].map((one) => one.figure));
    for (const figure of document.querySelectorAll("[data-trend]")) if (!known.has(figure)) draw(figure);
    for (const hint of document.querySelectorAll("[data-scripted]")) hint.hidden = false;
  }

  function redrawAll() {
    for (const one of drawn) {
      one.plot.destroy();
      one.place.replaceWith(one.fallback);
    }
    drawn.clear();
    drawAll();
  }

  // A form's parameters as links write them: without those that choose nothing, and with the key's name.
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.verb !== "get") return;
    const parameters = event.detail.formData;
    const [key, value] = [parameters.get("meta_key"), parameters.get("meta_value")];
    if (key && value) parameters.set(`meta.${key}`, value);
    parameters.delete("meta_key");
    parameters.delete("meta_value");
    for (const [name, chosen] of [...parameters]) if (chosen === "") parameters.delete(name);
  });
  document.addEventListener("htmx:afterSettle", drawAll);
  window.addEventListener("resize", () => {
    for (const { plot, place } of drawn) plot.setSize({ width: place.clientWidth, height: 150 });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  drawAll();
})();
