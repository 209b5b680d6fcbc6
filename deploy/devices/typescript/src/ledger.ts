// What a device remembers: one answer a campaign, and epsilon over all campaigns.

/** What a device did in one campaign. */
export interface Entry {
  name: string;
  key: string;
  epsilon: number;
  turn: number | null;
  time: number | null; // seconds since 1970 when the report was made
  report: string | null; // hexadecimal
  acknowledged: boolean;
}

/** All that is remembered. */
export interface Memory {
  clock: number; // the latest time that was seen, in seconds
  entries: Record<string, Entry>;
}

/** A place where memory lasts. `update` is one transaction: it is stored before it returns. */
export interface Store {
  update<T>(change: (memory: Memory) => T): Promise<T>;
}

/** How much epsilon a person gives away in a period, over all campaigns of a device. */
export interface Limits {
  epsilon: number;
  days: number;
}

export const EMPTY: Memory = { clock: 0, entries: {} };

/** The time that counts: a clock that was set back stands still, and frees no budget. */
export function moment(memory: Memory, now: number): number {
  if (now > memory.clock) memory.clock = now;
  return memory.clock;
}

/** What was spent in the period that ends now. */
export function spent(memory: Memory, limits: Limits, now: number): number {
  const since = now - limits.days * 86_400;
  return Object.values(memory.entries)
    .filter((entry) => entry.time !== null && entry.time > since)
    .reduce((sum, entry) => sum + entry.epsilon, 0);
}

/** Memory that ends with the page or the process: for tests. */
export class MemoryStore implements Store {
  memory: Memory = structuredClone(EMPTY);

  update<T>(change: (memory: Memory) => T): Promise<T> {
    const draft = structuredClone(this.memory);
    try {
      const result = change(draft);
      this.memory = draft;
      return Promise.resolve(result);
    } catch (error) {
      return Promise.reject(error);
    }
  }
}
