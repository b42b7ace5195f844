//! Settings and where each one comes from.
//!
//! Precedence: a flag, `ONWARD_*`, the nearest `.onward/config.toml` up to the git root, then
//! `$XDG_CONFIG_HOME/onward/config.toml`, then the default.
//!
//! Invariant: a key that is not known is an error with its place, never a setting without effect.

use crate::world::open;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::event::Mode;
use serde::Deserialize;

use crate::{
    agents::{
        self, Adapters, Continuation, Continuations, Sessions, Spoken,
        generic::{Generic, Reads},
    },
    locate::settings::{Settings, WrittenLimits, WrittenPrice, WrittenRole},
    world::real::variable,
};

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    /// The variable's name.
    Environment(&'static str),
    /// The flag as a person types it.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    pub(super) fn default_of(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    pub(super) fn set(&mut self, value: Option<T>, origin: &Origin) {
        if let Some(value) = value {
            *self = Self { value, origin: origin.clone() };
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub mode: Setting<Mode>,
    /// How long running steps may go on after the first interrupt.
    pub grace_seconds: Setting<u64>,
    /// How many archives `gc` leaves.
    pub keep: Setting<u32>,
    /// Run on gate, park, failure and end, with JSON on its standard input; empty = none.
    pub notify: Setting<Vec<String>>,
    /// The command of each agent.
    pub agents: BTreeMap<String, Setting<Vec<String>>>,
    /// How those of them go on that keep sessions.
    pub continuations: BTreeMap<String, Setting<Continuation>>,
    /// How those of them are understood that say more than their exit code.
    pub adapters: BTreeMap<String, Setting<Understanding>>,
    pub settings: Settings,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Setting::default_of(Mode::Interactive),
            grace_seconds: Setting::default_of(10),
            keep: Setting::default_of(5),
            notify: Setting::default_of(Vec::new()),
            agents: BTreeMap::new(),
            continuations: BTreeMap::new(),
            adapters: BTreeMap::new(),
            settings: Settings::default(),
        }
    }
}

/// How an agent's output is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Understanding {
    /// By the adapter of this name.
    Named(String),
    Described(Box<Reads>),
}

impl Understanding {
    fn adapter(&self) -> Option<Spoken> {
        match self {
            Self::Named(name) => agents::named(name),
            Self::Described(reads) => {
                Some(Spoken::Described(Arc::new(Generic::new(Reads::clone(reads)))))
            }
        }
    }
}

/// What the command line said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub mode: Option<Mode>,
    pub grace_seconds: Option<u64>,
    pub keep: Option<u32>,
    pub wait: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The message names the line.
    #[error("{}: {message}", path.display())]
    Invalid { path: PathBuf, message: String },
    #[error("{name} is `{value}`, which is not {expected}")]
    Environment { name: &'static str, value: String, expected: &'static str },
}

impl ConfigError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check whether you may read it",
            Self::Invalid { .. } => {
                "settings: defaults.mode, defaults.grace_seconds, keep, notify.command, \
                 agents.NAME.command, .adapter, .reads, .continue, .transcript, .stand_in and \
                 .price, limits.wait, .windows_max, .quiet and .finish_before_quiet, roles.NAME \
                 and its .agent, .permissions and .allow"
            }
            Self::Environment { .. } => "correct it, or unset it",
        }
    }
}

