// Blind labelling by people: one answer after the other by keys; what the judge said is shown once a label is given.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys, type Keys } from "../keys";
import { oneLine } from "../line";
import { listed } from "../live";
import type { Review as Page, ReviewUnit } from "../pages";
import { change, href, route } from "../router";
import type { PageError } from "../source";
import { Fold, RenderToggle, Text, toggleRendered } from "../text";
import { Choice, Show, count, usePage, useSource } from "../ui";

const NAME = "assay-annotator";

export function Review(): JSX.Element {
  const query = route.value.query;
  const experiments = listed.value.value?.experiments ?? [];
  const experiment = query.get("experiment") ?? (experiments.length === 1 ? experiments[0]!.id : "");
  if (experiment) return <Labelling key={experiment} experiment={experiment} />;
  return (
    <section class="review">
      <p>Which answers are to be labelled?</p>
      <ul>
        {experiments.map(({ id }) => (
          <li>
            <a href={href("review", { experiment: id })}>{oneLine(id)}</a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Labelling({ experiment }: { experiment: string }): JSX.Element {
  const query = route.value.query;
  const [again, setAgain] = useState(0);
  const asked = { experiment, label: query.get("label") ?? "", annotator: query.get("annotator") || rememberedName(), count: query.get("count") ?? "" };
  const page = usePage("review", asked, again);
  return (
    <section class="review">
      <Show page={page}>
        {(value) =>
          value.annotator ? (
            <Desk key={`${value.label} ${value.annotator}`} page={value} experiment={experiment} count={Number(asked.count) || undefined} reload={() => setAgain(again + 1)} />
          ) : (
            <AskName />
          )
        }
      </Show>
    </section>
  );
}

function rememberedName(): string {
  try {
    return localStorage.getItem(NAME) ?? "";
  } catch {
    return ""; // a browser may refuse to store
  }
}

function AskName(): JSX.Element {
  const [name, setName] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!name.trim()) return;
    try {
      localStorage.setItem(NAME, name.trim());
    } catch {
      // The address has it.
    }
    change({ annotator: name.trim() }, { replace: true });
  };
  return (
    <form onSubmit={submit}>
      <label>
        Your name, which is stored with your labels <input type="text" value={name} maxLength={100} required onInput={(event) => setName(event.currentTarget.value)} />
      </label>{" "}
      <button>begin</button>
    </form>
  );
}

interface Given {
  unit: ReviewUnit;
  value: number;
  judge: number | null;
  note: string;
  tags: string[];
}

function Desk({ page, experiment, count: most, reload }: { page: Page; experiment: string; count?: number; reload: () => void }): JSX.Element {
  const [before] = useState(page.done);
  const [waiting, setWaiting] = useState(page.waiting);
  const [given, setGiven] = useState<Given[]>([]);
  const [note, setNote] = useState("");
  const [tags, setTags] = useState("");
  const [problem, setProblem] = useState<{ value: number | null; error: PageError }>();
  const busy = useRef(false);
  const unit = waiting[0];
  const last = given.at(-1);

  const save = async (of: ReviewUnit, value: number | null): Promise<number | null | undefined> => {
    busy.current = true;
    try {
      const label = { experiment, label: page.label, annotator: page.annotator, unit: of.id, value, count: most };
      const { judge } = await useSource().save({ ...label, note: value === null ? "" : note, tags: value === null ? [] : words(tags) });
      setProblem(undefined);
      return judge;
    } catch (error) {
      setProblem({ value, error: error as PageError });
      return undefined;
    } finally {
      busy.current = false;
    }
  };
  const show = (units: ReviewUnit[], itsNote = "", itsTags = ""): void => {
    setWaiting(units);
    setNote(itsNote);
    setTags(itsTags);
  };
  const give = async (value: number): Promise<void> => {
    if (!unit || busy.current) return;
    const judge = await save(unit, value);
    if (judge === undefined) return;
    setGiven([...given, { unit, value, judge, note, tags: words(tags) }]);
    show(waiting.slice(1));
  };
  const undo = async (): Promise<void> => {
    if (!last || busy.current || (await save(last.unit, null)) === undefined) return;
    setGiven(given.slice(0, -1));
    show([last.unit, ...waiting], last.note, last.tags.join(", "));
  };
  const skip = (): void => unit && show([...waiting.slice(1), unit]);
  const choices = choicesOf(page);
  const keys: Keys = { u: { about: "take the last label back", run: undo }, s: { about: "skip", run: skip }, r: { about: "raw or rendered texts", run: toggleRendered } };
  for (const { name, value, keys: own } of choices) for (const key of own) keys[key] = { about: name, run: () => void give(value) };
  useKeys(keys);
  useEffect(() => {
    if (!unit && given.length) reload(); // for the agreement
  }, [unit]);

  const done = before + given.length;
  return (
    <>
      <div class="bar">
        {page.labels.length > 1 ? <Choice name="label" value={page.label} options={page.labels} onChange={(label) => change({ label })} /> : <strong>{oneLine(page.label)}</strong>}
        <span role="status">
          <progress value={done} max={Math.max(1, done + waiting.length)} aria-label="labelled" /> {count(done)} of {count(done + waiting.length)} labelled
        </span>
        <span class="quiet">by {oneLine(page.annotator)}</span>
        <RenderToggle />
      </div>
      {last && (
        <p class="box" aria-live="polite">
          {oneLine(last.unit.question, 60)}: you said {word(page, last.value)}, the judge {last.judge === null ? "nothing" : word(page, last.judge)}
          {last.judge !== null && last.judge !== last.value && <strong class="bad"> (you disagree)</strong>} <button onClick={undo}>undo</button> <kbd>u</kbd>
        </p>
      )}
      {problem && (
        <div class="problem box" role="alert">
          <p>
            Not saved: {problem.value === null ? "taking it back" : word(page, problem.value)}. {problem.error.message}
          </p>
          {problem.error.fix && <p class="quiet">{problem.error.fix}</p>}
          <button onClick={() => void (problem.value === null ? undo() : give(problem.value))}>try again</button>
        </div>
      )}
      {unit ? (
        <>
          <Unit key={unit.id} unit={unit} asked={page.asked} />
          <div class="choices" role="group" aria-label="label">
            {choices.map(({ name, value, keys: own }) => (
              <button onClick={() => void give(value)}>
                {name} {own.map((key) => <kbd>{KEY_NAMES[key] ?? key}</kbd>)}
              </button>
            ))}
            <button onClick={skip}>
              skip <kbd>s</kbd>
            </button>
          </div>
          <Remarks note={note} tags={tags} onNote={setNote} onTags={setTags} />
        </>
      ) : (
        <Summary page={page} />
      )}
    </>
  );
}

const words = (tags: string): string[] => [...new Set(tags.split(",").map((each) => each.trim()))].filter(Boolean);

const KEY_NAMES: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→" };

interface Possible {
  name: string;
  value: number;
  keys: string[];
}

function choicesOf(page: Page): Possible[] {
  if (page.pairwise)
    return [
      { name: "the first is better", value: 1, keys: ["ArrowLeft"] },
      { name: "equal", value: 0.5, keys: ["="] },
      { name: "the second is better", value: 0, keys: ["ArrowRight"] },
    ];
  const { scale } = page;
  if (!scale)
    return [
      { name: "pass", value: 1, keys: ["1", "p"] },
      { name: "fail", value: 0, keys: ["0", "f"] },
    ];
  const digits = scale.every((grade) => Number.isInteger(grade) && grade >= 0 && grade <= 9);
  return scale.map((value, index) => ({ name: String(value), value, keys: digits ? [String(value)] : index < 9 ? [String(index + 1)] : [] }));
}

const word = (page: Page, value: number): string => choicesOf(page).find((each) => each.value === value)?.name ?? String(value);

function Unit({ unit, asked }: { unit: ReviewUnit; asked: string }): JSX.Element {
  const several = unit.answers.length > 1;
  return (
    <>
      {asked && (
        <Fold title="what the judge was asked">
          <Text text={asked} />
        </Fold>
      )}
      <section class="asked" aria-label="question">
        <h2>Question</h2>
        <Text text={unit.question} />
        {unit.reference !== null && (
          <>
            <h2>Reference</h2>
            <Text text={unit.reference} />
          </>
        )}
      </section>
      <div class="answers">
        {unit.answers.map((answer, index) => {
          const title = several ? `Answer ${index + 1}` : "Answer";
          return (
            <section aria-label={title}>
              <h2>{title}</h2>
              {answer ? <Text text={answer} /> : <p class="quiet">(empty)</p>}
            </section>
          );
        })}
      </div>
    </>
  );
}

function Remarks(props: { note: string; tags: string; onNote: (text: string) => void; onTags: (text: string) => void }): JSX.Element {
  const leave = (event: KeyboardEvent): void => {
    if (event.key === "Escape") (event.currentTarget as HTMLElement).blur();
  };
  return (
    <details class="remarks" open={props.note !== "" || props.tags !== "" || undefined}>
      <summary>note and tags</summary>
      <label>
        note (Esc leaves it) <textarea rows={2} maxLength={20_000} value={props.note} onKeyDown={leave} onInput={(event) => props.onNote(event.currentTarget.value)} />
      </label>
      <label>
        tags, with commas between <input type="text" value={props.tags} onKeyDown={leave} onInput={(event) => props.onTags(event.currentTarget.value)} />
      </label>
    </details>
  );
}

function Summary({ page }: { page: Page }): JSX.Element {
  const different = page.labelled.filter((each) => each.judge !== null && each.judge !== each.label);
  return (
    <>
      <p>{page.labelled.length ? "All are labelled." : "There is nothing to label."}</p>
      {page.agreement.length > 0 && (
        <dl class="fields">
          {page.agreement.map(([what, value, interval]) => (
            <>
              <dt>{what}</dt>
              <dd>
                {value} <span class="quiet">{interval}</span>
              </dd>
            </>
          ))}
        </dl>
      )}
      <h2>Where you and the judge disagree: {count(different.length)}</h2>
      {different.map(({ unit, label, judge, note, tags }) => (
        <Fold title={`${oneLine(unit.question, 80)}: you ${label === null ? "–" : word(page, label)}, the judge ${word(page, judge!)}`}>
          <Unit unit={unit} asked="" />
          {(note || tags.length > 0) && <p class="quiet">{oneLine([note, ...tags].join(" · "), 400)}</p>}
        </Fold>
      ))}
    </>
  );
}
