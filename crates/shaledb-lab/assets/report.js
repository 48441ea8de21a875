// The page of a report: tables and charts from the JSON in #data. No network, no storage but the
// choice of theme. Text gets into the page as text only, never as markup.
"use strict";

(() => {
  const {
    bytes, chart, choose, count, drawNew, el, plain, root, showTheme, table, themeButton, three,
  } = page;
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const PERCENTILES = ["p50", "p95", "p99", "p99.9", "max"];

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

  /**
   * The codec of each level over time, as a band for each level; below, in words, when it became
   * another, and why.
   */
  const codecs = (name, levelsAt) => {
    const told = levelsAt.levels.filter((level) => level.codecs.length > 0);
    if (told.length === 0) return null;
    const all = [...new Set(told.flatMap((level) => level.codecs.map((one) => one.codec)))].sort();
    const from = levelsAt.at[0];
    const to = levelsAt.at[levelsAt.at.length - 1];
    const caption = "Codec of each level over time, " + name;
    const span = (one, next) => {
      const until = next ? next.at : to;
      const colour = "var(--line-" + (all.indexOf(one.codec) % 10) + ")";
      const part = el("span", {
        title: one.codec + ", " + one.why + ", " + plain(one.at) + " to " + plain(until) + " s",
      }, one.codec);
      part.style.flexGrow = String(Math.max(until - one.at, (to - from) / 200, 1e-3));
      part.style.borderColor = colour;
      return part;
    };
    const bands = el("table", { class: "bands", "aria-label": caption }, el("tbody", {},
      ...told.map((level) => el("tr", {}, el("th", { scope: "row" }, "level " + level.level),
        el("td", {}, el("div", {},
          ...level.codecs.map((one, at) => span(one, level.codecs[at + 1]))))))));
    const changes = told.flatMap((level) => level.codecs.map((one) => [level.level, one]));
    changes.sort((a, b) => a[1].at - b[1].at);
    return el("figure", {}, el("figcaption", {}, caption), bands,
      el("p", { class: "quiet" }, plain(from) + " to " + plain(to) + " s, from left to right."),
      el("details", {}, el("summary", {}, "Why, in words"),
        table("Codecs as they were chosen, " + name, ["second", "level", "codec", "why"],
          changes.map(([level, one]) => [plain(one.at), "L" + level, one.codec, one.why]))));
  };

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
      const bands = codecs(name, row.levelsAt);
      if (bands) parts.push(bands);
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
