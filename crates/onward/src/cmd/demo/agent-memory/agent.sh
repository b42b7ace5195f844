#!/bin/sh
# A scripted agent for every role of agent-memory. What it does depends on the step, and on what is
# in the tree: T002 fails its verification until it is mended, T003 succeeds the second time.
set -eu
dir=$(ls -d .agent-memory/runs/* | head -n 1)
case $ONWARD_STEP in
  intake|restore/prd) echo '# Requirements: count to three' > "$dir/prd.md" ;;
  plan|*/plan) echo '# Plan: one file for each number' > "$dir/plan.md" ;;
  tasks/break|*/tasks)
    mkdir -p "$dir/tasks"
    for id in T001 T002 T003; do echo "# $id: write src/$id.txt" > "$dir/tasks/$id.md"; done
    cat > "$dir/task-graph.json" <<END
{"tasks": [
 {"id": "T001", "title": "One", "phase": 1, "dependencies": []},
 {"id": "T002", "title": "Two", "phase": 1, "dependencies": ["T001"]},
 {"id": "T003", "title": "Three", "phase": 2, "dependencies": ["T001"]}]}
END
    ;;
  *implement)
    rest=${ONWARD_STEP#*execute\[}; task=${rest%%\]*}
    mkdir -p src
    status=SUCCESS
    case $task in
      T003) if [ -e src/T003.tried ]; then echo done > src/T003.txt
            else echo once > src/T003.tried; status=FAILED; fi ;;
      Q*) echo mended >> src/T002.txt ;;
      *) echo done > "src/$task.txt" ;;
    esac
    echo "{\"status\": \"$status\", \"summary\": \"wrote what $task wants\"}" > "$ONWARD_RESULT" ;;
  *verify|*look)
    tasks=$(printf '%s' "$1" | tr '\n' ' ' | sed -n 's/.*Verify the tasks \(.*\)\. Their.*/\1/p')
    verdicts=
    for task in $(echo "$tasks" | tr -d ,); do
      said='"result": "PASSED"'
      if [ "$task" = T002 ] && ! grep -q mended src/T002.txt; then
        said='"result": "FAILED", "issues": [{"what": "it is not mended", "file": "src/T002.txt"}]'
      fi
      verdicts="$verdicts${verdicts:+, }{\"task\": \"$task\", $said}"
    done
    echo "{\"verdicts\": [$verdicts]}" > "$ONWARD_RESULT" ;;
  cleanup) rm -f src/T003.tried ;;
  pr)
    echo '# Count to three' > "$dir/pr-description.md"
    echo '- [x] counted' > "$dir/pr-checklist.md" ;;
  consolidate) echo 'outcome: success' > "$dir/summary.md" ;;
esac
