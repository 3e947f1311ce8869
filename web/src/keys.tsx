// Keys: what the shell and the views react to, and the dialog that lists them.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";

export type Keys = Record<string, { about: string; run: () => void }>; // by `KeyboardEvent.key`, or two of them: "g l"

const active = signal<Keys[]>([]);
let first = ""; // the key before, where two belong together
let since = 0;

// The keys of a component while it is shown; the newest component wins.
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  const names = Object.keys(keys).join();
  useEffect(() => {
    const entry: Keys = {};
    for (const key of Object.keys(keys)) entry[key] = { about: keys[key]!.about, run: () => latest.current[key]?.run() };
    active.value = [entry, ...active.value];
    return () => void (active.value = active.value.filter((each) => each !== entry));
  }, [names]);
}

export function press(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName) || target.closest("dialog")) return;
  const two = Date.now() - since < 1500 ? `${first} ${event.key}` : "";
  const run = find(two) ?? find(event.key);
  [first, since] = [event.key, Date.now()];
  if (!run) return;
  event.preventDefault();
  run();
}

const find = (key: string): (() => void) | undefined => active.value.find((each) => each[key])?.[key]?.run;

export const keysShown = signal(false);

export function KeysDialog(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = keysShown.value;
  useEffect(() => {
    if (shown && !dialog.current?.open) dialog.current?.showModal();
  }, [shown]);
  // The browser would close it a moment later, and the next key would be lost.
  const leave = (event: KeyboardEvent): void => void (event.key === "Escape" && (event.preventDefault(), dialog.current?.close()));
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onKeyDown={leave} onClose={() => (keysShown.value = false)}>
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        {active.value.flatMap((keys) =>
          Object.entries(keys).map(([key, { about }]) => (
            <div key={key}>
              <dt>
                {key.split(" ").map((part) => (
                  <kbd>{part}</kbd>
                ))}
              </dt>
              <dd>{about}</dd>
            </div>
          )),
        )}
      </dl>
      <form method="dialog">
        <button>Close</button>
      </form>
    </dialog>
  );
}
