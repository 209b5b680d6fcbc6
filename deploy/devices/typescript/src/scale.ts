// Public increasing maps of scores to positions from 0 to 1, the same doubles as tacit's.

/** A fixed map by its name, or knots at equal distances with straight lines between them. */
export type ScaleEntry =
  | { name: string }
  | { knots: number[]; low: number | null; high: number | null };

interface Scale {
  knots: number[];
  low: number | null;
  high: number | null;
}

const CELLS = 1024;
const KNOT_BITS = 20;
const WHOLE_PART = 1 - 2 ** -40; // the largest part of a cell that lies below a score in it
const REACH: Record<string, [number, number]> = { "log-odds": [4, 2.7], real: [1, 44] };

const view = new DataView(new ArrayBuffer(8));

/** A number with all but the first bits of its significand cleared, towards zero. */
function truncated(value: number): number {
  view.setFloat64(0, value);
  const bits = view.getBigInt64(0);
  view.setBigInt64(0, bits & (-1n << BigInt(52 - KNOT_BITS)));
  return view.getFloat64(0);
}

/** size * sinh(growth * (2 k / cells - 1)) for k below half of the cells, rounded. */
function lowerKnots(name: string): number[] {
  const [size, growth] = REACH[name] as [number, number];
  const knots = [];
  for (let k = 1; k < CELLS / 2; k++) {
    knots.push(truncated(size * Math.sinh(growth * ((2 * k) / CELLS - 1))));
  }
  return knots;
}

function named(name: string): Scale {
  if (name === "probability") {
    const lower = lowerKnots("log-odds").map((x) => truncated(1 / (1 + Math.exp(-x))));
    const upper = lower.map((q) => 1 - q).reverse();
    return { knots: [...lower, 0.5, ...upper], low: 0, high: 1 };
  }
  const lower = lowerKnots(name);
  const upper = lower.map((x) => -x).reverse();
  return { knots: [...lower, 0, ...upper], low: null, high: null };
}

const made = new Map<string, Scale>();

/** The knots of a scale; fixed ones are computed once. */
export function scaleOf(entry: ScaleEntry): Scale {
  if ("knots" in entry) return entry;
  if (entry.name !== "probability" && !(entry.name in REACH)) {
    throw new RangeError(`scale must be a known map, got ${JSON.stringify(entry.name)}`);
  }
  const scale = made.get(entry.name) ?? named(entry.name);
  made.set(entry.name, scale);
  return scale;
}

/** Refuses scores that are no numbers, or outside the domain of the scale. */
export function checkScore(entry: ScaleEntry, score: number): void {
  const low = "knots" in entry ? entry.low : unit(entry.name) ? 0 : null;
  const high = "knots" in entry ? entry.high : unit(entry.name) ? 1 : null;
  const inside = (low === null || score >= low) && (high === null || score <= high);
  if (!Number.isFinite(score) || !inside) {
    throw new RangeError(`the score must be a number of the scale, got ${score}`);
  }
}

function unit(name: string): boolean {
  return name === "probability" || name === "even";
}

/** The position of a score, from 0 to 1. All knots are read, whatever the score is. */
export function position(entry: ScaleEntry, score: number): number {
  if ("name" in entry && entry.name === "even") return score;
  const { knots, low, high } = scaleOf(entry);
  let cell = 0;
  for (const knot of knots) cell += Number(knot <= score);
  const at = (index: number): number => knots[index] as number;
  const last = knots.length - 1;
  const first = low ?? at(0) - (at(1) - at(0));
  const end = high ?? at(last) + (at(last) - at(last - 1));
  const from = cell === 0 ? first : at(cell - 1);
  const to = cell > last ? end : at(cell);
  const width = to - from;
  let part = (score - from) / width;
  if (cell > last) part = high !== null ? part : 1 - width / (width + (score - at(last)));
  else if (cell === 0 && low === null) part = width / (width + (at(0) - score));
  part = Math.max(0, Math.min(part, cell > last ? 1 : WHOLE_PART));
  return (cell + part) / (knots.length + 1);
}

/** The equal cell of a position, the last one for 1. */
export function cellOf(place: number, cells: number): number {
  return Math.min(Math.floor(place * cells), cells - 1);
}
