// One item: what was asked, all answers beside each other, and everything about one of them.
import type { JSX } from "preact";
import { listQuery } from "../filters";
import { useKeys } from "../keys";
import type { MatrixRow, Sample as Page, SampleRow, Trace } from "../pages";
import { go, href, queryOf, route } from "../router";
import { oneLine } from "../line";
import { Difference, Fold, Raw, RenderToggle, Some, Value, toggleRendered } from "../text";
import { Calls, Conversation, Facts, Labels, Matches, Spans, callsTitle } from "../trace";
import { Show, count, usePage } from "../ui";
import { Mark } from "./samples";

const MOST_FIELDS = 200; // of an item

type Row = Record<string, any>;
type Chosen = { trace: Trace; sample: Trace["samples"][number] };

export function Sample(): JSX.Element {
  const query = route.value.query;
  const item = query.get("item") ?? "";
  const own = query.getAll("experiment");
  const list = listQuery(new URLSearchParams(query.get("from") ?? ""));
  const listed = (list.experiment as string[] | undefined) ?? [];
  const page = usePage("sample", { experiment: listed.includes(own[0] ?? "") ? listed : own, item });
  return (
    <article class="sample">
      <Bar item={item} list={list} />
      <Show page={page}>{(value) => <Body key={value.item_id} page={value} />}</Show>
    </article>
  );
}

// The way through the list that one came from.
function Bar({ item, list }: { item: string; list: Record<string, string | string[]> }): JSX.Element {
  const query = route.value.query;
  const name = query.get("list") === "matrix" ? "matrix" : "samples";
  const hasList = query.has("from");
  const at = Number(query.get("at") ?? 0);
  const around = usePage(name, hasList ? { ...(name === "matrix" ? { sort: "score" } : {}), ...list, offset: Math.max(0, at - 1), limit: 3 } : { experiment: query.getAll("experiment"), limit: 1 });
  const rows: (SampleRow | MatrixRow)[] = around.value?.rows ?? [];
  const address = (step: number): Record<string, string | string[] | undefined> | undefined => {
    const row = rows[step + Math.min(1, at)];
    if (!hasList || at + step < 0 || !row || around.loading) return undefined;
    const place = "task" in row ? { experiment: [row.experiment], task: [row.task], sample: [String(row.sample)] } : { sample: undefined };
    return { ...queryOf(query), ...place, item: [row.item], at: [String(at + step)] };
  };
  const [previous, next] = [address(-1), address(1)];
  const back = href(name, { ...list, ...(hasList ? { at: String(at) } : { experiment: query.getAll("experiment") }) });
  const step = (to: Record<string, string | string[] | undefined> | undefined) => () => to && go("sample", to);
  useKeys({
    n: { about: "next of the list", run: step(next) },
    p: { about: "previous of the list", run: step(previous) },
    ArrowRight: { about: "next of the list", run: step(next) },
    ArrowLeft: { about: "previous of the list", run: step(previous) },
    r: { about: "raw or rendered texts", run: toggleRendered },
    u: { about: "back to the list", run: () => void (location.hash = back) },
  });
  return (
    <div class="bar">
      <h2 class="title">{oneLine(item, 300)}</h2>
      <a href={back}>{name === "matrix" ? "items" : "samples"}</a>
      {hasList && (
        <nav aria-label="list">
          {previous ? <a href={href("sample", previous)}>previous</a> : <span class="quiet">previous</span>}
          <span>
            {count(at + 1)} of {count(around.value?.total)}
          </span>
          {next ? <a href={href("sample", next)}>next</a> : <span class="quiet">next</span>}
        </nav>
      )}
      <RenderToggle />
      <span class="hints quiet">
        <kbd>n</kbd> next <kbd>p</kbd> previous <kbd>r</kbd> raw or rendered <kbd>u</kbd> list
      </span>
    </div>
  );
}

function Body({ page }: { page: Page }): JSX.Element {
  const chosen = choose(page);
  return (
    <>
      <Item item={page.item} />
      <Beside page={page} chosen={chosen} />
      {chosen ? <One key={`${chosen.trace.experiment} ${chosen.sample.response.key}`} chosen={chosen} item={page.item} /> : <p>There is no response yet.</p>}
    </>
  );
}

function choose(page: Page): Chosen | undefined {
  const query = route.value.query;
  const [experiment, task, index] = [query.get("experiment"), query.get("task"), query.get("sample")];
  const every = page.experiments.flatMap((trace) => trace.samples.map((sample) => ({ trace, sample })));
  const fits = ({ trace, sample }: Chosen): number =>
    (trace.experiment === experiment ? 4 : 0) + (taskOf(sample.response) === task ? 2 : 0) + (String(sample.response.sample_index ?? 0) === (index ?? "0") ? 1 : 0);
  return every.reduce<Chosen | undefined>((best, each) => (best && fits(best) >= fits(each) ? best : each), undefined);
}

const taskOf = (row: Row): string => String(row.task || row.model_name || "");

function Item({ item }: { item: Row | null }): JSX.Element {
  if (!item) return <p class="quiet">The item is not in the folder.</p>;
  const { id: _, data, ...others } = item;
  const inside = data && typeof data === "object" && !Array.isArray(data) ? data : { data };
  return (
    <section aria-label="item">
      <h2>Item</h2>
      <dl class="fields">
        {Object.entries({ ...inside, ...others }).slice(0, MOST_FIELDS).map(([name, value]) => (
          <>
            <dt>{oneLine(name, 60)}</dt>
            <dd>{Array.isArray(value) && value.length < 20 && value.every((each) => typeof each === "string") ? value.map((each) => <Value value={each} />) : <Value value={value} />}</dd>
          </>
        ))}
      </dl>
      {Object.keys(inside).length > MOST_FIELDS && (
        <Fold title="all fields">
          <Value value={item} />
        </Fold>
      )}
    </section>
  );
}

