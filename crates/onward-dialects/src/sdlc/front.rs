//! What stands above a story, between two lines of dashes.

use serde_json::{Map, Value};

use super::story::{Story, is_id};
use crate::kit::{
    json::{Object, Oddities},
    yaml,
};

/// The stories that it names as coming first. What has another type than it should have is noted.
pub(super) fn dependencies(story: &Story, odd: &Oddities) -> Vec<String> {
    let Some(map) = front(story.document.text()) else { return Vec::new() };
    let it = Object { map: &map, path: &story.path, odd };
    it.text("epic");
    let ids = it.texts_of(&["dependencies", "depends_on", "dependsOn"]);
    ids.into_iter().map(|it| it.trim().to_owned()).filter(|it| is_id(it)).collect()
}

/// Nothing where the dashes are a line of the page itself.
fn front(text: &str) -> Option<Map<String, Value>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let end = rest.find("\n---")?;
    yaml::object(rest.get(..=end)?.as_bytes()).ok()
}
