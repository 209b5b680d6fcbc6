// The library for Node: memory in a file.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { EMPTY, type Memory, type Store } from "./ledger.js";

export * from "./common.js";

/** Memory in one file; another process that updates it at the same time is refused. */
export class FileStore implements Store {
  constructor(readonly path: string) {}

  async update<T>(change: (memory: Memory) => T): Promise<T> {
    const lock = this.#locked();
    try {
      const memory = this.#read();
      const result = change(memory);
      this.#write(memory);
      return result;
    } finally {
      closeSync(lock);
      unlinkSync(`${this.path}.lock`);
    }
  }

  #locked(): number {
    const path = `${this.path}.lock`;
    try {
      return openSync(path, "wx");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      throw new Error(`another process updates ${this.path}; if none does, one ended amid it: remove ${path}`);
    }
  }

  #read(): Memory {
    try {
      return JSON.parse(readFileSync(this.path, "utf8")) as Memory;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return structuredClone(EMPTY);
      throw error;
    }
  }

  #write(memory: Memory): void {
    const file = openSync(`${this.path}.part`, "w", 0o600);
    try {
      writeFileSync(file, JSON.stringify(memory));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(`${this.path}.part`, this.path);
    // a name that a crash takes back would free what was spent
    const folder = openSync(dirname(this.path), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }
}