/// A configuration file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    defaults: Option<WrittenDefaults>,
    notify: Option<WrittenCommand>,
    keep: Option<u32>,
    #[serde(default)]
    agents: BTreeMap<String, WrittenAgent>,
    #[serde(default)]
    limits: WrittenLimits,
    /// How the roles of built-in workflows are played.
    #[serde(default)]
    roles: BTreeMap<String, WrittenRole>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDefaults {
    mode: Option<Mode>,
    grace_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCommand {
    command: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAgent {
    /// May be left out for a program that onward knows.
    #[serde(default)]
    command: Vec<String>,
    /// Nothing without `transcript`: it could not be told whether there is a session to continue.
    #[serde(rename = "continue")]
    goes_on: Option<Vec<String>>,
    transcript: Option<String>,
    adapter: Option<String>,
    /// Where in the lines of its output what stands.
    reads: Option<Reads>,
    /// Who works while its limit holds.
    stand_in: Option<String>,
    price: Option<WrittenPrice>,
}

impl WrittenAgent {
    fn check(&self, name: &str) -> Result<(), String> {
        let unknown = self.adapter.as_deref().filter(|name| agents::named(name).is_none());
        if let Some(name) = unknown {
            let known = agents::ADAPTERS.map(|adapter| format!("`{}`", adapter.card().name));
            return Err(format!("has the adapter `{name}`; there are {}", known.join(", ")));
        }
        if self.adapter.is_some() && self.reads.is_some() {
            return Err("has both `adapter` and `reads`".to_owned());
        }
        if let Some(wrong) = self.reads.as_ref().and_then(Reads::wrong) {
            return Err(format!("reads from `{wrong}`, not a JSON pointer such as `/a/b`"));
        }
        let own = agents::known_program(self.adapter.as_deref().unwrap_or(name));
        if self.command.is_empty() && own.is_none() {
            return Err("has no `command`".to_owned());
        }
        self.continuation().map(drop).map_err(str::to_owned)
    }

    fn understanding(&self) -> Option<Understanding> {
        let described = self.reads.clone().map(|it| Understanding::Described(Box::new(it)));
        described.or_else(|| self.adapter.clone().map(Understanding::Named))
    }

    /// An agent that is understood can say its session itself.
    fn says_its_session(&self) -> bool {
        let adapter = self.understanding().and_then(|it| it.adapter());
        adapter.is_some_and(|it| it.card().sessions != Sessions::None)
    }

    fn continuation(&self) -> Result<Option<Continuation>, &'static str> {
        match (&self.goes_on, &self.transcript) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err("has `transcript`, but not `continue`"),
            (Some(_), None) => Err("has `continue`, but not `transcript`"),
            (Some(command), Some(transcript)) => {
                let session = |words: &[String]| words.iter().any(|it| it.contains("{session}"));
                let known = session(&self.command) || self.says_its_session();
                if !session(command) || !known {
                    return Err("needs `{session}` in `command` and in `continue`");
                }
                let (command, transcript) = (command.clone(), transcript.clone());
                Ok(Some(Continuation { command, transcript }))
            }
        }
    }
}

