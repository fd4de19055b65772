/** circuit_breakers: bounds on what a Mapping has under way at its service. */
import * as z from 'zod';
import { listOfOne } from './choices.ts';
import { strict, wholeNumber } from './fields.ts';
import { mappingDefaults } from './mapping-defaults.ts';
import type { CircuitBreakers } from './mapping-parts.ts';

const most = 1_000_000;
const { circuitBreakers: defaults } = mappingDefaults;

const thresholds = strict({
  priority: z.literal('default').optional(),
  max_connections: wholeNumber(1, most).default(defaults.maxConnections),
  max_pending_requests: wholeNumber(0, most).default(defaults.maxPendingRequests),
  max_requests: wholeNumber(1, most).default(defaults.maxRequests),
  max_retries: wholeNumber(0, most).default(defaults.maxRetries),
}).transform(
  (given): CircuitBreakers => ({
    maxConnections: given.max_connections,
    maxPendingRequests: given.max_pending_requests,
    maxRequests: given.max_requests,
    maxRetries: given.max_retries,
  }),
);

export const circuitBreakersSchema = listOfOne(thresholds);
