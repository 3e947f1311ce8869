// What the lists of samples and of items can be narrowed to; the address holds it.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { FILTERS, isLargestFirst, type Filter } from "./declared";
import { Menu } from "./menu";
import type { Query } from "./pages";
import { change, queryOf, route } from "./router";
import type { PageError } from "./source";
import { oneLine } from "./line";
import { Choice, count, usePage, useSource, type Option } from "./ui";

const LISTS = ["experiment", "where", ...FILTERS.filter((each) => each.operator === "in").map((each) => each.name)];
const SINGLES = ["label", "search", "regex", "sort", "descending", ...FILTERS.filter((each) => each.operator !== "in").map((each) => each.name)];

// The part of an address that chooses rows.
export function listQuery(address: URLSearchParams): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  for (const [name, values] of Object.entries(queryOf(address))) {
    if (LISTS.includes(name)) query[name] = values;
    else if (SINGLES.includes(name) && values[0]) query[name] = values[0];
  }
  return query;
}

// Whether an error is about a regular expression: then it stands beside its field.
const isBroken = (): boolean => route.value.query.get("regex") === "1" && route.value.query.has("search");

// A filter that changes makes another list: its place is no longer meant.
const narrow = (changes: Query, options = {}): void => change({ ...changes, at: undefined }, options);

interface Choices {
  label: string;
  labels: string[];
  facets?: Record<string, string[]>;
  tags?: string[];
}

export function Filters(props: { choices?: Choices; sorts: Option[]; error?: PageError }): JSX.Element {
  const { choices, sorts, error } = props;
  const query = route.value.query;
  const where = query.getAll("where");
  const [unfolded, setUnfolded] = useState(false); // on a narrow screen
  const get = (name: string): string => query.get(name) ?? "";
  const active = Object.keys(listQuery(query)).filter((name) => !["experiment", "label", "search", "sort", "descending"].includes(name)).length;
  const broken = error && isBroken() ? error.message : "";
  const clear = (): void => narrow(Object.fromEntries([...LISTS, ...SINGLES].filter((name) => name !== "experiment").map((name) => [name, undefined])));
  return (
    <form class={`filters ${unfolded ? "" : "folded"}`} role="search" aria-label="filters" onSubmit={(event) => event.preventDefault()}>
      <Late name="search" type="search" value={get("search")} problem={broken} onValue={(search) => narrow({ search }, { replace: true })} />
      <button type="button" class="fold" aria-expanded={unfolded} onClick={() => setUnfolded(!unfolded)}>
        filters{active > 0 && ` (${active})`}
      </button>
      <label>
        <input type="checkbox" checked={get("regex") === "1"} onChange={(event) => narrow({ regex: event.currentTarget.checked })} /> regular expression
      </label>
      {(choices?.labels.length ?? 0) > 1 && (
        <Choice name="label" value={get("label") || choices!.label} options={choices!.labels} onChange={(label) => narrow({ label })} />
      )}
      {FILTERS.map((each) => (
        <Asked key={each.name} filter={each} chosen={query.getAll(each.name)} choices={choices} />
      ))}
      {Object.entries(choices?.facets ?? {}).map(([facet, values]) => {
        const [own, others] = [where.filter((each) => each.startsWith(`${facet}=`)), where.filter((each) => !each.startsWith(`${facet}=`))];
        const chosen = own.map((each) => each.slice(facet.length + 1));
        if (values.length < 2 && !chosen.length) return null;
        return <Several name={facet} values={values} chosen={chosen} onChosen={(next) => narrow({ where: [...others, ...next.map((value) => `${facet}=${value}`)] })} />;
      })}
      <Choice name="sort by" value={get("sort")} options={sorts} onChange={(sort) => narrow({ sort, descending: isLargestFirst(sort) })} />
      <button type="button" aria-pressed={get("descending") === "1"} onClick={() => narrow({ descending: get("descending") !== "1" })}>
        {get("descending") === "1" ? "↓ descending" : "↑ ascending"}
      </button>
      <button type="button" onClick={clear}>
        clear filters
      </button>
    </form>
  );
}

