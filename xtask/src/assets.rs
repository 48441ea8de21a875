//! The plotting library that the reports embed: kept here as it was published.

use crate::command::{Outcome, failed, read, root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the package that is kept.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    /// Its name here.
    name: String,
    /// Its path in the package.
    path: String,
    sha256: String,
}

/// What README.md of the folder says: the version, and the files.
fn pinned(readme: &str) -> Outcome<(String, Vec<Kept>)> {
    let mut version = None;
    let mut files = Vec::new();
    for line in readme.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            ["version", is] => version = Some(is.to_owned()),
            [name, path, sha256] if sha256.len() == 64 => files.push(Kept {
                name: name.to_owned(),
                path: path.to_owned(),
                sha256: sha256.to_owned(),
            }),
            _ => {}
        }
    }
    match version {
        Some(version) if !files.is_empty() => Ok((version, files)),
        _ => Err("the README of the assets must name a version, and files with their sums".into()),
    }
}

/// Gets the pinned version; compares it with what is here, or puts it here.
pub(crate) fn run_assets(check: bool) -> Outcome {
    let folder = root().join("crates/shaledb-lab/assets/uplot");
    let readme = folder.join("README.md");
    let (version, files) = pinned(&read(&readme)?)?;
    let scratch = std::env::temp_dir().join(format!("shale-assets-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| failed("make", &scratch, &error))?;
    let outcome = package(&scratch, &version)
        .and_then(|package| files.iter().try_for_each(|kept| one(check, kept, &folder, &package)));
    let _ = fs::remove_dir_all(&scratch);
    outcome?;
    eprintln!("xtask: uplot {version}: {} files are as published", files.len());
    Ok(())
}

/// Gets and unpacks the package.
fn package(scratch: &Path, version: &str) -> Outcome<PathBuf> {
    let mut npm = Command::new("npm");
    npm.current_dir(scratch).args(["pack", "--silent", &format!("uplot@{version}")]);
    run(&mut npm, "getting the package (is npm installed, and is there a network?)")?;
    let mut tar = Command::new("tar");
    tar.current_dir(scratch).args(["-xzf", &format!("uplot-{version}.tgz")]);
    run(&mut tar, "unpacking the package")?;
    Ok(scratch.join("package"))
}

fn one(check: bool, kept: &Kept, folder: &Path, package: &Path) -> Outcome {
    let (here, there) = (folder.join(&kept.name), package.join(&kept.path));
    let published = fs::read(&there).map_err(|error| failed("read", &there, &error))?;
    let sum = sha256(&there)?;
    if !check {
        eprintln!("xtask: {} {sum}", kept.name);
        return fs::write(&here, published).map_err(|error| failed("write", &here, &error));
    }
    let own = fs::read(&here).map_err(|error| failed("read", &here, &error))?;
    if own != published {
        return Err(format!(
            "{} differs from the published one: `cargo xtask assets` puts that in its place",
            here.display()
        ));
    }
    if sum != kept.sha256 {
        return Err(format!(
            "{} has the sum {sum}, its README says {}. Take the published file, or note its sum",
            kept.name, kept.sha256
        ));
    }
    Ok(())
}

fn sha256(path: &Path) -> Outcome<String> {
    let output = Command::new("sha256sum")
        .arg(path)
        .output()
        .map_err(|error| format!("could not run sha256sum: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace()
        .next()
        .map(str::to_owned)
        .ok_or_else(|| "sha256sum printed nothing".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_version_and_files() {
        let readme = root().join("crates/shaledb-lab/assets/uplot/README.md");
        let (version, files) = pinned(&read(&readme).unwrap()).unwrap();
        assert!(version.split('.').count() == 3, "{version}");
        let names: Vec<&str> = files.iter().map(|kept| kept.name.as_str()).collect();
        assert_eq!(names, ["uPlot.iife.min.js", "uPlot.min.css", "LICENSE"]);
        for kept in &files {
            let path = readme.with_file_name(&kept.name);
            assert_eq!(sha256(&path).unwrap(), kept.sha256, "{}", path.display());
        }
        let script = fs::read_to_string(readme.with_file_name("uPlot.iife.min.js")).unwrap();
        assert!(script.contains(&format!("(v{version})")));
        assert!(pinned("nothing").is_err());
    }
}
