// Can a judge be believed, and who wins: reliability of judges, and rankings from matches.
import { listed } from "../live";
import { Interval, markOf, scaleOf } from "../marks";
import type { Judges as JudgesPage, Ranking as RankingPage } from "../pages";
import { change, chosen, route } from "../router";
import { Line, Prose, oneLine } from "../line";
import { Choice, Notes, Picture, Show, Table, count, number, spanText, usePage, useSource, valueText, type Column } from "../ui";

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
                <Choice name="experiment" value={experiment} options={ids} onChange={(id) => change({ experiment: [id], label: undefined })} />
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
            {(value.reason || !value.judges.length) && <Nothing reason={value.reason || "No label of this experiment is a judge's."} />}
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

const Nothing = ({ reason }: { reason: string }) => (
  <div class="nothing box" role="status">
    <p>
      <Prose text={reason} />
    </p>
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
        <bdi>{oneLine(judge.label)}</bdi> <span class="quiet">by {oneLine(judge.by)}</span>
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

const METHODS = ["bradley-terry", "elo", "win-rate"];

function Ranking({ experiment }: { experiment: string }) {
  const { query } = route.value;
  const [label, method] = [query.get("label") ?? "", query.get("method") ?? ""];
  const { live } = useSource();
  const page = usePage("ranking", { experiment: [experiment], ...(live && { label, method }) });
  return (
    <section aria-label="ranking">
      <h2>Ranking</h2>
      <Show page={page}>
        {(value) =>
          value.standings.length ? (
            <>
              <div class="controls" hidden={!live}>
                <Choice name="method" value={method} options={[{ value: "", text: `${value.method} (default)` }, ...METHODS]} onChange={(name) => change({ method: name })} />
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
              <Nothing reason={value.reason || "Nothing was judged in pairs."} />
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
  const scale = scaleOf(ranking.standings.map(markOf));
  const interval = (each: Player) => spanText(each);
  const columns: Column<Player>[] = [
    { name: "rank", text: ({ ranks: [from, to] }) => (from === to ? String(from) : `${from}–${to}`) },
    { name: "player", text: (each) => each.player, cell: (each) => <Line text={each.player} longest={60} /> },
    { name: "strength", text: valueText, number: true, cell: (each) => <b>{valueText(each)}</b> },
    { name: "interval", text: interval, cell: (each) => <Interval mark={markOf(each)} scale={scale} /> },
    { name: "from – to", text: interval },
    { name: "win rate", text: (each) => number(each.win_rate), number: true },
    { name: "wins", text: (each) => count(each.wins), number: true },
    { name: "ties", text: (each) => count(each.ties), number: true },
    { name: "losses", text: (each) => count(each.losses), number: true },
    { name: "matches", text: (each) => count(each.matches), number: true },
    { name: "failed", text: (each) => count(each.failed), number: true, cell: (each) => (each.failed ? <span class="bad">{count(each.failed)}</span> : "0") },
  ];
  return <Table caption={`${oneLine(ranking.method)} of ${oneLine(ranking.label)}; ranks that overlap cannot be told apart`} name="ranking" columns={columns} rows={ranking.standings} />;
}

function Wins({ matrix: { players, wins, ties } }: { matrix: RankingPage["win_matrix"] }) {
  if (players.length < 2) return null;
  const cell = (row: number, column: number): string => {
    const [won, tied, lost] = [wins[row]?.[column] ?? 0, ties[row]?.[column] ?? 0, wins[column]?.[row] ?? 0];
    return row === column || !(won + tied + lost) ? "–" : `${count(won)}–${count(lost)}${tied ? ` (${count(tied)} tied)` : ""}`;
  };
  const columns: Column<number>[] = [{ name: "player", text: (row) => players[row]! }, ...players.map((name, column) => ({ name: oneLine(name, 40), text: (row: number) => cell(row, column) }))];
  return <Table caption="Wins–losses of the row against the column" name="win matrix" columns={columns} rows={players.map((_, row) => row)} />;
}