impl Config {
    /// Everything that holds in `dir`.
    pub fn load(
        dir: &Path,
        env: &[(OsString, OsString)],
        flags: &Flags,
    ) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        // The last one wins, so the nearest comes last.
        for path in files(dir, env).into_iter().rev() {
            let text = match open::settings(&path) {
                Ok(text) => text,
                Err(source) if source.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(ConfigError::Io { path, source }),
            };
            let written: Written = toml::from_str(&text).map_err(|error| {
                let message = error.to_string().trim_end().to_owned();
                ConfigError::Invalid { path: path.clone(), message }
            })?;
            for (name, agent) in &written.agents {
                if let Err(what) = agent.check(name) {
                    let message = format!("agent `{name}` {what}");
                    return Err(ConfigError::Invalid { path, message });
                }
            }
            if let Err(message) = written.limits.check() {
                return Err(ConfigError::Invalid { path, message });
            }
            config.take(written, &Origin::File(path));
        }
        config.take_environment(env)?;
        let Flags { mode, grace_seconds, keep, wait } = *flags;
        config.mode.set(mode, &Origin::Flag("--mode"));
        config.grace_seconds.set(grace_seconds, &Origin::Flag("--grace"));
        config.keep.set(keep, &Origin::Flag("--keep"));
        config.settings.wait.set(wait, &Origin::Flag("--wait"));
        Ok(config)
    }

    fn take(&mut self, written: Written, origin: &Origin) {
        let Written { defaults, notify, keep, agents, limits, roles } = written;
        self.settings.take(limits, origin);
        for (role, WrittenRole(value)) in roles {
            self.settings.roles.insert(role, Setting { value, origin: origin.clone() });
        }
        if let Some(WrittenDefaults { mode, grace_seconds }) = defaults {
            self.mode.set(mode, origin);
            self.grace_seconds.set(grace_seconds, origin);
        }
        self.notify.set(notify.map(|it| it.command), origin);
        self.keep.set(keep, origin);
        for (name, agent) in agents {
            // A nearer agent of the same name is another one altogether.
            self.continuations.remove(&name);
            self.adapters.remove(&name);
            self.settings.stand_ins.remove(&name);
            self.settings.prices.remove(&name);
            if let Some(value) = agent.stand_in.clone() {
                let setting = Setting { value, origin: origin.clone() };
                self.settings.stand_ins.insert(name.clone(), setting);
            }
            if let Some(price) = agent.price {
                let setting = Setting { value: price.price(), origin: origin.clone() };
                self.settings.prices.insert(name.clone(), setting);
            }
            if let Some(value) = agent.understanding() {
                self.adapters.insert(name.clone(), Setting { value, origin: origin.clone() });
            }
            if let Ok(Some(value)) = agent.continuation() {
                let setting = Setting { value, origin: origin.clone() };
                self.continuations.insert(name.clone(), setting);
            }
            if agent.command.is_empty() {
                self.agents.remove(&name);
            } else {
                self.agents.insert(name, Setting { value: agent.command, origin: origin.clone() });
            }
        }
    }

    fn take_environment(&mut self, env: &[(OsString, OsString)]) -> Result<(), ConfigError> {
        let mode = from_env(env, "ONWARD_MODE", "autopilot, interactive or preflight", mode)?;
        self.mode.set(mode, &Origin::Environment("ONWARD_MODE"));
        let number = |text: &str| text.parse().ok();
        let seconds = from_env(env, "ONWARD_GRACE", "a number of seconds", number)?;
        self.grace_seconds.set(seconds, &Origin::Environment("ONWARD_GRACE"));
        let keep = from_env(env, "ONWARD_KEEP", "a number", |text| text.parse().ok())?;
        self.keep.set(keep, &Origin::Environment("ONWARD_KEEP"));
        Ok(())
    }

    /// The commands alone, as a world wants them.
    pub fn agent_commands(&self) -> BTreeMap<String, Vec<String>> {
        let pairs = self.agents.iter().map(|(name, it)| (name.clone(), it.value.clone()));
        pairs.collect()
    }

    /// How agents go on in their sessions, as a world wants it.
    pub fn agent_continuations(&self) -> Continuations {
        let pairs = self.continuations.iter().map(|(name, it)| (name.clone(), it.value.clone()));
        pairs.collect()
    }

    /// The adapters' names alone, as a world wants them.
    pub fn agent_adapters(&self) -> Adapters {
        let pairs = self
            .adapters
            .iter()
            .filter_map(|(name, it)| it.value.adapter().map(|adapter| (name.clone(), adapter)));
        pairs.collect()
    }

    /// Name, value and origin of every setting, for people.
    pub fn listed(&self) -> Vec<(String, String, Origin)> {
        let Self { mode, grace_seconds, keep, notify, agents, .. } = self;
        let Self { continuations, adapters, settings, .. } = self;
        let mode_name = match mode.value {
            Mode::Autopilot => "autopilot",
            Mode::Interactive => "interactive",
            Mode::Preflight => "preflight",
        };
        let command = |words: &[String]| format!("{words:?}");
        let mut all = vec![
            ("defaults.mode".to_owned(), mode_name.to_owned(), mode.origin.clone()),
            (
                "defaults.grace_seconds".to_owned(),
                grace_seconds.value.to_string(),
                grace_seconds.origin.clone(),
            ),
            ("keep".to_owned(), keep.value.to_string(), keep.origin.clone()),
            ("notify.command".to_owned(), command(&notify.value), notify.origin.clone()),
        ];
        all.extend(agents.iter().map(|(name, it)| {
            (format!("agents.{name}.command"), command(&it.value), it.origin.clone())
        }));
        all.extend(adapters.iter().map(|(name, it)| match &it.value {
            Understanding::Named(adapter) => {
                (format!("agents.{name}.adapter"), adapter.clone(), it.origin.clone())
            }
            Understanding::Described(reads) => {
                (format!("agents.{name}.reads"), format!("{reads:?}"), it.origin.clone())
            }
        }));
        for (name, Setting { value, origin }) in continuations {
            let line =
                |what: &str, text: String| (format!("agents.{name}.{what}"), text, origin.clone());
            all.push(line("continue", command(&value.command)));
            all.push(line("transcript", value.transcript.clone()));
        }
        all.extend(settings.listed());
        all
    }
}

