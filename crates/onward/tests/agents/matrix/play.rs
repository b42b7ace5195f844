//! A project in which a script plays one of the programs.

use crate::stage::Stage;

use super::{End, Program, Sample};

/// Plays `sample.*` at the first call and `well` at the others. Its session is the one that it is
/// given, or one of its own for each call, which no other test has.
const PLAYER: &str = r#"#!/bin/sh
echo x >> "$ROOT/calls"
call=$(wc -l < "$ROOT/calls" | tr -d ' ')
id=told-$$-$call
for arg; do
  case $before in --session-id|--resume|-s|resume) id=$arg;; esac
  case $arg in --session-id=*|--resume=*) id=${arg#*=};; esac
  before=$arg
done
file="$HOME/$(sed "s/SESSION8/$(echo $id | cut -c1-8)/; s/SESSION/$id/" "$ROOT/transcript")"
mkdir -p "$(dirname "$file")"; echo x >> "$file"
if [ $call = 1 ]; then
  sed "s/SESSION/$id/g" "$ROOT/sample.out"; cat "$ROOT/sample.err" >&2
  . "$ROOT/sample.end"
fi
sed "s/SESSION/$id/g" "$ROOT/well"
"#;

/// Its tool has a session of its own, as those of some programs have.
const WHEN_TOLD: &str = r#"
trap 'echo INT > "$ROOT/signal"; exit 1' INT
trap 'echo TERM > "$ROOT/signal"; exit 143' TERM
setsid sh -c 'echo $$ > "$ROOT/tool.begun"; mv "$ROOT/tool.begun" "$ROOT/tool"; exec sleep 600' &
while :; do sleep 0.05; done
"#;

pub(crate) fn stage(program: &Program, sample: &Sample, step: &str) -> Stage {
    let stage = Stage::empty();
    let root = stage.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    let player = PLAYER.replace("$ROOT", &root);
    stage.put(&format!("bin/{}", program.name), &player);
    stage.put("transcript", program.transcript);
    stage.put("sample.out", &format!("{}\n", sample.out));
    stage.put("sample.err", sample.err);
    let (end, time) = match sample.end {
        End::Code(code) => (format!("exit {code}"), ""),
        // The signal may take a moment.
        End::Signal(name) => (format!("kill -{name} $$; exec sleep 600"), ""),
        End::Never => ("exec sleep 600".to_owned(), ", timeout: 1s"),
        End::WhenTold => (WHEN_TOLD.replace("$ROOT", &root), ""),
    };
    stage.put("sample.end", &format!("{end}\n"));
    let is_schema = step.contains("schema");
    stage.put("well", if is_schema { &program.result } else { &program.well });
    stage.put("s.json", r#"{"type":"object","required":["n"],"properties":{"n":{"const":1}}}"#);
    let name = program.name;
    let retry = "retry: { max: 1, backoff: 1ms }";
    let step = format!("{{ id: work, agent: {name}, prompt: Do it., {retry}{time}{step} }}");
    stage.put("w.yaml", &format!("onward: 1\nname: w\nsteps: [{step}]\n"));
    stage
}
