export function Judges() {
  return <p>not yet</p>;
}
