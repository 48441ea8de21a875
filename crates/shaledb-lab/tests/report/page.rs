//! The page, opened in a real browser. Pages and pictures are left in the folder for temporary files
//! of the tests (target/tmp/report).

use super::browser::{Browser, program};
use super::samples::{SHALE, folder, rows};
use super::{ALL, report, slower};
use serde_json::{Value, json};
use shaledb_lab::run::row::Row;
use std::path::{Path, PathBuf};

/// Makes the page of a run, and that of a comparison.
fn pages(dir: &Path, to: &Path) -> [PathBuf; 2] {
    folder(dir, "before", &rows(&ALL, 4, 1));
    folder(dir, "after", &slower(rows(&ALL, 4, 2), "q1", "shale", 0.3));
    let [one, two] = ["one.html", "two.html"].map(|name| to.join(name));
    report(dir, &["before", "--html", &one.to_string_lossy()], false);
    report(dir, &["before", "after", "--html", &two.to_string_lossy()], false);
    [one, two]
}

/// Elements of text whose contrast against what is behind them is below 4.5 : 1.
const LOW_CONTRAST: &str = "(() => {
  const light = (text) => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const c = part / 255;
      return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)') return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const bad = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !element.checkVisibility() || element.closest('noscript,script,style')) continue;
    const [a, b] = [getComputedStyle(element).color, behind(element)].map(light);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) bad.push(element.outerHTML.slice(0, 80) + ' ' + contrast.toFixed(2));
  }
  return bad;
})()";

/// Things to press or to choose that have no name, and charts without a description.
const NAMELESS: &str = "[...document.querySelectorAll('button,select,[role=img],[tabindex=\"0\"]')]
  .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label')))
  .map((e) => e.outerHTML.slice(0, 80))";

/// Charts in which nothing was painted.
const BLANK: &str = "[...document.querySelectorAll('canvas')].filter((canvas) => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let at = 0; at < pixels.length; at += 4) {
    if (pixels[at + 3] > 200) colours.add(pixels[at] << 16 | pixels[at + 1] << 8 | pixels[at + 2]);
  }
  return colours.size < 3;
}).length";

fn check(browser: &mut Browser, place: &str) {
    assert_eq!(browser.value("document.documentElement.dataset.ready"), "true", "{place}");
    let errors = browser.value("document.documentElement.dataset.errors || ''");
    assert_eq!(errors, "", "{place}");
    let charts = browser.value("document.querySelectorAll('.plot canvas').length");
    let said = browser.value("Number(document.documentElement.dataset.charts)");
    assert_eq!(charts, said, "{place}");
    assert!(charts.as_f64().unwrap() >= 1.0, "{place}: {charts} charts");
    let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.value(wide), 0, "{place}: the page scrolls sideways");
    let outside = "[...document.querySelectorAll('canvas,button,select')].filter((e) => {
      const box = e.getBoundingClientRect();
      return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < 0);
    }).length";
    assert_eq!(browser.value(outside), 0, "{place}: something is cut off");
    for (what, expression) in [("low contrast", LOW_CONTRAST), ("no name", NAMELESS)] {
        assert_eq!(browser.value(expression), Value::Array(Vec::new()), "{place}: {what}");
    }
    assert_eq!(browser.value(BLANK), 0, "{place}: a chart is empty");
}

#[test]
fn the_page_in_a_browser() {
    let Some(program) = program() else {
        // ./test installs one and sets this.
        assert!(
            std::env::var_os("SHALE_NEED_BROWSER").is_none(),
            "no chromium: install it, or name one by SHALE_CHROMIUM"
        );
        eprintln!("skipped: there is no chromium; SHALE_CHROMIUM names one");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut browser = Browser::start(&program);
    for page in pages(dir.path(), &pictures) {
        let name = page.file_stem().unwrap().to_string_lossy().into_owned();
        for (width, height) in [(390, 844), (1280, 900)] {
            for scheme in ["light", "dark"] {
                let place = format!("{name}-{width}-{scheme}");
                browser.look(width, height, scheme);
                browser.open(&format!("file://{}", page.display()));
                let theme = browser.value("document.documentElement.dataset.theme");
                assert_eq!(theme, scheme, "{place}");
                check(&mut browser, &place);
                browser.picture(&pictures.join(format!("{place}.png")));
            }
        }
        if name == "one" {
            codecs_over_time(&mut browser);
            every_step(&mut browser);
            by_keyboard(&mut browser);
            other_theme(&mut browser);
        }
    }
    let far: Vec<&String> =
        browser.requests.iter().filter(|url| !url.starts_with("file:")).collect();
    let far: Vec<&&String> = far.iter().filter(|url| !url.starts_with("data:")).collect();
    assert!(far.is_empty(), "the page asked for {far:?}");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// Each step has charts, tables and its choices, and none has an error.
fn every_step(browser: &mut Browser) {
    let steps = browser.value("document.querySelectorAll('nav button').length").as_u64().unwrap();
    assert_eq!(steps as usize, super::samples::STEPS.len());
    for step in 0..steps {
        browser.value(&format!("document.querySelectorAll('nav button')[{step}].click()"));
        let title = browser.value("document.querySelector('#step h2').textContent");
        check(browser, title.as_str().unwrap());
        let choices =
            browser.value("document.querySelectorAll('#step select').length").as_u64().unwrap();
        for choice in 0..choices {
            let select = format!("document.querySelectorAll('#step select')[{choice}]");
            let options = browser.value(&format!("{select}.options.length")).as_u64().unwrap();
            for option in 0..options {
                browser.value(&format!(
                    "{{ const s = {select}; s.selectedIndex = {option}; \
                     s.dispatchEvent(new Event('change')) }}"
                ));
            }
        }
        check(browser, title.as_str().unwrap());
    }
}

/// A band for each level of the engine that tells its codecs, as long as each was in use.
fn codecs_over_time(browser: &mut Browser) {
    let bands = browser.value(
        "[...document.querySelectorAll('.bands tr')].map((level) =>
           [...level.querySelectorAll('span')].map((one) => one.textContent).join('; '))",
    );
    let changing = "none; lz4; none";
    assert_eq!(bands, json!([changing, changing, changing, "zstd:3 + dictionary"]));
    let shares = browser.value(
        "{ const parts = [...document.querySelectorAll('.bands tr')[0].querySelectorAll('span')];
           const all = parts.reduce((sum, one) => sum + one.offsetWidth, 0);
           parts.map((one) => Math.round(100 * one.offsetWidth / all)) }",
    );
    let shares: Vec<f64> = shares.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    let expected = [19.0 / 59.0, 10.0 / 59.0, 30.0 / 59.0].map(|share| 100.0 * share);
    assert!(shares.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2.0), "{shares:?}");
    let told = browser.value("document.querySelector('.bands + .quiet').textContent");
    assert_eq!(told, "1.00 to 60.0 s, from left to right.");
}

