// The numbers of all experiments: each with its interval, what is missing behind it, and whether it is really the best.
import { Line, oneLine } from "../line";
import { Interval, markOf, scaleOf, type Mark, type Scale } from "../marks";
import type { Leaderboard as Page, LeaderRow, Standing, Usage } from "../pages";
import { change, chosen, href, route } from "../router";
import { ChartOf, Notes, Show, Table, count, money, number, range, scope, seconds, spanText, usePage, useSource, valueText, Weak, type Column, type Loaded } from "../ui";
import { GridChoice, Measures, currentMeasure, facetOf, facetsOf, measureName, measuresOf, useGrid, type Measure } from "./measures";

export function Leaderboard() {
  const { query } = route.value;
  const facet = query.getAll("facet");
  const page = usePage("leaderboard", { ...scope(), facet });
  return <Show page={page}>{(board) => <Board board={board} facet={facet} />}</Show>;
}

const MOST_SECTIONS = 50; // there are no more on one page: the choice of metrics has the others

function Board({ board, facet }: { board: Page; facet: string[] }) {
  const all = route.value.query.get("all") === "1";
  const ids = chosen();
  const rows = board.rows.filter((each) => !ids.length || ids.includes(each.experiment));
  const measures = measuresOf(rows);
  const current = all ? undefined : currentMeasure(measures);
  if (!measures.length)
    return (
      <>
        <div class="nothing box">
          <p>There are no metrics yet.</p>
          <p class="quiet">
            Compute them with <code>assay aggregate EXPERIMENT</code>.
          </p>
        </div>
        <Notes notes={board.notes} />
      </>
    );
  return (
    <>
      {useSource().live && <FacetChoice choices={board.choices} facets={board.facets} />}
      <Measures measures={measures} current={current} all={all} />
      {current ? <Ranked board={board} rows={rows} facet={facet} measure={current} /> : measures.slice(0, MOST_SECTIONS).map((each) => <Section key={measureName(each)} board={board} rows={rows} measure={each} />)}
      <Notes notes={board.notes} />
      {current && <Pictures board={board} rows={rows} facet={facet} measure={current} />}
      <UsageTable usage={board.usage.filter((each) => !ids.length || ids.includes(each.experiment))} />
    </>
  );
}

function FacetChoice({ choices, facets }: { choices: string[]; facets: string[] }) {
  const names = [...new Set([...facets, ...choices])];
  if (!names.length) return null;
  const choose = (name: string, wanted: boolean) => change({ facet: names.filter((each) => (each === name ? wanted : facets.includes(each))) });
  return (
    <fieldset class="checks controls">
      <legend>facets</legend>
      {names.map((name) => (
        <label key={name}>
          <input type="checkbox" checked={facets.includes(name)} disabled={facets.length === 1 && facets[0] === name} onChange={(event) => choose(name, event.currentTarget.checked)} />
          {oneLine(name)}
        </label>
      ))}
      {route.value.query.has("facet") && <button onClick={() => change({ facet: undefined })}>as computed</button>}
    </fieldset>
  );
}

// A section of which one knows, as soon as it is computed, which rows can be told apart.
export function Ranked(props: { board: Page; rows: LeaderRow[]; facet: string[]; measure: Measure }) {
  const standing = usePage("standing", { ...scope(), facet: props.facet, ...props.measure });
  return <Section {...props} standing={standing} />;
}

const keyOf = (row: { experiment: string; facets: Record<string, string> }): string => JSON.stringify([row.experiment, Object.entries(row.facets).sort()]);

function Section({ board, rows, measure, standing }: { board: Page; rows: LeaderRow[]; measure: Measure; standing?: Loaded<Standing> }) {
  const spent = new Map(standing?.value?.spent.map((each) => [keyOf(each), each]));
  const own = rows
    .filter((each) => each.metric === measure.metric && each.label === measure.label)
    .map((each) => ({ ...each, latency: each.latency ?? spent.get(keyOf(each))?.latency ?? null, cost: each.cost ?? spent.get(keyOf(each))?.cost ?? null }));
  const scale = scaleOf(own.map(boundedMark));
  const ranks = new Map(standing?.value?.ranks.map((each) => [keyOf(each), each.ranks]));
  const name = measureName(measure);
  const lower = own.some((each) => each.lower_is_better);
  return (
    <section aria-label={name}>
      <h2>
        <bdi>{oneLine(name)}</bdi>
        {lower && <span class="quiet"> (lower is better)</span>}
      </h2>
      <Table
        caption={`${count(own.length)} ${own.length === 1 ? "row" : "rows"}; intervals at ${percent(own)}`}
        name={name}
        columns={columns(board, own, scale, standing && (standing.loading || ranks.size) ? ranks : undefined)}
        rows={own}
        sorted={route.value.query.get("sort") ?? (lower ? "value" : "-value")}
        onSort={(sort) => change({ sort })}
      />
      <Legend standing={standing} scale={scale} bounded={own.some(isBounded)} />
      <Weak rows={own} />
      {own.some((each) => missing(each.counts).length > 0) && <p class="quiet">{policyText(own)}</p>}
      <Notes notes={standing?.value?.notes ?? []} />
    </section>
  );
}

