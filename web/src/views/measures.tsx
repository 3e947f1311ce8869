// What is measured, and by which facets: choices that the leaderboard and the plots share.
import { oneLine } from "../line";
import type { Leaderboard as Page, LeaderRow } from "../pages";
import { change, href, queryOf, route } from "../router";
import { Choice, useSource } from "../ui";

export interface Measure {
  metric: string;
  label: string;
}

export function measuresOf(rows: Measure[]): Measure[] {
  const measures = new Map<string, Measure>();
  for (const { metric, label } of rows) measures.set(JSON.stringify([metric, label]), { metric, label });
  return [...measures.values()];
}

export const measureName = ({ metric, label }: Measure): string => (label ? `${metric} · ${label}` : metric);

// The metric and label of the address; by default the first there is.
export function currentMeasure(measures: Measure[]): Measure | undefined {
  const { query } = route.value;
  const [metric, label] = [query.get("metric"), query.get("label")];
  return measures.find((each) => (metric === null || each.metric === metric) && (label === null || each.label === label)) ?? measures[0];
}

const MOST_LINKS = 24; // more are a list

// A link for each metric and label.
export function Measures({ measures, current, all }: { measures: Measure[]; current?: Measure; all: boolean }) {
  if (measures.length < 2) return null;
  if (measures.length > MOST_LINKS) return <MeasureChoice measures={measures} current={current} />;
  const query = { ...queryOf(route.value.query), all: undefined };
  const link = (name: string, changes: Record<string, string | undefined>, is: boolean) => (
    <a key={name} href={href(route.value.view, { ...query, ...changes })} aria-current={is ? "true" : undefined}>
      {oneLine(name)}
    </a>
  );
  return (
    <nav class="tabs" aria-label="metrics">
      {measures.map((each) => link(measureName(each), { ...each }, each === current))}
      {link("all", { metric: undefined, label: undefined, all: "1" }, all)}
    </nav>
  );
}

export function MeasureChoice({ measures, current }: { measures: Measure[]; current?: Measure }) {
  const options = measures.map((each, index) => ({ value: String(index), text: measureName(each) }));
  return <Choice name="metric" value={String(current ? measures.indexOf(current) : 0)} options={options} onChange={(index) => change({ ...measures[Number(index)]!, all: undefined })} />;
}

// Experiments may have facets of their own, which the rows of others lack.
export const facetsOf = (board: Page, rows: LeaderRow[]): string[] => board.facets.filter((facet) => rows.some((row) => Object.hasOwn(row.facets, facet)));
export const facetOf = (row: LeaderRow, facet: string): string => (Object.hasOwn(row.facets, facet) ? row.facets[facet]! : "");

interface Grid {
  options: string[];
  rows: string;
  columns: string;
}

// What the rows and columns of a heat map may be, and are; a report has those of the facets as they were computed.
export function useGrid(board: Page, rows: LeaderRow[]): Grid {
  const { query } = route.value;
  const several = new Set(rows.map((each) => each.experiment)).size > 1;
  const first = [...(several ? ["experiment"] : []), ...facetsOf(board, rows)];
  const options = [...new Set([...first, ...(useSource().live ? board.choices : [])])];
  return { options, rows: query.get("rows") ?? first[0] ?? "", columns: query.get("columns") ?? first[1] ?? "" };
}

export const GridChoice = ({ options, rows, columns }: Grid) => (
  <div class="controls">
    <Choice name="rows of the heat map" value={rows} options={options} onChange={(value) => change({ rows: value })} />
    <Choice name="columns of the heat map" value={columns} options={options} onChange={(value) => change({ columns: value })} />
  </div>
);
