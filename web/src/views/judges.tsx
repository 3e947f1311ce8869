// Can a judge be believed, and who wins: reliability of judges, and rankings from matches.
import { listed } from "../live";
import { Interval, scaleOf } from "../marks";
import type { Judges as JudgesPage, Ranking as RankingPage } from "../pages";
import { change, chosen, route } from "../router";
import { Line, Visible, oneLine } from "../line";
import { Choice, Notes, Picture, Show, Table, count, number, usePage, type Column } from "../ui";

// Both are of one experiment: the first that was chosen, else the first there is.
export function Judges() {
  return (
    <Show page={listed.value}>
      {({ experiments }) => {
        const ids = experiments.map((each) => each.id);
        const experiment = chosen()[0] ?? ids[0];
        if (experiment === undefined) return <p class="quiet">There are no experiments.</p>;
        return (
          <>
            {ids.length > 1 && (
              <div class="controls">
                <Choice name="experiment" value={experiment} options={[...new Set([...ids, experiment])]} onChange={(id) => change({ experiment: [id], label: undefined })} />
              </div>
            )}
            <Reliability key={experiment} experiment={experiment} />
            <Ranking key={`ranking ${experiment}`} experiment={experiment} />
          </>
        );
      }}
    </Show>
  );
}

function Reliability({ experiment }: { experiment: string }) {
  const page = usePage("judges", { experiment });
  return (
    <section aria-label="judges">
      <h2>Judges</h2>
      <Show page={page}>
        {(value) => (
          <>
            {!value.judges.length && (
              <Nothing reason={value.reason || "No label of this experiment is a judge's."} commands={[`assay judge label ${oneLine(experiment)}`, `assay judge calibrate ${oneLine(experiment)}`]} />
            )}
            {value.judges.length > 0 && value.reason && <p class="open">{value.reason}</p>}
            {value.judges.map((judge) => (
              <Judge key={judge.label} judge={judge} />
            ))}
            <Notes notes={value.notes} />
          </>
        )}
      </Show>
    </section>
  );
}

const Nothing = ({ reason, commands }: { reason: string; commands: string[] }) => (
  <div class="nothing box" role="status">
    <p>{reason}</p>
    {commands
      .filter((command) => !reason.includes(command.split(" ").slice(0, 3).join(" ")))
      .map((command) => (
        <p key={command}>
          <code>{command}</code>
        </p>
      ))}
  </div>
);

type Fact = [string, string, string];
const FACTS: Column<Fact>[] = [
  { name: "what", text: ([what]) => what },
  { name: "value", text: ([, value]) => value, number: true },
  { name: "interval", text: ([, , interval]) => interval },
];

function Judge({ judge }: { judge: JudgesPage["judges"][number] }) {
  return (
    <>
      <h3>
        <Visible text={judge.label} /> <span class="quiet">by {oneLine(judge.scorer)}</span>
      </h3>
      <Table caption={`How reliable ${oneLine(judge.label)} is`} columns={FACTS} rows={judge.facts} />
      <div class="pictures">
        {judge.charts.map((chart) => (
          <Picture key={chart.title} chart={chart} />
        ))}
      </div>
    </>
  );
}

const METHODS = ["", "bradley-terry", "elo", "win-rate"];

function Ranking({ experiment }: { experiment: string }) {
  const { query } = route.value;
  const [label, method] = [query.get("label") ?? "", query.get("method") ?? ""];
  const page = usePage("ranking", { experiment: [experiment], label, method });
  return (
    <section aria-label="ranking">
      <h2>Ranking</h2>
      <Show page={page}>
        {(value) =>
          value.standings.length ? (
            <>
              <div class="controls">
                <Choice name="method" value={method} options={[...new Set([...METHODS, method])].map((each) => ({ value: each, text: each.replace("-", " ") || `as usual (${value.method.replace("-", " ")})` }))} onChange={(name) => change({ method: name })} />
              </div>
              <Players ranking={value} />
              <Wins matrix={value.win_matrix} />
              <div class="pictures">
                {value.charts.map((chart) => (
                  <Picture key={chart.title} chart={chart} />
                ))}
              </div>
              <Notes notes={value.notes} />
            </>
          ) : (
            <>
              <Nothing reason={value.reason || "Nothing was judged in pairs."} commands={[`assay rank ${oneLine(experiment)}`]} />
              <Notes notes={value.notes} />
            </>
          )
        }
      </Show>
    </section>
  );
}

