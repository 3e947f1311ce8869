// What several views share: loading a page of data, tables that can be copied, pictures that can be saved.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren, JSX } from "preact";
import { version } from "./live";
import type { Chart, PageName, PageTypes, Query } from "./pages";
import { chosen } from "./router";
import { queryText, type PageError, type Source } from "./source";
import { Line, Prose, oneLine } from "./line";

let current: Source;
export const useSource = (): Source => current;
export const setSource = (source: Source): void => void (current = source);

export type Loaded<Value> = { value?: Value; error?: PageError; loading: boolean };

// The chosen experiments as a query. A report has its pages of all experiments only; views filter their rows.
export const scope = (): { experiment: string[] } => ({ experiment: current.live ? chosen() : [] });

// A page of data; the last one stays while the next is loading. A run under way makes it load again: a page that is only
// renewed does not look as if it were another.
export function usePage<Name extends PageName>(name: Name, query: Query = {}, again: unknown = version.value): Loaded<PageTypes[Name]> {
  const [{ of, ...loaded }, setLoaded] = useState<{ of?: string; value?: PageTypes[Name]; error?: PageError }>({});
  const key = `${name}?${queryText(query)}`;
  useEffect(() => {
    let wanted = true;
    current.page(name, query).then(
      (value) => wanted && setLoaded({ of: key, value }),
      (error) => wanted && setLoaded({ of: key, error }),
    );
    return () => void (wanted = false);
  }, [key, again]);
  return { ...loaded, loading: of !== key };
}

export function Show<Value>({ page, children }: { page: Loaded<Value>; children: (value: Value) => ComponentChildren }): JSX.Element {
  if (page.error)
    return (
      <div class="problem box" role="alert">
        <Problem error={page.error} />
      </div>
    );
  if (!page.value) return <p class="quiet" role="status">loading …</p>;
  return (
    <div class={page.loading ? "loading" : ""} aria-busy={page.loading}>
      {children(page.value)}
    </div>
  );
}

const Problem = ({ error }: { error: PageError }): JSX.Element => (
  <>
    <p>
      <Prose text={error.message} />
    </p>
    {error.fix && (
      <p class="quiet">
        <Prose text={error.fix} />
      </p>
    )}
  </>
);

export const Notes = ({ notes }: { notes: string[] }): JSX.Element | null =>
  notes.length ? (
    <ul class="notes" aria-label="notes">
      {notes.map((note) => (
        <li key={note}>
          <Prose text={note} />
        </li>
      ))}
    </ul>
  ) : null;

export interface Option {
  value: string;
  text?: string;
  group?: string;
}

const MOST_OPTIONS = 2000; // that one can choose; an address can name any

// A labelled choice of one value.
export function Choice(props: { name: string; value: string; options: (string | Option)[]; onChange: (value: string) => void }): JSX.Element {
  const options = props.options.slice(0, MOST_OPTIONS).map((each) => (typeof each === "string" ? { value: each } : each) as Option);
  if (!options.some((each) => each.value === props.value)) options.push({ value: props.value });
  const groups = [...new Set(options.map((each) => each.group ?? ""))];
  const shown = (group: string) =>
    options
      .filter((each) => (each.group ?? "") === group)
      .map((each) => (
        <option key={each.value} value={each.value} selected={each.value === props.value}>
          {oneLine(each.text ?? each.value)}
        </option>
      ));
  return (
    <label class="pick-one">
      <span>{props.name}</span>
      <select aria-label={props.name} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {groups.map((group) => (group ? <optgroup label={group}>{shown(group)}</optgroup> : shown(group)))}
      </select>
    </label>
  );
}

export interface Column<Row> {
  name: string;
  text: (row: Row) => string; // what is copied
  cell?: (row: Row) => ComponentChildren; // what is shown, by default the text
  number?: boolean;
  sort?: (row: Row) => number | string | null;
}

const ROWS = 500; // shown at once: more of them make a page slow

