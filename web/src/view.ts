// The rows that a report carries, under a label: chosen and sorted by the rules of src/assay/viewer/query.py.
import { DECLARED } from "./declared";
import type { CarriedRow, Condition, Outcome, Query, SampleRow } from "./pages";
import { PageError } from "./source";

interface Verdict {
  verdict: Outcome;
  passed: boolean | null;
  score: number | null;
}

interface Item {
  first: number; // row
  tasks: Map<string, { sum: number; count: number; won: boolean }>;
  disagreement: number;
  disagree: boolean;
  failed_by_all: boolean;
  passed_by_one: boolean;
}

type Value = string | number | boolean | string[] | null;

const NOT_JUDGED: Verdict = { verdict: "", passed: null, score: null };
const MOST_VALUES = 100; // of a facet
const LONGEST = 100_000; // characters that a pattern is tried on
const AT_ONCE_MS = 25;
const RUN = 20_000; // rows sorted at once

export const pause = (): Promise<void> => new Promise((done) => setTimeout(done, 0));

// Goes through many without keeping the page from answering.
export async function each(count: number, step: (index: number) => void): Promise<void> {
  let since = performance.now();
  for (let index = 0; index < count; index++) {
    step(index);
    if (index % 64 === 0 && performance.now() - since > AT_ONCE_MS) {
      await pause();
      since = performance.now();
    }
  }
}

export const list = (value: Query[string]): string[] => (Array.isArray(value) ? value : value === undefined || value === "" ? [] : [String(value)]);
export const text = (value: Query[string]): string => list(value)[0] ?? "";
export const key = (row: { experiment: string; task: string }): string => JSON.stringify([row.experiment, row.task]);

export class View {
  items = new Map<string, Item>();
  columns = new Map<string, { experiment: string; task: string }>();
  facets: Record<string, string[]> = {};
  tags: string[] = [];
  label = "";

  private constructor(
    readonly rows: CarriedRow[],
    readonly labels: string[],
  ) {}

  // `order`: the experiments as they are listed, whose labels come first in this order.
  static async of(every: CarriedRow[], order: string[], experiments: string[], label: string): Promise<View> {
    const [rows, byExperiment, tags] = [[] as CarriedRow[], new Map<string, Set<string>>(), new Set<string>()];
    const facets = new Map<string, Set<string>>([["task", new Set()], ["model_name", new Set()]]);
    await each(every.length, (index) => {
      const row = every[index]!;
      if (experiments.length && !experiments.includes(row.experiment)) return;
      rows.push(row);
      const own = byExperiment.get(row.experiment) ?? new Set();
      byExperiment.set(row.experiment, own);
      for (const name of Object.keys(row.labels)) own.add(name);
      for (const tag of row.tags) tags.add(tag);
      for (const [name, value] of Object.entries({ task: row.task, model_name: row.model, ...row.facets })) facets.set(name, (facets.get(name) ?? new Set()).add(value));
    });
    const named = [...(experiments.length ? experiments : order), ...byExperiment.keys()];
    const labels = new Set(named.flatMap((id) => [...(byExperiment.get(id) ?? [])]));
    if (label && !labels.has(label)) throw new PageError(`there is no label '${label}'`, `labels: ${[...labels].slice(0, 10).join(", ")}`);
    const view = new View(rows, [...labels]);
    view.label = label || (view.labels[0] ?? "");
    view.facets = Object.fromEntries([...facets].filter(([, values]) => values.size).map(([name, values]) => [name, [...values].sort().slice(0, MOST_VALUES)]));
    view.tags = [...tags].sort();
    await each(rows.length, (row) => view.add(row));
    for (const item of view.items.values()) {
      const means = [...item.tasks.values()].filter(({ count }) => count).map(({ sum, count }) => Math.round((sum / count) * 1e12) / 1e12);
      item.disagreement = means.length < 2 ? 0 : Math.min(1, Math.max(...means) - Math.min(...means));
      const won = [...item.tasks.values()].filter((cell) => cell.won).length;
      Object.assign(item, { disagree: item.disagreement > 0, failed_by_all: item.tasks.size > 0 && won === 0, passed_by_one: won === 1 });
    }
    return view;
  }

  private add(index: number): void {
    const row = this.rows[index]!;
    const { passed, score } = this.verdict(row);
    const task = key(row);
    this.columns.set(task, { experiment: row.experiment, task: row.task });
    let item = this.items.get(row.item);
    if (!item) this.items.set(row.item, (item = { first: index, tasks: new Map(), disagreement: 0, disagree: false, failed_by_all: false, passed_by_one: false }));
    if (score === null) return;
    const cell = item.tasks.get(task) ?? { sum: 0, count: 0, won: false };
    item.tasks.set(task, { sum: cell.sum + score, count: cell.count + 1, won: cell.won || passed === true });
  }

  verdict = (row: CarriedRow): Verdict => (Object.hasOwn(row.labels, this.label) ? row.labels[this.label]! : NOT_JUDGED);

  // Of a column, wherever it is: of the verdict, of the row or of its item. Empty is none.
  value(row: CarriedRow, column: string): Value {
    const places = [this.verdict(row), row, this.items.get(row.item)!] as unknown as Record<string, Value>[];
    const value = places.find((place) => Object.hasOwn(place, column))?.[column];
    return value === undefined || value === "" ? null : value;
  }

  sample(index: number): SampleRow {
    const { labels: _, facets: __, tags: ___, text: ____, ...row } = this.rows[index]!;
    return { ...row, ...this.verdict(this.rows[index]!), disagreement: this.items.get(row.item)!.disagreement };
  }
}

