/** Something that happens once, for a test to wait for. */

export interface Signal {
  readonly give: () => void;
  readonly given: Promise<void>;
}

export function createSignal(): Signal {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { give: () => give(), given };
}
