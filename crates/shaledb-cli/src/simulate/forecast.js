// The page of a forecast: sentences, charts over time, a table, from the JSON in #data.
"use strict";

(() => {
  const { bytes, chart, drawNew, el, plain, root, showTheme, table, themeButton } = page;
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const samples = data.samples;
  const days = samples.map((sample) => Math.round(sample.day * 1000) / 1000);
  const HINT = "Point at the chart, or focus it and use the arrow keys, to read values.";
  const rate = (value) => bytes(value) + "/s";
  const percent = (value) => plain(100 * value) + " %";
  const over = (caption, unit, show, lines) => chart(caption, lines.map(([name, of], at) => ({
    name, at, x: days, y: samples.map(of),
  })), { xLabel: "days", yLabel: unit, show, hint: HINT });
  const levels = [0, 1, 2, 3, 4, 5, 6]
    .filter((level) => samples.some((sample) => sample.levels[level] > 0))
    .map((level) => ["level " + level, (sample) => sample.levels[level]]);

  showTheme();
  document.querySelector("header").append(themeButton);
  main.append(
    el("section", {}, el("h2", {}, "In words"),
      ...data.sentences.map((sentence) => el("p", {}, sentence))),
    el("section", {}, el("h2", {}, "Over time"),
      over("Space", "bytes", bytes, [
        ["files, at most", (sample) => sample.space_peak],
        ["keys and values", (sample) => sample.live],
      ]),
      over("Writes", "bytes a second", rate, [
        ["wanted", (sample) => sample.wanted],
        ["written", (sample) => sample.written],
      ]),
      over("Waiting to be written", "bytes", bytes, [["waiting", (sample) => sample.waiting]]),
      over("Device, read and written", "bytes a second", rate, [
        ["device", (sample) => sample.device],
      ]),
      over("Cores at work", "cores", plain, [
        ["all", (sample) => sample.cores],
        ["of these for codecs", (sample) => sample.codec_cores],
      ]),
      over("Time in which writers are slowed", "share", percent, [
        ["slowed", (sample) => sample.slowed],
      ]),
      over("Bytes left to compact", "bytes", bytes, [["debt", (sample) => sample.debt]]),
      over("Size of each level", "bytes", bytes, levels)),
    el("section", {}, el("h2", {}, "Figures"),
      table("By time", [
        "day", "files", "written", "waiting", "device", "cores", "slowed", "last level",
      ],
        samples.map((sample, at) => [
          String(days[at]), bytes(sample.space), rate(sample.written), bytes(sample.waiting),
          rate(sample.device), plain(sample.cores), percent(sample.slowed), sample.codec,
        ]))),
  );
  drawNew();
  root.dataset.ready = "true";
})();
