// Controls of the header: which experiments are looked at, light or dark.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { Menu } from "./menu";
import type { Experiment } from "./pages";
import { change, chosen } from "./router";
import { oneLine } from "./line";

const MANY = 8; // experiments from which on they can be searched

export function Chooser({ experiments }: { experiments: Experiment[] }): JSX.Element | null {
  const [search, setSearch] = useState("");
  const ids = chosen();
  if (experiments.length < 2 && !ids.length) return null;
  const choose = (id: string, wanted: boolean) => change({ experiment: wanted ? [...ids, id] : ids.filter((each) => each !== id), offset: undefined });
  const text = ids.length === 0 ? `All ${experiments.length} experiments` : ids.length === 1 ? oneLine(ids[0]!, 40) : `${ids.length} of ${experiments.length} experiments`;
  const shown = experiments.filter((each) => each.id.toLowerCase().includes(search.toLowerCase())).slice(0, 200);
  return (
    <Menu title={text} label={`experiments: ${text}`}>
      <fieldset>
        <legend class="hidden">Experiments to look at</legend>
        {experiments.length >= MANY && <input type="text" placeholder="part of a name" aria-label="part of an experiment's name" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />}
        <div class="entries">
          {shown.map(({ id, state }) => (
            <label key={id}>
              <input type="checkbox" checked={ids.includes(id)} onChange={(event) => choose(id, event.currentTarget.checked)} />
              <bdi>{oneLine(id, 300)}</bdi> <span class={`state ${state}`}>{state === "complete" ? "" : state}</span>
            </label>
          ))}
        </div>
        <button onClick={() => change({ experiment: undefined, offset: undefined })} disabled={!ids.length}>
          All
        </button>
      </fieldset>
    </Menu>
  );
}

const THEME = "assay-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = signal("");

export function restoreTheme(): void {
  try {
    apply(localStorage.getItem(THEME) ?? "");
  } catch {
    apply(""); // a file may have no storage
  }
}

function apply(name: string): void {
  theme.value = name;
  document.documentElement.dataset.theme = name;
}

export function ThemeButton(): JSX.Element {
  const next = (theme.value || (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark";
  const turn = () => {
    apply(next);
    try {
      localStorage.setItem(THEME, next);
    } catch {
      // It then holds for this page only.
    }
  };
  return (
    <button onClick={turn} aria-label={`use the ${next} theme`}>
      {next === "dark" ? "Dark" : "Light"}
    </button>
  );
}
