// Texts of models, items and files in one line: what cannot be seen is shown as its code, what is long is cut.
import { useState } from "preact/hooks";
import type { JSX } from "preact";

// Control characters, what turns the direction, what has no width, tags, halves of characters.
const HIDDEN =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\u200d(?!\p{Extended_Pictographic})|\p{Cs}/gu;

// Line breaks and tabs stay as they are.
export const visible = (text: string): string =>
  text.replace(HIDDEN, (character) => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);

// The nearest place before `end` that does not split a character.
export const whole = (text: string, end: number): number => (end < text.length && /[\ud800-\udbff]/.test(text[end - 1] ?? "") ? end - 1 : end);

const PLAIN = /^[ -~]*$/; // most texts of lists, which are drawn often

export const oneLine = (text: string, longest = 90): string =>
  text.length <= longest && PLAIN.test(text) ? text : visible(`${text.slice(0, whole(text, longest))}${text.length > longest ? "…" : ""}`.replace(/\r?\n/g, " ⏎ ").replace(/\t/g, " "));

// The name of a task is cut in its middle where it is too long: tasks differ at their end.
export function TaskName({ text }: { text: string }): JSX.Element {
  const name = oneLine(text, 200);
  const at = Math.max(0, name.lastIndexOf("/"));
  return (
    <span class="task-name">
      <span>{name.slice(0, at)}</span>
      <span>{name.slice(at)}</span>
    </span>
  );
}

const SHORT = 28; // characters that are not worth a second line

export function Line({ text, longest = 90 }: { text: string; longest?: number }): JSX.Element {
  const [all, setAll] = useState(false);
  if (text.length <= longest) return <bdi class={text.length <= SHORT ? "short" : "long"}>{oneLine(text, Infinity)}</bdi>;
  return (
    <span class="long">
      <bdi>{oneLine(text, all ? Infinity : longest)}</bdi>
      <button class="more" aria-expanded={all} aria-label={all ? "less of this text" : "more of this text"} onClick={() => setAll(!all)}>
        {all ? "less" : "more"}
      </button>
    </span>
  );
}

// A sentence of ours: what stands between backticks is code.
export const Prose = ({ text }: { text: string }): JSX.Element => <>{text.split(/`([^`\n]+)`/).map((part, index) => (index % 2 ? <code key={index}>{visible(part)}</code> : visible(part)))}</>;
