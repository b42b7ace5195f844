//! Made-up workflows: groups, fan-outs, loops, gates, retries, failures (tolerated ones among
//! them) and effects.

use std::fmt::Write as _;

use crate::chance::Chance;

/// The same text for the same seed.
pub(crate) fn workflow(seed: u64) -> String {
    let mut made = Maker { chance: Chance::new(seed ^ 0x5eed), text: String::new(), count: 0 };
    let parallel = 1 + made.chance.below(4);
    made.text = format!(
        "onward: 1\nname: random\nlimits: {{ parallel: {parallel} }}\n\
         defaults: {{ retry: {{ max: 4, backoff: 1s, on: [failed, crash] }} }}\nsteps:\n"
    );
    let steps = 2 + made.chance.below(4);
    made.steps(steps, 2, 0, "");
    made.text
}

struct Maker {
    chance: Chance,
    text: String,
    count: u32,
}

impl Maker {
    /// A list of steps; `suffix` makes paths of items and turns their own.
    fn steps(&mut self, count: usize, indent: usize, depth: usize, suffix: &str) {
        let mut before: Vec<String> = Vec::new();
        for _ in 0..count {
            let id = format!("s{}", self.count);
            self.count += 1;
            let needs = self.needs(&before);
            match self.chance.below(if depth < 2 { 10 } else { 6 }) {
                // An effect inside a loop or fan-out would need a name per instance.
                5 if suffix.is_empty() => self.effect(&id, &needs, indent),
                0..=3 | 5 => self.command(&id, &needs, indent, suffix),
                4 => {
                    self.line(
                        indent,
                        &format!("- {{ id: {id},{needs} gate: 'Go on with {id}?' }}"),
                    );
                }
                6 | 7 => self.each(&id, &needs, indent, depth, suffix),
                8 => self.repeat(&id, &needs, indent, depth, suffix),
                _ => self.group(&id, &needs, indent, depth, suffix),
            }
            before.push(id);
        }
    }

    fn needs(&mut self, before: &[String]) -> String {
        if before.is_empty() || self.chance.one_in(2) {
            return String::new();
        }
        let some: Vec<&str> =
            before.iter().filter(|_| self.chance.one_in(2)).map(String::as_str).collect();
        format!(" needs: [{}],", some.join(", "))
    }

    fn command(&mut self, id: &str, needs: &str, indent: usize, suffix: &str) {
        let path = format!("{id}{suffix}.txt");
        let fails = [0, 0, 0, 1, 2][self.chance.below(5)];
        let when = if self.chance.one_in(6) { " when: '{{ 1 > 2 }}'," } else { "" };
        // Tried once: a step that fails life after life without an end is for a person to mend.
        let (fails, tolerated) = if self.chance.one_in(6) {
            (99, " retry: { max: 0 }, on_failure: continue,")
        } else {
            (fails, "")
        };
        let line = format!(
            "- {{ id: {id},{needs}{when}{tolerated} run: 'write {path} text-of-{id}; \
             fail {fails}', writes: ['{path}'] }}"
        );
        self.line(indent, &line);
    }

    fn effect(&mut self, id: &str, needs: &str, indent: usize) {
        let line = format!(
            "- {{ id: {id},{needs} run: outside {id}, effect: outside, \
             probe: {{ run: probe {id}, absent: 1 }} }}"
        );
        self.line(indent, &line);
    }

    fn each(&mut self, id: &str, needs: &str, indent: usize, depth: usize, suffix: &str) {
        let items = ["[x, y]", "[x, y, z]", "[]"][self.chance.below(3)];
        let name = format!("i{id}");
        self.open(id, needs, indent);
        self.line(indent + 2, &format!("each: {items}"));
        self.line(indent + 2, &format!("as: {name}"));
        let suffix = format!("{suffix}-{{{{ {name} }}}}");
        self.inside(indent, depth, &suffix);
    }

    fn repeat(&mut self, id: &str, needs: &str, indent: usize, depth: usize, suffix: &str) {
        self.open(id, needs, indent);
        let max = 1 + self.chance.below(3);
        let until = if self.chance.one_in(2) {
            format!(", until: '{{{{ {id} >= 2 }}}}', on_max: continue")
        } else {
            String::new()
        };
        self.line(indent + 2, &format!("repeat: {{ max: {max}{until} }}"));
        let suffix = format!("{suffix}-{{{{ {id} }}}}");
        self.inside(indent, depth, &suffix);
    }

    fn group(&mut self, id: &str, needs: &str, indent: usize, depth: usize, suffix: &str) {
        self.open(id, needs, indent);
        if self.chance.one_in(4) {
            self.line(indent + 2, "when: '{{ 2 > 1 }}'");
        }
        self.inside(indent, depth, suffix);
    }

    fn open(&mut self, id: &str, needs: &str, indent: usize) {
        self.line(indent, &format!("- id: {id}"));
        let needs = needs.trim_end_matches(',').trim();
        if !needs.is_empty() {
            self.line(indent + 2, needs);
        }
    }

    fn inside(&mut self, indent: usize, depth: usize, suffix: &str) {
        self.line(indent + 2, "steps:");
        let count = 1 + self.chance.below(3);
        self.steps(count, indent + 4, depth + 1, suffix);
    }

    fn line(&mut self, indent: usize, text: &str) {
        writeln!(self.text, "{:indent$}{text}", "").expect("a string takes all");
    }
}
