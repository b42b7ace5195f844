//! What a configuration file says about limits, prices and roles, and where it says so.

use std::{collections::BTreeMap, fmt};

use jiff::tz::TimeZone;
use onward_core::{evidence::Usd, said::Price, workflow::permissions::Permissions};
use onward_dialects::builtin::Part;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::config::{Origin, Setting};
use crate::agents::{limits::Limits, quiet::Quiet};

/// `[limits]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenLimits {
    wait: Option<bool>,
    windows_max: Option<u32>,
    quiet: Option<String>,
    finish_before_quiet: Option<bool>,
}

/// `price` of an agent: US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPrice {
    input: Usd,
    output: Usd,
    #[serde(default)]
    cache_read: Usd,
    #[serde(default)]
    cache_write: Usd,
}

impl WrittenPrice {
    pub(super) fn price(self) -> Price {
        let Self { input, output, cache_read, cache_write } = self;
        Price { input, output, cache_read, cache_write }
    }
}

/// `roles.NAME`: the name of an agent, or a table with more.
#[derive(Debug)]
pub(super) struct WrittenRole(pub(super) Part);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPart {
    agent: Option<String>,
    permissions: Option<Permissions>,
    #[serde(default)]
    allow: Vec<String>,
}

impl<'de> Deserialize<'de> for WrittenRole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RoleVisitor)
    }
}

struct RoleVisitor;

impl<'de> Visitor<'de> for RoleVisitor {
    type Value = WrittenRole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an agent, or a table of `agent`, `permissions` and `allow`")
    }

    fn visit_str<E: Error>(self, agent: &str) -> Result<WrittenRole, E> {
        Ok(WrittenRole(Part::of(agent)))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<WrittenRole, A::Error> {
        let fields = WrittenPart::deserialize(MapAccessDeserializer::new(fields))?;
        let WrittenPart { agent, permissions, allow } = fields;
        Ok(WrittenRole(Part { agent, permissions, allow }))
    }
}

impl WrittenLimits {
    pub(super) fn check(&self) -> Result<(), String> {
        match self.quiet.as_deref() {
            Some(hours) if Quiet::parse(hours, TimeZone::UTC).is_none() => {
                Err(format!("limits.quiet is `{hours}`, which is not a span such as `22:00-07:00`"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Limits, prices, stand-ins and roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Wait in place until a limit is lifted.
    pub wait: Setting<bool>,
    /// For how many limits; `None` = for all.
    pub windows_max: Setting<Option<u32>>,
    /// No agent is started then, by the local clock.
    pub quiet: Setting<Option<String>>,
    pub finish_before_quiet: Setting<bool>,
    /// The agent that stands in for another one at a limit.
    pub stand_ins: BTreeMap<String, Setting<String>>,
    pub prices: BTreeMap<String, Setting<Price>>,
    /// How the roles of built-in workflows are played.
    pub roles: BTreeMap<String, Setting<Part>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wait: Setting::default_of(false),
            windows_max: Setting::default_of(None),
            quiet: Setting::default_of(None),
            finish_before_quiet: Setting::default_of(true),
            stand_ins: BTreeMap::new(),
            prices: BTreeMap::new(),
            roles: BTreeMap::new(),
        }
    }
}

impl Settings {
    pub(super) fn take(&mut self, written: WrittenLimits, origin: &Origin) {
        let WrittenLimits { wait, windows_max, quiet, finish_before_quiet } = written;
        self.wait.set(wait, origin);
        self.windows_max.set(windows_max.map(Some), origin);
        self.quiet.set(quiet.map(Some), origin);
        self.finish_before_quiet.set(finish_before_quiet, origin);
    }

    /// As a driver heeds it, with the clock of this time zone.
    pub fn limits(&self, zone: &TimeZone) -> Limits {
        let quiet = self.quiet.value.as_deref();
        let pairs = |(name, it): (&String, &Setting<String>)| (name.clone(), it.value.clone());
        Limits {
            wait: self.wait.value,
            windows_max: self.windows_max.value,
            quiet: quiet.and_then(|hours| Quiet::parse(hours, zone.clone())),
            ends_before_quiet: self.finish_before_quiet.value,
            stand_ins: self.stand_ins.iter().map(pairs).collect(),
            prices: self.prices.iter().map(|(name, it)| (name.clone(), it.value)).collect(),
        }
    }

    /// The roles alone, as a workflow is loaded with them.
    pub fn parts(&self) -> BTreeMap<String, Part> {
        self.roles.iter().map(|(role, it)| (role.clone(), it.value.clone())).collect()
    }

    /// Name, value and origin of each.
    pub(super) fn listed(&self) -> Vec<(String, String, Origin)> {
        let Self { wait, windows_max, quiet, finish_before_quiet, stand_ins, prices, roles } = self;
        let line =
            |name: &str, value: String, origin: &Origin| (name.to_owned(), value, origin.clone());
        let windows = windows_max.value.map_or_else(|| "all".to_owned(), |it| it.to_string());
        let hours = quiet.value.clone().unwrap_or_else(|| "none".to_owned());
        let finish = finish_before_quiet.value.to_string();
        let mut all = vec![
            line("limits.wait", wait.value.to_string(), &wait.origin),
            line("limits.windows_max", windows, &windows_max.origin),
            line("limits.quiet", hours, &quiet.origin),
            line("limits.finish_before_quiet", finish, &finish_before_quiet.origin),
        ];
        for (name, it) in stand_ins {
            all.push(line(&format!("agents.{name}.stand_in"), it.value.clone(), &it.origin));
        }
        for (name, it) in prices {
            let Price { input, output, .. } = it.value;
            let value = format!("${} in, ${} out", input.dollars(), output.dollars());
            all.push(line(&format!("agents.{name}.price"), value, &it.origin));
        }
        for (name, Setting { value: Part { agent, permissions, allow }, origin }) in roles {
            if let Some(agent) = agent {
                all.push(line(&format!("roles.{name}.agent"), agent.clone(), origin));
            }
            if let Some(word) = permissions {
                let word = word.as_str().to_owned();
                all.push(line(&format!("roles.{name}.permissions"), word, origin));
            }
            if !allow.is_empty() {
                all.push(line(&format!("roles.{name}.allow"), format!("{allow:?}"), origin));
            }
        }
        all
    }
}
