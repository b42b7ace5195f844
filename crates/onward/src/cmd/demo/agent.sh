#!/bin/sh
# A scripted agent: takes its prompt word by word, and writes down that it ran.
set -eu
echo "$ONWARD_STEP $ONWARD_ATTEMPT" >> ledger.txt
set -- $1
verb=$1 file=$2
mkdir -p "$(dirname "$file")"
case $verb in
  plan)
    echo "bees, clocks, rivers, trains" > "$file"
    echo '["bees", "clocks", "rivers", "trains"]' > "$ONWARD_RESULT" ;;
  look)
    sleep 0.1
    echo "what is known about $3" > "$file" ;;
  draft)
    # The first chapter is quick; the others are still being written when the engine dies.
    if [ "$3" != bees ]; then sleep 2; fi
    echo "a chapter about $3" > "$file" ;;
  edit)
    cat chapters/*.md > "$file"
    echo "edited $3 times" >> "$file" ;;
  judge)
    if [ "$3" -ge 2 ]; then ok=true; else ok=false; fi
    echo "{\"ok\": $ok}" > "$file"
    cp "$file" "$ONWARD_RESULT" ;;
esac
