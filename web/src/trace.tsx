// What led to a response and what followed from it: steps, inner calls, labels, matches.
import type { JSX } from "preact";
import type { Trace } from "./pages";
import { oneLine } from "./line";
import { Chat, Fold, Raw, Reasoning, Some, ToolCalls, Turn, Value, type Message } from "./text";
import { count, money, number, seconds as duration, spanText, valueText } from "./ui";
import { Mark } from "./views/samples";

const LONGEST_QUOTE = 100_000; // characters of an answer that is looked for

type Row = Record<string, any>;
type TraceSample = Trace["samples"][number];

const seconds = (value: unknown): string => (typeof value === "number" ? duration(value) : "");
const dollars = (value: unknown): string => (typeof value === "number" ? money(value) : "");
const tokens = (value: unknown): string => (typeof value === "number" ? `${count(value)} tokens` : "");
const facts = (...words: unknown[]): string => words.filter(Boolean).map(String).join(" · ");

export function Facts({ row }: { row: Row }): JSX.Element {
  const served = row.served_model && row.served_model !== row.model_name ? `served by ${oneLine(row.served_model, 80)}` : "";
  const finish = row.metadata?.finish_reason;
  return (
    <p>
      <Mark outcome={row.outcome ?? "ok"} passed={null} />{" "}
      <span class="quiet">
        {facts(seconds(row.inference_time), tokens(row.total_tokens), dollars(row.cost), served, finish && `finish: ${oneLine(String(finish), 40)}`)}
      </span>
    </p>
  );
}

// The messages and the answer, which some rows have as their last message as well.
export function Conversation({ row }: { row: Row }): JSX.Element {
  const messages: Message[] = row.messages?.length ? row.messages : [{ role: "user", content: row.prompt ?? "" }];
  const last = messages.at(-1);
  const asked = last?.role === "assistant" && last.content === row.response ? messages.slice(0, -1) : messages;
  return (
    <>
      <Chat messages={asked} />
      <ol class="chat" aria-label="answer">
        <Turn role="assistant" more="the answer">
          {row.reasoning && <Reasoning text={String(row.reasoning)} />}
          {row.response ? <Value value={row.response} /> : row.output === null || row.output === undefined ? <p class="quiet">no text</p> : <Value value={row.output} />}
          <ToolCalls calls={row.tool_calls} />
        </Turn>
      </ol>
    </>
  );
}

// A span's parent is the place of an earlier one.
export function Spans({ spans }: { spans: unknown[] }): JSX.Element {
  const below = new Map<number, number[]>();
  const rows: Row[] = spans.map((span) => (span && typeof span === "object" ? span : { data: span }));
  rows.forEach(({ parent }, index) => {
    const above = Number.isInteger(parent) && parent >= 0 && parent < index ? parent : -1;
    const children = below.get(above);
    if (children) children.push(index);
    else below.set(above, [index]);
  });
  const tree = (parent: number): JSX.Element | null => {
    const children = below.get(parent);
    if (!children) return null;
    return (
      <ul class="tree">
        <Some list={children}>
          {(index) => (
            <li>
              <Fold title={<SpanTitle span={rows[index]!} />}>
                <Value value={rows[index]!.data ?? rows[index]} />
              </Fold>
              {tree(index)}
            </li>
          )}
        </Some>
      </ul>
    );
  };
  return <>{tree(-1)}</>;
}

function SpanTitle({ span }: { span: Row }): JSX.Element {
  return (
    <>
      {oneLine(String(span.name ?? "step"), 80)} <span class="quiet">{span.end && span.start ? seconds(span.end - span.start) : "not ended"}</span>{" "}
      {span.error && <span class="problem">{oneLine(String(span.error), 120)}</span>}
    </>
  );
}

export function Calls({ calls }: { calls: Row[] }): JSX.Element {
  return (
    <ul class="tree">
      <Some list={calls}>
        {(call) => {
          const completion: Row = call.completion ?? {};
          return (
            <li>
              <Fold
                title={
                  <>
                    {oneLine(facts(call.step, call.model_name), 80)} <span class="quiet">{facts(seconds(call.seconds), tokens(completion.total_tokens), dollars(completion.cost))}</span>{" "}
                    {oneLine(String(completion.text ?? call.error ?? ""), 90)}
                  </>
                }
              >
                <Conversation row={{ messages: call.messages ?? [], response: completion.text, reasoning: completion.reasoning, tool_calls: completion.tool_calls }} />
                {call.error && <p class="problem">{oneLine(String(call.error))}</p>}
              </Fold>
            </li>
          );
        }}
      </Some>
    </ul>
  );
}

export const callsTitle = (calls: Row[], whose: string, which = "for all samples of this item"): string => {
  const sum = (pick: (call: Row) => unknown): number => calls.reduce((total, call) => total + Number(pick(call) ?? 0), 0);
  const costs = calls.map((call) => call.completion?.cost);
  const cost = costs.every((each) => typeof each === "number") ? dollars(sum((call) => call.completion?.cost)) : "";
  return facts(`${count(calls.length)} ${calls.length === 1 ? "call" : "calls"} of ${whose} ${which}`, seconds(sum((call) => call.seconds)), cost);
};

