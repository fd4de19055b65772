/** Label selectors of Kubernetes, which choose namespaces. */
import type { LabelSelector } from '../specs.ts';

type Labels = Readonly<Record<string, string>>;

/** A selector without conditions chooses all. One with an operator that is not known chooses nothing. */
export function selects({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((expression) => holds(expression, labels))
  );
}

type Expression = NonNullable<LabelSelector['matchExpressions']>[number];

function holds({ key, operator, values = [] }: Expression, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}
