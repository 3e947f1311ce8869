// Every sample: filters, a list of any length, and the way to one of them.
import type { JSX } from "preact";
import { DECLARED, SORTS } from "../declared";
import { Filters, Totals, listQuery } from "../filters";
import { CopyRows, Rows, useList } from "../list";
import { listed } from "../live";
import type { Outcome, SampleRow } from "../pages";
import { chosen, go, href, route } from "../router";
import { queryText } from "../source";
import { TaskName, oneLine } from "../line";
import { count, number, seconds, type Column } from "../ui";

const ORDERS = [{ value: "", text: "order of the rows" }, ...SORTS];
const COLUMNS = ["verdict", "model, prompt", "item", "question", "answer", "score", "latency", "length"];
const OTHERS = DECLARED.cells.filter((name) => !["passed", ...COLUMNS].includes(name)); // cells without a form of their own

const MOST_OF_TASK = 36; // characters that its column is wide

const COPIED: Column<SampleRow>[] = [
  { name: "experiment", text: (row) => row.experiment },
  { name: "task", text: (row) => row.task },
  { name: "item", text: (row) => row.item },
  { name: "sample", text: (row) => String(row.sample), number: true },
  { name: "verdict", text: wordOf },
  { name: "score", text: (row) => number(row.score), number: true },
  { name: "seconds", text: (row) => String(row.latency), number: true },
  { name: "length", text: (row) => String(row.length), number: true },
  { name: "question", text: (row) => row.question },
  { name: "answer", text: (row) => row.answer },
  ...OTHERS.map((name) => ({ name, text: (row: SampleRow) => otherText(row, name) })),
];

function otherText(row: SampleRow, name: string): string {
  const value = (row as unknown as Record<string, unknown>)[name];
  return typeof value === "number" ? number(value) : String(value ?? "–");
}

export function Samples(): JSX.Element {
  const query = listQuery(route.value.query);
  const { list, head } = useList("samples", query);
  const several = chosen().length !== 1 && (listed.value.value?.experiments.length ?? 0) > 1;
  const longest = Math.min(MOST_OF_TASK, Math.max(12, ...(head?.facets.task ?? []).map((task) => task.length)) + (several ? 12 : 0));
  const from = queryText(query);
  const address = (row: SampleRow, at: number) => ({ experiment: row.experiment, item: row.item, task: row.task, sample: row.sample, label: head?.label, from: from || "sort=", at: String(at) });
  return (
    <>
      <Filters choices={head} sorts={ORDERS} error={list.error} />
      <Totals total={head?.total} all={head?.all} what="samples" indexed={head?.indexed} leftOut={head?.left_out} error={list.error} again={() => list.again()}>
        <CopyRows name="samples" query={query} columns={() => COPIED} />
      </Totals>
      {head && (
        <Rows
          key={from}
          style={{ "--task": `${longest}ch`, "--others": OTHERS.length ? `repeat(${OTHERS.length}, minmax(3rem, 8rem))` : "" }}
          name="samples"
          class="samples"
          list={list}
          total={list.error ? 0 : head.total}
          height={32}
          columns={[...COLUMNS, ...OTHERS].map((name) => (
            <div role="columnheader" class={classOf(name)}>
              {name}
            </div>
          ))}
          cells={(row, index) => <Cells row={row} several={several} address={href("sample", address(row, index))} />}
          open={(row, index) => go("sample", address(row, index))}
        />
      )}
    </>
  );
}

const classOf = (name: string): string => CLASSES[name] ?? (OTHERS.includes(name) ? "wide" : "");
const CLASSES: Record<string, string> = { question: "wide", score: "number", latency: "number wide", length: "number wide" };

function Cells({ row, address, several }: { row: SampleRow; address: string; several: boolean }): JSX.Element {
  const [question, answer] = [oneLine(row.question, 300), oneLine(row.answer, 300)];
  return (
    <>
      <div role="cell">
        <Mark outcome={row.verdict || row.outcome} passed={row.passed} />
      </div>
      <div role="cell" title={oneLine(`${row.experiment}: ${row.task}`, 200)}>
        <TaskName text={`${several ? `${row.experiment}: ` : ""}${row.task || row.model}`} />
      </div>
      <div role="cell" class="item">
        <a href={address} tabIndex={-1}>
          {oneLine(row.item, 80)}
        </a>
        {row.sample > 0 && <span class="quiet">#{row.sample}</span>}
      </div>
      <div role="cell" class="wide" title={question}>
        {question}
      </div>
      <div role="cell" title={answer}>
        {answer}
      </div>
      <div role="cell" class="number">
        {number(row.score, 2)}
      </div>
      <div role="cell" class="number wide">
        {seconds(row.latency)}
      </div>
      <div role="cell" class="number wide">
        {count(row.length)}
      </div>
      {OTHERS.map((name) => (
        <div role="cell" class="wide">
          {oneLine(otherText(row, name), 80)}
        </div>
      ))}
    </>
  );
}

const LETTERS: Record<string, string> = { passed: "P", failed: "F", scored: "S", unparsed: "U", refused: "R", errored: "E", skipped: "–", ok: "·", "no verdict": "?" };

export function wordOf({ outcome, verdict = "", passed }: { outcome: Outcome; verdict?: Outcome; passed: boolean | null }): string {
  const word = verdict || outcome;
  return passed !== null && (word === "scored" || word === "ok") ? (passed ? "passed" : "failed") : word || "no verdict";
}

// What became of a sample, in a word and a letter: colour is never alone.
export function Mark({ outcome, passed }: { outcome: Outcome; passed: boolean | null }): JSX.Element {
  const word = String(wordOf({ outcome, passed }));
  const letter = Object.hasOwn(LETTERS, word) ? LETTERS[word] : undefined;
  return (
    <span class={`mark ${letter ? word.replace(" ", "-") : ""}`}>
      <b aria-hidden="true">{letter ?? "?"}</b> {oneLine(word, 30)}
    </span>
  );
}