fn mode(text: &str) -> Option<Mode> {
    match text {
        "autopilot" => Some(Mode::Autopilot),
        "interactive" => Some(Mode::Interactive),
        "preflight" => Some(Mode::Preflight),
        _ => None,
    }
}

fn from_env<T>(
    env: &[(OsString, OsString)],
    name: &'static str,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    let Some(value) = variable(env, name) else { return Ok(None) };
    let parsed = value.to_str().and_then(parse);
    parsed.map(Some).ok_or_else(|| {
        let value = value.to_string_lossy().into_owned();
        ConfigError::Environment { name, value, expected }
    })
}

/// The nearest first.
fn files(dir: &Path, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for above in dir.ancestors() {
        files.push(above.join(".onward/config.toml"));
        if above.join(".git").exists() {
            break;
        }
    }
    let home = || variable(env, "HOME").map(|home| Path::new(home).join(".config"));
    let xdg = variable(env, "XDG_CONFIG_HOME").map(PathBuf::from).filter(|it| it.is_absolute());
    files.extend(xdg.or_else(home).map(|dir| dir.join("onward/config.toml")));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench(tempfile::TempDir);

    impl Bench {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn put(&self, path: &str, text: &str) {
            let full = self.0.path().join(path);
            std::fs::create_dir_all(full.parent().unwrap()).unwrap();
            std::fs::write(full, text).unwrap();
        }

        fn load(&self, dir: &str, env: &[(&str, &str)], flags: &Flags) -> Config {
            self.try_load(dir, env, flags).unwrap()
        }

        fn try_load(
            &self,
            dir: &str,
            env: &[(&str, &str)],
            flags: &Flags,
        ) -> Result<Config, ConfigError> {
            let xdg = self.0.path().join("xdg");
            let mut all = vec![("XDG_CONFIG_HOME".into(), xdg.into_os_string())];
            all.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
            Config::load(&self.0.path().join(dir), &all, flags)
        }
    }

    #[test]
    fn a_nearer_word_beats_a_farther_one() {
        let bench = Bench::new();
        let none = Flags::default();
        bench.put("repo/.git/HEAD", "");
        bench.put("repo/deep/x", "");
        let keep = |env: &[(&str, &str)], flags: &Flags| {
            let keep = bench.load("repo/deep", env, flags).keep;
            let origin = keep.origin.to_string();
            let shown = origin.strip_prefix(bench.0.path().to_str().unwrap());
            (keep.value, shown.unwrap_or(&origin).to_owned())
        };
        assert_eq!(keep(&[], &none), (5, "default".into()));
        bench.put("xdg/onward/config.toml", "keep = 6");
        assert_eq!(keep(&[], &none), (6, "/xdg/onward/config.toml".into()));
        bench.put("repo/.onward/config.toml", "keep = 7");
        assert_eq!(keep(&[], &none), (7, "/repo/.onward/config.toml".into()));
        bench.put("repo/deep/.onward/config.toml", "keep = 8");
        assert_eq!(keep(&[], &none), (8, "/repo/deep/.onward/config.toml".into()));
        let env = [("ONWARD_KEEP", "9")];
        assert_eq!(keep(&env, &none), (9, "ONWARD_KEEP".into()));
        let flags = Flags { keep: Some(10), ..Flags::default() };
        assert_eq!(keep(&env, &flags), (10, "--keep".into()));
    }

    #[test]
    fn nothing_is_read_above_the_git_root() {
        let bench = Bench::new();
        bench.put(".onward/config.toml", "keep = 7");
        bench.put("repo/.git/HEAD", "");
        assert_eq!(bench.load("repo", &[], &Flags::default()).keep.value, 5);
    }

    #[test]
    fn agents_of_several_files_come_together() {
        let bench = Bench::new();
        bench.put(
            "xdg/onward/config.toml",
            "[agents.a]\ncommand = ['one']\n[agents.b]\ncommand=['b']",
        );
        bench.put("p/.git/HEAD", "");
        let near = "[agents.a]\ncommand = ['two', '{prompt}']\n[defaults]\nmode = 'autopilot'\n";
        bench.put("p/.onward/config.toml", near);
        let config = bench.load("p", &[], &Flags::default());
        assert_eq!(config.mode.value, Mode::Autopilot);
        let commands = config.agent_commands();
        assert_eq!(commands["a"], ["two", "{prompt}"]);
        assert_eq!(commands["b"], ["b"]);
        let listed: Vec<String> = config.listed().into_iter().map(|(name, ..)| name).collect();
        assert!(listed.contains(&"agents.a.command".to_owned()), "{listed:?}");
    }

    #[test]
    fn a_session_is_continued_only_where_its_transcript_can_be_found() {
        let bench = Bench::new();
        bench.put("p/.git/HEAD", "");
        let load = |rest: &str| {
            let text = format!("[agents.a]\ncommand = ['x', '{{session}}']\n{rest}\n");
            bench.put("p/.onward/config.toml", &text);
            bench.try_load("p", &[], &Flags::default())
        };
        let config =
            load("continue = ['x', '-r', '{session}']\ntranscript = 't/{session}'").unwrap();
        let how = &config.agent_continuations()["a"];
        assert_eq!((how.command.len(), how.transcript.as_str()), (3, "t/{session}"));
        assert!(config.listed().iter().any(|(name, ..)| name == "agents.a.transcript"));
        assert_eq!(load("").unwrap().agent_continuations().len(), 0);
        let config = load("adapter = 'lines'").unwrap();
        assert_eq!(config.agent_adapters()["a"].card().name, "lines");
        assert!(config.listed().iter().any(|(name, ..)| name == "agents.a.adapter"));
        for (rest, says) in [
            ("continue = ['{session}']", "agent `a` has `continue`, but not `transcript`"),
            ("transcript = 't'", "agent `a` has `transcript`, but not `continue`"),
            ("continue = ['x']\ntranscript = 't'", "needs `{session}` in `command` and in"),
            ("adapter = 'claudius'", "has the adapter `claudius`; there are `claude`, `codex`"),
        ] {
            let message = load(rest).unwrap_err().to_string();
            assert!(message.contains(says), "{message}");
        }
    }

    #[test]
    fn limits_prices_and_roles_are_taken_as_written() {
        let bench = Bench::new();
        bench.put("p/.git/HEAD", "");
        let text = "[agents.claude]\nstand_in = 'codex'\n[agents.codex]\nprice = { input = 1.5, \
                    output = 10 }\n[limits]\nquiet = '22:00-07:00'\nwindows_max = 2\n[roles]\n\
                    researcher = 'codex'\n";
        bench.put("p/.onward/config.toml", text);
        let flags = Flags { wait: Some(true), ..Flags::default() };
        let config = bench.load("p", &[], &flags);
        let limits = config.settings.limits(&jiff::tz::TimeZone::UTC);
        assert!(limits.wait && limits.ends_before_quiet && config.agents.is_empty());
        assert_eq!(
            (limits.windows_max, limits.quiet.unwrap().to_string().as_str()),
            (Some(2), "22:00-07:00")
        );
        assert_eq!(limits.stand_ins["claude"], "codex");
        assert_eq!(limits.prices["codex"].output.dollars().to_string(), "10");
        assert_eq!(config.settings.roles["researcher"].value.agent.as_deref(), Some("codex"));
        let listed: Vec<String> = config.listed().into_iter().map(|(name, ..)| name).collect();
        for name in ["limits.quiet", "agents.claude.stand_in", "agents.codex.price"] {
            assert!(listed.iter().any(|it| it == name), "{listed:?}");
        }
        bench.put("p/.onward/config.toml", "[limits]\nquiet = 'at night'\n");
        let error = bench.try_load("p", &[], &Flags::default()).unwrap_err().to_string();
        assert!(error.contains("not a span such as `22:00-07:00`"), "{error}");
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_place() {
        let bench = Bench::new();
        bench.put("p/.git/HEAD", "");
        for text in ["\nkep = 1", "\n[defaults]\nmodus = 1", "\n[agents.a]\ncommand = 'x'"] {
            bench.put("p/.onward/config.toml", text);
            let error = bench.try_load("p", &[], &Flags::default()).unwrap_err();
            let message = error.to_string();
            let line = text.lines().count();
            assert!(message.contains(&format!("line {line}")), "{message}");
        }
        let error = bench.try_load("q", &[("ONWARD_KEEP", "many")], &Flags::default());
        assert_eq!(error.unwrap_err().to_string(), "ONWARD_KEEP is `many`, which is not a number");
    }
}
