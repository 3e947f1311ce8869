// Two runs (or two parts of them) beside each other: is there a difference, where, and what flipped.
import { useEffect, useState } from "preact/hooks";
import { Line, oneLine } from "../line";
import { Interval, markOf, scaleOf, type Mark } from "../marks";
import type { Compare as Page, Comparison, Leaderboard, Report } from "../pages";
import { change, chosen, href, route } from "../router";
import { Choice, Notes, Show, Table, Weak, count, decimals, number, spanText, usePage, useSource, valueText, type Column, type Estimate } from "../ui";
import { Flips } from "./flips";
import { Missing, missingText } from "./leaderboard";
import { pairOf, partsOf, sidesOf } from "./sides";

type Pair = Comparison["pairs"][number];

export const Compare = () => (useSource().live ? <Live /> : <Carried />);

// A report has some pairs, each as it is compared by default.
const Carried = () => <Show page={usePage("report")}>{({ comparisons }) => <Pairs comparisons={comparisons} />}</Show>;

function Pairs({ comparisons }: Pick<Report, "comparisons">) {
  const { query } = route.value;
  const [first, setFirst] = useState<number>(); // that can be compared
  useEffect(() => void firstComparable(comparisons).then(setFirst), [comparisons]);
  const named = comparisons.findIndex(({ a, b }) => a === query.get("a") && b === query.get("b"));
  const at = named < 0 ? first : named;
  if (!comparisons.length) return <p class="quiet">This report compares nothing.</p>;
  if (at === undefined) return <p class="quiet" role="status">loading …</p>;
  const options = comparisons.map(({ a, b }, index) => ({ value: String(index), text: `${a}, ${b.startsWith(partOf(a)) ? b.slice(partOf(a).length) : b}` }));
  return (
    <>
      <div class="controls">
        <Choice name="a, b" value={String(at)} options={options} onChange={(index) => change({ ...comparisons[Number(index)], offset: undefined })} />
      </div>
      <Result {...comparisons[at]!} />
    </>
  );
}

const partOf = (side: string): string => side.slice(0, side.lastIndexOf("=") + 1); // demo::model_name=

async function firstComparable(comparisons: Report["comparisons"]): Promise<number> {
  for (const [index, pair] of comparisons.entries()) {
    const page = await useSource().page("compare", pair).catch(() => undefined);
    if (page?.comparison) return index;
  }
  return 0;
}

function Live() {
  const board = usePage("leaderboard", {});
  return <Show page={board}>{(value) => <Sides board={value} />}</Show>;
}

function Sides({ board }: { board: Leaderboard }) {
  const sides = sidesOf(board);
  const [a, b] = pairOf(board, sides);
  const options = [{ value: "", text: "choose …" }, ...sides];
  const metrics = [...new Set(board.rows.map((each) => each.metric))];
  const parts = partsOf(sides, a.split("::")[0]!);
  return (
    <>
      {parts.length > 1 && (
        <nav class="tabs" aria-label="parts">
          {parts.map((pair) => (
            <a key={pair[0].group} href={href("compare", { experiment: chosen(), a: pair[0].value, b: pair[1].value })} aria-current={pair[0].value === a && pair[1].value === b ? "true" : undefined}>
              {oneLine(pair[0].group!)}
            </a>
          ))}
        </nav>
      )}
      <div class="controls">
        <Choice name="a (before)" value={a} options={options} onChange={(value) => change({ a: value, b, offset: undefined })} />
        <Choice name="b (after)" value={b} options={options} onChange={(value) => change({ a, b: value, offset: undefined })} />
        <button onClick={() => change({ a: b, b: a, offset: undefined })} disabled={!a || !b}>
          Swap
        </button>
      </div>
      {a && b && a !== b ? <Result a={a} b={b} metrics={metrics} /> : <p class="quiet">Choose two experiments, or two parts of one, to compare.</p>}
    </>
  );
}

function Result({ a, b, metrics = [] }: { a: string; b: string; metrics?: string[] }) {
  const { live } = useSource();
  const { query } = route.value;
  const [metric, label, facet] = ["metric", "label", "facet"].map((name) => (live && query.get(name)) || "");
  const page = usePage("compare", { a, b, metric, label, facet });
  return (
    <Show page={page}>
      {(value) => (
        <>
          <div class="controls" hidden={!live}>
            <Choice name="metric" value={value.metric} options={[...new Set([value.metric, ...metrics])]} onChange={(name) => change({ metric: name })} />
            {value.labels.length > 1 && <Choice name="label" value={value.label} options={value.labels} onChange={(name) => change({ label: name, offset: undefined })} />}
          </div>
          {value.comparison ? <Verdicts comparison={value.comparison} /> : <p class="nothing box">These two cannot be compared; the notes say why.</p>}
          <Notes notes={[...new Set([...value.notes, ...(value.comparison?.notes ?? [])])]} />
          {value.comparison && <Standings comparison={value.comparison} a={a} />}
          {live && <ByFacet page={value} facet={facet ?? ""} />}
          <Differences page={value} />
          {value.comparison && <Flips a={a} b={b} label={value.label} />}
        </>
      )}
    </Show>
  );
}

