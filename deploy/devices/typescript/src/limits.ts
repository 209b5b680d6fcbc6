// Sizes and numbers of instructions: outside them a mechanism's ratio says nothing about its outputs.

import { type ScaleEntry } from "./scale.js";

const MOST = 4096;
const WORDS = 1n << 64n;
const LARGEST = 1e100; // differences and slopes of numbers up to it are finite

/** Refuses what is no whole number of a range. */
export function whole(value: number, least: number, most: number = MOST): void {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(`a size must be a whole number from ${least} to ${most}, got ${value}`);
  }
}

/** Refuses numbers that are too few, not finite, or so large that a difference would not be. */
export function checkNumbers(values: number[], least: number): void {
  const fits = (value: unknown): boolean => typeof value === "number" && Math.abs(value) <= LARGEST;
  if (!Array.isArray(values) || values.length < least || values.length > MOST || !values.every(fits)) {
    throw new RangeError(`a list must have ${least} to ${MOST} numbers, each of at most ${LARGEST}`);
  }
}

/** Refuses numbers that do not ascend: between two equal ones there is no position. */
export function checkAscending(values: number[], least: number): void {
  checkNumbers(values, least);
  if (values.some((value, index) => index > 0 && !(value > (values[index - 1] as number)))) {
    throw new RangeError("the numbers of a list must ascend");
  }
}

/**
 * Refuses scales of other domains than probabilities and all numbers. A record outside a domain is
 * not answered for, so a domain that the coordinator chose would ask which records lie in it.
 */
export function checkScale(scale: ScaleEntry): void {
  if (!("knots" in scale)) return;
  if ("name" in scale) throw new RangeError("a scale must have a name or knots, got both");
  const { knots, low, high } = scale;
  const bounded = low === 0 && high === 1;
  if (!bounded && !(low === null && high === null)) {
    throw new RangeError(`a scale must be of 0 to 1 or of all numbers, got ${low} to ${high}`);
  }
  checkAscending(knots, bounded ? 1 : 2);
  if (bounded && !((knots[0] as number) > 0 && (knots.at(-1) as number) < 1)) {
    throw new RangeError("the knots of a scale must lie inside its domain");
  }
}

/** Refuses a window whose chances are not out of at most 2**64 words, or with too few inputs. */
export function checkWindow(
  how: { inputs: number; width: number; inside: string; outside: string },
  needed: number,
): void {
  whole(how.inputs, 2);
  whole(how.width, 1);
  // an input that there is not would have outputs of its own
  if (needed > how.inputs) {
    throw new RangeError(`a window must have an input for all records: ${needed}, got ${how.inputs}`);
  }
  const total = BigInt(how.width) * BigInt(how.inside) + BigInt(how.inputs - 1) * BigInt(how.outside);
  if (total > WORDS) throw new RangeError("the weights of a window must sum to at most 2**64");
}

/** Refuses an axis without a cell for every record of its range. */
export function checkAxis(axis: {
  column: string;
  grid: number[];
  low: number;
  high: number;
  bins: number;
}): void {
  checkAscending(axis.grid, 0);
  if (axis.column === "labels" && axis.grid.join() !== "0,1") {
    throw new RangeError(`labels must have the values 0 and 1, got ${axis.grid.join()}`);
  }
  if (axis.grid.length) return;
  whole(axis.bins, 1);
  checkAscending([axis.low, axis.high], 2);
}
