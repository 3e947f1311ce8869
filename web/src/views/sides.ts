// What can be compared: experiments, and parts of them.
import type { Leaderboard } from "../pages";
import { chosen, route } from "../router";
import type { Option } from "../ui";
import { facetOf } from "./measures";

type Row = Leaderboard["rows"][number];

// Experiments, the parts of them that a facet makes, and the rows of the leaderboard.
export function sidesOf(board: Leaderboard): Option[] {
  const sides = new Map<string, Option>();
  const add = (row: Row, facets: string[], group: string) => {
    const value = [row.experiment, ...facets.map((facet) => `${facet}=${facetOf(row, facet)}`)].join("::");
    const text = facets.length ? `${facets.map((facet) => facetOf(row, facet)).join(", ")} (${row.experiment})` : value;
    if (!facets.some((facet) => facetOf(row, facet).includes("::"))) sides.set(value, { value, text, group });
  };
  for (const row of board.rows) add(row, [], EXPERIMENTS);
  for (const facet of board.facets) for (const row of board.rows) if (Object.hasOwn(row.facets, facet)) add(row, [facet], `by ${facet}`);
  for (const row of board.rows) if (Object.keys(row.facets).length > 1) add(row, Object.keys(row.facets), "by all facets");
  return [...sides.values()];
}

const EXPERIMENTS = "experiments";

// What the address names; else the chosen experiments, else two that measure the same, else two parts of the first.
export function pairOf(board: Leaderboard, sides: Option[]): [string, string] {
  const { query } = route.value;
  const ids = chosen();
  const [a, b] = ids.length > 1 ? ids : ids.length ? firstParts(ids, sides) : (alike(board.rows) ?? firstParts(board.rows.map((row) => row.experiment), sides));
  return [query.get("a") ?? a ?? "", query.get("b") ?? b ?? ""];
}

const firstParts = (ids: string[], sides: Option[]): string[] => [...new Set(ids)].flatMap((id) => partsOf(sides, id).slice(0, 1)).flat().map(({ value }) => value);

// The first two parts that each facet makes of an experiment.
export function partsOf(sides: Option[], id: string): [Option, Option][] {
  const parts = sides.filter(({ value, group }) => group !== EXPERIMENTS && value.startsWith(`${id}::`));
  return [...new Set(parts.map((each) => each.group))].flatMap((name) => {
    const [a, b] = parts.filter(({ group }) => group === name);
    return a && b ? [[a, b]] : [];
  });
}

function alike(rows: Row[]): [string, string] | undefined {
  const first = new Map<string, string>();
  for (const { experiment, metric, label, items } of rows) {
    const key = JSON.stringify([metric, label, items]);
    const other = first.get(key);
    if (other !== undefined && other !== experiment) return [other, experiment];
    first.set(key, experiment);
  }
  return undefined;
}
