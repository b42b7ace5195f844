#!/bin/sh
# A scripted agent for every role. What it does depends on the step and on what it is told.
set -eu
project=${ONWARD_RESULT%%/.onward/*}
echo "$ONWARD_STEP" >> "$project/.onward/ledger.txt"
answer() { printf '%s\n' "$1" > "$ONWARD_RESULT"; }
rest=${ONWARD_STEP#*\[}; key=${rest%%\]*}
case $ONWARD_STEP in
  requirements/draft)
    answer '{"title": "Greetings", "goal": "say hello in three ways", "requirements": ["greet.txt, shout.txt and count.txt are there"]}' ;;
  architects*)
    answer "{\"name\": \"$key\", \"summary\": \"a $key way\", \"contracts\": [], \"tasks\": []}" ;;
  roundtable/draft)
    cat > "$ONWARD_RESULT" <<END
{"summary": "three files", "contracts": [{"name": "greeting", "description": "what is said",
 "definition": {"type": "data_structure", "spec": "one line of text"}, "provider": "task-001",
 "used_by": ["task-001", "task-002"]}],
 "execution_plan": {"contracts_first": ["greeting"], "tasks": [
 {"id": "task-001", "summary": "write the greeting", "files": ["greet.txt"], "provides": ["greeting"]},
 {"id": "task-002", "summary": "shout it", "files": ["shout.txt"], "uses": ["greeting"]},
 {"id": "task-003", "summary": "count to three", "files": ["count.txt"]}]}}
END
    ;;
  *task-001*/implement) echo hello > greet.txt
    answer '{"status": "pre_complete", "summary": "the greeting is written"}' ;;
  *task-002*try\[1\]/implement)
    answer '{"status": "blocked", "summary": "how loud is not said", "blocked_reason": "contract_change"}' ;;
  *task-002*/implement) tr a-z A-Z < greet.txt > shout.txt
    answer '{"status": "pre_complete", "summary": "it is shouted"}' ;;
  *task-003*try\[1\]/implement) printf '1\n2\n' > count.txt
    answer '{"status": "pre_complete", "summary": "counted"}' ;;
  *task-003*/implement) printf '1\n2\n3\n' > count.txt
    answer '{"status": "pre_complete", "summary": "counted to the end"}' ;;
  */resolve)
    answer '{"contract": "greeting", "definition": {"type": "data_structure", "spec": "one line, loud in capitals"}, "note": "loud means capitals"}' ;;
  *task-003*/verify)
    if grep -q 3 count.txt; then answer '{"passed": true, "failures": []}'
    else answer '{"passed": false, "failures": ["three is missing"]}'; fi ;;
  */verify) answer '{"passed": true, "failures": []}' ;;
  *reconcile) git merge --quiet --strategy-option=ours main ;;
  repair*/fix) echo bye >> greet.txt
    answer '{"status": "pre_complete", "summary": "it says bye, too"}' ;;
  */check)
    if grep -q bye greet.txt; then answer '{"passed": true, "failures": []}'
    else answer '{"passed": false, "failures": ["greet.txt does not say bye"]}'; fi ;;
  reflection/draft)
    answer '{"what_worked": ["contracts first"], "what_failed": ["counting"], "patterns_noticed": []}' ;;
esac