/// Values can be read and lines hidden without a mouse.
fn by_keyboard(browser: &mut Browser) {
    browser.value("document.querySelectorAll('nav button')[0].click()");
    browser.value("document.querySelector('.plot').focus()");
    browser.press("End");
    let read = browser.value("document.querySelector('.readout').textContent");
    let read = read.as_str().unwrap();
    assert!(read.starts_with("60.0 s: shale ") && read.contains("rocksdb"), "{read}");
    browser.press("ArrowLeft");
    let before = browser.value("document.querySelector('.readout').textContent");
    assert!(before.as_str().unwrap().starts_with("59.0 s: "), "{before}");
    browser.value("document.querySelectorAll('.legend button')[1].click()");
    let pressed = "document.querySelectorAll('.legend button')[1].getAttribute('aria-pressed')";
    assert_eq!(browser.value(pressed), "false");
    browser.value("document.querySelector('.plot').focus()");
    browser.press("End");
    let read = browser.value("document.querySelector('.readout').textContent");
    assert!(!read.as_str().unwrap().contains("rocksdb"), "{read}");
}

/// The button goes on from what the system prefers to light and to dark.
fn other_theme(browser: &mut Browser) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        browser.value("document.getElementById('theme').click()");
        let theme = browser.value("document.documentElement.dataset.theme");
        check(browser, "after the theme was changed");
        seen.push(theme.as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ["light", "dark", "dark"], "and back to that of the system");
}

/// Two choices in so many cells that the steps are chosen from a list. Every fifth cell falls short.
fn matrix() -> Vec<Row> {
    let mut all = Vec::new();
    let like = rows(&[SHALE], 1, 1).swap_remove(0);
    for cell in 0..44 {
        for (choice, share) in [("zstd:3", 1.0), ("auto", if cell % 5 == 0 { 0.9 } else { 1.01 })] {
            let mut row = Row {
                workload: "kv".to_owned(),
                step: "readrandomwriterandom".to_owned(),
                unit: "operation".to_owned(),
                setting: format!("{choice}; json, {} MB/s, cpu short, 50 % reads", cell + 1),
                ..like.clone()
            };
            row.rate *= share;
            all.push(row);
        }
    }
    all
}

#[test]
fn the_page_of_many_conditions_in_a_browser() {
    let Some(program) = program() else {
        assert!(std::env::var_os("SHALE_NEED_BROWSER").is_none(), "no chromium: as above");
        eprintln!("skipped: there is no chromium; SHALE_CHROMIUM names one");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&pictures).unwrap();
    folder(dir.path(), "matrix", &matrix());
    let page = pictures.join("matrix.html");
    let (text, _) = report(dir.path(), &["matrix", "--html", &page.to_string_lossy()], false);
    assert!(text.contains("auto holds rate in 35 of 44"), "{text}");
    let mut browser = Browser::start(&program);
    for (width, height) in [(390, 844), (1280, 900)] {
        for scheme in ["light", "dark"] {
            let place = format!("matrix-{width}-{scheme}");
            browser.look(width, height, scheme);
            browser.open(&format!("file://{}", page.display()));
            check(&mut browser, &place);
            browser.picture(&pictures.join(format!("{place}.png")));
        }
    }
    assert_eq!(browser.value("document.querySelectorAll('nav button').length"), 0);
    assert_eq!(browser.value("document.querySelectorAll('nav option').length"), 44);
    let short = "[...document.querySelectorAll('.half + .regressed')].length";
    assert_eq!(browser.value(short), 9);
    // Another step is shown with its own rows only.
    browser.value(
        "{ const s = document.querySelector('nav select'); s.value = '7'; \
         s.dispatchEvent(new Event('change')) }",
    );
    let title = browser.value("document.querySelector('#step h2').textContent");
    let cell = "kv readrandomwriterandom: json, 8 MB/s, cpu short, 50 % reads";
    assert_eq!(title, cell);
    let lines = browser.value("document.querySelectorAll('#step .legend')[0].children.length");
    assert_eq!(lines, 2);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}
