export function Matrix() {
  return <p>not yet</p>;
}
