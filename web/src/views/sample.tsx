export function Sample() {
  return <p>not yet</p>;
}
