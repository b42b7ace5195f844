//! Whether an iteration is kept: decided by numbers alone.
//!
//! Invariant: only the researcher's own rows count, so that the order in which researchers finish
//! changes nothing.

use crate::conference::{
    Conference,
    read::settings::{Mode, Settings},
};

/// The value of the state that a researcher stands on in a round.
pub fn standing(conference: &Conference, round: u32, researcher: &str) -> Option<f64> {
    let told = conference.history.round(round)?;
    let trials = told.trials_of(researcher).filter(|(_, trial)| trial.status.stands());
    trials.filter_map(|(_, trial)| trial.metric).last()
}

/// The value that the researcher began the round with.
pub fn baseline(conference: &Conference, round: u32, researcher: &str) -> Option<f64> {
    let told = conference.history.round(round)?;
    told.trials_of(researcher).find_map(|(_, trial)| trial.metric)
}

/// Better than what stands, by more than noise.
pub fn improves(
    settings: &Settings,
    baseline: Option<f64>,
    standing: Option<f64>,
    value: f64,
) -> bool {
    let Some(standing) = standing else { return true };
    let first = baseline.unwrap_or(standing);
    let threshold = threshold(settings, first, &[first, standing, value]);
    // A gain of exactly the threshold must not count because of how fractions are stored.
    let slack = 1e-9 * standing.abs().max(value.abs());
    settings.direction_or_default().gain(value, standing) > threshold + slack
}

/// What a metric may move by without meaning anything.
fn threshold(settings: &Settings, baseline: f64, seen: &[f64]) -> f64 {
    let name = settings.metric.as_deref().unwrap_or_default().to_lowercase();
    let percent = settings.target.is_some_and(|target| target.percent);
    let is_percent = percent || name.contains('%') || name.contains("percent");
    match settings.noise {
        Some(noise) => noise,
        None if settings.mode == Some(Mode::Qualitative) => 0.0,
        None if seen.iter().all(|value| value.fract() == 0.0) => 0.0,
        None if is_percent => 0.1,
        None => baseline.abs() * 0.001,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::conference::measure::Direction;

    #[test]
    fn a_gain_must_be_in_the_right_direction_and_more_than_noise() {
        let down = Settings { direction: Some(Direction::Minimize), ..Settings::default() };
        let up = Settings::default();
        assert!(improves(&up, None, None, 1.0), "the first value stands on nothing");
        assert!(improves(&down, Some(100.0), Some(90.0), 89.0));
        assert!(!improves(&up, Some(100.0), Some(90.0), 89.0));
        assert!(!improves(&up, Some(100.0), Some(90.0), 90.0), "as good is not better");
        assert!(!improves(&up, Some(100.5), Some(90.0), 90.1), "less than a thousandth");
        assert!(improves(&up, Some(100.5), Some(90.0), 90.2));
        let noisy = Settings { noise: Some(5.0), ..Settings::default() };
        assert!(!improves(&noisy, Some(100.0), Some(90.0), 95.0));
        assert!(improves(&noisy, Some(100.0), Some(90.0), 96.0));
        let percent = Settings { metric: Some("accuracy %".into()), ..Settings::default() };
        assert!(!improves(&percent, Some(90.5), Some(90.5), 90.6));
        assert!(improves(&percent, Some(90.5), Some(90.5), 90.7));
    }
}
