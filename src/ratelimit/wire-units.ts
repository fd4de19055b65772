/** The units of time by their names on the wire. */
import type { Unit } from '#config';

export const wireUnits = Object.freeze({
  second: 'SECOND',
  minute: 'MINUTE',
  hour: 'HOUR',
  day: 'DAY',
  week: 'WEEK',
  month: 'MONTH',
  year: 'YEAR',
} as const satisfies Record<Unit, string>);

export const units: ReadonlyMap<string, Unit> = new Map(
  Object.entries(wireUnits).map(([unit, name]) => [name, unit as Unit] as const),
);
