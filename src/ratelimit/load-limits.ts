/** Reads limits from files or from data, for a limiter without a gateway. Loads the readers when they are needed. */
import type { LimitDomain, LimitDomainInput, LoadedConfiguration } from '#config';

/**
 * Reads `ratelimit/*.yaml` of a configuration directory.
 * @throws {Error} that lists every error of the directory with its file, line and fix.
 */
export async function loadLimits(directory: string): Promise<readonly LimitDomain[]> {
  const { loadConfiguration } = await import('#config');
  return limitsOf(await loadConfiguration(directory));
}

/**
 * Checks limits in the format of the files, such as `[{ domain: 'app', descriptors: [{ key: 'user', rate_limit: … }] }]`.
 * @throws {Error} that lists every error with its position in the list and its fix.
 */
export async function parseLimits(limits: readonly LimitDomainInput[]): Promise<readonly LimitDomain[]> {
  const { configurationFrom } = await import('#config');
  return limitsOf(configurationFrom({ records: [], limits }));
}

async function limitsOf({ configuration, errors }: LoadedConfiguration): Promise<readonly LimitDomain[]> {
  if (errors.length === 0) return configuration.limits;
  const { formatErrors } = await import('#config');
  throw new Error(formatErrors(errors, '.'));
}
