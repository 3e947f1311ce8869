// What several views share: loading a page of data, tables that can be copied, pictures that can be saved.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren, JSX } from "preact";
import type { Chart, PageName, PageTypes, Query } from "./pages";
import { queryText, type PageError, type Source } from "./source";

let current: Source;
export const useSource = (): Source => current;
export const setSource = (source: Source): void => void (current = source);

export type Loaded<Value> = { value?: Value; error?: PageError; loading: boolean };

// A page of data; the last one stays while the next is loading.
export function usePage<Name extends PageName>(name: Name, query: Query = {}, again: unknown = 0): Loaded<PageTypes[Name]> {
  const [state, setState] = useState<Loaded<PageTypes[Name]>>({ loading: true });
  const key = `${name}?${queryText(query)}`;
  useEffect(() => {
    let wanted = true;
    setState((before) => ({ ...before, loading: true }));
    current.page(name, query).then(
      (value) => wanted && setState({ value, loading: false }),
      (error) => wanted && setState({ error, loading: false }),
    );
    return () => void (wanted = false);
  }, [key, again]);
  return state;
}

export function Show<Value>({ page, children }: { page: Loaded<Value>; children: (value: Value) => ComponentChildren }): JSX.Element {
  if (page.error)
    return (
      <div class="problem" role="alert">
        <p>{page.error.message}</p>
        {page.error.fix && <p class="quiet">{page.error.fix}</p>}
      </div>
    );
  if (!page.value) return <p class="quiet" role="status">loading …</p>;
  return <div aria-busy={page.loading}>{children(page.value)}</div>;
}

export interface Column<Row> {
  name: string;
  text: (row: Row) => string; // what is copied
  cell?: (row: Row) => ComponentChildren; // what is shown, by default the text
  number?: boolean;
  sort?: (row: Row) => number | string | null;
}

export function Table<Row>(props: { columns: Column<Row>[]; rows: Row[]; caption: string; sorted?: string; onSort?: (name: string) => void }): JSX.Element {
  const { columns, rows, caption, sorted, onSort } = props;
  const [by, descending] = (sorted ?? "").startsWith("-") ? [sorted!.slice(1), true] : [sorted ?? "", false];
  const column = columns.find((each) => each.name === by);
  const ordered = column ? [...rows].sort((a, b) => compare(column, a, b) * (descending ? -1 : 1)) : rows;
  return (
    <figure class="table">
      <figcaption>
        <span>{caption}</span>
        <span class="actions">
          <Copy name="Markdown" text={() => markdown(columns, ordered)} />
          <Copy name="CSV" text={() => csv(columns, ordered)} />
        </span>
      </figcaption>
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <thead>
            <tr>
              {columns.map((each) => (
                <th class={each.number ? "number" : ""} aria-sort={each === column ? (descending ? "descending" : "ascending") : undefined}>
                  {onSort && each.sort ? <button onClick={() => onSort(each === column && !descending ? `-${each.name}` : each.name)}>{each.name}</button> : each.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ordered.map((row) => (
              <tr>
                {columns.map((each) => (
                  <td class={each.number ? "number" : ""}>{each.cell ? each.cell(row) : each.text(row)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

function compare<Row>(column: Column<Row>, a: Row, b: Row): number {
  const [first, second] = [column.sort?.(a) ?? null, column.sort?.(b) ?? null];
  if (first === null || second === null) return first === second ? 0 : first === null ? 1 : -1;
  return first < second ? -1 : first > second ? 1 : 0;
}

const markdown = <Row,>(columns: Column<Row>[], rows: Row[]): string =>
  [columns.map((each) => each.name), columns.map((each) => (each.number ? "--:" : ":--")), ...rows.map((row) => columns.map((each) => markdownText(each.text(row))))]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");

const markdownText = (text: string): string => text.replace(/[\\`*_{}[\]<>|~#!&]/g, "\\$&").replace(/\s+/g, " ");

const csv = <Row,>(columns: Column<Row>[], rows: Row[]): string =>
  [columns.map((each) => each.name), ...rows.map((row) => columns.map((each) => each.text(row)))].map((cells) => `${cells.map(csvText).join(",")}\n`).join("");

// A text that a spreadsheet would take for a formula gets an apostrophe, as in `assay export`.
const csvText = (text: string): string => {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
};

export function Copy({ name, text }: { name: string; text: () => string }): JSX.Element {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await copyText(text());
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
        <span>{chart.title}</span>
        <span class="actions">
          <button class="small" onClick={save} aria-label="save as SVG">
            SVG
          </button>
        </span>
      </figcaption>
      <div dangerouslySetInnerHTML={{ __html: chart.svg }} />
      {chart.about && <p class="quiet">{chart.about}</p>}
    </figure>
  );
}

export const number = (value: number | null | undefined, digits = 3): string => (value === null || value === undefined ? "–" : value.toFixed(digits));
export const count = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));
