// The page of a report: tables and charts from the JSON in #data. No network, no storage but the
// choice of theme. Text gets into the page as text only, never as markup.
"use strict";

window.addEventListener("error", (event) => {
  const root = document.documentElement;
  root.dataset.errors = (root.dataset.errors || "") + event.message + " @" + event.lineno + "\n";
});

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const main = document.getElementById("main");

  // Colours that can be told apart by colour-blind readers in the first four places; beyond, dashes
  // tell lines apart. Each has a contrast of 4.5 : 1 or more against the page.
  const COLOURS = {
    light: ["#0072b2", "#c44e00", "#00795c", "#a8377e", "#5a4fcf", "#7a5b00", "#333333", "#0e7c86",
      "#b3202c", "#5e6b00"],
    dark: ["#56b4e9", "#e69f00", "#2fc79a", "#e58ac0", "#a99bff", "#f0e442", "#ffffff", "#5fd3de",
      "#ff8f7d", "#c0cf5a"],
  };
  const DASHES = [[], [9, 4], [4, 3], [10, 3, 3, 3], [16, 5], [6, 6]];
  const PERCENTILES = ["p50", "p95", "p99", "p99.9", "max"];

  // ---- numbers and elements

  const three = (value) => {
    const size = Math.abs(value);
    if (size >= 99.95) return value.toFixed(0);
    if (size >= 9.995) return value.toFixed(1);
    if (size >= 0.1) return value.toFixed(2);
    return size === 0 ? "0" : size < 0.001 ? "<.001" : value.toFixed(3);
  };
  const scaled = (value, units) => {
    let unit = 0;
    while (Math.abs(value) >= 999.5 && unit + 1 < units.length) {
      value /= 1000;
      unit += 1;
    }
    const whole = unit === 0 && Number.isInteger(value);
    return (whole ? String(value) : three(value)) + units[unit];
  };
  const count = (value) => scaled(value, ["", "k", "M", "G", "T"]);
  const bytes = (value) => scaled(value, [" B", " kB", " MB", " GB", " TB"]);
  const plain = (value) => (Math.abs(value) >= 999.5 ? count(value) : three(value));

  const el = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "on") {
        for (const [event, handler] of Object.entries(value)) {
          element.addEventListener(event, handler);
        }
      } else if (value !== null && value !== undefined) {
        element.setAttribute(name, value);
      }
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };

  /** A table in a box of its own that scrolls sideways, also by keyboard. */
  const table = (caption, head, rows) => {
    const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption });
    // Columns of words stand at the left as the first one does.
    const words = head.map((text, at) => rows.every((cells) => /^[a-z]/i.test(cells[at])));
    const side = (at) => (words[at] ? "words" : null);
    box.append(el("table", { "aria-label": caption },
      el("thead", {}, el("tr", {}, ...head.map((text, at) =>
        el("th", { scope: "col", class: side(at) }, text)))),
      el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((cell, at) => {
        const content = cell === null || cell === undefined ? "-" : cell;
        return at === 0 ? el("th", { scope: "row" }, content)
          : el("td", { class: side(at) }, content);
      }))))));
    // Beside the box, not in it: there it would be as wide as the table.
    return el("div", { class: "titled" }, el("p", { class: "title" }, caption), box);
  };

  // ---- what there is

  const several = data.runs.length > 1;
  for (const row of data.rows) {
    row.name = several ? row.label + " in " + data.runs[row.run].name : row.label;
  }
  const names = [...new Set(data.rows.map((row) => row.name))];
  const steps = [];
  for (const row of data.rows) {
    let step = steps.find((one) => one.workload === row.workload && one.step === row.step &&
      one.variant === row.variant && one.clients === row.clients);
    if (!step) {
      step = { workload: row.workload, step: row.step, variant: row.variant, clients: row.clients,
        rows: [] };
      steps.push(step);
    }
    step.rows.push(row);
  }
  for (const step of steps) {
    const others = steps.filter((one) => one.workload === step.workload &&
      one.step === step.step && one.variant === step.variant);
    step.title = step.workload + " " + step.step + (step.variant ? ": " + step.variant : "");
    if (others.length > 1) {
      step.title += ", " + step.clients + (step.clients === 1 ? " client" : " clients");
    }
  }
  const unit = (step) => step.rows[0].unit || "operation";

  // ---- theme

  const THEMES = ["auto", "light", "dark"];
  const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
  let theme = "auto";
  try {
    theme = THEMES.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto";
  } catch (error) {
    // A page from a file may have no storage.
  }
  const isDark = () => theme === "dark" || (theme === "auto" && wantsDark.matches);
  const colour = (at) => {
    const colours = COLOURS[isDark() ? "dark" : "light"];
    return colours[at % colours.length];
  };
  const dash = (at) => DASHES[at % DASHES.length];
  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  const themeButton = el("button", {
    type: "button", id: "theme", on: {
      click: () => {
        theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
        try {
          localStorage.setItem("theme", theme);
        } catch (error) {
          // Then it holds until the page is closed.
        }
        showTheme();
        redraw();
      },
    },
  });
  const showTheme = () => {
    root.dataset.theme = isDark() ? "dark" : "light";
    themeButton.textContent = "Theme: " + theme;
  };
  wantsDark.addEventListener("change", () => {
    showTheme();
    redraw();
  });

  // ---- charts

  /** Charts on the page: how to draw each, and what is drawn. */
  let charts = [];
  const hidden = new Set();

  /**
   * A chart with its legend and the values under the cursor. `series`: [{name, at, x, y}], where
   * `at` chooses colour and dash; `options`: xLabel, yLabel, show (a value as text), log, xNames,
   * shared (whether hiding a line hides it in all such charts).
   */
  const chart = (caption, series, options) => {
    const figure = el("figure", {});
    figure.append(el("figcaption", {}, caption));
    const filled = series.filter((one) => one.y.some((value) => value !== null));
    if (filled.length === 0) {
      figure.append(el("p", { class: "quiet" },
        "Nothing to draw: the step was shorter than an interval, or this was not measured."));
      return figure;
    }
    const summary = filled.map((one) => {
      const values = one.y.filter((value) => value !== null).sort((a, b) => a - b);
      const middle = values[Math.floor((values.length - 1) / 2)];
      return one.name + " from " + options.show(values[0]) + " to " +
        options.show(values[values.length - 1]) + ", median " + options.show(middle);
    }).join("; ");
    const plot = el("div", {
      class: "plot", tabindex: "0", role: "img",
      "aria-label": caption + ". " + summary + ". Arrow keys move over the values.",
    });
    const readout = el("p", { class: "readout", "aria-live": "polite" });
    const legend = el("div", { class: "legend", role: "group", "aria-label": "Lines of the chart" });
    const own = { plot, readout, legend, series: filled, options, drawn: null, hidden };
    if (!options.shared) own.hidden = new Set();
    figure.append(legend, plot, readout);
    charts.push(own);
    return figure;
  };

  const swatch = (at) => {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    svg.setAttribute("viewBox", "0 0 28 10");
    svg.setAttribute("width", "28");
    svg.setAttribute("height", "10");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS(space, "line");
    for (const [name, value] of [["x1", 0], ["x2", 28], ["y1", 5], ["y2", 5], ["stroke-width", 3]]) {
      line.setAttribute(name, value);
    }
    line.setAttribute("stroke", colour(at));
    line.setAttribute("stroke-dasharray", dash(at).join(" "));
    svg.append(line);
    return svg;
  };

  const drawLegend = (own) => {
    own.legend.replaceChildren(...own.series.map((one) => el("button", {
      type: "button", "aria-pressed": String(!own.hidden.has(one.name)), on: {
        click: () => {
          if (!own.hidden.delete(one.name)) own.hidden.add(one.name);
          for (const other of charts) {
            if (other === own || (own.options.shared && other.options.shared)) draw(other);
          }
          const again = [...own.legend.children].find((b) => b.textContent === one.name);
          if (again) again.focus();
        },
      },
    }, swatch(one.at), one.name)));
  };

  const readValues = (own, index) => {
    const { options } = own;
    if (index === null || index === undefined) {
      own.readout.textContent = options.hint || "";
      return;
    }
    const x = own.joined[0][index];
    const place = options.xNames ? options.xNames[x] : three(x) + " s";
    const values = own.series
      .map((one, at) => [one.name, own.joined[at + 1][index]])
      .filter(([name, value]) => !own.hidden.has(name) && value !== null && value !== undefined)
      .map(([name, value]) => name + " " + options.show(value));
    own.readout.textContent = place + ": " + (values.join(", ") || "no value");
  };

  const draw = (own) => {
    if (own.drawn) own.drawn.destroy();
    drawLegend(own);
    const { options } = own;
    own.joined = uPlot.join(own.series.map((one) => [one.x, one.y]));
    const ink = style("--ink");
    const axis = {
      stroke: ink, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      grid: { stroke: style("--grid"), width: 1 }, ticks: { stroke: style("--grid"), width: 1 },
      labelSize: 20,
    };
    const few = own.series.length > 0 && own.joined[0].length <= 30;
    own.drawn = new uPlot({
      width: Math.max(240, own.plot.clientWidth),
      height: 280,
      legend: { show: false },
      cursor: { y: false, drag: { x: !options.xNames, y: false } },
      scales: {
        x: {
          time: false,
          range: options.xNames ? [-0.3, options.xNames.length - 0.7] : undefined,
        },
        y: options.log
          ? { distr: 3 }
          : { range: (u, low, high) => [0, high > 0 ? high * 1.05 : 1] },
      },
      axes: [
        {
          ...axis, label: options.xLabel, size: 40,
          ...(options.xNames ? {
            splits: () => options.xNames.map((name, at) => at),
            values: (u, splits) => splits.map((at) => options.xNames[at]),
          } : {}),
        },
        {
          ...axis, label: options.yLabel, size: 62,
          values: (u, splits) => splits.map((value) => (value === null ? "" : options.show(value))),
        },
      ],
      series: [{}].concat(own.series.map((one) => ({
        label: one.name, stroke: colour(one.at), dash: dash(one.at), width: 2, spanGaps: true,
        show: !own.hidden.has(one.name),
        points: { show: few, size: 7, fill: colour(one.at) },
      }))),
      hooks: { setCursor: [(u) => readValues(own, u.cursor.idx)] },
    }, own.joined, own.plot);
    readValues(own, null);
    root.dataset.charts = String(charts.filter((one) => one.drawn).length);
  };

  const redraw = () => charts.forEach(draw);

  const moveCursor = (event) => {
    const own = charts.find((one) => one.plot === event.currentTarget);
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (!own || !own.drawn || (by === undefined && event.key !== "Home" && event.key !== "End")) {
      return;
    }
    event.preventDefault();
    const last = own.joined[0].length - 1;
    const now = own.index === undefined ? (by > 0 ? -1 : last + 1) : own.index;
    const next = event.key === "Home" ? 0 : event.key === "End" ? last : now + by;
    own.index = Math.min(last, Math.max(0, next));
    own.drawn.setCursor({ left: own.drawn.valToPos(own.joined[0][own.index], "x"), top: 10 });
    readValues(own, own.index);
  };

  const resized = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const own = charts.find((one) => one.plot === entry.target);
      const width = Math.floor(entry.contentRect.width);
      if (own && own.drawn && width > 0 && width !== own.drawn.width) {
        own.drawn.setSize({ width, height: own.drawn.height });
      }
    }
  });

  /** Draws the charts that have got into the page; forgets those that have left it. */
  const drawNew = () => {
    for (const own of charts.filter((one) => !one.plot.isConnected)) {
      resized.unobserve(own.plot);
      if (own.drawn) own.drawn.destroy();
    }
    charts = charts.filter((one) => one.plot.isConnected);
    for (const own of charts.filter((one) => !one.drawn)) {
      draw(own);
      own.plot.addEventListener("keydown", moveCursor);
      resized.observe(own.plot);
    }
    root.dataset.charts = String(charts.length);
  };

  /** A chooser above something that depends on it. */
  const choose = (label, choices, build) => {
    const box = el("div", {});
    const holder = el("div", {});
    const select = el("select", {
      on: {
        change: () => {
          holder.replaceChildren(...build(select.value));
          drawNew();
        },
      },
    }, ...choices.map(([value, text]) => el("option", { value }, text)));
    box.append(el("label", { class: "choose" }, label + " ", select), holder);
    holder.append(...build(choices[0][0]));
    return box;
  };

  // ---- the parts of a step

  const lines = (step, values) => step.rows.map((row) => ({
    name: row.name,
    at: names.indexOf(row.name),
    x: row.at.map((second) => Math.round(second * 10) / 10),
    y: values(row),
  }));

  const HINT = "Point at the chart, or focus it and use the arrow keys, to read values.";
  const OVER_TIME = [
    ["rate", "rate", "per second", count],
    ["writer", "rate of the writer beside", "writes per second", count],
    ["max", "longest response time", "ms", plain],
    ["cpu", "CPU, seconds per second", "CPUs", plain],
    ["read", "read from storage", "MB/s", plain],
    ["written", "written to storage", "MB/s", plain],
    ["size", "size on disk", "MB", plain],
    ["space", "size on disk as a multiple of what the data takes at rest", "times", plain],
    ["rss", "resident memory", "MB", plain],
    ["stall", "seconds in which writers were stalled", "s per interval", plain],
  ];
  const overTime = (step) => choose("Over time:", OVER_TIME
    .filter(([key]) => !["writer", "space"].includes(key)
      || step.rows.some((row) => row.series[key].length > 0))
    .map(([key, text]) => [key, text]),
    (chosen) => {
      const [key, text, yLabel, show] = OVER_TIME.find(([one]) => one === chosen);
      const caption = text[0].toUpperCase() + text.slice(1) + " over time";
      const y = key === "rate" ? unit(step) + "s per second" : yLabel;
      return [chart(caption, lines(step, (row) => (row.series[key].length > 0
        ? row.series[key] : row.at.map(() => null))), {
        xLabel: "seconds", yLabel: y, show, shared: true, hint: HINT,
      })];
    });

  const latencies = (step) => {
    const kinds = new Map();
    for (const row of step.rows) {
      for (const [kind, latency] of Object.entries(row.latency)) {
        kinds.set(kind, Math.max(kinds.get(kind) || 0, latency.count));
      }
    }
    const sorted = [...kinds.keys()].sort((a, b) => kinds.get(b) - kinds.get(a));
    if (sorted.length === 0) return null;
    return choose("Operation:", sorted.map((kind) => [kind, kind]), (kind) => {
      const rows = step.rows.filter((row) => row.latency[kind]);
      // The mean is first in the data, and not a percentile.
      const ms = (row) => row.latency[kind].us.slice(1).map((us) => us / 1000);
      const series = rows.map((row) => ({
        name: row.name, at: names.indexOf(row.name), x: PERCENTILES.map((name, at) => at),
        y: ms(row).map((value) => (value > 0 ? value : null)),
      }));
      const numbers = rows.map((row) => [row.name, count(row.latency[kind].count),
        plain(row.latency[kind].us[0] / 1000), ...ms(row).map(plain)]);
      return [
        chart("Response time of " + kind + ", milliseconds, logarithmic", series, {
          xLabel: "percentile", yLabel: "ms", show: plain, log: true, xNames: PERCENTILES,
          shared: true, hint: HINT,
        }),
        table("Response time of " + kind + " in milliseconds",
          ["engine", "count", "mean", ...PERCENTILES], numbers),
      ];
    });
  };

  const efficiency = (step) => {
    const per = " per " + unit(step);
    const measures = [
      ["rate", unit(step) + "s per second", count, "more is better"],
      ["cpu", "CPU microseconds" + per, plain, "less is better"],
      ["written", "KB written to storage" + per, plain, "less is better"],
      ["read", "KB read from storage" + per, plain, "less is better"],
      ["size", "Size on disk", bytes, "less is better"],
      ["sizePeak", "Size on disk, the most at any moment", bytes, "less is better"],
      ["peak", "Resident memory at its peak", bytes, "less is better"],
      ["wamp", "Write amplification", plain, "less is better"],
      ["stall", "Percent of the time writers were stalled", plain, "less is better"],
    ];
    const cards = el("div", { class: "cards" });
    for (const [key, text, show, better] of measures) {
      const rows = step.rows.filter((row) => row[key]);
      const most = Math.max(...rows.map((row) => row[key][0]));
      if (rows.length === 0 || most <= 0) continue;
      const body = el("tbody", {}, ...rows.map((row) => {
        const [median, low, high] = row[key];
        const bar = el("span", { class: "bar", "aria-hidden": "true" });
        bar.style.width = (median > 0 ? Math.max(0.5, 100 * median / most) : 0) + "%";
        bar.style.background = colourOf(row.name);
        const spread = row.repeats > 1 && high > low ? el("span", { class: "quiet" },
          " (" + show(low) + " to " + show(high) + ")") : null;
        return el("tr", {}, el("th", { scope: "row" }, row.name),
          el("td", {}, el("span", { class: "track" }, bar),
            el("span", { class: "value" }, show(median), spread)));
      }));
      cards.append(el("table", { class: "card" }, el("caption", {},
        text[0].toUpperCase() + text.slice(1), el("span", { class: "quiet" }, " " + better)), body));
    }
    return cards;
  };
  const colourOf = (name) => "var(--line-" + (names.indexOf(name) % 10) + ")";

  const levels = (step) => {
    const rows = step.rows.filter((row) => row.levels.length > 0 || row.table);
    if (rows.length === 0) return null;
    return choose("Engine:", rows.map((row) => [row.name, row.name]), (name) => {
      const row = rows.find((one) => one.name === name);
      const any = (values) => values.some((value) => value !== null && value > 0);
      const seen = {
        at: row.levelsAt.at, done: row.levelsAt.done,
        levels: row.levelsAt.levels.filter((level) => any(level.size) || any(level.written)),
      };
      const used = row.levels.filter((level) =>
        level.files + level.bytes + level.jobs + level.written_bytes > 0);
      const parts = [];
      const line = (level, y) => ({ name: "level " + level.level, at: level.level, x: seen.at, y });
      if (seen.at.length > 1) {
        parts.push(chart("Size of each level over time, " + name,
          seen.levels.map((level) => line(level, level.size)),
          { xLabel: "seconds", yLabel: "MB", show: plain, hint: HINT }));
        if (row.userBytes > 0) {
          const amp = (level) => level.written.map((mb, at) => {
            const user = seen.done[at] * row.userBytes / 1e6;
            return mb === null || user <= 0 ? null : mb / user;
          });
          parts.push(chart("Write amplification of each level over time, " + name,
            seen.levels.map((level) => line(level, amp(level))), {
              xLabel: "seconds", yLabel: "written / ingested", show: plain,
              hint: "Bytes that jobs wrote to the level since the store was opened, over what the " +
                "clients had written by then (taken in proportion to the operations done).",
            }));
        }
      }
      if (used.length > 0) {
        parts.push(table("Compaction by level, " + name,
          ["level", "tables", "size", "read", "written", "w-amp", "jobs", "s per job", "CPU s"],
          used.map((level) => ["L" + level.level, count(level.files), bytes(level.bytes),
            bytes(level.read_bytes), bytes(level.written_bytes),
            row.userBytes > 0 ? plain(level.written_bytes / row.userBytes) : null,
            count(level.jobs), level.jobs > 0 ? three(level.seconds / level.jobs) : null,
            three(level.cpu_seconds)])));
      }
      if (row.table) {
        parts.push(el("details", {}, el("summary", {}, "The engine's own table, " + name),
          el("pre", { tabindex: "0" }, row.table)));
      }
      return parts;
    });
  };

  const configuration = (step) => {
    const box = el("div", {});
    for (const row of step.rows) {
      const value = (one) => (typeof one === "string" ? one : JSON.stringify(one));
      const settings = row.configuration.map(([name, one]) => [name, value(one)]);
      const parameters = Object.entries(row.parameters || {}).map(([name, one]) => [name, value(one)]);
      const extra = Object.entries(row.extra).map(([name, one]) => [name, plain(one)]);
      box.append(el("details", { class: "configuration" },
        el("summary", {}, row.name + " " + row.version),
        settings.length ? table("Settings of " + row.name, ["setting", "value"], settings) : null,
        parameters.length ? table("Parameters of the workload", ["parameter", "value"], parameters)
          : null,
        extra.length ? table("Figures of this workload alone", ["figure", "value"], extra) : null));
    }
    return box;
  };

  const notes = (step) => {
    const all = new Map();
    for (const row of step.rows) {
      for (const note of row.notes) all.set(note, [...(all.get(note) || []), row.name]);
      const { writer } = row;
      if (writer) {
        const text = "the writer beside did " + count(Math.round(writer.rate)) + "/s of " +
          count(writer.wanted) + "/s" + (writer.held ? "" : ": it did not hold its rate");
        all.set(text, [...(all.get(text) || []), row.name]);
      }
    }
    if (all.size === 0) return null;
    return el("ul", {}, ...[...all].map(([note, who]) => el("li", {}, who.join(", ") + ": " + note)));
  };

  const sentences = (step) => {
    const texts = data.sentences
      .filter((one) => one.workload === step.workload && one.step === step.step &&
        one.variant === step.variant)
      .flatMap((one) => one.texts.map((text) => (several ? one.run + ": " : "") + text));
    if (texts.length === 0) return null;
    return el("ul", {}, ...texts.map((text) => el("li", {}, text)));
  };

  const part = (title, content) =>
    (content ? el("section", {}, el("h3", {}, title), content) : null);

  // ---- the page

  const holder = el("div", { id: "step" });
  // Of many steps, buttons would fill the page.
  const many = steps.length > 40;
  const chooser = el("select", { on: { change: () => show(Number(chooser.value)) } },
    ...steps.map((step, at) => el("option", { value: String(at) }, step.title)));
  const buttons = many ? [] : steps.map((step, at) => el("button", {
    type: "button", on: { click: () => show(at) },
  }, step.title));
  const show = (at) => {
    const step = steps[at];
    chooser.value = String(at);
    buttons.forEach((button, other) => {
      if (other === at) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    const first = step.rows[0];
    const repeats = Math.max(...step.rows.map((row) => row.repeats));
    holder.replaceChildren(
      el("h2", { tabindex: "-1" }, step.title),
      el("p", { class: "quiet" }, first.clients + (first.clients === 1 ? " client, " : " clients, ") +
        plain(first.seconds) + " s; " +
        (repeats > 1
          ? "medians of " + repeats + " repeats, lines over time of the one in the middle"
          : "one repeat: nothing is known of how far repeats lie apart")),
      ...[
        part("What the figures say", sentences(step)),
        part("Over time", overTime(step)),
        part("Response times", latencies(step)),
        part("Efficiency", efficiency(step)),
        part("Levels and compaction", levels(step)),
        part("Notes", notes(step)),
        part("Full configuration", configuration(step)),
      ].filter((one) => one));
    drawNew();
    try {
      history.replaceState(null, "", "#" + encodeURIComponent(step.title));
    } catch (error) {
      // A page from a file may not change its address.
    }
  };

  const overview = () => table("Operations per second" +
    (names.length > 1 ? " (in brackets: over those of " + data.base + ")" : "") +
    "; of steps that are one operation, their seconds",
    ["step", ...names], steps.map((step) => [step.title, ...names.map((name) => {
      const row = step.rows.find((one) => one.name === name);
      if (!row) return null;
      if (row.ops <= 1) return plain(row.seconds) + " s";
      const ratio = row.ratio === null ? "" : " (" + three(row.ratio) + ")";
      return count(Math.round(row.rate[0])) + ratio;
    })]));

  const comparisons = () => data.changes.map((one) => {
    const changed = one.rows.filter((row) => ["regressed", "improved"].includes(row.verdict));
    const p = (value) => (value === null ? null : value < 0.001 ? "<.001" : value.toFixed(3));
    const cells = (row) => [row.workload + " " + row.step,
      row.engine + (row.setting ? "." + row.setting : ""), row.figure, row.shown[0], row.shown[1],
      row.ratio === null ? null : three(row.ratio), p(row.p_corrected), row.basis,
      el("span", { class: row.verdict }, row.verdict)];
    const head = ["step", "engine", "figure", "first", "later", "ratio", "p corrected", "tested over",
      "verdict"];
    const title = one.before + " (first) against " + one.after + " (later)";
    return el("section", {}, el("h2", {}, title),
      one.remarks.length ? el("ul", {}, ...one.remarks.map((text) => el("li", {}, text))) : null,
      changed.length
        ? table("What changed", head, changed.map(cells))
        : el("p", {}, "There is no evidence that a figure changed."),
      el("details", {}, el("summary", {}, "All " + one.rows.length + " figures"),
        table("All figures that were compared", head, one.rows.map(cells))));
  });

  /** The engine's own choice in each cell of a matrix: three ratios as bars, 1 in the middle. */
  const ratioBars = (cells) => el("div", { class: "cards" }, ...cells.bars.map((one) =>
    el("table", { class: "card" }, el("caption", {}, one.cell),
      el("tbody", {}, ...one.bars.filter((bar) => bar.ratio !== null).map((own, at) => {
        const bar = el("span", { class: "bar", "aria-hidden": "true" });
        bar.style.width = Math.min(100, 50 * own.ratio) + "%";
        bar.style.background = "var(--line-" + at + ")";
        return el("tr", {}, el("th", { scope: "row" }, own.name),
          el("td", {}, el("span", { class: "track half" }, bar),
            el("span", { class: own.held ? "value" : "value regressed" },
              own.ratio.toFixed(3) + (own.held ? "" : " not held"))));
      })))));
  const matrices = () => data.matrices.filter((one) => one.cells).map(({ run, cells }) =>
    el("section", {},
      el("h2", {}, "Conditions: codecs in each cell" + (several ? " of " + run : "")),
      el("p", {}, cells.summary + "."),
      table("Fixed choices and the engine's own, by cell", cells.head, cells.rows),
      cells.bars.some((one) => one.bars.some((bar) => bar.ratio !== null))
        ? el("details", { open: "" }, el("summary", {}, "The engine's own choice over the best " +
          "fixed one, by cell"), ratioBars(cells))
        : null,
      el("details", {}, el("summary", {}, "All choices in all cells"),
        table("All choices in all cells", cells.detailsHead, cells.details))));

  showTheme();
  document.querySelector("header").append(themeButton);
  const warnings = data.runs.flatMap((run) => run.warnings);
  const plans = data.runs.filter((run) => run.plan);
  main.append(
    el("p", {}, data.rows.length + " results of " + (names.length === 1 ? names[0] : names.length +
      (several ? " engines, settings or runs" : " engines or settings")) + " in " + steps.length +
      (steps.length === 1 ? " step" : " steps") + (names.length > 1 ? ", set against " + data.base : "") + "."),
    ...(warnings.length ? [el("ul", {}, ...warnings.map((text) => el("li", {}, text)))] : []),
    ...comparisons(),
    ...matrices(),
    el("section", {}, el("h2", {}, "Overview"), overview(),
      ...plans.map((run) => el("details", {}, el("summary", {}, "The plan of " + run.name),
        el("pre", { tabindex: "0" }, JSON.stringify(run.plan, null, 2))))),
    el("nav", { "aria-label": "Steps" }, ...buttons,
      many ? el("label", { class: "choose" }, "Step: ", chooser) : null),
    holder,
  );
  const asked = (() => {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch (error) {
      return "";
    }
  })();
  if (steps.length > 0) show(Math.max(0, steps.findIndex((step) => step.title === asked)));
  root.dataset.ready = "true";
})();
