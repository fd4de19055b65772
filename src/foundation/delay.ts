/** When things run: the bound of delays, and changes that take turns. */

/** The longest delay of a Node timer. With a longer one, such as `Infinity`, it would fire immediately. */
export const delayMsMax = 2_147_483_647;

/** Runs a change when all earlier ones have settled. */
export type InTurn = <T>(change: () => Promise<T>) => Promise<T>;

/** Returns a function that lets the changes that it gets run one after the other. */
export function createTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (change) => {
    const changed = last.then(change);
    last = changed.catch(() => {});
    return changed;
  };
}
