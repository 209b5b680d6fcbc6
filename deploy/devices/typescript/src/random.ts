// Uniform words and integers from the system's entropy, in the order in which tacit draws them.

/** A source of independent uniform 64-bit words. */
export type Words = () => bigint;

/** Fills an array with independent uniform bytes. */
export type Fill = (bytes: Uint8Array) => void;

/** The system's entropy, in browsers and in Node. */
export function systemBytes(bytes: Uint8Array): void {
  crypto.getRandomValues(bytes);
}

/** Words of 8 bytes each, the least significant first; `pool` of them are filled at once. */
export function wordsOf(fill: Fill, pool = 1): Words {
  const bytes = new Uint8Array(8 * pool);
  const view = new DataView(bytes.buffer);
  let place = bytes.length;
  return () => {
    if (place === bytes.length) {
      fill(bytes);
      place = 0;
    }
    place += 8;
    return view.getBigUint64(place - 8, true);
  };
}

const RANGE = 1n << 64n;

/** An integer uniform on 0 .. bound - 1; words of the last, incomplete run are drawn again. */
export function below(words: Words, bound: bigint): bigint {
  const complete = RANGE - (RANGE % bound);
  for (;;) {
    const word = words();
    if (word < complete) return word % bound;
  }
}

/** 1 with the chance threshold / 2**64, else 0. */
export function coin(words: Words, threshold: bigint): number {
  return Number(words() < threshold);
}