// A call does not say which sample it was made for; where only some quote the answer, it was one of these.
function quotes(calls: Row[], answer: string): [quoting: Row[], others: Row[]] {
  const isQuoted = (call: Row): boolean => (call.messages ?? []).some((message: Message) => (typeof message.content === "string" ? message.content : JSON.stringify(message.content ?? "")).includes(answer));
  const quoting = answer && answer.length < LONGEST_QUOTE ? calls.filter(isQuoted) : [];
  return quoting.length < calls.length ? [quoting, calls.filter((call) => !quoting.includes(call))] : [[], calls];
}

// The labels of each scorer, with what it asked its judge.
export function Labels({ sample, calls }: { sample: TraceSample; calls: Row[] }): JSX.Element {
  const scorers = [...new Set(sample.evaluations.map((each) => String(each.scorer ?? "")))];
  if (!scorers.length) return <p class="quiet">nothing has judged it</p>;
  return (
    <>
      <Some as="div" list={scorers}>
        {(scorer) => {
          const [quoting, others] = quotes(calls.filter((call) => call.owner === scorer), String(sample.response.response ?? ""));
          return (
            <div class="label">
              <Some as="div" list={sample.evaluations.filter((each) => String(each.scorer ?? "") === scorer)}>
                {(each) => <Label row={each} />}
              </Some>
              {[quoting, others].map(
                (calls) =>
                  calls.length > 0 && (
                    <Fold title={callsTitle(calls, oneLine(scorer, 60), calls === quoting ? "which quote this answer" : quoting.length ? "which do not" : undefined)}>
                      <Calls calls={calls} />
                    </Fold>
                  ),
              )}
            </div>
          );
        }}
      </Some>
    </>
  );
}

function Label({ row }: { row: Row }): JSX.Element {
  return (
    <section aria-label={`label ${oneLine(String(row.label ?? ""), 80)}`}>
      <p>
        <strong>{oneLine(String(row.label || row.scorer || "label"), 80)}</strong> <Mark outcome={row.outcome ?? "scored"} passed={row.passed ?? null} />{" "}
        <span class="quiet">{facts(typeof row.score === "number" && `score ${number(row.score)}`, seconds(row.evaluation_time))}</span>
      </p>
      {row.value !== null && row.value !== undefined && <Value value={row.value} />}
      <Why row={row} />
    </section>
  );
}

function Why({ row }: { row: Row }): JSX.Element {
  const { reason, ...details } = (row.detailed_results ?? {}) as Row;
  const metrics: Row[] = row.metrics ?? [];
  return (
    <>
      {row.error && <div class="problem"><Raw text={String(row.error)} /></div>}
      {reason !== undefined && <Value value={reason} />}
      {Object.keys(details).length > 0 && (
        <Fold title="details">
          <Value value={details} />
        </Fold>
      )}
      {metrics.length > 0 && (
        <Fold title={`entered ${count(metrics.length)} ${metrics.length === 1 ? "metric" : "metrics"}`}>
          <ul>
            <Some list={metrics}>{(metric) => <li>{metricText(metric)}</li>}</Some>
          </ul>
        </Fold>
      )}
    </>
  );
}

function metricText(metric: Row): string {
  const group = (metric.facets ?? []).map((facet: string) => `${facet}=${metric[facet]}`).join(", ");
  const shown = { value: metric.value ?? null, ci_low: metric.ci_low ?? null, ci_high: metric.ci_high ?? null, ci_method: String(metric.ci_method) };
  const interval = shown.ci_low === null && shown.ci_high === null ? "" : ` (${spanText(shown)})`;
  const missing = typeof metric.total_sample_count === "number" ? ` · ${count(metric.used_sample_count)} of ${count(metric.planned_sample_count ?? metric.total_sample_count)} samples used` : "";
  return oneLine(`${metric.metric_name}${group ? ` (${group})` : ""}: ${valueText(shown)}${interval}${missing}${metric.reason ? ` · ${metric.reason}` : ""}`, 400);
}

export function Matches({ trace }: { trace: Trace }): JSX.Element {
  return (
    <>
      <Some as="div" list={trace.matches}>
        {({ label, players, sample_index, evaluations }) => (
          <div class="label">
            <p>
              <strong>{oneLine(label, 80)}</strong> {players.map((each) => oneLine(each, 60)).join(" vs ")} <span class="quiet">sample {sample_index}</span>
            </p>
            {evaluations.map((row) => (
              <section>
                <p>
                  {oneLine(String(players[row.seat ? 1 : 0] ?? ""), 60)} first: {winner(row, players)}
                </p>
                <Why row={row} />
              </section>
            ))}
          </div>
        )}
      </Some>
    </>
  );
}

function winner(row: Row, players: string[]): string {
  if ((row.outcome ?? "scored") !== "scored" || typeof row.score !== "number") return String(row.outcome ?? "no verdict");
  return row.score === 0.5 ? "tie" : `${oneLine(players[row.score > 0.5 ? 0 : 1] ?? "", 60)} wins`;
}
