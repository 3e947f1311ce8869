// The pages samples, matrix and flips of a report, made of the rows it carries.
import { DECLARED } from "./declared";
import type { CarriedRow, Flips, Matrix, MatrixCell, MatrixRow, Query, Report, Samples } from "./pages";
import { PageError, queryText } from "./source";
import { View, chosen, each, key, list, sorted, sortedBy, text, whereTests } from "./view";

const MOST_COLUMNS = 200;
const MOST_KEPT = 8; // lists that one pages through, and what they are made of

export class Carried {
  private kept = new Map<string, Promise<unknown>>();

  // `share`: how much of the report's rows these are, null: all.
  constructor(
    private rows: CarriedRow[],
    private report: Report,
    private share: number | null,
  ) {}

  async samples(query: Query): Promise<Samples> {
    const view = await this.view(query);
    const rows = await this.keep("samples", query, async () => sorted(view, await chosen(view, query), query));
    const { offset, limit } = part(query);
    const shown = rows.slice(offset, offset + limit).map((row) => view.sample(row));
    return { total: rows.length, all: list(query.experiment).length ? view.rows.length : this.report.all, label: view.label, labels: view.labels, facets: view.facets, tags: view.tags, indexed: this.share, left_out: 0, rows: shown };
  }

  async matrix(query: Query): Promise<Matrix> {
    const view = await this.view(query);
    const { items, columns } = await this.keep("matrix", query, () => matrixOf(view, query));
    const { offset, limit } = part(query);
    const shown = items.slice(offset, offset + limit).map((rows) => matrixRow(view, rows, columns));
    return { total: items.length, label: view.label, labels: view.labels, indexed: this.share, columns: columns.map((each) => view.columns.get(each)!), rows: shown };
  }

  async flips(query: Query): Promise<Flips> {
    const view = await this.view({ label: query.label });
    const flips = await this.keep("flips", { ...query, direction: "" }, () => flipsOf(view, text(query.a), text(query.b)));
    const direction = text(query.direction);
    const wanted = direction ? flips.filter((each) => each.direction === direction) : flips;
    const gained = flips.filter((each) => each.direction === "gained").length;
    const { offset, limit } = part(query);
    return { total: wanted.length, gained, lost: flips.length - gained, rows: wanted.slice(offset, offset + limit) };
  }

  private view(query: Query): Promise<View> {
    const { experiment, label } = query;
    const order = this.report.config.map((each) => each.experiment);
    return this.keep("view", { experiment, label }, () => View.of(this.rows, order, list(experiment), text(label)));
  }

  private keep<Value>(what: string, query: Query, make: () => Promise<Value>): Promise<Value> {
    const { offset: _, limit: __, ...rest } = query;
    const name = `${what}?${queryText(rest)}`;
    let value = this.kept.get(name) as Promise<Value> | undefined;
    if (!value) {
      value = make();
      this.kept.set(name, value);
      for (const old of [...this.kept.keys()].slice(0, -MOST_KEPT)) this.kept.delete(old);
    }
    return value;
  }
}

const part = (query: Query): { offset: number; limit: number } => ({ offset: Number(text(query.offset)) || 0, limit: Number(text(query.limit) || 50) });

// ---- items against tasks

async function matrixOf(view: View, query: Query): Promise<{ items: number[][]; columns: string[] }> {
  const rows = await chosen(view, query);
  const [byItem, columns] = [new Map<string, number[]>(), new Set<string>()];
  await each(rows.length, (index) => {
    const row = view.rows[rows[index]!]!;
    const own = byItem.get(row.item);
    if (own) own.push(rows[index]!);
    else byItem.set(row.item, [rows[index]!]);
    columns.add(key(row));
  });
  const items = [...byItem.values()];
  const sort = text(query.sort) || "order";
  const value = (own: number[]): number | string | null => {
    if (sort === "order") return own[0]!;
    const values = own.map((row) => view.value(view.rows[row]!, sort) as number | string | null);
    return DECLARED.sorts[sort]?.type === "TEXT" ? values[0]! : mean(values as (number | null)[]);
  };
  const values: (number | string | null)[] = [];
  await each(items.length, (index) => void values.push(value(items[index]!)));
  return { items: await sortedBy(items, values, text(query.descending) === "1"), columns: [...columns].sort().slice(0, MOST_COLUMNS) };
}

function mean(values: (number | null)[]): number | null {
  const there = values.filter((value) => value !== null);
  return there.length ? there.reduce((sum, value) => sum + value, 0) / there.length : null;
}

function matrixRow(view: View, rows: number[], columns: string[]): MatrixRow {
  const { item, question } = view.rows[rows[0]!]!;
  const scores = (own: number[]): (number | null)[] => own.map((row) => view.verdict(view.rows[row]!).score);
  const cell = (column: string): MatrixCell | null => {
    const own = scores(rows.filter((row) => key(view.rows[row]!) === column));
    return own.length ? { value: mean(own), samples: own.length, failed: own.filter((score) => score === null).length } : null;
  };
  return { item, question, rate: mean(scores(rows)), disagreement: view.items.get(item)!.disagreement, cells: columns.map(cell) };
}

// ---- what changed between two sides

type Side = Map<string, { row: CarriedRow; value: number }[]>;

async function flipsOf(view: View, a: string, b: string): Promise<Flips["rows"]> {
  const [before, after] = [await sideOf(view, a), await sideOf(view, b)];
  const flips: Flips["rows"] = [];
  for (const [item, own] of before) {
    const other = after.get(item);
    if (!other) continue;
    const [first, second] = [mean(own.map((each) => each.value))!, mean(other.map((each) => each.value))!];
    if (Math.abs(second - first) < 1e-12) continue;
    const rose = second > first;
    const shown = (side: typeof own, value: number, highest: boolean) => {
      const { row } = side.reduce((best, each) => ((highest ? each.value > best.value : each.value < best.value) ? each : best));
      return { value, answer: row.answer, experiment: row.experiment };
    };
    flips.push({ item, question: own[0]!.row.question, direction: rose ? "gained" : "lost", a: shown(own, first, !rose), b: shown(other, second, rose) });
  }
  const size = (flip: (typeof flips)[number]): number => Math.abs(flip.b.value - flip.a.value);
  return flips.sort((x, y) => size(y) - size(x) || Number(x.direction === "gained") - Number(y.direction === "gained") || (x.item < y.item ? -1 : 1));
}

// The samples of one side by item. As the metrics count by default, what cannot be read or was refused is wrong.
async function sideOf(view: View, name: string): Promise<Side> {
  const [id, ...conditions] = name.split("::");
  const tests = whereTests(view, conditions);
  const side: Side = new Map();
  await each(view.rows.length, (index) => {
    const row = view.rows[index]!;
    const verdict = view.verdict(row);
    if (row.experiment !== id || !tests.every((test) => test(row))) return;
    const value = verdict.score ?? (verdict.verdict === "unparsed" || verdict.verdict === "refused" ? 0 : null);
    if (value !== null) side.set(row.item, [...(side.get(row.item) ?? []), { row, value }]);
  });
  if (!side.size) throw new PageError(`the report carries no scored sample of '${name}'`, "open its folder with `assay view`");
  return side;
}