type Player = RankingPage["standings"][number];

function Players({ ranking }: { ranking: RankingPage }) {
  const scale = scaleOf(ranking.standings.map((each) => ({ value: each.value, low: each.ci_low, high: each.ci_high })));
  const digits = Math.abs(scale[1]) >= 100 ? 0 : 3;
  const range = (each: Player) => (each.ci_low === null || each.ci_high === null ? "–" : `${number(each.ci_low, digits)} to ${number(each.ci_high, digits)}`);
  const columns: Column<Player>[] = [
    { name: "rank", text: ({ ranks: [from, to] }) => (from === to ? String(from) : `${from}–${to}`) },
    { name: "player", text: (each) => each.player, cell: (each) => <Line text={each.player} longest={60} /> },
    { name: "strength", text: (each) => number(each.value, digits), number: true, cell: (each) => <b>{number(each.value, digits)}</b> },
    { name: "interval", text: range, cell: (each) => <Interval mark={{ value: each.value, low: each.ci_low, high: each.ci_high }} scale={scale} /> },
    { name: "from – to", text: range },
    { name: "win rate", text: (each) => number(each.win_rate), number: true },
    { name: "wins", text: (each) => count(each.wins), number: true },
    { name: "ties", text: (each) => count(each.ties), number: true },
    { name: "losses", text: (each) => count(each.losses), number: true },
    { name: "matches", text: (each) => count(each.matches), number: true },
    { name: "failed", text: (each) => count(each.failed), number: true, cell: (each) => (each.failed ? <span class="bad">{count(each.failed)}</span> : "0") },
  ];
  return <Table caption={`${oneLine(ranking.method.replace("-", " "))} of ${oneLine(ranking.label)}; ranks that overlap cannot be told apart`} name="ranking" columns={columns} rows={ranking.standings} />;
}

// Row against column. The colour says how often the row wins, a tie counting half.
function Wins({ matrix: { players, wins, ties } }: { matrix: RankingPage["win_matrix"] }) {
  if (players.length < 2) return null;
  const at = (grid: number[][], row: number, column: number) => grid[row]?.[column] ?? 0;
  const cell = (row: number, column: number) => {
    const [won, tied, lost] = [at(wins, row, column), at(ties, row, column), at(wins, column, row)];
    const all = won + tied + lost;
    if (row === column || !all) return <td key={column}>–</td>;
    const share = (won + tied / 2) / all;
    const colour = share >= 0.5 ? "--good" : "--bad";
    return (
      <td key={column} style={{ background: `color-mix(in srgb, var(${colour}-paper) ${Math.round(200 * Math.abs(share - 0.5))}%, transparent)` }}>
        {count(won)}–{count(lost)}
        {tied > 0 && <span class="quiet"> ({count(tied)} tied)</span>}
      </td>
    );
  };
  return (
    <figure class="table">
      <figcaption>Wins–losses of the row against the column</figcaption>
      <div class="scroll" tabIndex={0} role="group" aria-label="win matrix">
        <table class="wins" aria-label="win matrix">
          <thead>
            <tr>
              <td />
              {players.map((name) => (
                <th key={name} scope="col">
                  {oneLine(name, 30)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {players.map((name, row) => (
              <tr key={name}>
                <th scope="row">{oneLine(name, 30)}</th>
                {players.map((_, column) => cell(row, column))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}
