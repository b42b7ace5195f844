#!/bin/sh
# A scripted agent for every role of a conference. What it does depends on the step alone.
set -eu
case $ONWARD_STEP in
  partition)
    echo '{"A": "the first number", "B": "the second", "C": "the third"}' > "$ONWARD_RESULT" ;;
  */propose)
    rest=${ONWARD_STEP#round\[}; round=${rest%%\]*}
    rest=${ONWARD_STEP#*research\[}; who=${rest%%\]*}
    rest=${ONWARD_STEP#*iterate\[}; turn=${rest%%\]*}
    file=$(echo "$who" | tr A-Z a-z).txt
    value=$(cat "$file")
    case $turn in
      2) echo $((value + 1)) > "$file"; what="a step back" ;;
      *) echo $((value - 4 - round)) > "$file"; what="a step ahead" ;;
    esac
    echo "$who was here in round $round, turn $turn" > shared.txt
    cat > "$ONWARD_RESULT" <<END
{"description": "$what", "hypothesis": "less is more", "analysis": "see the rows"}
END
    ;;
  *poster/draft)
    rest=${ONWARD_STEP#round\[}; round=${rest%%\]*}
    mkdir -p "workspace/round-$round"
    printf '# Poster Session\n\nEverybody moved in round %s.\n' "$round" > "workspace/round-$round/poster.md" ;;
  *review/judge)
    rest=${ONWARD_STEP#round\[}; round=${rest%%\]*}
    cat > "$ONWARD_RESULT" <<END
{"verdicts": [
 {"researcher": "A", "claim": "A is right in round $round", "verdict": "validated", "score": 7},
 {"researcher": "B", "claim": "B is right in round $round", "verdict": "validated", "score": 6},
 {"researcher": "C", "claim": "C guesses in round $round", "verdict": "challenged", "score": 3}]}
END
    ;;
  synthesis/draft)
    mkdir -p workspace
    printf '# Synthesis\n\nIt can be done.\n' > workspace/synthesis.md
    printf '# Final report\n\nIt was done.\n' > workspace/final_report.md ;;
  format|evidence|citations|abstract|review)
    mkdir -p workspace/ship
    printf '# Shipped\n\nThe text after %s.\n' "$ONWARD_STEP" > "workspace/ship/$ONWARD_STEP.md" ;;
esac
