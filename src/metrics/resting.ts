/** Which of very many have series: most of 10,000 mappings, and of their services, wait long for a first request. */

const restingMax = 1_000;

/** All, while they are no more than a thousand: who has a series at 0 can see a first error as an increase. */
export function withoutResting<T>(all: readonly T[], hasBegun: (one: T) => boolean): readonly T[] {
  return all.length <= restingMax ? all : all.filter(hasBegun);
}
