// What a device computes in a stage: exact, from integers alone, and the same work for any record.

import { checkRatio } from "./budget.js";
import { checkAscending, checkAxis, checkNumbers, checkScale, checkWindow, whole } from "./limits.js";
import { below, coin, type Words } from "./random.js";
import { type ScaleEntry, cellOf, checkScore, position } from "./scale.js";

/** What a device holds. Kendall's tau reads a second value. */
export interface DeviceRecord {
  score: number;
  label: 0 | 1;
  second?: number;
}

interface WindowEntry {
  inputs: number;
  width: number;
  inside: string;
  outside: string;
}

interface AxisEntry {
  column: "labels" | "values" | "second values";
  grid: number[];
  low: number;
  high: number;
  bins: number;
  scale: string;
}

/** A stage's instructions, as the coordinator signed them. */
export type Instructions =
  | { kind: "unary"; scale: ScaleEntry; height: number; level_units: number[]; set_words: string }
  | ({ kind: "window"; scale: ScaleEntry; cells: number; positives_from: number } & WindowEntry)
  | ({ kind: "influence"; scale: ScaleEntry; knots: number[][]; grid: number[] } & WindowEntry)
  | { kind: "hadamard"; scale: ScaleEntry; height: number; set_words: string }
  | { kind: "symbol"; axes: AxisEntry[]; other_words: string; others_rarer: boolean };

const WORDS = 1n << 64n;
const ROUNDING = 2 ** 30;
const MAX_HEIGHT = 20;

/** A payload about a record. */
export function payloadOf(how: Instructions, record: DeviceRecord, words: Words): Uint8Array {
  switch (how.kind) {
    case "unary":
      return unary(how, record, words);
    case "window": {
      const place = position(how.scale, record.score);
      const input = cellOf(place, how.cells) + how.positives_from * record.label;
      return littleEndian(window(how, input, words), 2);
    }
    case "influence":
      return littleEndian(influence(how, record, words), 2);
    case "hadamard":
      return littleEndian(hadamard(how, record, words), 4);
    case "symbol":
      return littleEndian(symbol(how, record, words), 2);
  }
}

/** Refuses instructions that this library does not know, or that cost more than epsilon. */
export function checkInstructions(how: Instructions, epsilon: number): void {
  if ("scale" in how) checkScale(how.scale);
  switch (how.kind) {
    case "unary":
    case "hadamard":
      whole(how.height, 1, MAX_HEIGHT);
      if (how.kind === "unary") how.level_units.forEach((units) => whole(units, 0, 2 ** 32));
      checkRatio(WORDS - BigInt(how.set_words), BigInt(how.set_words), epsilon);
      return;
    case "window":
      checkRatio(BigInt(how.inside), BigInt(how.outside), epsilon);
      whole(how.cells, 1);
      whole(how.positives_from, 0);
      return checkWindow(how, how.cells + how.positives_from);
    case "influence":
      checkRatio(BigInt(how.inside), BigInt(how.outside), epsilon);
      whole(how.knots.length, 2, 2);
      for (const knots of how.knots) checkNumbers(knots, 2);
      checkAscending(how.grid, 2);
      return checkWindow(how, how.grid.length);
    case "symbol": {
      how.axes.forEach(checkAxis);
      whole(how.axes.reduce((product, axis) => product * cellsOf(axis), 1), 1);
      const symbols = BigInt(how.axes.reduce((product, axis) => product * cellsOf(axis), 1));
      const rarer = BigInt(how.other_words);
      const others = how.others_rarer ? rarer : WORDS - rarer;
      // the true symbol: not replaced, or replaced by itself; another: replaced by it
      checkRatio((WORDS - others) * symbols + others, others, epsilon);
      return;
    }
    default:
      throw new RangeError("the campaign asks for a mechanism that this library does not know");
  }
}

/** Refuses a record outside the domain, before anything is drawn. */
export function checkRecord(how: Instructions, record: DeviceRecord): void {
  if (record.label !== 0 && record.label !== 1) {
    throw new RangeError(`the label must be 0 or 1, got ${record.label}`);
  }
  if (how.kind !== "symbol") return checkScore(how.scale, record.score);
  for (const axis of how.axes) {
    const value = valueOf(axis, record);
    if (!Number.isFinite(value)) throw new RangeError(`${axis.column} must be a number, got ${value}`);
    if (!axis.grid.length) checkScore({ name: domainOf(axis) }, value);
  }
}

/**
 * The fixed domain of an axis of cells. A coordinator that chose another range could read from a
 * refusal whether a record lies in it: beyond that range, and between values that were listed, a
 * record counts in the nearest cell above, or in the last one.
 */
function domainOf(axis: AxisEntry): string {
  return axis.scale === "even" && !(axis.low === 0 && axis.high === 1) ? "real" : axis.scale;
}

