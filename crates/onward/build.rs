//! Tells the program which commit it was built from, where git knows; links it for a quick start.

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
    // A program that lies where it was linked to needs no addresses written into it when it starts:
    // they were a third of its page faults.
    let is_target = |name: &str, value: &str| std::env::var_os(name).is_some_and(|it| it == value);
    if is_target("CARGO_CFG_TARGET_OS", "linux") && is_target("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        // Cargo forgets a profile's `strip = "symbols"` for a package whose level the profile sets
        // apart.
        if is_target("PROFILE", "release") && is_target("DEBUG", "false") {
            println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
        }
    }
}
