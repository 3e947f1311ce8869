// The address holds the state of every view: `#/samples?experiment=demo&only=disagree`.
import { signal } from "@preact/signals";
import { queryText } from "./source";
import type { Query } from "./pages";

export interface Route {
  view: string;
  query: URLSearchParams;
}

const FIRST = document.getElementById("pages") ? "report" : "experiments";

function read(): Route {
  const [view = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2) as [string?, string?];
  return { view: view || FIRST, query: new URLSearchParams(query) };
}

export const route = signal<Route>(read());
addEventListener("hashchange", () => (route.value = read()));

export function href(view: string, query: Query = {}): string {
  const text = queryText(query);
  return `#/${view}${text ? `?${text}` : ""}`;
}

// The experiments that were chosen, which stay in the address from view to view; none: all.
export const chosen = (): string[] => route.value.query.getAll("experiment");

export function go(view: string, query: Query = {}): void {
  location.hash = href(view, query);
}

// The address with some values changed; undefined takes one away. `replace`: without a step for the back button.
export function change(changes: Query, { replace = false } = {}): void {
  const address = href(route.value.view, { ...queryOf(route.value.query), ...changes });
  if (!replace) location.hash = address;
  else {
    history.replaceState(null, "", address);
    route.value = read();
  }
}

export function queryOf(query: URLSearchParams): Record<string, string[]> {
  const values: Record<string, string[]> = {};
  for (const name of new Set(query.keys())) values[name] = query.getAll(name);
  return values;
}