// How failures enter the values: "errors: exclude, unparsed: wrong".
const policyText = (rows: LeaderRow[]): string => {
  const policies = new Set(rows.map(({ policy }) => Object.entries(policy).map(([kind, rule]) => `${kind.replace(/^on_/, "")}: ${rule}`).join(", ")));
  return `What is missing counts as follows: ${oneLine([...policies].join("; or "), 300)}.`;
};

const percent = (rows: LeaderRow[]): string => {
  const levels = [...new Set(rows.map((each) => each.ci_level).filter((each) => each !== null))];
  return levels.length ? levels.map((each) => `${Math.round(100 * each)} %`).join(", ") : "no level: there are none";
};

const boundedMark = (row: LeaderRow): Mark => ({ ...markOf(row), ...(isBounded(row) && { wrong: row.if_wrong, right: row.if_right }) });
const isBounded = (row: LeaderRow): boolean => row.if_wrong !== null && row.if_right !== null && row.if_wrong !== row.if_right;

// What is not scored stands beside the number, each kind with its count.
const missing = (counts: Record<string, number>): [string, number][] => Object.entries(counts).filter(([kind, many]) => kind !== "scored" && many > 0);

export function Missing({ counts, partial = "", bounds = "" }: { counts: Record<string, number>; partial?: string; bounds?: string }) {
  const kinds = missing(counts);
  if (!kinds.length && !partial) return <span class="quiet">none</span>;
  return (
    <>
      {partial && <div class="open">{oneLine(partial, 200)}</div>}
      {kinds.map(([kind, many]) => (
        <div key={kind} class={`missing ${kind === "errored" ? "bad" : "open"}`}>
          {count(many)} {kind}
        </div>
      ))}
      {bounds && <div class="missing quiet">{bounds}</div>}
    </>
  );
}

type Ranks = Map<string, [number, number]>;

function Rank({ ranks }: { ranks?: [number, number] }) {
  if (!ranks) return <>–</>;
  const [from, to] = ranks;
  return (
    <span class="missing">
      {from === to ? from : `${from}–${to}`} {from === 1 && (to === 1 ? <span class="badge good">best</span> : <span class="badge">may be best</span>)}
    </span>
  );
}

function Legend({ standing, scale, bounded }: { standing?: Loaded<Standing>; scale: Scale; bounded: boolean }) {
  return (
    <div class="mark-legend">
      <span>
        <Interval mark={{ value: 0.5, low: 0.2, high: 0.8 }} scale={[0, 1]} width={70} /> value and interval, from {number(scale[0])} to {number(scale[1])}
      </span>
      {bounded && (
        <span>
          <Interval mark={{ value: 0.5, low: 0.4, high: 0.6, wrong: 0.1, right: 0.9 }} scale={[0, 1]} width={70} /> what the value would be if all that is missing were wrong, or right
        </span>
      )}
      {standing?.error && <span class="problem">no ranks: {standing.error.message}</span>}
      {standing && !standing.value && !standing.error && <span role="status">which of them is really the best is being computed …</span>}
      {standing?.value && standing.value.ranks.length > 0 && (
        <>
          <span>
            <span class="badge good">best</span> better than every other beyond chance
          </span>
          <span>
            <span class="badge">may be best</span> not told apart from the best
          </span>
        </>
      )}
    </div>
  );
}

const samplesText = (row: LeaderRow): string => (row.used === row.planned ? count(row.samples) : `${count(row.used)}/${count(row.planned)}`);
const boundsText = (row: LeaderRow): string => (isBounded(row) ? `bounds ${range(row.if_wrong, row.if_right)}` : "");
export const missingText = ({ partial, counts }: { partial: string; counts: Record<string, number> }, bounds = ""): string => [partial, ...missing(counts).map(([kind, many]) => `${many} ${kind}`), bounds].filter(Boolean).join(", ");
const samplesOf = (row: LeaderRow): string => href("samples", { experiment: [row.experiment], label: row.label, where: Object.entries(row.facets).map(([name, value]) => `${name}=${value}`) });

