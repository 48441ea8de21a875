//! The driver as a campaign starts it: a job on its standard input, events on its output.

use shaledb_lab::setup::Setup;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn start(folder: &Path, workload: &str, step: &str) -> Child {
    let mut driver = Command::new(env!("CARGO_BIN_EXE_shale-peer-mariadb"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let setup = Setup { memory: 64 << 20, memtable: 1 << 20, ..Setup::default() };
    let setup = serde_json::to_string(&setup).unwrap();
    let job = format!(
        r#"{{"engine":"innodb","folder":"{}","setup":{setup},"workload":{workload},"step":"{step}",
        "setting":"","repeat":0,"seed":1}}"#,
        folder.display()
    );
    let job = job.replace('\n', " ");
    writeln!(driver.stdin.as_mut().unwrap(), "{job}").unwrap();
    driver
}

/// A load that goes on for long.
fn load() -> String {
    let options = r#"{"maxid1":1000000,"load_clients":2,"load_batch":1000,"loops":1,"seconds":5,
        "warm_up":0,"clients":2,"rate":null,"requests":null,"range_limit":10000,
        "history_percent":30,"write_uncorrelated_shape":0.741,"keep_tables":false,"partitions":16}"#;
    format!(r#"{{"linkbench":{options}}}"#)
}

/// Waits until the step is at work; the server's process.
fn server(driver: &mut Child, folder: &Path) -> u32 {
    let mut seen = String::new();
    for line in BufReader::new(driver.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        seen.push_str(&line);
        if line.contains("progress") {
            let pid = std::fs::read_to_string(folder.join("socket.pid")).unwrap();
            return pid.trim().parse().unwrap();
        }
    }
    panic!("no progress: {seen}");
}

fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Whoever inherited it may not have waited for it yet: then it is a zombie.
    stat.is_empty() || stat.contains(") Z ")
}

fn wait_until_gone(pid: u32) {
    for _ in 0..6000 {
        if is_gone(pid) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the server lives on");
}

#[test]
fn the_server_ends_with_a_driver_that_is_killed() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut driver = start(dir.path(), &load(), "load");
    let server = server(&mut driver, dir.path());
    assert!(!is_gone(server));
    driver.kill().unwrap();
    driver.wait().unwrap();
    wait_until_gone(server);
}

#[test]
fn the_server_ends_with_the_campaign() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut driver = start(dir.path(), &load(), "load");
    let server = server(&mut driver, dir.path());
    // A campaign that is gone has closed the pipe.
    drop(driver.stdin.take());
    driver.wait().unwrap();
    wait_until_gone(server);
}

#[test]
fn what_is_no_job_is_refused() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut driver = start(dir.path(), r#"{"nonsense":{}}"#, "load");
    let mut line = String::new();
    BufReader::new(driver.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("failed") && line.contains("does not begin with a job"), "{line}");
    assert!(!driver.wait().unwrap().success());
}
