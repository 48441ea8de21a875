//! A server of our own: its files, its process, its end. It has a data directory and a socket that
//! nobody else uses, listens on no network, and ends with this process however that ends.

use crate::settings::{Form, options};
use mysql::{Conn, OptsBuilder};
use shaledb_lab::setup::Setup;
use shaledb_lab::stores::engine::{Failure, Result};
use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to start, its recovery included.
const START: Duration = Duration::from_secs(1800);

/// Of the log, so many lines are shown if something goes wrong.
const LAST_LINES: usize = 15;

/// The longest path of a socket that the system takes, with its end.
const SOCKET_BYTES: usize = 107;

/// A running server.
pub(crate) struct Server {
    child: Child,
    folder: PathBuf,
    socket: PathBuf,
    /// A folder that was made for the socket alone.
    made: Option<PathBuf>,
}

/// The data directory below a store's folder.
pub(crate) fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// A folder for files of the moment, on the same disk: servers that share one remove each other's
/// when they start.
fn scratch(folder: &Path) -> Result<PathBuf> {
    let scratch = folder.join("tmp");
    std::fs::create_dir_all(&scratch)
        .map_err(|error| format!("could not create {}: {error}", scratch.display()))?;
    Ok(scratch)
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("server.log")
}

fn is_root() -> bool {
    // SAFETY: the call takes nothing and gives a number.
    unsafe { libc::geteuid() == 0 }
}

/// The folder of a server of our own layout (`target/mariadb/server`, which `mariadb/shale/build`
/// makes), if one is named: the plugin of Shale fits that one only.
fn home() -> Option<PathBuf> {
    std::env::var_os("SHALE_MARIADB_SERVER").map(PathBuf::from)
}

/// What the programs of such a server have to be told of where they are.
fn home_options() -> Vec<String> {
    let Some(home) = home() else { return Vec::new() };
    let home = home.display();
    vec![
        format!("--basedir={home}"),
        format!("--lc-messages-dir={home}/share/mysql"),
        format!("--character-sets-dir={home}/share/mysql/charsets"),
        format!("--plugin-dir={home}/lib/mysql/plugin"),
    ]
}

/// A program of the server's packages: the server itself is not on every user's path.
fn program(names: &[&str]) -> Result<PathBuf> {
    if let Some(home) = home() {
        let inside = ["sbin", "bin"].map(|folder| home.join(folder));
        let all = names.iter().flat_map(|name| inside.iter().map(move |f| f.join(name)));
        return all.into_iter().find(|path| path.is_file()).ok_or_else(|| {
            format!(
                "{} is not in {}, which SHALE_MARIADB_SERVER names: `mariadb/shale/build` makes \
                 such a folder, target/mariadb/server",
                names[0],
                home.display()
            )
            .into()
        });
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from);
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(more).collect();
    for name in names {
        if let Some(found) = folders.iter().map(|folder| folder.join(name)).find(|p| p.is_file()) {
            return Ok(found);
        }
    }
    Err(format!(
        "{} is not on this machine: `cargo xtask peers mariadb` installs MariaDB's server (Debian: \
         mariadb-server and mariadb-plugin-rocksdb), or name a running one with --address",
        names[0]
    )
    .into())
}

fn appended(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| format!("could not write {}: {error}", path.display()).into())
}

/// The errors in the server's log, and its end.
fn last_lines(folder: &Path) -> String {
    let path = log_file(folder);
    let text = std::fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.len().saturating_sub(LAST_LINES);
    let is_error = |line: &&&str| line.contains("ERROR") || line.contains("FATAL");
    let errors: Vec<&str> = lines[..end].iter().filter(is_error).copied().collect();
    let errors = &errors[errors.len().saturating_sub(LAST_LINES)..];
    let told = [errors, &lines[end..]].concat().join("\n");
    format!("{} has:\n{told}", path.display())
}

/// Makes a data directory with the server's own tables. One that is half made is made anew.
fn install(folder: &Path) -> Result<()> {
    // The installer works elsewhere: only whole paths mean the same to it.
    let folder = &folder.canonicalize()?;
    let (half, whole) = (folder.join("data.new"), data(folder));
    if half.exists() {
        std::fs::remove_dir_all(&half)
            .map_err(|error| format!("could not remove {}: {error}", half.display()))?;
    }
    let installer = program(&["mariadb-install-db", "mysql_install_db"])?;
    let mut command = Command::new(&installer);
    command
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .args(home_options())
        .arg(format!("--datadir={}", half.display()))
        .env("TMPDIR", scratch(folder)?)
        .stdin(Stdio::null())
        .stdout(appended(&log_file(folder))?)
        .stderr(appended(&log_file(folder))?);
    if is_root() {
        command.arg("--user=root");
    }
    let status = command
        .status()
        .map_err(|error| format!("could not start {}: {error}", installer.display()))?;
    if !status.success() {
        let (name, log) = (installer.display(), last_lines(folder));
        return Err(format!("{name} failed ({status}); {log}").into());
    }
    std::fs::rename(&half, &whole)
        .map_err(|error| format!("could not create {}: {error}", whole.display()).into())
}

