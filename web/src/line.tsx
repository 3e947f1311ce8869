// Texts from models, items and files in one line: what cannot be seen is shown as its code, what is long is cut.
import { useState } from "preact/hooks";
import type { JSX } from "preact";

// Control characters, invisible ones, and those that change the direction of writing.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;
const PARTS = new RegExp(`(${UNSEEN.source})`);

const code = (character: string): string => (character === "\n" ? "⏎" : character === "\t" ? "⇥" : `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`);

// `lines`: line breaks and tabs stay as they are.
export const Visible = ({ text, lines = false }: { text: string; lines?: boolean }): JSX.Element => (
  <bdi>
    {UNSEEN.test(text)
      ? text.split(PARTS).map((part, index) => (index % 2 === 0 || (lines && /[\n\t]/.test(part)) ? part : <span class="unseen">{code(part)}</span>))
      : text}
  </bdi>
);

// Where only a string can stand (an option, a title).
export const oneLine = (text: string, longest = 90): string => {
  const seen = text.slice(0, longest).split(PARTS).map((part, index) => (index % 2 ? `⟨${code(part)}⟩` : part));
  return seen.join("") + (text.length > longest ? "…" : "");
};

const SHORT = 28; // characters that are not worth a second line

export function Line({ text, longest = 90 }: { text: string; longest?: number }): JSX.Element {
  const [all, setAll] = useState(false);
  if (text.length <= longest) return <span class={text.length <= SHORT ? "short" : "long"}><Visible text={text} /></span>;
  return (
    <span class="long">
      <Visible text={all ? text : text.slice(0, longest)} />
      <button class="more" aria-expanded={all} aria-label={all ? "show less" : "show all of this text"} onClick={() => setAll(!all)}>
        {all ? "less" : "…"}
      </button>
    </span>
  );
}
