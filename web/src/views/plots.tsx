export function Plots() {
  return <p>not yet</p>;
}