/// Where the socket is: in the store's folder, unless that has too long a name.
fn socket(folder: &Path) -> Result<(PathBuf, Option<PathBuf>)> {
    let folder = folder.canonicalize()?;
    let near = folder.join("socket");
    if near.as_os_str().len() <= SOCKET_BYTES {
        return Ok((near, None));
    }
    let made = std::env::temp_dir().join(format!("shale-mariadb-{}", std::process::id()));
    std::fs::create_dir_all(&made)
        .map_err(|error| format!("could not create {}: {error}", made.display()))?;
    Ok((made.join("socket"), Some(made)))
}

impl Server {
    /// Starts a server on a store's folder and waits until it answers.
    pub(crate) fn start(form: Form, folder: &Path, setup: &Setup) -> Result<Server> {
        if form == Form::Shale && home().is_none() {
            return Err(
                "SHALE as the server's engine needs the server that it was built for: run \
                        `mariadb/shale/build`, then set SHALE_MARIADB_SERVER to the folder \
                        target/mariadb/server"
                    .into(),
            );
        }
        let binary = program(&["mariadbd", "mysqld"])?;
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("could not create {}: {error}", folder.display()))?;
        if !data(folder).exists() {
            install(folder)?;
        }
        let (socket, made) = socket(folder)?;
        // One that was left behind would be connected to in vain.
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new(&binary);
        command
            .arg("--no-defaults")
            .args(home_options())
            .arg(format!("--datadir={}", data(folder).canonicalize()?.display()))
            .arg(format!("--tmpdir={}", scratch(&folder.canonicalize()?)?.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", socket.with_extension("pid").display()))
            .arg("--skip-networking")
            .args(options(form, setup).iter().map(|(name, value)| format!("--{name}={value}")))
            .stdin(Stdio::null())
            .stdout(appended(&log_file(folder))?)
            .stderr(appended(&log_file(folder))?);
        if is_root() {
            command.arg("--user=root");
        }
        die_with_this_process(&mut command);
        let child = command
            .spawn()
            .map_err(|error| format!("could not start {}: {error}", binary.display()))?;
        let mut server = Server { child, folder: folder.to_owned(), socket, made };
        server.wait()?;
        Ok(server)
    }

    fn wait(&mut self) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                let log = last_lines(&self.folder);
                return Err(format!("the server did not start ({status}); {log}").into());
            }
            let answer = match self.socket.exists() {
                true => Conn::new(self.address()),
                false => Err(mysql::Error::IoError(std::io::ErrorKind::NotFound.into())),
            };
            match answer {
                Ok(_) => return Ok(()),
                Err(error) if begin.elapsed() > START => {
                    let log = last_lines(&self.folder);
                    return Err(
                        format!("the server started but does not answer ({error}); {log}").into()
                    );
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// How to connect to it.
    pub(crate) fn address(&self) -> OptsBuilder {
        OptsBuilder::new()
            .socket(Some(self.socket.to_string_lossy().into_owned()))
            .user(Some("root"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Adds what its log says last to an error, if it has gone away.
    pub(crate) fn explain(&self, error: Failure) -> Failure {
        match Path::new(&format!("/proc/{}", self.child.id())).exists() {
            true => error,
            false => format!("{error}; {}", last_lines(&self.folder)).into(),
        }
    }

    /// Ends it in order: what is in memory goes to disk.
    pub(crate) fn stop(mut self) -> Result<()> {
        // SAFETY: the call takes and gives numbers; the child has not been waited for, so that its
        // number cannot be somebody else's.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        let log = last_lines(&self.folder);
        Err(format!("the server failed when it was stopped ({status}); {log}").into())
    }

    /// Ends it at once, as a failing machine would.
    #[cfg(test)]
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Does nothing to one that was stopped and waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
        if let Some(made) = &self.made {
            let _ = std::fs::remove_dir_all(made);
        }
    }
}

/// Lets the system end the child when this process ends, be it by force. The thread that starts it
/// must be one that lives as long as the process: the driver's first one.
#[cfg(target_os = "linux")]
fn die_with_this_process(command: &mut Command) {
    // SAFETY: between fork and exec only this call is made, which takes and gives numbers.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
}

/// Elsewhere it ends with the driver's group of processes.
#[cfg(not(target_os = "linux"))]
fn die_with_this_process(_: &mut Command) {}
