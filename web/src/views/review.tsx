export function Review() {
  return <p>not yet</p>;
}
