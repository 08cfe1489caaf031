//! Firefox without a window, driven by its Marionette protocol over a local socket.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::chromium::{bytes_of, found, pictures};

/// The longest time that the browser may need to start, and for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A tab of a browser of its own.
pub(super) struct Firefox {
    process: Child,
    stream: BufReader<TcpStream>,
    calls: u64,
    _profile: TempDir,
}

impl Firefox {
    /// Starts the browser; none if there is no browser.
    pub(super) fn start() -> Option<Firefox> {
        let browser = found(&["firefox-esr", "firefox"])?;
        let profile = tempfile::tempdir().expect("a temporary folder");
        // Port 0 is any free port; the browser writes the chosen one into its profile.
        fs::write(profile.path().join("user.js"), "user_pref(\"marionette.port\", 0);\n").expect("a file");
        let process = Command::new(browser)
            .args(["--headless", "--no-remote", "--marionette", "--profile"])
            .arg(profile.path())
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser can be started");
        let begin = Instant::now();
        let stream = loop {
            let port = fs::read_to_string(profile.path().join("MarionetteActivePort"));
            let port = port.ok().and_then(|port| port.trim().parse::<u16>().ok());
            if let Some(stream) = port.and_then(|port| TcpStream::connect(("127.0.0.1", port)).ok()) {
                break stream;
            }
            assert!(begin.elapsed() < PATIENCE, "the browser opens no port");
            thread::sleep(Duration::from_millis(50));
        };
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let stream = BufReader::new(stream);
        let mut tab = Firefox { process, stream, calls: 0, _profile: profile };
        tab.receive();
        tab.call("WebDriver:NewSession", json!({}));
        Some(tab)
    }

    /// The next message: its length in digits, a colon, and a JSON document.
    fn receive(&mut self) -> Value {
        let mut length = 0;
        let mut byte = [0];
        loop {
            self.stream.read_exact(&mut byte).expect("the browser answers");
            match byte[0] {
                b':' => break,
                digit => length = 10 * length + usize::from(digit - b'0'),
            }
        }
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).expect("the browser answers");
        serde_json::from_slice(&text).expect("the protocol is JSON")
    }

    /// The result of a command of the protocol.
    #[track_caller]
    fn call(&mut self, command: &str, params: Value) -> Value {
        self.calls += 1;
        let message = json!([0, self.calls, command, params]).to_string();
        let sent = self.stream.get_mut().write_all(format!("{}:{message}", message.len()).as_bytes());
        sent.expect("the browser runs");
        let mut answer = self.receive();
        assert!(answer[2].is_null(), "{command}: {}", answer[2]);
        answer[3].take()
    }

    /// The value of a script.
    #[track_caller]
    pub(super) fn value(&mut self, script: &str) -> Value {
        let params = json!({ "script": format!("return {script}"), "args": [] });
        self.call("WebDriver:ExecuteScript", params)["value"].take()
    }

    /// Opens a report at an address such as `panel=loads`, and waits until it is drawn or fails.
    #[track_caller]
    pub(super) fn open(&mut self, file: &Path, address: &str) {
        let url = format!("file://{}#{address}", file.display());
        self.call("WebDriver:Navigate", json!({ "url": url }));
        let begin = Instant::now();
        while self.value("document.body.dataset.ready || document.body.dataset.error || null").is_null() {
            assert!(begin.elapsed() < PATIENCE, "{} is not drawn", file.display());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Writes a picture of the whole page.
    pub(super) fn photograph(&mut self, name: &str) {
        let picture = self.call("WebDriver:TakeScreenshot", json!({ "full": true }));
        let bytes = bytes_of(picture["value"].as_str().expect("a picture"));
        fs::write(pictures().join(format!("{name}.png")), bytes).expect("a picture can be written");
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
