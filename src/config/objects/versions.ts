/** Which version of each object counts: the one that is there, or the last valid one, if its namespace has room for it. */
import type { ConfigurationError } from '../errors.ts';
import { rulesOf } from '../gateway-api/routes/rules.ts';
import { isRoute } from '../gateway-api/specs.ts';
import { mapInTurns } from '../turns.ts';
import type { ClusterObject } from './object.ts';
import { type ObjectOptions, type ObjectPart, partBeyond, readObject } from './read-object.ts';
import { createRoom } from './room.ts';

export interface VersionOptions extends ObjectOptions {
  /**
   * Resolves the last valid version of a route with the other objects as they are now: what a Gateway or a ReferenceGrant
   * does not permit any more must end. @default it stays as it was
   */
  readonly renewRoute?: ((route: ClusterObject) => ClusterObject) | undefined;
}

/** An object, and the version of it that counts. */
export interface Entry {
  readonly part: ObjectPart;
  /** Undefined if it is refused and has no valid version. */
  version: ObjectPart | undefined;
  /** Why it is refused. */
  errors: readonly ConfigurationError[];
  /** Whether there is no room for its last valid version, which is then forgotten. */
  hasLost: boolean;
}

/** Why an object is to be refused although nothing is wrong with it. */
export type Unusable = (object: ClusterObject) => ConfigurationError | undefined;

/**
 * The Mappings of the objects of a namespace count from the oldest object, whether it is valid or not. One that would exceed
 * `mappingsMax` is refused as a whole, and a newer one may still fit. Only the objects that are there decide, so that all
 * replicas agree. A last valid version has what is left, as far as it has more Mappings than the object that is there.
 */
export function createVersions(options: VersionOptions) {
  let parts: ReadonlyMap<string, ObjectPart> = new Map();
  let lastValid: ReadonlyMap<string, ObjectPart> = new Map();
  let lastValidBefore = lastValid;
  let room = createRoom(options);
  const renewedParts = new WeakMap<ClusterObject, ObjectPart>();

  function takePart(object: ClusterObject): ObjectPart {
    const { uid, namespace, value } = object;
    const before = parts.get(uid);
    const known = before?.object.value === value ? before : undefined;
    const count = mappingCountOf(object, known);
    if (count !== undefined && !room.has(namespace, count)) return beyond(object, count, known);
    const part = known?.isBeyond === false ? known : readObject(object, options);
    return room.take(namespace, part.mappingCount) ? part : beyond(object, part.mappingCount, known);
  }

  function beyond(object: ClusterObject, count: number, known: ObjectPart | undefined): ObjectPart {
    return known?.isBeyond ? known : partBeyond(object, count, options);
  }

  function takeLastValid(entry: Entry): ObjectPart | undefined {
    const { part } = entry;
    const { uid, namespace } = part.object;
    const last = lastValid.get(uid);
    if (last === undefined) return undefined;
    const object = isRoute(last.object) ? (options.renewRoute?.(last.object) ?? last.object) : last.object;
    const more = (mappingCountOf(object, last) ?? 0) - (part.isBeyond ? 0 : part.mappingCount);
    entry.hasLost = !room.take(namespace, Math.max(0, more));
    return entry.hasLost ? undefined : renewed(last, object);
  }

  function renewed(last: ObjectPart, object: ClusterObject): ObjectPart | undefined {
    if (object === last.object) return last;
    const part = renewedParts.get(object) ?? readObject(object, options);
    renewedParts.set(object, part);
    return part.errors.length === 0 ? part : undefined;
  }

  return {
    async read(objects: readonly ClusterObject[], unusable: Unusable): Promise<readonly Entry[]> {
      lastValidBefore = lastValid;
      room = createRoom(options);
      const read = await mapInTurns(objects, takePart);
      return mapInTurns(read, (part) => {
        const ofUse = unusable(part.object);
        const errors = ofUse === undefined ? part.errors : [...part.errors, ofUse];
        const entry: Entry = { part, version: part, errors, hasLost: false };
        if (errors.length > 0) entry.version = takeLastValid(entry);
        return entry;
      });
    },
    /** Returns the last valid version of an object that is refused, if there is one and room for it. */
    takeLastValid,
    lastValidOf: ({ part }: Entry) => lastValid.get(part.object.uid),
    /** Forgets the objects that no longer exist. */
    remember(entries: readonly Entry[]): void {
      parts = new Map(entries.map(({ part }) => [part.object.uid, part]));
      const valid = entries.map(({ part: { object }, part, version, hasLost }) => {
        const last = hasLost ? undefined : lastValid.get(object.uid);
        return [object.uid, version === part ? part : last] as const;
      });
      lastValid = new Map(valid.flatMap(([uid, part]) => (part === undefined ? [] : [[uid, part] as const])));
    },
    /** Forgets what the last call of `remember` has found valid. */
    undo(): void {
      lastValid = lastValidBefore;
    },
  };
}

/** Undefined for an object that has to be read first. */
function mappingCountOf(object: ClusterObject, part: ObjectPart | undefined): number | undefined {
  return isRoute(object) ? rulesOf(object).mappingCount : part?.mappingCount;
}
