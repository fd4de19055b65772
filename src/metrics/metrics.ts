/** All metrics of a desk, in the order in which they are told. */
import { createAnswerFamilies, type DecisionParts } from './answer-families.ts';
import { type ClusterParts, createClusterFamilies } from './cluster-families.ts';
import { type ConfigurationParts, createConfigurationFamilies } from './configuration-families.ts';
import { contentType, type Family, formatFamilies } from './exposition.ts';
import { createLimitFamilies, type LimitParts } from './limit-families.ts';
import { createProcessFamilies } from './process-families.ts';
import { createRouteFamilies, type RouteParts } from './route-families.ts';

export interface MetricsParts {
  readonly version: string;
  readonly routes: RouteParts;
  readonly clusters: ClusterParts;
  readonly answers: DecisionParts;
  readonly limits: LimitParts;
  readonly configuration: ConfigurationParts;
}

export interface Metrics {
  readonly contentType: string;
  /** Made from the counts as they are; who asks while it is being made gets the same bytes, so that many cost no more than one. */
  readonly text: () => Promise<Buffer>;
}

export function createMetrics(parts: MetricsParts): Metrics {
  const families = familiesOf(parts);
  let making: Promise<Buffer> | undefined;

  async function make(): Promise<Buffer> {
    // Of a string each connection that is slow to take it would hold a copy.
    return Buffer.from(await formatFamilies(families));
  }

  return Object.freeze({
    contentType,
    text() {
      making ??= make().finally(() => {
        making = undefined;
      });
      return making;
    },
  });
}

export function familiesOf(parts: MetricsParts): readonly Family[] {
  return [
    {
      name: 'frontdesk_build_info',
      type: 'gauge',
      labels: ['version'],
      help: 'Always 1.',
      samples: () => [{ labels: { version: parts.version }, value: 1 }],
    },
    ...createRouteFamilies(parts.routes),
    ...createClusterFamilies(parts.clusters),
    ...createAnswerFamilies(parts.answers),
    ...createLimitFamilies(parts.limits),
    ...createConfigurationFamilies(parts.configuration),
    ...createProcessFamilies(),
  ];
}
