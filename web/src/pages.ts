// The data interface: what each page of data has. `src/assay/viewer/pages/<name>.py` makes them; a report carries them.

export type Outcome = "scored" | "unparsed" | "refused" | "errored" | "skipped" | "ok" | "";

export interface Experiment {
  id: string; // its path below the roots: what addresses and queries name it by
  name: string;
  folder: string;
  state: "complete" | "failed" | "running" | "stopped" | "killed" | "partial" | "broken";
  items: number | null;
  planned: number | null;
  responses: number;
  errors: number;
  evaluations: number;
  label_errors: number;
  reasons: string[];
  values: Record<string, [number, number, number]>;
  updated: number;
  problem: string | null;
}

export interface Experiments {
  version: string;
  roots: string[];
  experiments: Experiment[];
}

// query: experiment[] (none: all), facet[] (none: those of the metrics as they were computed)
export interface Leaderboard {
  facets: string[];
  choices: string[];
  rows: LeaderRow[];
  usage: Usage[];
  notes: string[];
}

export interface LeaderRow {
  experiment: string;
  facets: Record<string, string>;
  metric: string;
  label: string;
  value: number | null;
  ci_low: number | null;
  ci_high: number | null;
  ci_level: number | null;
  ci_method: string;
  lower_is_better: boolean;
  items: number;
  samples: number;
  planned: number;
  used: number; // samples that the value is made of
  passed: string; // "1999/2000" where the value is a share of verdicts
  counts: Record<string, number>; // scored, unparsed, refused, errored, skipped
  if_wrong: number | null; // the value if all that is missing were wrong
  if_right: number | null;
  policy: Record<string, string>;
  partial: string;
  latency: number | null; // median seconds of a response
  cost: number | null; // dollars of all responses behind the row; null where a price is unknown
}

export interface Usage {
  experiment: string;
  model: string;
  responses: number;
  errors: number;
  prompt_tokens: number;
  completion_tokens: number;
  cost: number | null;
}

// query: like the leaderboard's, metric, label. Rows in the order of the leaderboard's rows of this metric and label.
export interface Standing {
  ranks: { experiment: string; facets: Record<string, string>; ranks: [number, number] }[];
  spent: { experiment: string; facets: Record<string, string>; latency: number | null; cost: number | null }[]; // where there is an index
  notes: string[];
}

// query: name, and what the chart needs (see src/assay/viewer/pages/chart.py)
export interface Chart {
  title: string;
  svg: string; // made by src/assay/reports/charts, texts escaped there
  about: string;
}

export interface SamplesQuery {
  experiment?: string[];
  label?: string;
  search?: string;
  regex?: boolean;
  outcome?: string[]; // of the label, or of the response where nothing judged it
  passed?: "passed" | "failed" | "";
  low?: number; // of the score
  high?: number;
  where?: string[]; // facet=value
  tag?: string[];
  only?: "disagree" | "failed_by_all" | "passed_by_one" | "";
  sort?: "order" | "disagreement" | "length" | "latency" | "score" | "item";
  descending?: boolean;
  offset?: number;
  limit?: number;
}

export interface Samples {
  total: number; // how many match
  all: number;
  label: string;
  labels: string[];
  facets: Record<string, string[]>; // what one can filter by; at most 100 values each
  tags: string[];
  indexed: number | null; // the share that can be searched while the index is made; null: all
  left_out: number; // lines of responses that are no rows, or do not count
  rows: SampleRow[];
}

export interface SampleRow {
  experiment: string;
  item: string;
  task: string;
  model: string;
  sample: number;
  key: string;
  outcome: Outcome; // of the response: ok, refused, errored, skipped
  verdict: Outcome; // of the label
  passed: boolean | null;
  score: number | null;
  latency: number;
  tokens: number | null;
  cost: number | null;
  length: number; // characters of the answer
  question: string; // beginnings of the texts
  answer: string;
  disagreement: number; // of the item: 0 all tasks alike, 1 as different as can be
}

// query: as samples; rows are items, columns tasks
export interface Matrix {
  total: number;
  label: string;
  labels: string[];
  indexed: number | null;
  columns: { experiment: string; task: string }[];
  rows: MatrixRow[];
}

export interface MatrixRow {
  item: string;
  question: string;
  rate: number | null;
  disagreement: number;
  cells: (MatrixCell | null)[];
}

export interface MatrixCell {
  value: number | null; // mean score of the samples that have one (passed counts 1)
  samples: number;
  failed: number; // samples without a verdict
}

// query: experiment[], item
export interface Sample {
  item_id: string;
  item: Record<string, unknown> | null;
  experiments: Trace[];
}

export interface Trace {
  experiment: string;
  samples: { response: Record<string, any>; spans: any[]; evaluations: Record<string, any>[] }[];
  matches: { label: string; players: string[]; sample_index: number; evaluations: Record<string, any>[] }[];
  calls: Record<string, any>[]; // inner calls of tasks and scorers (a judge's prompt and verdict), in order
  tags: { annotator: string; tag: string; note: string }[];
}

