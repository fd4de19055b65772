/** Bounds that several threads of a process share. */

/** Returns the part that each of `count` threads has of a bound. The parts together may exceed it by `count` - 1. */
export function equalPart(bound: number, count: number): number {
  return Math.ceil(bound / count);
}