/** A level, then a bit for every cell of both classes on it, the first in the highest place. */
function unary(
  how: Extract<Instructions, { kind: "unary" }>,
  record: DeviceRecord,
  words: Words,
): Uint8Array {
  const { height } = how;
  const leaf = cellOf(position(how.scale, record.score), 2 ** height) + 2 ** height * (1 - record.label);
  const level = 2 + chosen(how.level_units, words);
  const node = leaf >> (height + 1 - level);
  const size = 1 << level;
  const sent = new Uint8Array(1 + Math.max((2 << height) >> 3, 1));
  sent[0] = level;
  const bits = new Uint8Array(size);
  const threshold = BigInt(how.set_words);
  for (let cell = 0; cell < size; cell++) bits[cell] = coin(words, threshold);
  const own = 1 - coin(words, WORDS / 2n);
  for (let cell = 0; cell < size; cell++) {
    const mine = Number(cell === node);
    const bit = mine * own + (1 - mine) * (bits[cell] as number);
    const byte = 1 + (cell >> 3);
    sent[byte] = (sent[byte] as number) | (bit << (7 - (cell & 7)));
  }
  return sent;
}

/** An index in proportion to whole weights. */
function chosen(weights: number[], words: Words): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const drawn = Number(below(words, BigInt(total)));
  let [index, cumulative] = [0, 0];
  for (const weight of weights) {
    cumulative += weight;
    index += Number(drawn >= cumulative);
  }
  return index;
}

/** One of inputs + width - 1 outputs; those from the input on, width of them, are likelier. */
function window(how: WindowEntry, input: number, words: Words): number {
  const [inside, outside] = [BigInt(how.inside), BigInt(how.outside)];
  const likely = BigInt(how.width) * inside;
  const drawn = below(words, likely + BigInt(how.inputs - 1) * outside);
  const within = input + Number(drawn / inside);
  const rest = Number((drawn >= likely ? drawn - likely : 0n) / outside);
  const beyond = rest + how.width * Number(rest >= input);
  const hit = Number(drawn < likely);
  return hit * within + (1 - hit) * beyond;
}

/** The record's number between its class's knots, rounded to the grid, through the window. */
function influence(
  how: Extract<Instructions, { kind: "influence" }>,
  record: DeviceRecord,
  words: Words,
): number {
  const place = position(how.scale, record.score);
  const [negative, positive] = how.knots.map((knots) => between(knots, place)) as [number, number];
  const number = record.label * positive + (1 - record.label) * negative;
  let low = -1;
  for (const point of how.grid) low += Number(point <= number);
  low = Math.max(0, Math.min(low, how.grid.length - 2));
  const [from, to] = [how.grid[low] as number, how.grid[low + 1] as number];
  const part = Math.max(0, Math.min((number - from) / (to - from), 1));
  const up = Number(below(words, BigInt(ROUNDING)) < BigInt(rint(part * ROUNDING)));
  return window(how, low + up, words);
}

/** A number linear between values at equal distances from 0 to 1. */
function between(values: number[], place: number): number {
  const last = values.length - 1;
  const index = Math.min(Math.floor(place * last), last - 1);
  const [from, to] = [values[index] as number, values[index + 1] as number];
  if (place >= 1) return to;
  const slope = (to - from) / ((index + 1) / last - index / last);
  return slope * (place - index / last) + from;
}

/** The nearest whole number, the even one of two. */
function rint(value: number): number {
  const low = Math.floor(value);
  const rest = value - low;
  return rest === 0.5 ? low + (low % 2) : Math.round(value);
}

/** 4 (2**level + row) + 2 label + bit: an entry of the Walsh-Hadamard matrix, perhaps flipped. */
function hadamard(
  how: Extract<Instructions, { kind: "hadamard" }>,
  record: DeviceRecord,
  words: Words,
): number {
  const cell = cellOf(position(how.scale, record.score), 2 ** how.height);
  const level = 1 + Number(below(words, BigInt(how.height)));
  const row = 1 + Number(below(words, (1n << BigInt(level)) - 1n));
  let parity = row & (cell >> (how.height - level));
  for (let shift = 16; shift; shift >>= 1) parity ^= parity >> shift;
  const bit = (parity & 1) ^ coin(words, BigInt(how.set_words));
  return 4 * (2 ** level + row) + 2 * record.label + bit;
}

/** The record's symbol, or with a chance any of all. */
function symbol(
  how: Extract<Instructions, { kind: "symbol" }>,
  record: DeviceRecord,
  words: Words,
): number {
  let [own, symbols] = [0, 1];
  for (const axis of how.axes) {
    own = own * cellsOf(axis) + axisCell(axis, valueOf(axis, record));
    symbols *= cellsOf(axis);
  }
  const rarer = coin(words, BigInt(how.other_words));
  const replaced = how.others_rarer ? rarer : 1 - rarer;
  const other = Number(below(words, BigInt(symbols)));
  return replaced * other + (1 - replaced) * own;
}

function cellsOf(axis: AxisEntry): number {
  return axis.grid.length || axis.bins;
}

function valueOf(axis: AxisEntry, record: DeviceRecord): number {
  if (axis.column === "labels") return record.label;
  return axis.column === "values" ? record.score : (record.second ?? Number.NaN);
}

function axisCell(axis: AxisEntry, value: number): number {
  if (axis.grid.length) {
    let cell = 0;
    for (const point of axis.grid) cell += Number(point < value);
    return Math.min(cell, axis.grid.length - 1);
  }
  const even = axis.scale === "even";
  const place = even ? (value - axis.low) / (axis.high - axis.low) : position({ name: axis.scale }, value);
  return Math.max(0, cellOf(place, axis.bins));
}

function littleEndian(value: number, size: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes.slice(0, size);
}