function Beside({ page, chosen }: { page: Page; chosen?: Chosen }): JSX.Element {
  const label = route.value.query.get("label") ?? String(chosen?.sample.evaluations[0]?.label ?? "");
  const groups = page.experiments.flatMap((trace) =>
    [...new Set(trace.samples.map((each) => taskOf(each.response)))].map((task) => ({ trace, task, samples: trace.samples.filter((each) => taskOf(each.response) === task) })),
  );
  return (
    <section aria-label="all answers">
      <h2>Answers {label && <span class="quiet">by {oneLine(label, 60)}</span>}</h2>
      <div class="columns">
        <Some as="div" list={groups}>
          {({ trace, task, samples }) => {
            const verdicts = samples.map((each) => each.evaluations.find((row) => row.label === label)?.passed);
            const passed = verdicts.filter((each) => each === true).length;
            const open = verdicts.filter((each) => typeof each !== "boolean").length;
            const isHere = samples.some((each) => each === chosen?.sample);
            const list = (
              <ul>
                <Some list={samples}>{(each) => <Answer trace={trace} sample={each} label={label} current={each === chosen?.sample} />}</Some>
              </ul>
            );
            return (
              <section>
                <h3>
                  {oneLine(task, 80)} {page.experiments.length > 1 && <span class="quiet">{oneLine(trace.experiment, 60)}</span>}
                </h3>
                {samples.length === 1 ? (
                  list
                ) : (
                  <Fold key={String(isHere)} open={isHere} title={`${passed}/${samples.length} passed${open ? `, ${open} without a verdict` : ""}`}>
                    {list}
                  </Fold>
                )}
              </section>
            );
          }}
        </Some>
      </div>
    </section>
  );
}

function Answer({ trace, sample, label, current }: { trace: Trace; sample: Trace["samples"][number]; label: string; current: boolean }): JSX.Element {
  const row = sample.response;
  const verdict = sample.evaluations.find((each) => each.label === label);
  const address = { ...queryOf(route.value.query), experiment: trace.experiment, task: taskOf(row), sample: String(row.sample_index ?? 0) };
  return (
    <li>
      <Mark outcome={verdict?.outcome ?? row.outcome ?? "ok"} passed={verdict?.passed ?? null} />{" "}
      <a href={href("sample", address)} aria-current={current ? "true" : undefined}>
        {oneLine(String(row.response || row.error || "no text"), 120)}
      </a>
    </li>
  );
}

function One({ chosen: { trace, sample }, item }: { chosen: Chosen; item: Row | null }): JSX.Element {
  const row = sample.response;
  const tasks = new Set(trace.samples.map((each) => each.response.task));
  const scorers = new Set(sample.evaluations.map((each) => each.scorer)); // their calls stand with their labels
  const owners = [...new Set(trace.calls.map((call) => String(call.owner)))].filter((owner) => (tasks.has(owner) ? owner === row.task : !scorers.has(owner)));
  const truth = texts(item?.ground_truth);
  return (
    <section aria-label="sample">
      <h2>
        {oneLine(taskOf(row), 120)} <span class="quiet">
          sample {row.sample_index ?? 0}
          {row.total_samples > 1 && ` (of ${count(row.total_samples)})`}
        </span>
      </h2>
      <Facts row={row} />
      {row.error && (
        <div class="problem" role="note" aria-label="error">
          <p>{oneLine(`${row.outcome ?? "errored"}${row.error_kind ? `, ${row.error_kind}` : ""}:`)}</p>
          <Raw text={String(row.error)} />
        </div>
      )}
      <Conversation row={row} />
      {truth.length > 0 && typeof row.response === "string" && row.response && row.response !== truth[0] && (
        <Fold title="difference from the ground truth">
          <p class="quiet">
            <del>only in the ground truth</del> <ins>only in the answer</ins>
          </p>
          <Difference before={truth[0]!} after={row.response} />
        </Fold>
      )}
      {sample.spans.length > 0 && (
        <>
          <h2>Steps</h2>
          <Spans spans={sample.spans} />
        </>
      )}
      {owners.length > 0 && <h2>Calls</h2>}
      {owners.map((owner) => {
        const calls = trace.calls.filter((call) => call.owner === owner);
        return (
          <Fold open={owner === row.task} title={callsTitle(calls, oneLine(owner, 60))}>
            <Calls calls={calls} />
          </Fold>
        );
      })}
      <h2>Labels</h2>
      <Labels sample={sample} calls={trace.calls} />
      {trace.matches.length > 0 && (
        <>
          <h2>Matches</h2>
          <Matches trace={trace} />
        </>
      )}
      {trace.tags.length > 0 && (
        <>
          <h2>Tags</h2>
          <ul>
            <Some list={trace.tags}>
              {({ annotator, tag, note }) => (
                <li>
                  <strong>{oneLine(tag, 80)}</strong> {oneLine(note, 1000)} <span class="quiet">{oneLine(annotator, 60)}</span>
                </li>
              )}
            </Some>
          </ul>
        </>
      )}
      <h2>Rows</h2>
      <Fold title="response as it is stored">
        <Value value={row} />
      </Fold>
    </section>
  );
}

const texts = (value: unknown): string[] => (Array.isArray(value) ? value : [value]).filter((each) => typeof each === "string" || typeof each === "number").map(String);
