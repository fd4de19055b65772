/** Copies of records that differ in one point, each made once: a record that stays as it is must stay the same object. */

/** Returns a function for the copy of a record with this difference. It keeps the last copy of each record. */
export function createCopies<T extends object>(): (record: T, difference: string, copy: () => T) => T {
  const copies = new WeakMap<T, { readonly difference: string; readonly copy: T }>();
  return (record, difference, copy) => {
    const known = copies.get(record);
    if (known?.difference === difference) return known.copy;
    const made = Object.freeze(copy());
    copies.set(record, { difference, copy: made });
    return made;
  };
}
