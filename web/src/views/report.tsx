// The first page of a report: all that matters, from top to bottom, so that it can be read and printed as it is.
import { Line, oneLine } from "../line";
import type { Report as Page, SampleRow } from "../pages";
import { href } from "../router";
import { ChartOf, Notes, Show, Table, count, usePage, type Column } from "../ui";
import { Verdicts } from "./compare";
import { Ranked } from "./leaderboard";
import { measureName, measuresOf } from "./measures";
import { Mark, wordOf } from "./samples";

export function Report() {
  return <Show page={usePage("report")}>{(report) => <Overview report={report} />}</Show>;
}

function Overview({ report }: { report: Page }) {
  return (
    <article class="report">
      <h1>
        <bdi>{oneLine(report.title)}</bdi>
      </h1>
      <p class="quiet">
        Rows of {report.made.replace("T", " ").replace("+00:00", " UTC")}; {count(report.rows)} of {count(report.all)} samples are in this file.
      </p>
      <Numbers />
      <Comparisons report={report} />
      <Failures report={report} />
      <h2>How to reproduce it</h2>
      <pre>{report.reproduce.join("\n")}</pre>
      {report.config.map(({ experiment, yaml }) => (
        <details key={experiment}>
          <summary>
            Config of <bdi>{oneLine(experiment)}</bdi>
          </summary>
          <pre>{yaml}</pre>
        </details>
      ))}
    </article>
  );
}

function Numbers() {
  const page = usePage("leaderboard");
  return (
    <Show page={page}>
      {(board) => (
        <>
          {measuresOf(board.rows).map((measure) => (
            <section key={measureName(measure)} aria-label={measureName(measure)}>
              <Ranked board={board} rows={board.rows} facet={[]} measure={measure} />
              <div class="pictures">
                <ChartOf query={{ ...measure, name: "intervals" }} />
                <ChartOf query={{ ...measure, name: "scatter" }} />
              </div>
            </section>
          ))}
          <Notes notes={board.notes} />
        </>
      )}
    </Show>
  );
}

function Comparisons({ report }: { report: Page }) {
  if (!report.comparisons.length) return null;
  return (
    <>
      <h2>Differences</h2>
      {report.comparisons.map(({ a, b }) => (
        <Pair key={`${a} ${b}`} a={a} b={b} />
      ))}
    </>
  );
}

function Pair({ a, b }: { a: string; b: string }) {
  const page = usePage("compare", { a, b });
  return (
    <>
      <h3>
        <a href={href("compare", { a, b })}>
          a = <bdi>{oneLine(a)}</bdi>, b = <bdi>{oneLine(b)}</bdi>
        </a>
      </h3>
      <Show page={page}>{(value) => (value.comparison ? <Verdicts comparison={value.comparison} /> : <Notes notes={value.notes} />)}</Show>
    </>
  );
}

const SHOWN = 20;
const COLUMNS: Column<SampleRow>[] = [
  { name: "item", text: (row) => row.item, cell: (row) => <a href={href("sample", { item: row.item, experiment: [row.experiment], task: row.task, sample: row.sample })}>{oneLine(row.item, 40)}</a> },
  { name: "task", text: (row) => row.task },
  { name: "verdict", text: wordOf, cell: (row) => <Mark outcome={row.verdict || row.outcome} passed={row.passed} /> },
  { name: "question", text: (row) => row.question, cell: (row) => <Line text={row.question} longest={120} /> },
  { name: "answer", text: (row) => row.answer, cell: (row) => <Line text={row.answer} longest={120} /> },
];

function Failures({ report }: { report: Page }) {
  const page = usePage("samples", { limit: SHOWN });
  return (
    <>
      <h2>Samples</h2>
      <p>
        Failures come first. <a href={href("samples")}>All {count(report.rows)} samples of this file</a>, <a href={href("matrix")}>the hardest items</a>.
      </p>
      <Show page={page}>{({ rows }) => <Table caption={`the first ${count(rows.length)}`} name="samples" columns={COLUMNS} rows={rows} />}</Show>
    </>
  );
}
