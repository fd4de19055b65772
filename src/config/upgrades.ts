/** Protocols to which a client may switch its connection. */
import type { Fault } from './fields.ts';

/** A protocol of HTTP itself would carry requests past everything that looks at requests here. */
export function upgradeFault(protocol: string): Fault | undefined {
  if (/^(?:h2c?|http|tls)(?:\/|$)/i.test(protocol)) {
    return {
      message: `${JSON.stringify(protocol)} would carry requests that nobody looks at`,
      remedy: 'Remove it; websocket is what most services need.',
    };
  }
  if (/^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?$/.test(protocol)) return undefined;
  return {
    message: `${JSON.stringify(protocol)} is not a protocol`,
    remedy: 'Write it so: allow_upgrade: [websocket]',
  };
}
