//! The picture of the README, docs/savings.svg, drawn from the tables of docs/savings.md.
//!
//! Each table is a group of bars. A bar is what Shale needs in percent of what the peer needs; the
//! track behind it is the peer. Colours follow the reader's light or dark mode.

use crate::command::{Outcome, failed, read, root};
use std::fmt::Write;
use std::fs;

const PAGE: &str = "docs/savings.md";
const PICTURE: &str = "docs/savings.svg";

const WIDTH: u32 = 880;
const MARGIN: u32 = 24;
const BAR_LEFT: u32 = 264;
const BAR_WIDTH: u32 = 392;
const ROW_HEIGHT: u32 = 26;

const STYLE: &str = "\
text { font: 14px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328 }
.title { font-size: 17px; font-weight: 600 }
.group { font-weight: 600 }
.note { font-size: 12px; fill: #59636e }
.share { font-weight: 600 }
.page { fill: #ffffff; stroke: #d1d9e0 }
.peer { fill: #d9dfe5 }
.shale { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .note { fill: #9198a1 }
  .page { fill: #0d1117; stroke: #3d444d }
  .peer { fill: #3d444d }
  .shale { fill: #4493f8 }
}";

/// A table of the page.
struct Group {
    title: String,
    /// How it was measured.
    note: String,
    peer: String,
    bars: Vec<Bar>,
}

struct Bar {
    label: String,
    /// What is told of it: both figures and their unit.
    figures: String,
    /// Shale's figure over the peer's.
    ratio: f64,
}

/// Writes the picture.
pub fn savings() -> Outcome {
    let page = read(&root().join(PAGE))?;
    let path = root().join(PICTURE);
    fs::write(&path, picture(&groups(&page)?)).map_err(|error| failed("write", &path, &error))?;
    println!("Written: {PICTURE}");
    Ok(())
}

/// The sections of the page that have a table: a heading, a line on how it was measured, rows of
/// figure, unit, Shale, peer.
fn groups(page: &str) -> Result<Vec<Group>, String> {
    let mut groups: Vec<Group> = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let mut lines = section.lines().filter(|line| !line.is_empty());
        let title = lines.next().unwrap_or_default().to_owned();
        let note = lines.next().unwrap_or_default().to_owned();
        let mut rows = lines.filter(|line| line.starts_with('|')).map(cells);
        let Some(head) = rows.next() else { continue };
        let [_, _, _, peer] = head.as_slice() else {
            return Err(format!("{PAGE}: the table of {title} does not have four columns"));
        };
        let bars = rows.skip(1).map(|row| bar(&row)).collect::<Result<Vec<Bar>, String>>()?;
        groups.push(Group { title, note, peer: (*peer).to_owned(), bars });
    }
    Ok(groups)
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

fn bar(row: &[&str]) -> Result<Bar, String> {
    let wrong = || format!("{PAGE}: a row is not figure, unit and two numbers: {row:?}");
    let [label, unit, shale, peer] = row else { return Err(wrong()) };
    let number = |text: &str| text.parse::<f64>().map_err(|_| wrong());
    Ok(Bar {
        label: (*label).to_owned(),
        figures: format!("{shale} of {peer} {unit}").trim_end().to_owned(),
        ratio: number(shale)? / number(peer)?,
    })
}

fn picture(groups: &[Group]) -> String {
    let mut body = String::new();
    let mut y = MARGIN + 16;
    text(&mut body, "title", MARGIN, y, "What Shale needs, in percent of its peer");
    text(&mut body, "note", MARGIN, y + 20, "Shorter is better; the grey track is the peer.");
    y += 20;
    for group in groups {
        y += 38;
        text(&mut body, "group", MARGIN, y, &group.title);
        y += 18;
        text(&mut body, "note", MARGIN, y, &group.note);
        y += 12;
        for bar in &group.bars {
            draw(&mut body, y, bar, &group.peer);
            y += ROW_HEIGHT;
        }
    }
    y += 22;
    text(&mut body, "note", MARGIN, y, "Figures, sources and what is not better: docs/savings.md");
    let height = y + MARGIN - 4;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>What Shale needs, in percent of RocksDB and InnoDB</title>\n\
         <style>\n{STYLE}\n</style>\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n\
         {body}</svg>\n",
        WIDTH - 1,
        height - 1
    )
}

/// A bar with what is left and right of it.
fn draw(body: &mut String, y: u32, bar: &Bar, peer: &str) {
    let base = y + 16;
    let length = (bar.ratio.min(1.0) * f64::from(BAR_WIDTH)).max(2.0);
    text(body, "label", MARGIN, base, &bar.label);
    let _ = writeln!(
        body,
        "<rect class=\"peer\" x=\"{BAR_LEFT}\" y=\"{}\" width=\"{BAR_WIDTH}\" height=\"16\" \
         rx=\"3\"><title>{}: {}</title></rect>\n\
         <rect class=\"shale\" x=\"{BAR_LEFT}\" y=\"{}\" width=\"{length:.1}\" height=\"16\" \
         rx=\"3\"/>",
        y + 3,
        escaped(peer),
        escaped(&bar.figures),
        y + 3,
    );
    let right = BAR_LEFT + BAR_WIDTH + 14;
    text(body, "share", right, base, &format!("{:.0} %", (bar.ratio * 100.0).max(1.0)));
    text(body, "note", right + 52, base, &bar.figures);
}

fn text(body: &mut String, class: &str, x: u32, y: u32, what: &str) {
    let what = escaped(what);
    let _ = writeln!(body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{what}</text>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(name: &str) -> String {
        read(&root().join(name)).unwrap()
    }

    #[test]
    fn the_picture_is_that_of_the_tables() {
        let groups = groups(&text_of(PAGE)).unwrap();
        assert!(groups.iter().map(|group| group.bars.len()).sum::<usize>() >= 10);
        assert!(
            text_of(PICTURE) == picture(&groups),
            "{PICTURE} is not what {PAGE} says; cargo xtask savings draws it"
        );
    }

    #[test]
    fn the_figures_are_those_of_the_runs() {
        let groups = groups(&text_of(PAGE)).unwrap();
        let sources = ["0003-rocksdb", "0008-mariadb-engine"]
            .map(|name| text_of(&format!("docs/decisions/appendix/{name}.md")));
        assert_eq!(groups.len(), sources.len());
        for (group, source) in groups.iter().zip(&sources) {
            for bar in &group.bars {
                for figure in bar.figures.split(' ').filter(|word| word.parse::<f64>().is_ok()) {
                    assert!(source.contains(figure), "{}: {figure} was not measured", bar.label);
                }
            }
        }
    }

    #[test]
    fn a_table_that_cannot_be_drawn_is_refused() {
        let page = |row: &str| format!("# P\n\n## T\n\nN\n\n| f | u | Shale | P |\n|---|\n{row}\n");
        let groups = groups(&page("| a < b | us | 1 | 4 |")).unwrap();
        assert_eq!((groups[0].peer.as_str(), groups[0].bars[0].ratio), ("P", 0.25));
        assert!(picture(&groups).contains("a &lt; b"));
        assert!(super::groups(&page("| a | us | many | 4 |")).is_err());
        assert!(super::groups(&page("| a | us | 4 |")).is_err());
    }
}
