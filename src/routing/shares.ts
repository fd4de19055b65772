/** How the mappings of one match share its requests. */
import type { Rule } from './rule.ts';

export interface Match<R> {
  readonly route: R;
  /** Gets a copy of this request; undefined: no copy is made. */
  readonly shadow: R | undefined;
}

export interface Member<R> {
  readonly route: R;
  /** Percent of the group's requests; those of all members add up to 100. */
  readonly weight: number;
}

/** How a group's requests are shared; without a member it takes none. */
export interface Shares<R> {
  readonly members: readonly Member<R>[];
  readonly shadow: R | undefined;
  /** Percent of the group's requests that are copied. */
  readonly shadowWeight: number;
}

/** `routes`: of one group, in the order of trial. */
export function sharesOf<R extends Rule>(routes: readonly R[]): Shares<R> {
  const shadow = routes.find((route) => route.shadow);
  return {
    members: membersOf(routes.filter((route) => !route.shadow)),
    shadow,
    shadowWeight: shadow === undefined ? 0 : (shadow.weight ?? 100),
  };
}

/**
 * A member without a weight takes its part of what the others leave. Where nobody has one, the first takes all: two
 * mappings that meet by accident must not split their requests. What does not add up to 100 is scaled.
 */
function membersOf<R extends Rule>(rules: readonly R[]): readonly Member<R>[] {
  if (rules.every(({ weight }) => weight === undefined))
    return rules.map((route, index) => ({ route, weight: index === 0 ? 100 : 0 }));
  const told = sum(rules.map(({ weight }) => weight ?? 0));
  const rest = Math.max(0, 100 - told) / rules.filter(({ weight }) => weight === undefined).length;
  const weights = rules.map(({ weight }) => weight ?? rest);
  const scale = 100 / sum(weights);
  return rules.map((route, index) => ({
    route,
    weight: scale === Number.POSITIVE_INFINITY ? 100 / rules.length : (weights[index] ?? 0) * scale,
  }));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** What can come out is made once, so that a match allocates nothing. Undefined where nothing can. */
export function createPick<R>(shares: Shares<R>): ((random: () => number) => Match<R>) | undefined {
  const { members, shadow, shadowWeight } = shares;
  if (members.length === 0) return undefined;
  const copied = shadowWeight / 100;
  const plain = members.map(({ route }) => Object.freeze({ route, shadow: undefined }));
  const withCopy = members.map(({ route }) => Object.freeze({ route, shadow }));
  const choose = createChoice(members.map(({ weight }) => weight));
  return function pick(random) {
    const index = choose(random);
    const isCopied = copied > 0 && (copied >= 1 || random() < copied);
    return (isCopied ? withCopy : plain)[index] as Match<R>;
  };
}

/** Which of the weights a random number falls on. They follow each other in the order of trial. */
function createChoice(weights: readonly number[]): (random: () => number) => number {
  const chosen = weights.flatMap((weight, index) => (weight > 0 ? [index] : []));
  const last = chosen.pop() ?? 0;
  if (chosen.length === 0) return () => last;
  const bounds = chosen.map((index) => ({ index, below: sum(weights.slice(0, index + 1)) / 100 }));
  return function choose(random) {
    const number = random();
    return bounds.find(({ below }) => number < below)?.index ?? last;
  };
}
