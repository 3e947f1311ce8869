// The items on which two runs differ, each with the words that changed.
import type { ComponentChildren } from "preact";
import { CarriedPart } from "../filters";
import { Line, visible } from "../line";
import type { Flips as Page } from "../pages";
import { change, href, route } from "../router";
import { useDifference } from "../text";
import { Choice, Show, count, number, usePage, useSource } from "../ui";

const LIMIT = 20;
const MOST_SHOWN = 5_000; // of an answer that is not compared

export function Flips({ a, b, label }: { a: string; b: string; label: string }) {
  const { query } = route.value;
  const direction = query.get("direction") ?? "";
  const offset = Number(query.get("offset") ?? 0) || 0;
  const page = usePage("flips", { a, b, label, direction, offset, limit: LIMIT });
  return (
    <section aria-label="flips">
      <h2>What flipped</h2>
      <div class="controls">
        <Choice
          name="show"
          value={direction}
          options={[
            { value: "", text: "gained and lost" },
            { value: "gained", text: "gained" },
            { value: "lost", text: "lost" },
          ]}
          onChange={(value) => change({ direction: value, offset: undefined })}
        />
      </div>
      <Show page={page}>
        {(value) => (
          <>
            <p class="quiet">
              {count(value.total)} {value.total === 1 ? "item" : "items"}: {count(value.gained)} gained, {count(value.lost)} lost
            </p>
            {!useSource().live && <CarriedPart />}
            {value.rows.map((flip) => (
              <Flip key={flip.item} flip={flip} />
            ))}
            <Pager offset={offset} total={value.total} />
          </>
        )}
      </Show>
    </section>
  );
}

function Pager({ offset, total }: { offset: number; total: number }) {
  if (total <= LIMIT) return null;
  const to = (place: number) => change({ offset: place > 0 ? place : undefined });
  return (
    <div class="pager">
      <button disabled={offset === 0} onClick={() => to(offset - LIMIT)}>
        Previous
      </button>
      <span>
        {count(offset + 1)}–{count(Math.min(offset + LIMIT, total))} of {count(total)}
      </span>
      <button disabled={offset + LIMIT >= total} onClick={() => to(offset + LIMIT)}>
        Next
      </button>
    </div>
  );
}

type Row = Page["rows"][number];

function Flip({ flip }: { flip: Row }) {
  const experiment = [...new Set([flip.a.experiment, flip.b.experiment])];
  return (
    <article class="flip">
      <h3>
        <a href={href("sample", { experiment, item: flip.item })}>
          <Line text={flip.item} />
        </a>
        <span class={`badge ${flip.direction === "gained" ? "good" : "bad"}`}>{flip.direction}</span>
      </h3>
      <p>
        <Line text={flip.question} longest={300} />
      </p>
      <Answers {...flip} />
    </article>
  );
}

function Answers({ a, b, direction }: Row) {
  const gained = direction === "gained";
  const parts = useDifference(a.answer, b.answer);
  const side = (name: string, { value, answer }: Row["a"], isBetter: boolean, words: ComponentChildren) => (
    <div>
      <div class="quiet">
        {name}: {number(value)}, {isBetter ? "better" : "worse"}
      </div>
      <div class={`answer ${isBetter ? "better" : "worse"}`} tabIndex={0} role="group" aria-label={`answer of ${name}`} dir="auto">
        {parts ? words : <Line text={answer} longest={MOST_SHOWN} />}
      </div>
    </div>
  );
  return (
    <div class="beside">
      {side("a", a, !gained, parts?.map((part) => (part.added ? null : part.removed ? <del>{visible(part.value)}</del> : visible(part.value))))}
      {side("b", b, gained, parts?.map((part) => (part.removed ? null : part.added ? <ins>{visible(part.value)}</ins> : visible(part.value))))}
    </div>
  );
}
