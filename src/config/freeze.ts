/** Freezes plain data all the way down. */

/** The same value; every map and list in it is frozen. */
export function freezeDeep<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  if (Array.isArray(value)) for (const inner of value) freezeDeep(inner);
  // Of thousands of records no list of their values is made.
  else for (const key in value) freezeDeep(value[key]);
  return value;
}
