// The list of experiments, which every view needs, and what a run under way reports (`assay view` only).
import { signal } from "@preact/signals";
import type { Experiment, Experiments } from "./pages";
import type { PageError, Source } from "./source";

export interface Progress {
  rate: number | null; // responses per second
  left_seconds: number | null;
  cost: number | null;
  tokens: number | null;
  waiting: string;
  models: Record<string, { total: number | null; done: number; errors: number; retries: number }>;
}

export const listed = signal<{ value?: Experiments; error?: PageError; loading: boolean }>({ loading: true });
export const progress = signal<Record<string, Progress>>({});
export const lost = signal(false); // whether the server has gone
export const version = signal(0); // grows when rows were added: pages of data are then asked for again

const EVERY_MS = 5000; // between two reloads of the views, which cost more than the list
let timer: ReturnType<typeof setTimeout> | undefined;
let last = 0;

export async function follow(source: Source): Promise<void> {
  try {
    listed.value = { value: await source.page("experiments"), loading: false };
  } catch (error) {
    listed.value = { error: error as PageError, loading: false };
  }
  if (!source.live || typeof EventSource === "undefined") return;
  const events = new EventSource("events");
  events.onmessage = (message) => {
    const news = JSON.parse(message.data) as { experiments: Experiment[]; live: Record<string, Progress> };
    const before = listed.value.value;
    progress.value = news.live;
    if (!before) return;
    listed.value = { value: { ...before, experiments: news.experiments }, loading: false };
    if (rows(before.experiments) !== rows(news.experiments)) reload();
  };
  events.onopen = () => (lost.value = false);
  events.onerror = () => (lost.value = true); // the browser asks again by itself
}

export const progressOf = (id: string): Progress | undefined => (Object.hasOwn(progress.value, id) ? progress.value[id] : undefined);

const rows = (experiments: Experiment[]): string => JSON.stringify(experiments.map((each) => [each.id, each.state, each.responses, each.evaluations]));

function reload(): void {
  if (timer !== undefined) return;
  const wait = Math.max(0, last + EVERY_MS - Date.now());
  timer = setTimeout(() => {
    timer = undefined;
    last = Date.now();
    version.value++;
  }, wait);
}
