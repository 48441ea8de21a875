//! `shale simulate`: what a database will cost, by the engine's own decisions on a model of files.

pub(crate) mod units;
mod measure;
mod lab_row;
mod lab_load;
mod lab_work;
mod sample;
mod start;
mod told;
mod words;
mod options;
mod show;

pub(crate) use options::SimulateOptions;

use crate::exit::{Exit, Failure, Outcome};
use crate::screen;
use shaledb_lab::say;
use std::io::IsTerminal;

/// Foresees, and shows it.
pub(crate) fn simulate(options: &SimulateOptions, json: bool) -> Outcome<Exit> {
    let (scenario, told) = options.scenario()?;
    let bar = screen::share_bar("simulating");
    let forecast = shaledb_forecast::foresee(&scenario, &options.effort(), |share| {
        bar.set_position((share * 1000.0) as u64);
    });
    bar.finish_and_clear();
    let forecast = forecast.map_err(Failure::usage)?;
    let sentences = words::sentences(&scenario, &forecast, &told);
    let text = show::text(&scenario, &forecast, &sentences);
    if let Some(path) = &options.html {
        let page = show::page(&scenario, &forecast, &sentences, &told, &text)
            .map_err(|error| Failure::new(Exit::Other, error.to_string()))?;
        std::fs::write(path, page).map_err(|error| Failure::file("write", path, &error))?;
    }
    if json {
        screen::json(&show::value(&scenario, &forecast, &sentences, &told))?;
    } else {
        screen::line(text.trim_end())?;
        if let Some(path) = options.html.as_ref().filter(|_| std::io::stderr().is_terminal()) {
            say::note(&format!("charts: {}", path.display()));
        }
    }
    Ok(Exit::Done)
}
