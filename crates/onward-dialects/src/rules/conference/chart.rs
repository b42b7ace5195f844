//! The metric of every researcher, iteration by iteration and round by round, as a picture.
//!
//! Invariant: the same conference gives the same bytes. Nothing is drawn that is not logged, and
//! names from the log are escaped.

use std::fmt::Write as _;

use crate::conference::Conference;

/// What the picture is called, beside the results.
pub const FILE_NAME: &str = "conference_progress.svg";

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 96.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 40.0;

/// Told apart by people who see few colours, too.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#000000"];

/// One iteration as it is drawn.
struct Dot {
    /// How many iterations come before it, in all rounds.
    place: u32,
    metric: f64,
    stands: bool,
}

/// A picture as SVG text; `None` while there is nothing to draw.
pub fn progress(conference: &Conference) -> Option<String> {
    let (lines, borders, places) = layout(conference);
    let dots = || lines.iter().flat_map(|(_, dots)| dots);
    let target = conference.settings.target.map(|target| target.value);
    let values = || dots().map(|dot| dot.metric).chain(target);
    dots().next()?;
    let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let span = if high > low { high - low } else { 1.0 };
    let across = f64::from(places.saturating_sub(1).max(1));
    let x = |place: u32| LEFT + (WIDTH - LEFT - RIGHT) * f64::from(place) / across;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / span;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut add = |line: String| writeln!(svg, "{line}").expect("a string takes all");
    let bottom = HEIGHT - BOTTOM;
    for (round, place) in &borders {
        let at = x(*place);
        add(format!(
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#cccccc\"/>"
        ));
        let (label, below) = (at + 4.0, bottom + 16.0);
        add(format!("<text x=\"{label:.1}\" y=\"{below}\">round {round}</text>"));
    }
    for value in [low, high] {
        let (at, right) = (y(value) + 4.0, LEFT - 8.0);
        add(format!("<text x=\"{right}\" y=\"{at:.1}\" text-anchor=\"end\">{value}</text>"));
    }
    if let Some(target) = target {
        let (at, end) = (y(target), WIDTH - RIGHT);
        add(format!(
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{end}\" y2=\"{at:.1}\" stroke=\"#000000\" \
             stroke-dasharray=\"4 4\"/>"
        ));
        let (label, at) = (end + 8.0, at + 4.0);
        add(format!("<text x=\"{label}\" y=\"{at:.1}\">target</text>"));
    }
    for (index, (researcher, dots)) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points: Vec<String> =
            dots.iter().map(|dot| format!("{:.1},{:.1}", x(dot.place), y(dot.metric))).collect();
        let points = points.join(" ");
        add(format!("<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\"/>"));
        for dot in dots {
            let (at, up) = (x(dot.place), y(dot.metric));
            let fill = if dot.stands { colour } else { "#ffffff" };
            add(format!(
                "<circle cx=\"{at:.1}\" cy=\"{up:.1}\" r=\"4\" fill=\"{fill}\" \
                 stroke=\"{colour}\"/>"
            ));
        }
        let line = f64::from(u32::try_from(index + 1).ok()?);
        let (at, down) = (WIDTH - RIGHT + 8.0, TOP + 16.0 * line);
        let name = escaped(researcher);
        add(format!("<text x=\"{at}\" y=\"{down}\" fill=\"{colour}\">{name}</text>"));
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// A line of dots for each researcher; where each round begins; how many places there are.
#[expect(clippy::type_complexity, reason = "three lists that are made in one pass and used once")]
fn layout(conference: &Conference) -> (Vec<(String, Vec<Dot>)>, Vec<(u32, u32)>, u32) {
    let mut lines: Vec<(String, Vec<Dot>)> = Vec::new();
    let mut borders = Vec::new();
    let mut start = 0;
    for (number, round) in &conference.history.rounds {
        borders.push((*number, start));
        let mut longest = 0;
        for researcher in round.trials.keys() {
            let index = lines.iter().position(|(name, _)| name == researcher);
            let index = index.unwrap_or_else(|| {
                lines.push((researcher.clone(), Vec::new()));
                lines.len() - 1
            });
            for (place, (_, trial)) in (start..).zip(round.trials_of(researcher)) {
                let stands = trial.status.stands();
                let dot = trial.metric.map(|metric| Dot { place, metric, stands });
                lines[index].1.extend(dot);
                longest = longest.max(place + 1 - start);
            }
        }
        start += longest;
    }
    lines.sort_by(|one, other| one.0.cmp(&other.0));
    (lines, borders, start)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
