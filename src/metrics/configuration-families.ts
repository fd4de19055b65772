/** Which configuration is in force, and whether the files are it. */
import type { ConfigurationError } from '#config';
import type { Family, Sample } from './exposition.ts';

export interface ConfigurationParts {
  readonly current: () => { readonly number: number; readonly appliedAtMs: number };
  readonly errors: () => readonly ConfigurationError[];
  readonly notices: () => readonly ConfigurationError[];
  readonly reloads: () => { readonly succeeded: number; readonly failed: number; readonly lastDurationMs: number };
}

export function createConfigurationFamilies(parts: ConfigurationParts): readonly Family[] {
  const { current, errors, notices, reloads } = parts;
  return [
    gauge('generation', 'Number of the configuration in force, from 1 at the start.', () => current().number),
    gauge('applied_timestamp_seconds', 'When it came into force.', () => current().appliedAtMs / 1000),
    gauge('errors', 'What is wrong with the files as they are now.', () => errors().length),
    gauge('notices', 'What is odd about them without being wrong.', () => notices().length),
    {
      name: 'frontdesk_configuration_reloads_total',
      type: 'counter',
      labels: ['result'],
      help: 'Changes of the files that were read: `success`, or `error` where some or all of it is broken.',
      samples: () => [
        { labels: { result: 'success' }, value: reloads().succeeded },
        { labels: { result: 'error' }, value: reloads().failed },
      ],
    },
    gauge('last_reload_success', '0 while something of the files is broken, and what was good before stays.', () =>
      errors().length === 0 ? 1 : 0,
    ),
    gauge(
      'last_reload_duration_seconds',
      'How long the last change took to be read, checked and put into force; 0 before the first.',
      () => reloads().lastDurationMs / 1000,
    ),
  ];
}

function gauge(name: string, help: string, value: () => number): Family {
  const samples = (): Sample[] => [{ labels: {}, value: value() }];
  return { name: `frontdesk_configuration_${name}`, type: 'gauge', labels: [], help, samples };
}