const estimateOf = (pair: Pair): Estimate => ({ ...pair, value: pair.difference, ci_method: pair.test });
const signed = (value: number, digits: number): string => `${value > 0 ? "+" : value < 0 ? "−" : ""}${number(Math.abs(value), digits)}`;
const digitsOf = (pair: Pair): number => decimals(pair.difference, pair.ci_low, pair.ci_high);
const differenceText = (pair: Pair): string => signed(pair.difference, digitsOf(pair));
const pText = (p: number): string => (p < 0.001 ? "p < 0.001" : `p = ${p.toPrecision(2)}`);
const rangeText = (pair: Pair): string => spanText(estimateOf(pair), signed);

const itemsText = ([fewest, most]: [number, number | null]): string =>
  most === null ? `${count(fewest)} or more` : `${count(fewest)} to ${count(most)}`;
// As many digits of a level as tell it from 100 %.
const levelText = (level: number): string => String(+(100 - +(100 - 100 * level).toPrecision(2)).toPrecision(6));

// "Worse by 0.2" needs no signs, unless the interval has both.
function sizeText(pair: Pair): string {
  const { difference, ci_low, ci_high } = pair;
  if (ci_low * ci_high < 0) return `${differenceText(pair)} (${rangeText(pair)})`;
  const [low, high] = [Math.abs(ci_low), Math.abs(ci_high)].sort((a, b) => a - b) as [number, number];
  const without = { value: Math.abs(difference), ci_low: low, ci_high: high, ci_method: pair.test };
  return `${valueText(without)} (${spanText(without)})`;
}

function verdictText(pair: Pair): string {
  switch (pair.verdict) {
    case "better":
    case "worse":
      return `b is ${pair.verdict} by ${sizeText(pair)}, ${pText(pair.p_corrected)}`;
    case "equivalent":
      return `a and b are equivalent: ${differenceText(pair)} (${rangeText(pair)}) is within the margin`;
    case "inconclusive":
      return `No difference can be told: ${differenceText(pair)} (${rangeText(pair)}), ${pText(pair.p_corrected)}`;
    case "incomplete":
      return `Incomplete: the evidence is unfinished; so far ${differenceText(pair)} (${rangeText(pair)})`;
  }
}

export function Verdicts({ comparison }: { comparison: Comparison }) {
  return (
    <>
      {comparison.pairs.map((pair) => (
        <section key={pair.candidate + pair.baseline} class={`verdict ${pair.verdict}`} aria-label="verdict">
          <p class="words">{verdictText(pair)}</p>
          <WideInterval pair={pair} lower={comparison.lower_is_better} />
          <p class="quiet">
            {oneLine(comparison.metric)} of {oneLine(comparison.label)}
            {comparison.lower_is_better && " (lower is better)"}; b − a on {count(pair.items)} items that both have, {levelText(comparison.pairs_level)} % interval
            {pair.failed > 0 && `; ${count(pair.failed)} more failed or were skipped on one side`}
            {pair.only_candidate > 0 && `; ${count(pair.only_candidate)} only in b`}
            {pair.only_baseline > 0 && `; ${count(pair.only_baseline)} only in a`}
            {pair.p_corrected !== pair.p && `; ${pText(pair.p)} before correction for several comparisons`}
            {pair.verdict === "inconclusive" && `; with so many items a difference of ${number(pair.smallest_difference)} would be seen`}
            {pair.items_needed !== null && `; ${itemsText(pair.items_needed)} items would be needed`}
            {pair.reason && `; ${pair.reason}`}.
          </p>
          <Weak rows={[estimateOf(pair)]} />
          <FlipCounts pair={pair} />
        </section>
      ))}
    </>
  );
}

const WIDE = 480;

function WideInterval({ pair, lower }: { pair: Pair; lower: boolean }) {
  const most = 1.15 * Math.max(Math.abs(pair.ci_low), Math.abs(pair.ci_high), Math.abs(pair.difference), 1e-9);
  const x = (value: number) => WIDE / 2 + (value / most) * (WIDE / 2 - 10);
  const [left, right] = lower ? ["b is better", "a is better"] : ["a is better", "b is better"];
  return (
    <div class="wide-interval">
      <div class="ends" aria-hidden="true">
        <span>← {left}</span>
        <span>0</span>
        <span>{right} →</span>
      </div>
      <svg viewBox={`0 0 ${WIDE} 24`} role="img" aria-label={`difference ${differenceText(pair)}, interval ${rangeText(pair)}`}>
        <line class="zero" x1={x(0)} x2={x(0)} y1={0} y2={24} />
        <line class="range" x1={x(pair.ci_low)} x2={x(pair.ci_high)} y1={12} y2={12} />
        <circle cx={x(pair.difference)} cy={12} r={5} />
      </svg>
    </div>
  );
}