export function Table<Row>(props: { columns: Column<Row>[]; rows: Row[]; caption: ComponentChildren; name?: string; sorted?: string; onSort?: (name: string) => void }): JSX.Element {
  const { columns, rows, caption, sorted, onSort } = props;
  const [shown, setShown] = useState(ROWS);
  const [by, descending] = (sorted ?? "").startsWith("-") ? [sorted!.slice(1), true] : [sorted ?? "", false];
  const column = columns.find((each) => each.name === by && each.sort);
  const ordered = column ? [...rows].sort((a, b) => compare(column, a, b, descending)) : rows;
  const label = props.name ?? (typeof caption === "string" ? caption : "table");
  return (
    <figure class="table">
      <figcaption>
        <span>{caption}</span>
        <span class="actions">
          <Copy name="Markdown" text={() => markdown(columns, ordered)} />
          <Copy name="CSV" text={() => csv(columns, ordered)} />
        </span>
      </figcaption>
      <div class="scroll" tabIndex={0} role="group" aria-label={label}>
        <table>
          <thead>
            <tr>
              {columns.map((each) => (
                <th key={each.name} scope="col" class={each.number ? "number" : ""} aria-sort={each === column ? (descending ? "descending" : "ascending") : undefined}>
                  {onSort && each.sort ? <button onClick={() => onSort(each === column && !descending ? `-${each.name}` : each.name)}>{each.name}</button> : each.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ordered.slice(0, shown).map((row, index) => (
              <tr key={index}>
                {columns.map((each) => (
                  <td key={each.name} class={each.number ? "number" : ""}>{each.cell ? each.cell(row) : <Line text={each.text(row)} />}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {ordered.length > shown && (
        <button onClick={() => setShown(shown + 10 * ROWS)}>
          more of the {count(ordered.length - shown)} other rows
        </button>
      )}
    </figure>
  );
}

// Rows without a value are last either way.
function compare<Row>(column: Column<Row>, a: Row, b: Row, descending: boolean): number {
  const [first, second] = [column.sort?.(a) ?? null, column.sort?.(b) ?? null];
  if (first === null || second === null) return first === second ? 0 : first === null ? 1 : -1;
  return (first < second ? -1 : first > second ? 1 : 0) * (descending ? -1 : 1);
}

export const markdown = <Row,>(columns: Column<Row>[], rows: Row[]): string =>
  [columns.map((each) => each.name), columns.map((each) => (each.number ? "--:" : ":--")), ...rows.map((row) => columns.map((each) => markdownText(each.text(row))))]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");

const markdownText = (text: string): string => text.replace(/[\\`*_{}[\]<>|~#!&]/g, "\\$&").replace(/\s+/g, " ");

export const csv = <Row,>(columns: Column<Row>[], rows: Row[]): string =>
  [columns.map((each) => each.name), ...rows.map((row) => columns.map((each) => each.text(row)))].map((cells) => `${cells.map(csvText).join(",")}\n`).join("");

// A text that a spreadsheet would take for a formula gets an apostrophe, as in `assay export`.
const csvText = (text: string): string => {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
};

export function Copy({ name, text }: { name: string; text: () => string | Promise<string> }): JSX.Element {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await copyText(await text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button class="small" onClick={copy} aria-label={`copy as ${name}`}>
      {done ? "copied" : name}
    </button>
  );
}

// From `file://` there may be no clipboard; a selected field always works.
async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

export function Picture({ chart }: { chart: Chart }): JSX.Element {
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([chart.svg], { type: "image/svg+xml" }));
    link.download = `${chart.title.replace(/[^\w-]+/g, "-")}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  return (
    <figure class="picture">
      <figcaption>
        <span>{oneLine(chart.title, 300)}</span>
        <span class="actions">
          <button class="small" onClick={save} aria-label={`save ${chart.title} as SVG`}>
            SVG
          </button>
        </span>
      </figcaption>
      <div class="scroll drawing" tabIndex={0} role="group" aria-label={chart.title} dangerouslySetInnerHTML={{ __html: chart.svg }} />
      {chart.about && (
        <p class="quiet">
          <Prose text={chart.about} />
        </p>
      )}
    </figure>
  );
}

// A picture that a page makes; where there is nothing to draw, the reason.
export function ChartOf({ query }: { query: Query & { name: string } }): JSX.Element {
  const page = usePage("chart", query);
  if (page.error)
    return (
      <div class="nothing box" role="status">
        <Problem error={page.error} />
      </div>
    );
  if (!page.value) return <p class="quiet" role="status">drawing …</p>;
  return (
    <div class={page.loading ? "loading" : ""} aria-busy={page.loading}>
      <Picture chart={page.value} />
    </div>
  );
}

// How many places a value and the ends of its interval are shown with: the rule of `decimals` in reports/sheet.py.
type Maybe = number | null | undefined;
const NOISE = 1e-9;
const magnitude = (value: number): number => (value ? Math.floor(Math.log10(value)) : 0);
export function decimals(value: Maybe, low: Maybe = null, high: Maybe = null): number {
  const numbers = [value, low, high].filter((each): each is number => typeof each === "number" && Math.abs(each) < 1e9);
  if (!numbers.length) return 3;
  let size = Math.abs(numbers[0]!);
  let [least, digits]: [number, number] = size < 10 ? [3, 2] : [0, 4];
  const half = (Math.max(...numbers) - Math.min(...numbers)) / 2;
  if (half > NOISE) [size, digits] = [half, 2];
  let places = Math.max(digits - 1 - magnitude(size), least);
  for (const each of numbers.filter((each) => Math.abs(each) < 10)) {
    const off = Math.abs(each - Math.round(each));
    if (off > NOISE && Number.isInteger(Number(each.toFixed(places)))) places = -magnitude(off);
  }
  return Math.min(places, 12);
}

const GROUPED = new Intl.NumberFormat("en-US"); // made once: that is what takes long
export const number = (value: Maybe, digits = decimals(value)): string => {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) >= 1e9) return value.toPrecision(4);
  const text = value.toFixed(digits);
  const [whole, rest] = text.split(".") as [string, string?];
  if (Math.abs(value) >= 1e4) return GROUPED.format(Number(whole)) + (rest ? `.${rest}` : "");
  return Number(text) === 0 ? text.replace("-", "") : text;
};
type Shown = (value: number, digits: number) => string;
export const range = (low: Maybe, high: Maybe, digits = decimals(null, low, high), show: Shown = number): string => {
  const [from, to] = [low, high].map((end) => (typeof end === "number" ? show(end, digits) : ""));
  return from && to ? `${from} to ${to}` : from ? `≥ ${from}` : to ? `≤ ${to}` : "–";
};

// A value and its interval with the same digits, and a mark where the interval is weak.
export interface Estimate {
  value: number | null;
  ci_low: number | null;
  ci_high: number | null;
  ci_method?: string;
}
const digitsOf = (each: Estimate): number => decimals(each.value, each.ci_low, each.ci_high);
const weakReason = (each: Estimate): string => each.ci_method?.split("; weak: ")[1] ?? "";
export const valueText = (each: Estimate): string => number(each.value, digitsOf(each));
export const spanText = (each: Estimate, show: Shown = number): string => range(each.ci_low, each.ci_high, digitsOf(each), show) + (weakReason(each) && "~");
export function Weak({ rows }: { rows: Estimate[] }): JSX.Element | null {
  const reasons = [...new Set(rows.map(weakReason).filter(Boolean))];
  return reasons.length ? <p class="quiet">~ weak: {reasons.join("; ")}</p> : null;
}
export const count = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : GROUPED.format(value));
export const money = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : `$${value >= 1 || value === 0 ? value.toFixed(2) : value.toPrecision(2)}`;
const UNITS: [seconds: number, name: string, from: number][] = [
  [3600, "h", 7200],
  [60, "min", 120],
  [1, "s", 1],
  [1e-3, "ms", 1e-3],
  [1e-6, "µs", Number.MIN_VALUE],
];
export const seconds = (value: number | null | undefined): string => {
  if (value === null || value === undefined) return "–";
  const [unit, name] = UNITS.find(([, , from]) => value >= from) ?? [1, "s"];
  return `${Number((value / unit).toPrecision(3))} ${name}`;
};
