//! Tells the program which commit it was built from, where git knows.

use std::process::Command;

fn main() {
    // Rebuilt when the commit changes; in an archive without git there is none to watch.
    for path in ["../../.git/HEAD", "../../.git/logs/HEAD"] {
        if std::path::Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ONWARD_COMMIT");
    let told = std::env::var_os("ONWARD_COMMIT").and_then(|it| it.into_string().ok());
    let commit = told.or_else(|| {
        let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    });
    println!("cargo::rustc-env=ONWARD_COMMIT={}", commit.unwrap_or_default());
}