function FlipCounts({ pair }: { pair: Pair }) {
  const same = pair.items - pair.gained - pair.lost;
  return (
    <table class="flips" aria-label="flips">
      <tbody>
        <tr>
          <td class="good">
            <b>{count(pair.gained)}</b> gained: b is better on the item
          </td>
          <td class="bad">
            <b>{count(pair.lost)}</b> lost: a is better
          </td>
          <td>
            <b>{count(same)}</b> the same on both
          </td>
        </tr>
      </tbody>
    </table>
  );
}

function Standings({ comparison, a }: { comparison: Comparison; a: string }) {
  type Standing = Comparison["standings"][number];
  const scale = scaleOf(comparison.standings.map(markOf));
  const interval = (each: Standing) => spanText(each);
  const columns: Column<Standing>[] = [
    { name: "side", text: (each) => (each.name === a ? "a" : "b") },
    { name: "what", text: (each) => each.name },
    { name: "value", text: valueText, number: true, cell: (each) => <b>{valueText(each)}</b> },
    { name: "interval", text: interval, cell: (each) => <Interval mark={markOf(each)} scale={scale} /> },
    { name: "from – to", text: interval },
    { name: "items", text: (each) => count(each.items), number: true },
    { name: "samples", text: (each) => count(each.samples), number: true },
    { name: "missing", text: (each) => missingText(each), cell: (each) => <Missing counts={each.counts} partial={each.partial} /> },
  ];
  return (
    <>
      <Table caption="Both on all their own items" columns={columns} rows={comparison.standings} />
      <Weak rows={comparison.standings} />
    </>
  );
}

type Part = Page["by"][number];
const pairOfPart = (part: Part): Pair | undefined => part.comparison?.pairs[0];

function ByFacet({ page, facet }: { page: Page; facet: string }) {
  if (!page.facets.length) return null;
  const pairs = page.by.flatMap((part) => pairOfPart(part) ?? []);
  const scale = scaleOf(pairs.map(differenceMark), 0);
  const text = (get: (pair: Pair) => string) => (part: Part) => {
    const pair = pairOfPart(part);
    return pair ? get(pair) : "–";
  };
  const columns: Column<Part>[] = [
    { name: facet || "value", text: (part) => part.value, cell: (part) => <Line text={part.value} longest={60} /> },
    { name: "b − a", text: text(differenceText), number: true },
    { name: "interval", text: text(rangeText), cell: (part) => <DifferenceMark pair={pairOfPart(part)} scale={scale} /> },
    { name: "from – to", text: text(rangeText), cell: (part) => <span class="missing">{text(rangeText)(part)}</span> },
    { name: "verdict", text: (part) => pairOfPart(part)?.verdict ?? part.reason },
    { name: "p", text: text((pair) => pText(pair.p_corrected)) },
    { name: "items", text: text((pair) => count(pair.items)), number: true },
    { name: "gained", text: text((pair) => count(pair.gained)), number: true },
    { name: "lost", text: text((pair) => count(pair.lost)), number: true },
  ];
  return (
    <section aria-label="by facet">
      <h2>By facet</h2>
      <div class="controls">
        <Choice name="split by" value={facet} options={[{ value: "", text: "nothing" }, ...page.facets]} onChange={(name) => change({ facet: name })} />
      </div>
      {facet && <Table caption={`b − a for each ${oneLine(facet)}`} columns={columns} rows={page.by} />}
      {facet && <Weak rows={pairs.map(estimateOf)} />}
    </section>
  );
}

const differenceMark = (pair: Pair): Mark => markOf({ ...pair, value: pair.difference });
const TONE: Record<string, string> = { better: "good", worse: "bad" };
const DifferenceMark = ({ pair, scale }: { pair?: Pair; scale: [number, number] }) =>
  pair ? <Interval mark={differenceMark(pair)} scale={scale} zero tone={TONE[pair.verdict]} /> : null;

function Differences({ page }: { page: Page }) {
  const columns: Column<Page["differences"][number]>[] = [
    { name: "what", text: (each) => each.what, cell: (each) => <bdi>{oneLine(each.what)}</bdi> },
    { name: "a", text: (each) => each.a, cell: (each) => <Line text={each.a} longest={200} /> },
    { name: "b", text: (each) => each.b, cell: (each) => <Line text={each.b} longest={200} /> },
  ];
  return (
    <section aria-label="what differs">
      <h2>What differs</h2>
      {page.differences.length ? <Table caption="Config, prompts, data and served models" columns={columns} rows={page.differences} /> : <p class="quiet">Nothing in config, prompts, data or served models.</p>}
    </section>
  );
}