function columns(board: Page, rows: LeaderRow[], scale: Scale, ranks?: Ranks): Column<LeaderRow>[] {
  const several = new Set(rows.map((each) => each.experiment)).size > 1;
  const list: Column<LeaderRow>[] = [];
  if (several) list.push({ name: "experiment", text: (row) => row.experiment, sort: (row) => row.experiment });
  for (const facet of facetsOf(board, rows))
    list.push({ name: facet, text: (row) => facetOf(row, facet), sort: (row) => facetOf(row, facet), cell: (row) => <Line text={facetOf(row, facet)} longest={60} /> });
  const rankOf = (row: LeaderRow) => ranks?.get(keyOf(row));
  list.push(
    { name: "value", text: valueText, number: true, sort: (row) => row.value, cell: (row) => <b>{valueText(row)}</b> },
    { name: "interval", text: (row) => spanText(row), sort: (row) => row.ci_low, cell: (row) => <IntervalCell row={row} scale={scale} /> },
    { name: "missing", text: (row) => missingText(row, boundsText(row)), sort: (row) => missing(row.counts).reduce((sum, [, many]) => sum + many, 0), cell: (row) => <Missing counts={row.counts} partial={row.partial} bounds={boundsText(row)} /> },
  );
  if (rows.some((row) => row.passed)) list.push({ name: "passed", text: (row) => row.passed, number: true });
  if (ranks)
    list.push({
      name: "rank",
      text: (row) => rankOf(row)?.join("–") ?? "",
      sort: (row) => rankOf(row)?.[0] ?? null,
      cell: (row) => <Rank ranks={rankOf(row)} />,
    });
  list.push(
    { name: "items", text: (row) => count(row.items), number: true, sort: (row) => row.items },
    { name: "samples", text: samplesText, number: true, sort: (row) => row.samples, cell: (row) => <a href={samplesOf(row)} aria-label={`${samplesText(row)} samples: see them`}>{samplesText(row)}</a> },
  );
  if (rows.some((row) => row.latency !== null)) list.push({ name: "latency", text: (row) => seconds(row.latency), number: true, sort: (row) => row.latency });
  if (rows.some((row) => row.cost !== null)) list.push({ name: "cost", text: (row) => money(row.cost), number: true, sort: (row) => row.cost });
  return list;
}

const IntervalCell = ({ row, scale }: { row: LeaderRow; scale: Scale }) => (
  <span class="with-numbers" title={row.ci_method}>
    <Interval mark={boundedMark(row)} scale={scale} width={200} />
    <span class="quiet">{spanText(row)}</span>
  </span>
);

function Pictures({ board, rows, facet, measure }: { board: Page; rows: LeaderRow[]; facet: string[]; measure: Measure }) {
  const asked = { ...scope(), facet, ...measure };
  const own = rows.filter((each) => each.metric === measure.metric && each.label === measure.label);
  const grid = useGrid(board, own);
  return (
    <>
      <h2>Pictures</h2>
      <div class="pictures">
        <ChartOf query={{ ...asked, name: "intervals" }} />
        <ChartOf query={{ ...asked, name: "scatter" }} />
      </div>
      {grid.rows && grid.columns && (
        <>
          <GridChoice {...grid} />
          <ChartOf query={{ ...asked, name: "heat", rows: grid.rows, columns: grid.columns }} />
        </>
      )}
    </>
  );
}

function UsageTable({ usage }: { usage: Usage[] }) {
  if (!usage.length) return null;
  const columns: Column<Usage>[] = [
    { name: "experiment", text: (each) => each.experiment },
    { name: "model", text: (each) => each.model },
    { name: "responses", text: (each) => count(each.responses), number: true },
    { name: "errors", text: (each) => count(each.errors), number: true },
    { name: "prompt tokens", text: (each) => count(each.prompt_tokens), number: true },
    { name: "completion tokens", text: (each) => count(each.completion_tokens), number: true },
    { name: "cost", text: (each) => money(each.cost), number: true },
  ];
  return (
    <>
      <h2>Tokens and cost</h2>
      <Table caption="of each model; – where a price is not known" name="tokens and cost" columns={columns} rows={usage} />
    </>
  );
}
