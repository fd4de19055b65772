/** Takes the objects of a cluster into use, and refuses those because of which a valid configuration cannot be used. */
import { type AcceptedObjects, type ClusterObject, type ObjectAcceptance, unusableError } from '#config';
import { messageOf } from '#foundation';

/** Resolves to what a part of the server has thrown that cannot use these objects. Undefined if they are in use. */
export type UseObjects = (accepted: AcceptedObjects) => Promise<unknown>;

/** Resolves to what was taken in the end. Must not be called concurrently. */
type TakeObjects = (objects: readonly ClusterObject[], use: UseObjects) => Promise<AcceptedObjects>;

/** Why objects are refused, by their values: an object that changes has another. */
type Reasons = ReadonlyMap<unknown, string>;

interface Attempt {
  /** Undefined if the acceptance itself has thrown. */
  readonly accepted: AcceptedObjects | undefined;
  readonly refused: Reasons;
  /** Undefined if the objects are in use. */
  readonly thrown: unknown;
}

/**
 * If a part of the server cannot use a configuration, an object is at fault that has changed since the last one that
 * worked. It is found by leaving out some of these objects, each time with all others in use. Their last valid versions
 * stay in the meantime.
 */
export function createTakeObjects({ accept, undo }: ObjectAcceptance): TakeObjects {
  let unusable: Reasons = new Map();
  let working: ReadonlySet<unknown> = new Set();

  return async (objects, use) => {
    const values = new Set(objects.map(({ value }) => value));
    const known = new Map([...unusable].filter(([value]) => values.has(value)));

    async function attempt(refused: Reasons): Promise<Attempt> {
      let accepted: AcceptedObjects | undefined;
      let thrown: unknown;
      try {
        accepted = await accept(objects, (object) => {
          const reason = refused.get(object.value);
          return reason === undefined ? undefined : unusableError(object, reason);
        });
        thrown = await use(accepted);
      } catch (error) {
        thrown = error;
      }
      if (thrown !== undefined) undo();
      return { accepted, refused, thrown };
    }

    let last = await attempt(known);
    if (last.thrown !== undefined) {
      const suspects = objects.filter(({ value }) => !working.has(value) && !known.has(value));
      last = await withoutCulprits(suspects, last, attempt);
    }
    if (last.thrown === undefined) {
      unusable = last.refused;
      working = values;
    }
    if (last.accepted === undefined) throw last.thrown;
    return last.accepted;
  };
}

/** Then all that may still be at fault is refused. An attempt takes as long as a reload. */
const attemptsMax = 40;

const leftOut = 'is left out until it is known because of which object the configuration cannot be used';

/** Refuses as few of the suspects as it can find out. */
async function withoutCulprits(
  suspects: readonly ClusterObject[],
  failed: Attempt,
  attempt: (refused: Reasons) => Promise<Attempt>,
): Promise<Attempt> {
  const refused = new Map(failed.refused);
  let attempts = 0;
  const without = (objects: readonly ClusterObject[]) => {
    attempts += 1;
    return attempt(new Map([...refused, ...objects.map(({ value }) => [value, leftOut] as const)]));
  };

  /** Without `rest`, the configuration cannot be used because of one of the group. Without either, it can. */
  async function search(group: readonly ClusterObject[], rest: readonly ClusterObject[], thrown: unknown) {
    if (group.length <= 1 || attempts >= attemptsMax) {
      for (const { value } of group) refused.set(value, `cannot be used: ${messageOf(thrown)}`);
      return;
    }
    const middle = group.length >> 1;
    const [first, second] = [group.slice(0, middle), group.slice(middle)];
    for (const [half, others] of [
      [first, [...second, ...rest]],
      [second, rest],
    ] as const) {
      const { thrown: found } = await without(others);
      if (found !== undefined) await search(half, others, found);
    }
  }

  const { thrown: otherwise } = await without(suspects);
  // It fails without them as well: something else is at fault, such as a file.
  if (otherwise === undefined) await search(suspects, [], failed.thrown);
  return attempt(refused);
}
