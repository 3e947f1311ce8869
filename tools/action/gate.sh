#!/usr/bin/env bash
# What the action of action.yml does: run, gate, report, comment. It exits as `assay gate` does; inputs come by the
# environment, so that no text of a pull request is ever part of a command.
set -uo pipefail

mark='<!-- assay gate -->'
report=assay-report.md
most=60000 # bytes; a comment of GitHub holds 65,536 characters
code=0
outcome=error
printf '%s\n' "$mark" > "$report"

if [ -n "$CONFIG" ]; then
  assay run "$CONFIG" --output-dir "$FOLDER" --no-progress > assay-run.txt 2> assay-errors.txt || code=$?
  cat assay-run.txt assay-errors.txt >&2
fi

if [ "$code" = 0 ]; then
  read -ra flags <<< "$GATE"
  if [ -n "$BASELINE" ] && [ -e "$BASELINE" ]; then flags+=(--baseline "$BASELINE"); fi
  assay gate "$FOLDER" "${flags[@]}" --inconclusive "$INCONCLUSIVE" --junit assay-junit.xml --force \
    --markdown "$report" --json > assay-gate.json 2> assay-errors.txt || code=$?
  cat assay-errors.txt >&2
  outcome=$(python3 -c 'import json; print(json.loads(open("assay-gate.json").readlines()[-1]).get("outcome", "error"))' \
    2>/dev/null || echo error)
fi

if [ "$outcome" = error ]; then
  printf '### assay: the evaluation did not finish\n\n```text\n' >> "$report"
  tail -n 20 assay-errors.txt | tr -d '`' >> "$report"
  printf '```\n' >> "$report"
  [ "$code" != 0 ] || code=1
elif [ -n "$BASELINE" ] && [ -e "$BASELINE" ]; then
  { printf '\n<details><summary>What changed</summary>\n\n'
    assay compare "$BASELINE" "$FOLDER" --all-labels --format markdown
    printf '\n</details>\n'; } >> "$report" 2> assay-compare.txt || cat assay-compare.txt >&2
fi

cat "$report" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
printf 'outcome=%s\nreport=%s\n' "$outcome" "$report" >> "${GITHUB_OUTPUT:-/dev/null}"

if [ "$COMMENT" = true ] && [ -n "$PULL_REQUEST" ]; then
  head -c "$most" "$report" > assay-comment.md
  comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments"
  id=$(gh api "$comments" --paginate --jq ".[] | select(.body | startswith(\"$mark\")) | .id" 2>/dev/null | head -n 1)
  if [ -n "$id" ]; then
    gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field body=@assay-comment.md > /dev/null
  else
    gh api --method POST "$comments" --field body=@assay-comment.md > /dev/null
  fi || echo "::warning::the report could not be commented: does the job have permissions: pull-requests: write?"
fi
exit "$code"
