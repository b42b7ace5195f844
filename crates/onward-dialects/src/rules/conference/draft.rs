//! A new conference.md, from the answers of a person.
//!
//! Invariant: what is written reads back as it was answered, and nothing that a start needs is
//! missing from it.

use std::fmt::Write as _;

use crate::{
    conference::read::settings::Mode,
    kit::markdown::{in_code, one_line},
    rules::conference::measure::Direction,
};

/// The answers. Text is one line or more, as the person gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub title: String,
    pub goal: String,
    pub measure: Measure,
    pub researchers: u32,
    pub iterations: u32,
    pub rounds: u32,
    pub devils_advocate: bool,
    pub allowed: String,
    pub forbidden: Option<String>,
    /// Whether the search space is to be divided among the researchers.
    pub assigned: bool,
    pub max_iterations: Option<u32>,
    pub time_budget: Option<String>,
}

/// How success is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    Metric { name: String, direction: Direction, target: Option<String>, evaluator: String },
    Criteria(String),
}

impl Measure {
    pub fn mode(&self) -> Mode {
        match self {
            Self::Metric { .. } => Mode::Metric,
            Self::Criteria(_) => Mode::Qualitative,
        }
    }
}

impl Draft {
    /// The whole file. Its confirmation is left to the start gate.
    pub fn text(&self) -> String {
        let mut text = format!("# Conference: {}\n", one_line(&self.title));
        let mut section = |title: &str, body: String| {
            write!(text, "\n## {title}\n{}\n", body.trim_end()).expect("a string takes all");
        };
        section("Goal", self.goal.trim().to_owned());
        match &self.measure {
            Measure::Metric { name, direction, target, evaluator } => {
                section("Mode", "metric".to_owned());
                let target = target.as_deref().map(|it| format!("- **Target:** {it}\n"));
                section(
                    "Success Metric",
                    format!(
                        "- **Metric:** {}\n{}- **Direction:** {}\n- **Evaluator:** {}",
                        one_line(name),
                        target.unwrap_or_default(),
                        direction.as_str(),
                        in_code(&one_line(evaluator))
                    ),
                );
            }
            Measure::Criteria(criteria) => {
                section("Mode", "qualitative".to_owned());
                section("Success Criteria", criteria.trim().to_owned());
            }
        }
        let Self { researchers, iterations, rounds, .. } = self;
        let devil = if self.devils_advocate { "yes" } else { "no" };
        section(
            "Researchers",
            format!(
                "- **Count:** {researchers}\n- **Iterations per round:** {iterations}\n\
                 - **Max rounds:** {rounds}\n- **Devil's Advocate:** {devil}"
            ),
        );
        section("Pre-Flight Gate", "- **Final confirmation:** pending".to_owned());
        let forbidden = self.forbidden.as_deref().map_or("none", str::trim);
        section(
            "Search Space",
            format!(
                "- **Allowed changes:** {}\n- **Forbidden changes:** {}",
                one_line(&self.allowed),
                one_line(forbidden)
            ),
        );
        let strategy = if self.assigned { "assigned" } else { "free" };
        section("Search Space Partitioning", format!("- **Strategy:** {strategy}"));
        let mut constraints = String::new();
        if let Some(max) = self.max_iterations {
            writeln!(constraints, "- **Max total iterations:** {max}").expect("as above");
        }
        if let Some(budget) = &self.time_budget {
            writeln!(constraints, "- **Time budget:** {}", one_line(budget)).expect("as above");
        }
        if !constraints.is_empty() {
            section("Constraints", constraints);
        }
        section("Shared Knowledge", String::new());
        section("Context & References", String::new());
        text.push_str(
            "\n---\n\n## Conference Log\n\
             | Round | Researcher | Best Metric | Key Finding | Status |\n\
             |-------|-----------|-------------|-------------|--------|\n",
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Files,
        conference::{import, read::EVENTS},
        rules::conference::gate,
    };

    fn draft(measure: Measure) -> Draft {
        Draft {
            title: "tea".into(),
            goal: "Steep\nbetter tea.".into(),
            measure,
            researchers: 3,
            iterations: 4,
            rounds: 5,
            devils_advocate: true,
            allowed: "the source code".into(),
            forbidden: None,
            assigned: true,
            max_iterations: Some(50),
            time_budget: Some("2h".into()),
        }
    }

    #[test]
    fn what_is_written_reads_back_and_lacks_nothing_for_a_start() {
        let metric = Measure::Metric {
            name: "p95_ms".into(),
            direction: Direction::Minimize,
            target: Some("< 50".into()),
            evaluator: "sh measure.sh | tail -1".into(),
        };
        for measure in [metric, Measure::Criteria("- It tastes good".into())] {
            let draft = draft(measure);
            let files = [("conference.md", draft.text()), (EVENTS, String::new())];
            let files: Files = files.into_iter().collect();
            let read = import(&files).unwrap();
            assert_eq!(gate::unready(&read), Vec::<&str>::new(), "{}", draft.text());
            let settings = read.settings;
            assert_eq!(settings.goal.as_deref(), Some("Steep\nbetter tea."));
            assert_eq!(settings.mode, Some(draft.measure.mode()));
            assert_eq!((settings.count, settings.max_rounds), (Some(3), Some(5)));
            assert_eq!(settings.devils_advocate, Some(true));
            assert_eq!(settings.max_iterations, Some(50));
            assert_eq!(settings.time_budget_ms, Some(7_200_000));
            assert!(settings.unconfirmed && settings.assigned && settings.changes_code);
            if let Measure::Metric { evaluator, .. } = &draft.measure {
                assert_eq!(settings.evaluator.as_ref(), Some(evaluator));
                assert_eq!(settings.direction, Some(Direction::Minimize));
                assert!(settings.target.unwrap().is_met_by(49.0));
            }
        }
    }
}
