export function Leaderboard() {
  return <p>not yet</p>;
}
