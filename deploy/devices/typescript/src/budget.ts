// What a mechanism's integers cost, checked on the device: nobody has to be believed about epsilon.

const PLACES = 160n;
const ONE = 1n << PLACES;

/** A lower bound of exp(epsilon) * 2**160: the series of a number rounded down, term by term. */
export function expFloor(epsilon: number): bigint {
  if (!(epsilon > 0 && epsilon <= 50)) {
    throw new RangeError(`epsilon must be above 0 and at most 50, got ${epsilon}`);
  }
  const x = exactFloor(epsilon);
  let [term, sum] = [ONE, 0n];
  for (let n = 1n; term > 0n; n++) {
    sum += term;
    term = (term * x) / ONE / n;
  }
  return sum;
}

/** A double times 2**160, rounded down. */
function exactFloor(value: number): bigint {
  let exponent = 0;
  // doubling is exact
  while (!Number.isInteger(value)) {
    value *= 2;
    exponent += 1;
  }
  return (BigInt(value) << PLACES) >> BigInt(exponent);
}

/**
 * Refuses likely / unlikely above exp(epsilon), and below 1: weights that are the other way round
 * have a small ratio, and say of a record what it is not.
 */
export function checkRatio(likely: bigint, unlikely: bigint, epsilon: number): void {
  if (unlikely <= 0n || likely < unlikely || likely * ONE > unlikely * expFloor(epsilon)) {
    throw new RangeError(`the campaign's numbers cost more than its epsilon of ${epsilon}`);
  }
}
