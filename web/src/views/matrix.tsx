// Items × tasks: each cell is the mean score of one task's samples of one item, the hardest items first.
import type { JSX } from "preact";
import { SORTS } from "../declared";
import { Filters, Totals, listQuery } from "../filters";
import { CopyRows, Rows, useList } from "../list";
import type { Matrix as Page, MatrixCell, MatrixRow } from "../pages";
import { href, route } from "../router";
import { queryText } from "../source";
import { TaskName, oneLine } from "../line";
import { count, number, usePage, type Column } from "../ui";

const ORDERS = [{ value: "", text: "rate, hardest first" }, ...SORTS.filter(({ value }) => value !== "score"), { value: "order", text: "order of the rows" }];
const STEPS = 10; // of the ramp

export function Matrix(): JSX.Element {
  const query = listQuery(route.value.query);
  const { list, head } = useList("matrix", { sort: "score", ...query });
  const { value: choices } = usePage("samples", { experiment: query.experiment, label: query.label, limit: 1 }); // facets and tags
  const from = queryText(query);
  const shared = href("sample", { label: head?.label, from: from || "sort=", list: "matrix" });
  const columns = head?.columns.map((each) => queryText({ ...each })) ?? [];
  const address = (row: MatrixRow, at: number, column: number): string => `${shared}&item=${encodeURIComponent(row.item)}&at=${at}&${columns[column] ?? ""}`;
  const hardest = (row: MatrixRow): number => {
    const values = row.cells.map((cell) => cell?.value ?? (cell ? 2 : 3));
    return values.indexOf(Math.min(...values));
  };
  return (
    <>
      <Filters choices={choices} sorts={ORDERS} error={list.error} />
      <Totals total={head?.total} what="items" indexed={head?.indexed} error={list.error} again={() => list.again()}>
        <Legend />
        <CopyRows name="matrix" query={{ sort: "score", ...query }} columns={copied} />
      </Totals>
      {head && (
        <Rows
          key={from}
          name="items and tasks"
          class="matrix"
          style={{ "--columns": head.columns.length }}
          list={list}
          total={list.error ? 0 : head.total}
          height={28}
          columns={[
            ...["item", "question", "rate"].map((name) => (
              <div role="columnheader" class={name === "rate" ? "number" : name === "question" ? "wide" : ""}>
                {name}
              </div>
            )),
            ...head.columns.map(({ experiment, task }) => (
              <div role="columnheader" class="task" title={oneLine(`${experiment}: ${task}`, 200)}>
                <TaskName text={task} />
              </div>
            )),
          ]}
          cells={(row, index) => <Cells row={row} page={head} address={(column) => address(row, index, column)} />}
          open={(row, index) => void (location.hash = address(row, index, hardest(row)))}
        />
      )}
    </>
  );
}

function Cells({ row, page, address }: { row: MatrixRow; page: Page; address: (column: number) => string }): JSX.Element {
  return (
    <>
      <div role="rowheader" title={oneLine(row.item)}>
        {oneLine(row.item, 80)}
      </div>
      <div role="cell" class="wide" title={oneLine(row.question, 300)}>
        {oneLine(row.question, 300)}
      </div>
      <div role="cell" class="number" title={`disagreement ${number(row.disagreement, 2)}`}>
        {number(row.rate, 2)}
      </div>
      {row.cells.map((cell, column) => (
        <div role="cell" class="value">
          {cell ? <Cell cell={cell} task={page.columns[column]?.task ?? ""} address={address(column)} /> : "·"}
        </div>
      ))}
    </>
  );
}

function Cell({ cell, task, address }: { cell: MatrixCell; task: string; address: string }): JSX.Element {
  const text = words(cell);
  return (
    <a tabIndex={-1} class={tone(cell)} data-failed={cell.failed ? (cell.failed > 9 ? "!" : cell.failed) : undefined} href={address} title={`${oneLine(task, 80)}: ${text}`} aria-label={text}>
      {cell.value === null ? "–" : number(cell.value, 2)}
    </a>
  );
}

const tone = (cell: MatrixCell): string =>
  `${cell.value === null ? "none" : `step${Math.round(Math.max(0, Math.min(1, cell.value)) * STEPS)}`}${cell.failed ? " failed" : ""}`;

const words = (cell: MatrixCell): string =>
  [
    cell.value === null ? "no verdict" : number(cell.value, 2),
    `${count(cell.samples)} ${cell.samples === 1 ? "sample" : "samples"}`,
    ...(cell.failed ? [`${count(cell.failed)} without a verdict`] : []),
  ].join(", ");

const copied = (page: Page): Column<MatrixRow>[] => [
  { name: "item", text: (row) => row.item },
  { name: "question", text: (row) => row.question },
  { name: "rate", text: (row) => number(row.rate), number: true },
  ...page.columns.map(({ experiment, task }, index) => ({
    name: oneLine(`${experiment}: ${task}`, 200),
    text: (row: MatrixRow) => number(row.cells[index]?.value),
    number: true,
  })),
];

function Legend(): JSX.Element {
  const steps = [0, 0.2, 0.4, 0.6, 0.8, 1];
  return (
    <p class="ramp quiet">
      {steps.map((value) => (
        <span class={`step${value * STEPS}`}>{value}</span>
      ))}
      <span class="failed">hatched</span> some samples have no verdict (their number is beside it)
    </p>
  );
}
