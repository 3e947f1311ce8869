export function Samples() {
  return <p>not yet</p>;
}
