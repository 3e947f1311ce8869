// The first page: the experiments below the roots, and the runs that are under way.
import { listed, progressOf, type Progress } from "../live";
import type { Experiment } from "../pages";
import { change, chosen, href, route } from "../router";
import { Line, oneLine } from "../line";
import { Show, Table, count, money, number, seconds, type Column } from "../ui";

const LONGEST = 200; // characters of a reason
const VALUES = 4; // metrics of an experiment that are shown at a glance

export function Experiments() {
  const sort = route.value.query.get("sort") ?? "";
  return (
    <Show page={listed.value}>
      {(value) => (
        <>
          {value.experiments
            .filter((each) => each.state === "running")
            .map((each) => (
              <Run key={each.id} experiment={each} live={progressOf(each.id)} />
            ))}
          {value.experiments.length ? (
            <Table
              caption={`${count(value.experiments.length)} ${value.experiments.length === 1 ? "experiment" : "experiments"} below ${oneLine(value.roots.join(", "), 300)}`}
              name="experiments"
              columns={columns()}
              rows={value.experiments}
              sorted={sort}
              onSort={(name) => change({ sort: name })}
            />
          ) : (
            <div class="nothing box">
              <p>There are no experiments below {oneLine(value.roots.join(", "), 300)}.</p>
              <p class="quiet">
                Make one with <code>assay run</code>, or open another folder with <code>assay view FOLDER</code>.
              </p>
            </div>
          )}
          <Chosen />
          <p class="quiet">Assay {value.version}</p>
        </>
      )}
    </Show>
  );
}

function Chosen() {
  const experiment = chosen();
  if (experiment.length < 2) return null;
  return (
    <p>
      <a href={href("leaderboard", { experiment })}>Leaderboard of the {experiment.length} chosen</a>
      {" · "}
      <a href={href("compare", { experiment, a: experiment[0], b: experiment[1] })}>Compare the first two</a>
    </p>
  );
}

function Run({ experiment, live }: { experiment: Experiment; live?: Progress }) {
  if (!live) return null;
  const facts: [string, string][] = [
    ["responses", `${count(experiment.responses)} of ${count(experiment.planned)}`],
    ["rate", live.rate === null ? "–" : `${number(live.rate, 1)} per second`],
    ["left", seconds(live.left_seconds)],
    ["errors", count(experiment.errors)],
    ["cost so far", money(live.cost)],
    ["tokens", count(live.tokens)],
  ];
  return (
    <section class="run" aria-label={`run of ${experiment.id}`}>
      <h2>
        <bdi>{oneLine(experiment.id, 300)}</bdi> <span class="state running">is running</span>
      </h2>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {live.waiting && <p class="open">waits: {oneLine(live.waiting, 500)}</p>}
      <dl class="facts">
        {Object.entries(live.models).map(([name, { total, done, errors, retries }]) => (
          <div key={name}>
            <dt>
              <bdi>{oneLine(name)}</bdi>
            </dt>
            <dd>
              {count(done)} of {count(total)}
              {errors > 0 && <span class="bad">, {count(errors)} errors</span>}
              {retries > 0 && <span class="open">, {count(retries)} retries</span>}
              <Bar part={done} all={total} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const Bar = ({ part, all }: { part: number; all: number | null }) =>
  all ? (
    <span class="progress" aria-hidden="true">
      <span style={{ width: `${Math.min(100, (100 * part) / all)}%` }} />
    </span>
  ) : null;

const valuesText = (each: Experiment): string => Object.entries(each.values).map(([name, [low, high]]) => `${name} ${span(low, high)}`).join("; ");

const span = (low: number, high: number): string => (number(low) === number(high) ? number(low) : `${number(low)}–${number(high)}`);

function Values({ experiment }: { experiment: Experiment }) {
  const entries = Object.entries(experiment.values);
  return (
    <ul class="values">
      {entries.slice(0, VALUES).map(([name, [low, high]]) => (
        <li key={name}>
          <span class="quiet">
            <bdi>{oneLine(name)}</bdi>
          </span>{" "}
          {span(low, high)}
        </li>
      ))}
      {entries.length > VALUES && (
        <li>
          <a href={href("leaderboard", { experiment: [experiment.id] })}>{entries.length - VALUES} more</a>
        </li>
      )}
    </ul>
  );
}

function Progressed({ experiment: { responses, planned, state } }: { experiment: Experiment }) {
  if (planned === null || responses >= planned) return <>{count(responses)}</>;
  return (
    <>
      {count(responses)} <span class="quiet">of {count(planned)}</span>
      {state !== "complete" && <Bar part={responses} all={planned} />}
    </>
  );
}

const failures = (value: number) => (value ? <span class="bad">{count(value)}</span> : <>0</>);
const date = (each: Experiment): string => (each.updated ? new Date(each.updated * 1000).toISOString().slice(0, 16).replace("T", " ") : "–");

function columns(): Column<Experiment>[] {
  const ids = chosen();
  const pick = (id: string) => (event: { currentTarget: HTMLInputElement }) => change({ experiment: event.currentTarget.checked ? [...ids, id] : ids.filter((each) => each !== id) });
  return [
    {
      name: "experiment",
      text: (each) => each.id,
      sort: (each) => each.id,
      cell: (each) => (
        <span class="pick">
          <input type="checkbox" aria-label={`choose ${each.id}`} checked={ids.includes(each.id)} onChange={pick(each.id)} />
          <span>
            <a href={href("leaderboard", { experiment: [each.id] })}>
              <bdi>{oneLine(each.id, 300)}</bdi>
            </a>
            <span class="links">
              <a href={href("matrix", { experiment: [each.id] })}>hardest items</a>
              <a href={href("samples", { experiment: [each.id], passed: "failed" })}>failed answers</a>
              <a href={href("compare", { experiment: [each.id] })}>compare</a>
            </span>
          </span>
        </span>
      ),
    },
    {
      name: "state",
      text: (each) => [each.state, each.problem, ...each.reasons].filter(Boolean).join("; "),
      sort: (each) => each.state,
      cell: (each) => (
        <div class="reasons">
          <span class={`state ${each.state}`}>{each.state}</span>
          {each.problem && (
            <div class="problem">
              <Line text={each.problem} longest={LONGEST} />
            </div>
          )}
          {each.reasons.map((reason) => (
            <div key={reason} class="quiet">
              <Line text={reason} longest={LONGEST} />
            </div>
          ))}
        </div>
      ),
    },
    { name: "items", text: (each) => count(each.items), number: true, sort: (each) => each.items },
    { name: "responses", text: (each) => `${count(each.responses)} of ${count(each.planned)}`, number: true, sort: (each) => each.responses, cell: (each) => <Progressed experiment={each} /> },
    { name: "errors", text: (each) => count(each.errors), number: true, sort: (each) => each.errors, cell: (each) => failures(each.errors) },
    { name: "labels", text: (each) => count(each.evaluations), number: true, sort: (each) => each.evaluations },
    { name: "label errors", text: (each) => count(each.label_errors), number: true, sort: (each) => each.label_errors, cell: (each) => failures(each.label_errors) },
    { name: "metrics, lowest–highest", text: valuesText, cell: (each) => <Values experiment={each} /> },
    { name: "changed (UTC)", text: date, sort: (each) => each.updated, cell: (each) => <span class="state quiet">{date(each)}</span> },
  ];
}
