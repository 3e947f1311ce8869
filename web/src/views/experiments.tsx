// The first page: the experiments below the roots.
import { href } from "../router";
import { Show, Table, count, usePage, type Column } from "../ui";
import type { Experiment } from "../pages";

const COLUMNS: Column<Experiment>[] = [
  { name: "experiment", text: (each) => each.id, cell: (each) => <a href={href("leaderboard", { experiment: [each.id] })}>{each.id}</a> },
  { name: "state", text: (each) => each.state, cell: (each) => <span class={`state ${each.state}`}>{each.state}</span> },
  { name: "items", text: (each) => count(each.items), number: true },
  { name: "responses", text: (each) => count(each.responses), number: true },
  { name: "errors", text: (each) => count(each.errors), number: true },
];

export function Experiments() {
  const page = usePage("experiments");
  return <Show page={page}>{(value) => <Table caption={value.roots.join(", ")} columns={COLUMNS} rows={value.experiments} />}</Show>;
}
