// Pictures of the chosen experiments, one at a time, with what each of them can be asked.
import type { Leaderboard, Query } from "../pages";
import { change, chosen, href, queryOf, route } from "../router";
import { ChartOf, Choice, Show, scope, usePage, useSource } from "../ui";
import { GridChoice, MeasureChoice, currentMeasure, measuresOf, useGrid } from "./measures";

type Ask = "measure" | "label" | "grid" | "by" | "paid";

const PLOTS: Record<string, { title: string; about: string; asks: Ask[] }> = {
  intervals: { title: "Intervals", about: "Each value with its interval.", asks: ["measure"] },
  scatter: { title: "Quality and cost", about: "What one gets for the money or the time; the line joins what nothing else beats in both.", asks: ["measure", "paid"] },
  heat: { title: "Heat map", about: "A metric by two facets.", asks: ["measure", "grid"] },
  scores: { title: "Scores", about: "How the scores of a label are distributed.", asks: ["label", "by"] },
  latency: { title: "Latency", about: "How long responses took.", asks: ["by"] },
  tokens: { title: "Tokens", about: "How long responses are.", asks: ["by"] },
  pass_at_k: { title: "pass@k", about: "How the chance to pass grows with the number of samples.", asks: ["label"] },
};

export function Plots() {
  const page = usePage("leaderboard", scope());
  const { query } = route.value;
  const asked = query.get("name") ?? "";
  const name = Object.hasOwn(PLOTS, asked) ? asked : "intervals";
  const kept = queryOf(query);
  return (
    <>
      <nav class="tabs" aria-label="plots">
        {Object.entries(PLOTS).map(([each, { title }]) => (
          <a key={each} href={href("plots", { ...kept, name: each })} aria-current={each === name ? "true" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Show page={page}>{(board) => <Plot key={name} name={name} board={board} />}</Show>
    </>
  );
}

function Plot({ name, board }: { name: string; board: Leaderboard }) {
  const { query } = route.value;
  const { title, about, asks: all } = PLOTS[name]!;
  const asks = useSource().live ? all : all.filter((each) => each !== "by" && each !== "paid"); // what a report carries
  const ids = chosen();
  const rows = board.rows.filter((each) => !ids.length || ids.includes(each.experiment));
  const measures = measuresOf(rows);
  const measure = currentMeasure(measures);
  const labels = [...new Set(rows.map((each) => each.label).filter(Boolean))];
  const get = (key: string) => query.get(key) ?? "";
  const asked: Query = { ...scope() };
  if (asks.includes("measure")) Object.assign(asked, measure);
  if (asks.includes("label")) asked.label = get("label");
  const grid = useGrid(board, rows.filter((each) => each.metric === measure?.metric && each.label === measure.label));
  if (asks.includes("grid")) Object.assign(asked, { rows: grid.rows, columns: grid.columns });
  if (asks.includes("by")) asked.by = get("by");
  if (asks.includes("paid")) asked.by = get("paid");
  const facets = [...new Set([...board.facets, ...board.choices])];
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <p class="quiet">{about}</p>
      <div class="controls">
        {asks.includes("measure") && measures.length > 1 && <MeasureChoice measures={measures} current={measure} />}
        {asks.includes("label") && labels.length > 1 && <Choice name="label" value={get("label") || labels[0]!} options={labels} onChange={(label) => change({ label })} />}
        {asks.includes("paid") && <Choice name="against" value={get("paid")} options={[{ value: "", text: "cost, else latency" }, "cost", "latency"]} onChange={(paid) => change({ paid })} />}
        {asks.includes("by") && facets.length > 0 && <Choice name="split by" value={get("by")} options={[{ value: "", text: "model" }, ...facets]} onChange={(by) => change({ by })} />}
      </div>
      {asks.includes("grid") && grid.options.length > 1 && <GridChoice {...grid} />}
      <ChartOf query={{ ...asked, name }} />
    </section>
  );
}
