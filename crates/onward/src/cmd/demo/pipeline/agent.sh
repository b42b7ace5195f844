#!/bin/sh
# A scripted agent for every role of a pipeline. What it does depends on the step and the prompt.
set -eu
echo "$ONWARD_STEP" >> "${LEDGER:-$(git rev-parse --path-format=absolute --git-common-dir)/../ledger}"
case $ONWARD_STEP in
  intake)
    echo "{\"tier\": \"${TIER:-STANDARD}\", \"title\": \"Better tea\"}" > "$ONWARD_RESULT" ;;
  breakdown)
    cat > "$ONWARD_RESULT" <<END
{"tasks": [
 {"key": "water", "subject": "Heat the water", "files": ["src/water.txt"]},
 {"key": "leaves", "subject": "Weigh the leaves", "files": ["src/leaves.txt"]},
 {"key": "pot", "subject": "Fill the pot", "files": ["src/pot.txt"], "after": ["water", "leaves"]}]}
END
    ;;
  P6*/work|P6*/redo)
    file=$(printf '%s' "$1" | sed -n 's/^Its files: \(.*\)\.$/\1/p')
    mkdir -p src
    cat src/water.txt src/leaves.txt > "$file.new" 2>/dev/null || true
    echo "made for $file" >> "$file.new"
    mv "$file.new" "$file" ;;
  P*/work|P*/redo)
    phase=${ONWARD_STEP%%\[*}; rest=${ONWARD_STEP#*\[}; task=${rest%%\]*}
    mkdir -p "pipeline/$phase"
    printf '# Page %s of %s\n\nIt can be done.\n' "$task" "$phase" > "pipeline/$phase/$task.md"
    case $phase in P7) echo '{"passed": true}' > "$ONWARD_RESULT" ;; esac ;;
  P*/verify)
    echo "{\"passed\": ${HOLDS:-true}}" > "$ONWARD_RESULT" ;;
  review*/judge)
    passed=true
    case $ONWARD_STEP in review\[1\]*) passed=${FIRST_REVIEW:-true} ;; esac
    echo "{\"passed\": $passed, \"failures\": []}" > "$ONWARD_RESULT" ;;
  review*/fix)
    echo "mended" >> src/pot.txt ;;
  P8/describe)
    echo '{"subject": "tea: it is better", "body": "Hotter water, more leaves."}' > "$ONWARD_RESULT" ;;
esac