// The control of a declared condition: its values are declared, or those that the rows have; any text where neither tells.
function Asked({ filter, chosen, choices }: { filter: Filter; chosen: string[]; choices?: Choices }): JSX.Element | null {
  const { name, operator, column, words, title, options } = filter;
  const value = chosen[0] ?? "";
  const take = (value: string | string[], changes = {}): void => narrow({ [name]: value }, changes);
  if (operator === "is") return <Choice name={title} value={value} options={options} onChange={take} />;
  const values = words.length || operator !== "in" ? words : choices?.[column as "tags"];
  if (values?.length || (operator === "in" && chosen.length > 1)) return <Several name={title} values={values ?? []} chosen={chosen} onChosen={take} />;
  if (operator === "in" && (values || !choices)) return null;
  const late = { value, onValue: (value: string) => take(value, { replace: true }) };
  if (operator === "in") return <Late name={title} type="search" {...late} />;
  return <Late name={`${title} ${operator === ">=" ? "from" : "to"}`} type="number" {...late} />;
}

// A field whose value is taken when one has stopped typing.
function Late(props: { name: string; type: "search" | "number"; value: string; problem?: string; onValue: (value: string) => void }): JSX.Element {
  const [text, setText] = useState(props.value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => setText(props.value), [props.value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (value: string): void => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => props.onValue(value.trim() && value), 300);
  };
  return (
    <label>
      {props.name}{" "}
      {props.type === "number" ? (
        <input type="number" step="any" value={text} onInput={(event) => type(event.currentTarget.value)} />
      ) : (
        <input type="search" value={text} aria-invalid={props.problem ? true : undefined} onInput={(event) => type(event.currentTarget.value)} />
      )}
      {props.problem && (
        <span class="problem" role="alert">
          {props.problem}
        </span>
      )}
    </label>
  );
}

// A choice of several values.
function Several(props: { name: string; values: string[]; chosen: string[]; onChosen: (values: string[]) => void }): JSX.Element {
  const { name, values, chosen } = props;
  const toggle = (value: string, on: boolean): void => props.onChosen(on ? [...chosen, value] : chosen.filter((each) => each !== value));
  return (
    <Menu class="choice" title={`${oneLine(name, 40)}${chosen.length ? `: ${oneLine(chosen.join(", "), 40)}` : ""}`}>
      <fieldset>
        <legend>{oneLine(name, 40)}</legend>
        {[...new Set([...chosen, ...values])].map((value) => (
          <label key={value}>
            <input type="checkbox" checked={chosen.includes(value)} onChange={(event) => toggle(value, event.currentTarget.checked)} /> {oneLine(value, 60) || "(empty)"}
          </label>
        ))}
      </fieldset>
    </Menu>
  );
}

// How many there are; what went wrong; how much can be searched yet.
export function Totals(props: { total?: number; all?: number; what: string; indexed?: number | null; leftOut?: number; error?: PageError; again: () => void; children?: ComponentChildren }): JSX.Element {
  const { total, all, what, indexed, leftOut, error } = props;
  return (
    <div class="totals">
      <p role="status">
        {error ? "" : total === undefined ? "loading …" : `${count(total)}${all === undefined ? "" : ` of ${count(all)}`} ${what}`}
        {total === 0 && !error && " match"}
        {typeof indexed === "number" && <span class="open"> · index {Math.floor(indexed * 100)} % made: what is not in it yet is missing here</span>}
        {leftOut ? <span class="bad"> · {count(leftOut)} lines of responses are not rows that count, and are left out</span> : null}
      </p>
      {!useSource().live && <CarriedPart />}
      {error && !isBroken() && (
        <p class="problem" role="alert">
          {error.message} {error.fix && <span class="quiet">{error.fix}</span>} <button onClick={props.again}>try again</button>
        </p>
      )}
      {props.children}
    </div>
  );
}

export function CarriedPart(): JSX.Element | null {
  const { value: report } = usePage("report");
  if (!report || report.rows >= report.all) return null;
  return (
    <p class="open">
      The report carries {count(report.rows)} of {count(report.all)} samples, the hardest items first: shares here are not those of the run.
    </p>
  );
}
