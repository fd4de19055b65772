/** The units of time by their numbers on the wire. */
import type { Unit } from '#config';

export const wireUnits = Object.freeze({
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  month: 5,
  year: 6,
  week: 7,
} as const satisfies Record<Unit, number>);

/** Undefined for 0, which says nothing, and for a number that nobody knows. */
export function unitOf(number: number): Unit | undefined {
  return units.get(number);
}

const units: ReadonlyMap<number, Unit> = new Map(
  Object.entries(wireUnits).map(([unit, number]) => [number, unit as Unit] as const),
);
