// Every sample: filters, a list of any length, and the way to one of them.
import type { JSX } from "preact";
import { Filters, Totals, listQuery } from "../filters";
import { Rows, useList } from "../list";
import type { Outcome, SampleRow } from "../pages";
import { go, href, route } from "../router";
import { queryText } from "../source";
import { oneLine } from "../line";
import { count, number } from "../ui";

const SORTS = { "": "order of the rows", score: "score", disagreement: "disagreement", length: "length", latency: "latency", item: "item" };
const COLUMNS = ["verdict", "model, prompt", "item", "question", "answer", "score", "seconds", "length"];

export function Samples(): JSX.Element {
  const query = listQuery(route.value.query);
  const { list, head } = useList("samples", query);
  const from = queryText(query);
  const address = (row: SampleRow, at: number) => ({ experiment: row.experiment, item: row.item, task: row.task, sample: row.sample, label: head?.label, from: from || "sort=", at: String(at) });
  return (
    <>
      <Filters choices={head} sorts={SORTS} error={list.error} />
      <Totals total={head?.total} all={head?.all} what="samples" indexed={head?.indexed} error={list.error} again={() => list.again()} />
      {head && (
        <Rows
          key={from}
          name="samples"
          class="samples"
          list={list}
          total={list.error ? 0 : head.total}
          height={32}
          columns={COLUMNS.map((name) => (
            <div role="columnheader" class={CLASSES[name]}>
              {name}
            </div>
          ))}
          cells={(row, index) => <Cells row={row} address={href("sample", address(row, index))} />}
          open={(row, index) => go("sample", address(row, index))}
        />
      )}
    </>
  );
}

const CLASSES: Record<string, string> = { question: "wide", score: "number", seconds: "number wide", length: "number wide" };

function Cells({ row, address }: { row: SampleRow; address: string }): JSX.Element {
  return (
    <>
      <div role="cell">
        <Mark outcome={row.verdict || row.outcome} passed={row.passed} />
      </div>
      <div role="cell" title={oneLine(row.task)}>
        {oneLine(row.task || row.model, 80)}
      </div>
      <div role="cell">
        <a href={address} tabIndex={-1}>
          {oneLine(row.item, 80)}
        </a>
        {row.sample > 0 && <span class="quiet"> #{row.sample}</span>}
      </div>
      <div role="cell" class="wide" title={oneLine(row.question, 300)}>
        {oneLine(row.question, 300)}
      </div>
      <div role="cell" title={oneLine(row.answer, 300)}>
        {oneLine(row.answer, 300)}
      </div>
      <div role="cell" class="number">
        {number(row.score, 2)}
      </div>
      <div role="cell" class="number wide">
        {row.latency.toPrecision(3)}
      </div>
      <div role="cell" class="number wide">
        {count(row.length)}
      </div>
    </>
  );
}

const LETTERS: Record<string, string> = { passed: "P", failed: "F", scored: "S", unparsed: "U", refused: "R", errored: "E", skipped: "–", ok: "·", "no verdict": "?" };

// What became of a sample, in a word and a letter: colour is never alone.
export function Mark({ outcome, passed }: { outcome: Outcome; passed: boolean | null }): JSX.Element {
  const word = passed !== null && (outcome === "scored" || outcome === "ok") ? (passed ? "passed" : "failed") : outcome || "no verdict";
  return (
    <span class={`mark ${word.replace(" ", "-")}`}>
      <b aria-hidden="true">{LETTERS[word] ?? "?"}</b> {word}
    </span>
  );
}
