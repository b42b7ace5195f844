#!/bin/sh
# A scripted agent for every role of an epic. It notes each step that it was started for.
set -eu
say() { printf '%s' "$1" > "$ONWARD_RESULT"; }
top=$(git rev-parse --path-format=absolute --git-common-dir)/..
echo "$ONWARD_STEP" >> "$top/.onward/ledger"
case $ONWARD_STEP in
  *work/validate) say '{"decision": "GO", "score": 9}' ;;
  *work/implement)
    id=${ONWARD_STEP#*story\[}; id=${id%%\]*}
    sleep 1
    sed -i.old 's/- \[ \]/- [x]/' "docs/stories/$id.story.md"
    rm "docs/stories/$id.story.md.old"
    echo "what story $id asks for" > "made-$id.txt" ;;
  *heal*) say '{"passed": true}' ;;
  *work/review*) say '{"verdict": "PASS"}' ;;
  *gate*) say '{"verdict": "APPROVE"}' ;;
esac
