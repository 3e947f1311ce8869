// Small marks in the cells of tables: an interval with its value, on a scale that the rows of a table share.
import type { JSX } from "preact";

const HEIGHT = 16;
const EDGE = 6;

export interface Mark {
  value: number | null;
  low: number | null;
  high: number | null;
  wrong?: number | null; // bounds of the value, where something is missing
  right?: number | null;
}

export const markOf = ({ value, ci_low, ci_high }: { value: number | null; ci_low: number | null; ci_high: number | null }): Mark => ({ value, low: ci_low, high: ci_high });

export type Scale = [number, number];

export function scaleOf(marks: Mark[], ...more: number[]): Scale {
  const values = [...marks.flatMap((each) => [each.value, each.low, each.high, each.wrong, each.right]), ...more].filter((each) => typeof each === "number");
  const low = values.reduce((least, each) => Math.min(least, each), Infinity);
  const high = values.reduce((most, each) => Math.max(most, each), -Infinity);
  return !values.length ? [0, 1] : low === high ? [low - 0.5, high + 0.5] : [low, high];
}

// The numbers stand beside it, so it is hidden from screen readers.
export function Interval({ mark, scale, zero, tone = "", width = 130 }: { mark: Mark; scale: Scale; zero?: boolean; tone?: string; width?: number }): JSX.Element | null {
  if (mark.value === null) return null;
  const x = (value: number) => EDGE + ((value - scale[0]) / (scale[1] - scale[0])) * (width - 2 * EDGE);
  const middle = HEIGHT / 2;
  const { low, high, wrong, right } = mark;
  const bounded = typeof wrong === "number" && typeof right === "number" && wrong !== right;
  return (
    <svg class={`interval ${tone}`} width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
      {zero && <line class="zero" x1={x(0)} x2={x(0)} y1={0} y2={HEIGHT} />}
      {bounded && <line class="bounds" x1={x(Math.min(wrong, right))} x2={x(Math.max(wrong, right))} y1={middle} y2={middle} />}
      {(low !== null || high !== null) && <line class="range" x1={x(low ?? scale[0])} x2={x(high ?? scale[1])} y1={middle} y2={middle} />}
      <circle cx={x(mark.value)} cy={middle} r={3.5} />
    </svg>
  );
}