// query: a, b (an experiment's id, or id::facet=value), label, metric, facet (to split by)
export interface Compare {
  a: string;
  b: string;
  label: string;
  labels: string[];
  metric: string;
  comparison: Comparison | null;
  facets: string[];
  by: { facet: string; value: string; comparison: Comparison | null; reason: string }[];
  differences: { what: string; a: string; b: string }[]; // config, prompts, data, served model
  notes: string[];
}

export interface Comparison {
  metric: string;
  label: string;
  lower_is_better: boolean;
  level: number;
  pairs_level: number;
  standings: {
    name: string;
    value: number;
    ci_low: number | null;
    ci_high: number | null;
    ci_method: string;
    ranks: [number, number];
    items: number;
    samples: number;
    counts: Record<string, number>;
    partial: string;
  }[];
  pairs: {
    candidate: string;
    baseline: string;
    items: number;
    only_candidate: number;
    only_baseline: number;
    failed: number;
    difference: number;
    ci_low: number;
    ci_high: number;
    p: number;
    p_corrected: number;
    test: string;
    smallest_difference: number;
    verdict: "better" | "worse" | "equivalent" | "inconclusive" | "incomplete";
    items_needed: [number, number | null] | null;
    reason: string;
    gained: number;
    lost: number;
  }[];
  notes: string[];
}

// query: a, b, label, direction (gained, lost or none: both), offset, limit
export interface Flips {
  total: number;
  gained: number;
  lost: number;
  rows: {
    item: string;
    question: string;
    direction: "gained" | "lost";
    a: { value: number; answer: string; experiment: string };
    b: { value: number; answer: string; experiment: string };
  }[];
}

// query: experiment[], label, method
export interface Ranking {
  label: string;
  method: string;
  standings: {
    player: string;
    ranks: [number, number];
    value: number;
    ci_low: number | null;
    ci_high: number | null;
    win_rate: number;
    wins: number;
    ties: number;
    losses: number;
    matches: number;
    failed: number;
  }[];
  win_matrix: { players: string[]; wins: number[][]; ties: number[][] };
  charts: Chart[];
  notes: string[];
  reason: string; // why there is no ranking
}

// query: experiment
export interface Judges {
  judges: { label: string; by: string; facts: [string, string, string][]; charts: Chart[] }[]; // what, value, interval
  notes: string[];
  reason: string;
}

// query: experiment, label, annotator, count
export interface Review {
  label: string;
  labels: string[];
  annotator: string; // "" where it must be asked
  scale: number[] | null; // grades; null: pass and fail
  pairwise: boolean;
  asked: string; // what the judge was asked, where that is known
  done: number;
  waiting: ReviewUnit[];
  labelled: { unit: ReviewUnit; label: number | null; note: string; tags: string[]; judge: number | null }[];
  agreement: [string, string, string][]; // what, value, interval
}

// In a pair, labels and verdicts are about the order that is shown: 1 the first answer is better, 0 the second, 0.5 a tie.
// What `save` sends; the answer is {judge}: what the judge said, now that it is labelled. `value` null takes a label back.
export interface GivenLabel {
  experiment: string;
  label: string;
  annotator: string;
  unit: string;
  value: number | null;
  note?: string;
  tags?: string[];
  count?: number; // as of the query
}

export interface ReviewUnit {
  id: string;
  question: string;
  reference: string | null;
  answers: string[];
}

export interface PageTypes {
  experiments: Experiments;
  leaderboard: Leaderboard;
  standing: Standing;
  chart: Chart;
  samples: Samples;
  matrix: Matrix;
  sample: Sample;
  compare: Compare;
  flips: Flips;
  ranking: Ranking;
  judges: Judges;
  review: Review;
  report: Report; // only a report has it
}

export type PageName = keyof PageTypes;
export type Query = Record<string, string | number | boolean | string[] | undefined>;

// ---- what a report carries instead of the pages samples, matrix, flips and sample, which the app makes from it

export interface Report {
  title: string;
  made: string; // when, in ISO 8601
  reproduce: string[]; // commands
  config: { experiment: string; yaml: string }[];
  comparisons: { a: string; b: string }[];
  rows: number; // how many are carried, the hardest items first
  all: number; // how many there are
  chunks: number; // of `rows/<n>`, 2,000 rows each
  details: Record<string, number>; // item -> the chunk `details/<n>` that has its page `sample`
}

// What src/assay/viewer/index/columns.py declares, in the document: filters, sorts and the cells of lists are made of it.
export interface Declared {
  conditions: Condition[];
  sorts: Record<string, { title: string; type: "TEXT" | "REAL" | "INTEGER" | "BOOLEAN" }>;
  cells: string[]; // columns that one can filter by, which rows have
}

// What a parameter of a query asks of a column of rows, their verdicts or their items. `otherwise`: the column that stands in
// where this one has nothing; `words`: all values, or those for what is true, and what is not.
export interface Condition {
  name: string;
  operator: "in" | ">=" | "<=" | "is";
  column: string;
  otherwise: string;
  words: string[];
  title: string;
}

// A chunk `rows/<n>` is a list of these; a chunk `details/<n>` maps items to their pages `sample`.
export interface CarriedRow extends Omit<SampleRow, "verdict" | "passed" | "score" | "disagreement"> {
  labels: Record<string, { verdict: Outcome; passed: boolean | null; score: number | null }>;
  facets: Record<string, string>;
  tags: string[];
  text: string; // question and answer, for the search
}
