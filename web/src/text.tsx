// Texts of models, items and people: raw with hidden characters as codes, cut where they are long, rendered when asked.
import { Component, type ComponentChildren, type JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { diffWordsWithSpace, type ChangeObject } from "diff";
import { oneLine, visible, whole } from "./line";
import { change, route } from "./router";
import { count, useSource } from "./ui";

const FIRST = 20_000; // characters shown of a long text
const PIECE = 50_000; // characters laid out at once when all is shown
const MOST_RENDERED = 200_000;
const MOST_COMPARED = 20_000;
export const size = (length: number): string =>
  length < 1000 ? `${length} characters` : length < 1e6 ? `${Math.round(length / 1000)} kB` : `${Math.round(length / 1e6)} MB`;

export const isRendered = (): boolean => route.value.query.get("show") === "rendered";
export const toggleRendered = (): void => change({ show: isRendered() ? undefined : "rendered" }, { replace: true });

export function RenderToggle(): JSX.Element {
  return (
    <button aria-pressed={isRendered()} onClick={toggleRendered} title="key r">
      rendered
    </button>
  );
}

export function Text({ text }: { text: string }): JSX.Element {
  return isRendered() ? <Rendered key={text} text={text} /> : <Raw key={text} text={text} />;
}

export function Raw({ text }: { text: string }): JSX.Element {
  const [all, setAll] = useState(false);
  const [end, setEnd] = useState(() => whole(text, FIRST));
  useEffect(() => {
    if (!all || end >= text.length) return;
    const timer = setTimeout(() => setEnd(whole(text, end + PIECE)), 0);
    return () => clearTimeout(timer);
  }, [all, end]);
  const starts = [0];
  for (let start = whole(text, FIRST); start < end; start = whole(text, start + PIECE)) starts.push(start);
  return (
    <div class="raw" dir="auto">
      {starts.map((start, index) => (
        <Piece key={start} text={text} start={start} end={Math.min(starts[index + 1] ?? end, text.length)} />
      ))}
      {text.length > FIRST && !all && <button onClick={() => setAll(true)}>show all ({size(text.length)})</button>}
    </div>
  );
}

class Piece extends Component<{ text: string; start: number; end: number }> {
  override shouldComponentUpdate(next: { end: number }): boolean {
    return next.end !== this.props.end;
  }

  override render(): JSX.Element {
    return <pre>{visible(this.props.text.slice(this.props.start, this.props.end))}</pre>;
  }
}

type Rich = (text: string, load: boolean) => DocumentFragment;
let rich: Promise<Rich> | undefined;

function loadRich(): Promise<Rich> {
  rich ??= useSource()
    .asset("rich.js")
    .then((code) => {
      const script = document.createElement("script");
      script.textContent = code;
      document.head.append(script);
      const make = (window as unknown as { assayRich?: Rich }).assayRich;
      if (!make) throw new Error("the browser refused the script that renders texts");
      return make;
    });
  return rich;
}

function Rendered({ text }: { text: string }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState("");
  const json = useMemo(() => (text.length > MOST_RENDERED ? null : prettyJson(text)), [text]);
  useEffect(() => {
    if (json !== null || text.length > MOST_RENDERED) return;
    let wanted = true;
    loadRich().then(
      (make) => wanted && place.current?.replaceChildren(make(visible(text), useSource().live)),
      (error: Error) => wanted && setProblem(error.message),
    );
    return () => void (wanted = false);
  }, [text]);
  if (json !== null) return <Raw text={json} />;
  if (text.length > MOST_RENDERED || problem)
    return (
      <>
        <p class="quiet">{problem || `not rendered: it is longer than ${size(MOST_RENDERED)}`}</p>
        <Raw text={text} />
      </>
    );
  return <div class="rendered" dir="auto" ref={place} />;
}

function prettyJson(text: string): string | null {
  if (!/^\s*[{[]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

// Any JSON value: texts as texts, pictures as pictures, the rest as JSON.
export function Value({ value }: { value: unknown }): JSX.Element {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "–");
  if (typeof value !== "string") return <Raw key={text} text={text} />;
  return isPicture(value) ? <Image address={value} /> : <Text text={value} />;
}

const isPicture = (text: string): boolean => /^data:image\/[\w.+-]+[;,]/.test(text);

// A picture from elsewhere is loaded on a click only: its address would tell its owner who looks.
export function Image({ address }: { address: string }): JSX.Element {
  const [load, setLoad] = useState(false);
  if (isPicture(address) || load) return <img src={address} alt="" class="picture" referrerpolicy="no-referrer" />;
  if (!useSource().live || !/^https?:/.test(address)) return <code>picture: {oneLine(address)}</code>;
  return <button onClick={() => setLoad(true)}>load the picture {oneLine(address)}</button>;
}

export interface Message {
  role?: string;
  content?: unknown;
  name?: string;
  tool_call_id?: string;
  tool_calls?: unknown;
  reasoning?: unknown;
}

export function Chat({ messages }: { messages: Message[] }): JSX.Element {
  return (
    <ol class="chat">
      <Some list={messages}>
        {(message) => (
          <Turn role={String(message.role ?? "message")} more={oneLine(String(message.tool_call_id ?? message.name ?? ""))}>
            {message.reasoning && <Reasoning text={String(message.reasoning)} />}
            <Content content={message.content} />
            <ToolCalls calls={message.tool_calls} />
          </Turn>
        )}
      </Some>
    </ol>
  );
}

const ROLES = ["system", "developer", "user", "assistant", "tool"];

export function Turn({ role, more = "", children }: { role: string; more?: string; children: ComponentChildren }): JSX.Element {
  return (
    <li class={`turn ${ROLES.includes(role) ? role : ""}`}>
      <p class="role">
        {oneLine(role)}
        {more && ` · ${more}`}
      </p>
      {children}
    </li>
  );
}

function Content({ content }: { content: unknown }): JSX.Element | null {
  if (content === null || content === undefined || content === "") return null;
  if (!Array.isArray(content)) return <Value value={content} />;
  return <>{content.map((part) => partOf(part))}</>;
}

function partOf(part: any): JSX.Element {
  if (typeof part?.text === "string") return <Text text={part.text} />;
  const address = part?.image_url?.url ?? part?.image_url ?? part?.url;
  return part?.type?.includes?.("image") && typeof address === "string" ? <Image address={address} /> : <Value value={part} />;
}

export function Reasoning({ text }: { text: string }): JSX.Element {
  return (
    <Fold title={`reasoning (${size(text.length)})`}>
      <Text text={text} />
    </Fold>
  );
}

// What is folded is made when it is opened.
export function Fold({ title, open: opened = false, children }: { title: ComponentChildren; open?: boolean; children: ComponentChildren }): JSX.Element {
  const [open, setOpen] = useState(opened);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {open && children}
    </details>
  );
}

const MANY = 100;

// The first of a list that may be long, and a way to the others.
export function Some<Entry>({ list, as: Tag = "li", children }: { list: Entry[]; as?: "li" | "div"; children: (entry: Entry) => ComponentChildren }): JSX.Element {
  const [most, setMost] = useState(MANY);
  return (
    <>
      {list.slice(0, most).map((entry) => children(entry))}
      {list.length > most && (
        <Tag>
          <button onClick={() => setMost(most + 10 * MANY)}>show more of the {count(list.length - most)} others</button>
        </Tag>
      )}
    </>
  );
}

export function ToolCalls({ calls }: { calls: unknown }): JSX.Element | null {
  const list: any[] = Array.isArray(calls) ? calls : calls ? [calls] : [];
  if (!list.length) return null;
  return (
    <ul class="tool-calls" aria-label="tool calls">
      <Some list={list}>
        {(call) => (
          <li>
            <p class="role">
              calls {oneLine(String(call?.function?.name ?? call?.name ?? ""))} <span class="quiet">{oneLine(String(call?.id ?? ""))}</span>
            </p>
            <Value value={call?.function ? call.function.arguments : call} />
          </li>
        )}
      </Some>
    </ul>
  );
}

// The words that two texts share and do not; undefined: they are too long or too different.
export const useDifference = (before: string, after: string): ChangeObject<string>[] | undefined =>
  useMemo(() => (before.length + after.length > MOST_COMPARED ? undefined : diffWordsWithSpace(before, after, { timeout: 100 })), [before, after]);

export function Difference({ before, after }: { before: string; after: string }): JSX.Element {
  const parts = useDifference(before, after);
  if (!parts) return <p class="quiet">the texts are too long or too different to compare by words</p>;
  return (
    <pre class="difference" dir="auto">
      {parts.map((part) => (part.added ? <ins>{visible(part.value)}</ins> : part.removed ? <del>{visible(part.value)}</del> : visible(part.value)))}
    </pre>
  );
}
