// The first page of a report: all that matters, from top to bottom, so that it can be read and printed as it is.
import { Line, oneLine } from "../line";
import type { Matrix, MatrixRow, Report as Page } from "../pages";
import { href } from "../router";
import { ChartOf, Notes, Show, Table, count, number, usePage, type Column } from "../ui";
import { Verdicts } from "./compare";
import { Ranked } from "./leaderboard";
import { measureName, measuresOf } from "./measures";

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
      <HardestItems report={report} />
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

const SHOWN = 15;
const MOST_TASKS = 6; // more do not fit a page

function HardestItems({ report }: { report: Page }) {
  const page = usePage("matrix", { sort: "score", limit: SHOWN });
  return (
    <>
      <h2>The hardest items</h2>
      <p>
        With all their answers: <a href={href("matrix")}>the matrix of all items</a>, <a href={href("samples", { passed: "failed" })}>answers that failed</a>, <a href={href("samples")}>all {count(report.rows)} samples of this file</a>.
      </p>
      <Show page={page}>{(matrix) => <Table caption="mean score of each task's samples" name="hardest items" columns={columnsOf(matrix)} rows={matrix.rows} />}</Show>
    </>
  );
}

function columnsOf(matrix: Matrix): Column<MatrixRow>[] {
  const several = new Set(matrix.columns.map((each) => each.experiment)).size > 1;
  return [
    { name: "item", text: (row) => row.item, cell: (row) => <a href={href("sample", { item: row.item })}>{oneLine(row.item, 40)}</a> },
    { name: "question", text: (row) => row.question, cell: (row) => <Line text={row.question} longest={120} /> },
    { name: "all", text: (row) => number(row.rate, 2), number: true },
    ...matrix.columns.slice(0, MOST_TASKS).map(({ experiment, task }, at) => ({ name: oneLine(several ? `${experiment}: ${task}` : task, 40), text: (row: MatrixRow) => number(row.cells[at]?.value, 2), number: true })),
  ];
}
