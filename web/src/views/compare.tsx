export function Compare() {
  return <p>not yet</p>;
}