// ---- choosing and sorting

type Test = (row: CarriedRow) => boolean;

export async function chosen(view: View, query: Query): Promise<number[]> {
  const tests = testsOf(view, query);
  const rows: number[] = [];
  await each(view.rows.length, (index) => {
    const row = view.rows[index]!;
    if (tests.every((test) => test(row))) rows.push(index);
  });
  return rows;
}

function testsOf(view: View, query: Query): Test[] {
  const tests: Test[] = whereTests(view, list(query.where));
  for (const condition of DECLARED.conditions) {
    const asked = list(query[condition.name]);
    const holds = OPERATORS[condition.operator];
    if (asked.length && isAbout(condition, asked[0]!))
      tests.push((row) => {
        const value = view.value(row, condition.column) ?? view.value(row, condition.otherwise);
        return value !== null && holds(value, asked, condition.words);
      });
  }
  const search = text(query.search);
  if (search) tests.push(text(query.regex) ? patternTest(search) : plainTest(search));
  return tests;
}

// Several columns may share a parameter, each with words of its own.
const isAbout = ({ operator, words }: Condition, asked: string): boolean => operator !== "is" || words.includes(asked);

// What a value that is there must hold; what is missing holds nothing.
const OPERATORS: Record<Condition["operator"], (value: NonNullable<Value>, asked: string[], words: string[]) => boolean> = {
  in: (value, asked) => (Array.isArray(value) ? value : [String(value)]).some((each) => asked.includes(each)),
  ">=": (value, asked) => Number(value) >= Number(asked[0]),
  "<=": (value, asked) => Number(value) <= Number(asked[0]),
  is: (value, asked, words) => value === (words[0] === asked[0]),
};

export function whereTests(view: View, conditions: string[]): Test[] {
  const wanted = new Map<string, string[]>();
  for (const condition of conditions) {
    const at = condition.indexOf("=");
    if (at < 0) throw new PageError(`a filter is facet=value, got '${condition}'`, "correct the address");
    const name = condition.slice(0, at);
    wanted.set(name, [...(wanted.get(name) ?? []), condition.slice(at + 1)]);
  }
  return [...wanted].map(([asked, values]) => {
    const name = Object.hasOwn(view.facets, asked) ? asked : asked.replace(/^metadata\./, "");
    if (!Object.hasOwn(view.facets, name)) throw new PageError(`there is no facet '${asked}'`, `facets: ${Object.keys(view.facets).join(", ")}`);
    return (row) => values.includes(facetOf(row, name));
  });
}

const facetOf = (row: CarriedRow, name: string): string =>
  name === "task" ? row.task : name === "model_name" ? row.model : Object.hasOwn(row.facets, name) ? row.facets[name]! : "null";

const searched = (row: CarriedRow): string => `${row.item}\0${row.text}`;

function plainTest(search: string): Test {
  const wanted = search.toLowerCase();
  return (row) => searched(row).toLowerCase().includes(wanted);
}

// The forms in which Python's expressions differ most from the browser's are taken as well.
function patternTest(search: string): Test {
  const flags = /^\(\?([ims]+)\)/.exec(search)?.[1] ?? "";
  const source = search.replace(/^\(\?[ims]+\)/, "").replaceAll("(?P<", "(?<").replaceAll("\\A", "^").replaceAll("\\Z", "$");
  try {
    const pattern = new RegExp(source, flags);
    return (row) => pattern.test(searched(row).slice(0, LONGEST));
  } catch (error) {
    throw new PageError(`this is not a regular expression: ${(error as Error).message}`, "correct it, or search for plain text");
  }
}

// Stable; rows without the value come last.
export async function sorted(view: View, rows: number[], query: Query): Promise<number[]> {
  const [sort, descending] = [text(query.sort) || "order", text(query.descending) === "1"];
  if (sort === "order") return descending ? rows.reverse() : rows;
  return sortedBy(rows, rows.map((row) => view.value(view.rows[row]!, sort) as number | string | null), descending);
}

// Parts are sorted, then merged: no step takes long.
export async function sortedBy<Entry>(entries: Entry[], values: (number | string | null)[], descending: boolean): Promise<Entry[]> {
  const before = (a: number, b: number): number => {
    const [first, second] = [values[a] ?? null, values[b] ?? null];
    if (first === null || second === null) return first === second ? a - b : first === null ? 1 : -1;
    return first === second ? a - b : first < second !== descending ? -1 : 1;
  };
  const places = entries.map((_, index) => index);
  let runs: number[][] = [];
  for (let start = 0; start < places.length; start += RUN) {
    runs.push(places.slice(start, start + RUN).sort(before));
    await pause();
  }
  while (runs.length > 1) {
    const merged: number[][] = [];
    for (let pair = 0; pair < runs.length; pair += 2) merged.push(await merge(runs[pair]!, runs[pair + 1] ?? [], before));
    runs = merged;
  }
  return (runs[0] ?? []).map((place) => entries[place]!);
}

async function merge(a: number[], b: number[], before: (a: number, b: number) => number): Promise<number[]> {
  const merged: number[] = [];
  let [left, right] = [0, 0];
  await each(a.length + b.length, () => {
    const takesLeft = right >= b.length || (left < a.length && before(a[left]!, b[right]!) < 0);
    merged.push(takesLeft ? a[left++]! : b[right++]!);
  });
  return merged;
}
