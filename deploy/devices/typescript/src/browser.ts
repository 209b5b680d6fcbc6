// The library for browsers: memory in IndexedDB.

import { EMPTY, type Memory, type Store } from "./ledger.js";

export * from "./common.js";

const NAME = "tacit-device";
const ENTRIES = "memory";

/** Memory that lasts as long as the browser keeps the page's storage. */
export class BrowserStore implements Store {
  async update<T>(change: (memory: Memory) => T): Promise<T> {
    const database = await opened();
    try {
      return await new Promise<T>((resolve, reject) => {
        const transaction = database.transaction(ENTRIES, "readwrite", { durability: "strict" });
        const entries = transaction.objectStore(ENTRIES);
        let result: T;
        let cause: unknown;
        const reading = entries.get(0);
        reading.onsuccess = () => {
          try {
            const memory = (reading.result as Memory | undefined) ?? structuredClone(EMPTY);
            result = change(memory);
            entries.put(memory, 0);
          } catch (error) {
            cause = error;
            transaction.abort();
          }
        };
        transaction.oncomplete = () => resolve(result);
        transaction.onabort = () => reject(cause ?? transaction.error);
      });
    } finally {
      database.close();
    }
  }
}

function opened(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(ENTRIES);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
