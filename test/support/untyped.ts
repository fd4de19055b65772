/** Passes on data whose type is wrong or unknown, as a program in JavaScript does. */
import type { ConfigurationRecords } from '#config';

export function untyped(configuration: object): ConfigurationRecords {
  return configuration as ConfigurationRecords;
}
