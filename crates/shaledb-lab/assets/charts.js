// What a report's page is made of: numbers as text, elements, tables, the theme, charts.
"use strict";

window.addEventListener("error", (event) => {
  const root = document.documentElement;
  root.dataset.errors = (root.dataset.errors || "") + event.message + " @" + event.lineno + "\n";
});

const page = (() => {
  const root = document.documentElement;

  // Colours that can be told apart by colour-blind readers in the first four places; beyond, dashes
  // tell lines apart. Each has a contrast of 4.5 : 1 or more against the page.
  const COLOURS = {
    light: ["#0072b2", "#c44e00", "#00795c", "#a8377e", "#5a4fcf", "#7a5b00", "#333333", "#0e7c86",
      "#b3202c", "#5e6b00"],
    dark: ["#56b4e9", "#e69f00", "#2fc79a", "#e58ac0", "#a99bff", "#f0e442", "#ffffff", "#5fd3de",
      "#ff8f7d", "#c0cf5a"],
  };
  const DASHES = [[], [9, 4], [4, 3], [10, 3, 3, 3], [16, 5], [6, 6]];

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

  return {
    bytes, chart, choose, count, drawNew, el, plain, root, showTheme, table, themeButton, three,
  };
})();
